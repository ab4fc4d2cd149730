"""A journal of which nothing is left when its process ends."""

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.daemon.journal.conftest import GUARD_S, LONG_S, START_S, Pen
from tidegate.daemon.journal import Journal
from tidegate.daemon.journal.files import LOOK_EVERY_S
from tidegate.protocol.events import TextDelta
from tidegate.testing.eventually import eventually


@pytest.fixture
def journal():
    troubles = []
    journal = Journal.open_nameless(
        keep_s=LONG_S, bytes_max=1 << 30, idempotency_keep_s=LONG_S, on_trouble=troubles.append
    )
    yield journal
    journal.close()
    assert troubles == []


def text(turn, offset):
    return TextDelta(turn, 1, offset, START_S, "word " * 20)


def test_it_writes_and_reads_without_a_name(journal):
    pen = Pen(journal)
    pen.begin("turn_1")
    pen.entry("turn_1", 0, text("turn_1", 0), text("turn_1", 1)).wait()

    assert journal.turn("turn_1").id == "turn_1"
    stored = journal.events("turn_1", -1, 1 << 20)
    assert [offset for _, offset, _ in stored.items] == [0, 1]


def test_no_file_of_it_has_a_name(journal):
    opened = {str(each.readlink()) for each in Path("/proc/self/fd").iterdir() if each.is_symlink()}
    ours = {path for path in opened if "/tidegate-" in path}

    assert any("journal.db" in path for path in ours)
    assert all(path.endswith(" (deleted)") for path in ours)
    assert not any(Path(path.removesuffix(" (deleted)")).parent.exists() for path in ours)


def test_more_readers_than_connections_wait_for_one_another(journal):
    pen = Pen(journal)
    pen.begin("turn_1")
    pen.entry("turn_1", 0, *(text("turn_1", offset) for offset in range(100))).wait()
    together = threading.Barrier(16)

    def read():
        together.wait(GUARD_S)
        return len(journal.events("turn_1", -1, 1 << 20).items)

    with ThreadPoolExecutor(16) as pool:
        reading = [pool.submit(read) for _ in range(16)]
        assert [each.result(GUARD_S) for each in reading] == [100] * 16


def test_it_goes_on_when_it_looks_for_its_file_again(journal):
    pen = Pen(journal)
    pen.begin("turn_1")
    for offset in range(3):
        pen.entry("turn_1", offset, text("turn_1", offset)).wait()
        threading.Event().wait(LOOK_EVERY_S / 2)

    eventually(lambda: journal.statistics().queued == 0)
    assert journal.statistics().trouble is None


def test_much_goes_through_its_log(journal):
    pen = Pen(journal)
    pen.begin("turn_1")
    offset = 0
    for _ in range(40):
        pen.entry("turn_1", offset, *(text("turn_1", offset + n) for n in range(1000))).wait()
        offset += 1000

    assert [o for _, o, _ in journal.events("turn_1", offset - 2, 1 << 20).items] == [offset - 1]

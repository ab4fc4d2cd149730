"""What cannot be written is told at once, waits in order, and is lost by nobody in silence."""

import json
import sqlite3
import subprocess
import sys
from functools import partial

import msgspec
import pytest

from tests.daemon.journal.conftest import GUARD_S, Told
from tidegate.daemon.journal import Entry, JournalError, JournalLost, TurnRecord, files, writer
from tidegate.testing.eventually import eventually


# A limit on the size of files is how a process without rights makes its own disk fail.
FAILING_DISK = """
import json, resource, sys, threading
from tidegate.daemon.journal import Entry, Journal, TurnRecord
from tidegate.protocol.events import AttemptStarted, TextDelta

HARD = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
said = lambda *words: print(json.dumps(words), flush=True)
journal = Journal.open(sys.argv[1], keep_s=1e12, bytes_max=1 << 40, idempotency_keep_s=1e12,
                       on_trouble=lambda trouble: said("trouble", trouble and trouble[0]))
journal.begin(TurnRecord(id="turn_1"), lambda _: None)
def write(first, count, text):
    for offset in range(first, first + count):
        event = TextDelta("turn_1", 1, offset, 0.0, text)
        journal.write(Entry("turn_1", offset, [event], lambda offset=offset: said("done", offset)))
write(0, 10, "x")
sys.stdin.readline()
resource.setrlimit(resource.RLIMIT_FSIZE, (128 << 10, HARD))
write(10, 20, "x" * 20_000)
sys.stdin.readline()
if sys.argv[2] == "mend":
    resource.setrlimit(resource.RLIMIT_FSIZE, (HARD, HARD))
    sys.stdin.readline()
try:
    journal.close()
except Exception as error:
    said("lost", type(error).__name__, str(error))
"""


@pytest.fixture(autouse=True)
def _hurry(monkeypatch):
    monkeypatch.setattr(writer, "RETRY_S", 0.05)
    monkeypatch.setattr(files, "LOOK_EVERY_S", 0.0)


@pytest.fixture
def limit_pages(pen):
    """Let the database have so many pages; 0 for as many as it wants."""

    def limit(count):
        with pen.held():
            pen.journal._writer._connection.execute(f"PRAGMA max_page_count = {count or 1 << 30}")

    return limit


@pytest.fixture
def host(path):
    """Run a script with a journal; returns what it has said by the line."""
    hosts = []

    def start(*arguments):
        host = subprocess.Popen(
            [sys.executable, "-c", FAILING_DISK, str(path), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        hosts.append(host)
        return host

    yield start
    for host in hosts:
        host.kill()
        host.communicate()


def until(host, *last):
    said = []
    while last != tuple(said[-1] if said else ()):
        said.append(json.loads(host.stdout.readline()))
    return said


def go_on(host):
    host.stdin.write("\n")
    host.stdin.flush()


def offsets(journal, turn_id="turn_1"):
    return [offset for _, offset, _ in journal.events(turn_id, -1, 1 << 30).items]


def give_room(pen):
    """Give room from another thread: the writer waits and holds nothing."""
    pen.journal._writer._connection.execute(f"PRAGMA max_page_count = {1 << 30}")


def test_full_disk_is_told_at_once_and_nothing_is_done(pen, limit_pages, troubles, started, words):
    pen.begin("turn_1")
    pen.write("turn_1", started("turn_1"))
    limit_pages(1)
    told = pen.entry("turn_1", 1, *words("turn_1", 1, "x" * 100_000))
    trouble = troubles.wait()
    later = pen.entry("turn_1", 2, *words("turn_1", 2, "later"))

    assert trouble.kind == "full"
    assert str(pen.journal._writer._path) in trouble.message
    assert "no room" in trouble.message
    assert trouble.way_out.startswith("free space")
    assert (told, later) == ([], [])
    assert offsets(pen.journal) == [0]
    assert pen.journal.statistics().trouble.kind == "full"
    give_room(pen)
    later.wait()


def test_what_waited_is_written_in_order_once_there_is_room(
    pen, limit_pages, troubles, started, words
):
    pen.begin("turn_1")
    pen.write("turn_1", started("turn_1"))
    limit_pages(1)
    done = Told()
    pen.entry("turn_1", 1, *words("turn_1", 1, "x" * 100_000))
    troubles.wait()
    for offset in range(2, 50):
        entry = Entry("turn_1", offset, words("turn_1", offset, "x"), partial(done, offset))
        pen.journal.write(entry)
    reserved = Told()
    pen.journal.begin(TurnRecord(id="turn_2"), reserved)
    withdrawn = pen.entry("turn_1", 48)
    # It was tried again since, with all that has come, and told once.
    eventually(lambda: "; 51 waiting" in pen.journal.statistics().trouble.message)
    give_room(pen)
    withdrawn.wait()

    assert troubles.wait() is None
    assert [trouble and trouble.kind for trouble in troubles] == ["full", None]
    assert done == list(range(2, 50))
    assert reserved.wait().record.id == "turn_2"
    assert offsets(pen.journal) == list(range(48))
    assert pen.journal.statistics().trouble is None


def test_file_that_is_moved_away_is_trouble_until_it_is_back(pen, path, troubles, started):
    pen.begin("turn_1")
    aside = path.with_name("aside.db")
    path.rename(aside)
    told = pen.entry("turn_1", 0, started("turn_1"))
    trouble = troubles.wait()
    assert (trouble.kind, told) == ("moved", [])
    assert "moved or removed" in trouble.message

    aside.rename(path)
    told.wait()
    assert troubles.wait() is None
    assert offsets(pen.journal) == [0]


def test_transaction_of_another_program_is_waited_for(pen, path, troubles, started):
    pen.begin("turn_1")
    shell = sqlite3.connect(path, isolation_level=None)
    shell.execute("BEGIN IMMEDIATE")
    told = pen.entry("turn_1", 0, started("turn_1"))
    trouble = troubles.wait()
    shell.execute("ROLLBACK")
    shell.close()
    told.wait()

    assert trouble.kind == "busy"
    assert troubles.wait() is None


def test_damage_under_way_is_told(pen, path, troubles, started, words):
    pen.begin("turn_1")
    pen.write("turn_1", started("turn_1"), *words("turn_1", 1, *["x" * 1000] * 200))
    with pen.held():
        # Everything goes from the log into the file, where it is then overwritten.
        pen.journal._writer._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        with path.open("r+b") as file:
            file.seek(4096)
            file.write(b"\x17" * 4096 * 30)
        pen.journal._writer._connection.execute("PRAGMA shrink_memory")
        pen.entry("turn_1", 201, *words("turn_1", 201, "more"))
    trouble = troubles.wait()

    assert trouble.kind == "damaged"
    assert "move the file and its -wal away" in trouble.way_out
    with pytest.raises(JournalError, match="cannot be read"):
        pen.journal.turn("turn_1")
    with pytest.raises(JournalLost, match=r"1 items lost, 1 events among them, of turns turn_1"):
        pen.journal.close()


def test_disk_that_fails_and_is_mended_loses_nothing(host, new_pen):
    running = host("mend")
    until(running, "done", 9)
    go_on(running)
    said = until(running, "trouble", "io")
    go_on(running)
    said += until(running, "trouble", None)
    go_on(running)
    rest = [json.loads(line) for line in running.stdout]
    assert running.wait(GUARD_S) == 0

    said += rest
    assert [offset for word, offset in said if word == "done"] == list(range(10, 30))
    assert [kind for word, kind in said if word == "trouble"] == ["io", None]
    stored = new_pen().journal.events("turn_1", -1, 1 << 30)
    assert [offset for _, offset, _ in stored.items] == list(range(31))


def test_closing_in_trouble_says_what_is_lost(host, new_pen):
    running = host("close")
    until(running, "done", 9)
    go_on(running)
    done = [each[1] for each in until(running, "trouble", "io") if each[0] == "done"]
    go_on(running)
    word, kind, text = json.loads(running.stdout.readlines()[-1])

    assert (word, kind) == ("lost", "JournalLost")
    lost = 20 - len(done)
    assert f"closed with {lost} items lost, {lost} events among them, of turns turn_1" in text
    stored = new_pen().journal.events("turn_1", -1, 1 << 30).items
    assert [offset for _, offset, _ in stored[:-1]] == list(range(10 + len(done)))
    assert msgspec.json.decode(stored[-1][2])["type"] == "turn.failed"

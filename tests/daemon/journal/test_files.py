"""What somebody else does to the journal's files is told at once: SQLite alone would go on."""

import itertools
import os
import shutil

import pytest

from tidegate.daemon.journal import JournalLost, files, writer


@pytest.fixture(autouse=True)
def _hurry(monkeypatch):
    monkeypatch.setattr(writer, "RETRY_S", 0.05)
    monkeypatch.setattr(files, "LOOK_EVERY_S", 0.0)


@pytest.fixture
def side(path):
    """Return the path of a file beside the journal."""
    return lambda name: path.with_name(f"{path.name}{name}")


def cut_to(size):
    return lambda path: os.truncate(path, size)


def overwrite(path):
    with path.open("r+b") as file:
        file.write(b"\xaa" * path.stat().st_size)


@pytest.fixture
def more(pen, started, words):
    """Begin a turn, and write further words of it; returns what is told once they are kept."""
    pen.begin("turn_1")
    pen.write("turn_1", started("turn_1"), *words("turn_1", 1, *["x" * 1000] * 50))
    offsets = itertools.count(51)
    return lambda text="more": pen.entry("turn_1", n := next(offsets), *words("turn_1", n, text))


@pytest.mark.parametrize("name", ["-wal", "-shm", ".lock"])
def test_each_file_beside_it_must_stay_where_it_is(more, side, troubles, name):
    aside = side(".aside")
    side(name).rename(aside)
    told = more()
    trouble = troubles.wait()

    assert (trouble.kind, told) == ("moved", [])
    assert side(name).name in trouble.message

    aside.rename(side(name))
    told.wait()
    assert troubles.wait() is None


def test_copy_in_its_place_is_not_it(more, side, troubles):
    aside = side(".aside")
    side("-wal").rename(aside)
    shutil.copy(aside, side("-wal"))
    told = more()
    assert (troubles.wait().kind, told) == ("moved", [])

    aside.replace(side("-wal"))
    told.wait()
    assert troubles.wait() is None


def test_log_that_is_gone_is_seen_before_it_is_time_to_look(more, side, troubles, monkeypatch):
    more().wait()
    monkeypatch.setattr(files, "LOOK_EVERY_S", 1e9)
    more().wait()
    side("-wal").rename(side(".aside"))
    told = more()
    assert (troubles.wait().kind, told) == ("moved", [])

    side(".aside").rename(side("-wal"))
    told.wait()


HARMS = {
    "emptied": ("", cut_to(0), ".db was made empty"),
    "log emptied": ("-wal", cut_to(0), "-wal was cut short"),
    "log cut": ("-wal", cut_to(20_000), "-wal was cut short"),
    "log overwritten": ("-wal", overwrite, "-wal was overwritten"),
}


@pytest.mark.parametrize("harm", HARMS)
def test_what_was_lost_is_told_for_good(pen, more, side, troubles, harm):
    name, do, what = HARMS[harm]
    do(side(name))
    told = more()
    trouble = troubles.wait()

    assert (trouble.kind, told) == ("damaged", [])
    assert what in trouble.message
    with pytest.raises(JournalLost, match="1 events among them, of turns turn_1"):
        pen.journal.close()
    assert len(troubles) == 1


def test_log_that_another_program_has_carried_over_may_be_cut(pen, more, troubles):
    with pen.held():
        pen.journal._writer._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    for _ in range(3):
        more().wait()

    assert troubles == []
    items = pen.journal.events("turn_1", 50, 1 << 20).items
    assert [offset for _, offset, _ in items] == [51, 52, 53]


def test_nothing_is_told_of_files_that_are_as_they_were(pen, more, troubles):
    for _ in range(200):
        more("x" * 50_000).wait()
    pen.sweep()

    assert troubles == []
    assert pen.journal.statistics().queued == 0

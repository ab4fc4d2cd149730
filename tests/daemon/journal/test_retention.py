"""What is kept, for how long, and that the file gets smaller when it is kept no more."""

import itertools

import msgspec
import pytest

from tests.daemon.journal.conftest import GUARD_S, START_S
from tidegate.daemon.journal import FinalState, checkpoint, chores
from tidegate.protocol.answers import Answer
from tidegate.protocol.events import TurnCompleted
from tidegate.testing.eventually import eventually


@pytest.fixture
def run_turn(clock, started, words):
    """Write a whole turn of about so many bytes, one row after the other; returns its events."""

    def run(pen, turn_id, size=1000, rows=10):
        pen.begin(turn_id)
        events = [started(turn_id), *words(turn_id, 1, *["x" * (size // rows)] * rows)]
        answer = Answer(text="x" * size)
        end = TurnCompleted(turn_id, 1, len(events), clock.now_s, answer=answer)
        for event in (*events, end):
            told = pen.entry(turn_id, event.offset, event)
            told.wait()
        return [*events, end]

    return run


def rows(pen, turn_id):
    """Count the rows of a turn's events."""
    connection = pen.journal._reader
    with connection._connection() as reading:
        (no,) = reading.execute("SELECT no FROM turns WHERE id = ?", (turn_id,)).fetchone()
        between = (no << 32, (no + 1) << 32)
        query = "SELECT count(*) FROM events WHERE place >= ? AND place < ?"
        return reading.execute(query, between).fetchone()[0]


def test_ended_turns_rows_are_joined_into_chunks(new_pen, run_turn, read):
    pen = new_pen()
    events = run_turn(pen, "turn_1", size=200_000, rows=300)
    pen.sweep()
    turn = pen.journal.turn("turn_1")

    assert rows(pen, "turn_1") == pytest.approx(turn.kept_bytes / chores.CHUNK_BYTES, abs=4)
    lines = [msgspec.json.encode(event) for event in events]
    assert read(pen.journal, "turn_1") == lines
    assert read(pen.journal, "turn_1", after=150, limit_bytes=70_000) == lines[151:]
    assert turn.kept_bytes == sum(len(line) + 1 for line in lines)


def test_joining_goes_on_after_a_restart(new_pen, run_turn, read):
    pen = new_pen()
    with pen.held():
        pen.journal._writer._chores.join = lambda numbers: None
    events = run_turn(pen, "turn_1")
    loose = rows(pen, "turn_1")
    pen.journal.close()
    again = new_pen()
    again.sweep()

    assert loose == len(events)
    assert rows(again, "turn_1") == 1
    assert read(again.journal, "turn_1") == [msgspec.json.encode(event) for event in events]


def test_old_turns_lose_their_events_and_keep_their_end(new_pen, clock, run_turn):
    pen = new_pen(keep_s=100)
    run_turn(pen, "turn_old")
    clock.now_s += 60
    run_turn(pen, "turn_young")
    pen.begin("turn_open")
    clock.now_s += 60
    pen.sweep()
    old = pen.journal.turn("turn_old")

    assert pen.journal.events("turn_old", -1, 1 << 20) == ([], True, True)
    assert (old.state, old.expired, old.kept_bytes) == ("completed", True, 0)
    final = msgspec.json.decode(old.final, type=FinalState)
    assert (final.state, final.offset, final.at_s) == ("completed", 11, START_S)
    assert len(pen.journal.events("turn_young", -1, 1 << 20).items) == 12
    assert not pen.journal.turn("turn_open").expired


def test_ends_are_given_up_in_their_turn(new_pen, clock, run_turn):
    pen = new_pen(keep_s=100)
    run_turn(pen, "turn_1")
    clock.now_s += 399
    run_turn(pen, "turn_2")
    pen.sweep()
    kept = [turn.id for turn in pen.journal.turns(limit=10)]
    clock.now_s += 1
    pen.sweep()

    assert kept == ["turn_2", "turn_1"]
    assert [turn.id for turn in pen.journal.turns(limit=10)] == ["turn_2"]


def test_ends_are_bounded_in_number(new_pen, clock, run_turn, monkeypatch):
    monkeypatch.setattr(chores, "TOMBSTONES_MAX", 3)
    pen = new_pen(keep_s=100)
    for number in range(10):
        clock.now_s += 1
        run_turn(pen, f"turn_{number}", size=10, rows=1)
    clock.now_s += 100
    pen.sweep()

    assert [turn.id[-1] for turn in pen.journal.turns(limit=20)] == list("987")


def test_oldest_go_first_when_there_is_too_much_and_the_file_shrinks(
    new_pen, clock, run_turn, path
):
    pen = new_pen()
    for number in range(20):
        clock.now_s += 1
        run_turn(pen, f"turn_{number}", size=300_000, rows=3)
    pen.begin("turn_open")
    pen.sweep()
    pen.journal.close()
    large = path.stat().st_size
    again = new_pen(bytes_max=4 << 20)
    again.sweep()
    again.journal.close()
    small = path.stat().st_size
    expired = [turn.expired for turn in new_pen().journal.turns(limit=100)]

    assert large > 11 << 20
    assert small < 5 << 20
    # The newest first: the one that is open, those that fit, and those that do not any more.
    assert expired == sorted(expired)
    assert 4 < expired.count(False) < 10


def test_open_turns_are_kept_however_large(new_pen, started, words):
    pen = new_pen(bytes_max=1, keep_s=0)
    pen.begin("turn_1")
    pen.write("turn_1", started("turn_1"), *words("turn_1", 1, *["x" * 1000] * 100))
    pen.sweep()

    assert len(pen.journal.events("turn_1", -1, 1 << 20).items) == 101


def test_writing_goes_on_between_the_steps(new_pen, clock, run_turn, started, words):
    pen = new_pen(keep_s=10)
    for number in range(5):
        run_turn(pen, f"turn_{number}", size=2_000_000, rows=5)
    clock.now_s += 10
    pen.begin("turn_new")
    pen.write("turn_new", started("turn_new"))
    order = []
    pen.journal.sweep(lambda: order.append("swept"))
    for offset in range(1, 20):
        pen.write("turn_new", *words("turn_new", offset, "x"))
        order.append(offset)
    pen.sweep()

    assert [each for each in order if each != "swept"] == list(range(1, 20))
    assert len(pen.journal.events("turn_new", -1, 1 << 20).items) == 20
    assert all(pen.journal.turn(f"turn_{number}").expired for number in range(5))


def test_log_begins_anew_though_there_is_always_something_to_write(
    new_pen, path, started, words, monkeypatch
):
    monkeypatch.setattr(checkpoint, "EVERY_PAGES", 50)
    monkeypatch.setattr(checkpoint, "LOG_PAGES_MAX", 100)
    pen = new_pen()
    pen.begin("turn_1")
    pen.write("turn_1", started("turn_1"))
    offsets = itertools.count(1)

    def write_and_look():
        offset = next(offsets)
        pen.write("turn_1", *words("turn_1", offset, "x" * 2000))
        with path.with_name("journal.db-wal").open("rb") as log:
            # In its header, how often it was begun.
            return int.from_bytes(log.read(16)[12:], "big") >= 3

    eventually(write_and_look, within_s=GUARD_S)

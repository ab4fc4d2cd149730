"""Withdrawn events are gone, their offsets are given again, and a lost turn gets them back."""

import random

import msgspec
import pytest

from tests.daemon.journal.conftest import START_S
from tidegate.protocol.answers import Usage
from tidegate.protocol.events import (
    AttemptSuperseded,
    RetryScheduled,
    TurnFailed,
    UsageReported,
)
from tidegate.protocol.failures import Failure, FailureKind


CUT = Failure(kind=FailureKind.TRUNCATED, retryable=True)


def told(lines):
    return [
        (each["type"], each.get("text"), each["offset"]) for each in map(msgspec.json.decode, lines)
    ]


@pytest.fixture
def lost(pen, new_pen, read):
    """End the journal with the turn open, and return the events of the turn thereafter."""

    def end(turn_id="turn_1"):
        pen.journal.close()
        journal = new_pen().journal
        lines = read(journal, turn_id)
        return told(lines), msgspec.json.decode(lines[-1], type=TurnFailed)

    return end


@pytest.fixture
def retry():
    return lambda offset: RetryScheduled("turn_1", 1, offset, START_S, cause=CUT, delay_s=1.0)


@pytest.mark.parametrize("together", [True, False], ids=["one group", "a commit each"])
def test_row_that_begins_before_what_is_there_takes_it_back(pen, started, words, retry, together):
    pen.begin("turn_1")
    entries = [
        (0, [started("turn_1"), *words("turn_1", 1, "a", "b", "c")]),
        (4, words("turn_1", 4, "d")),
        (2, [retry(2), started("turn_1", 3, attempt=2)]),
    ]
    if together:
        with pen.held():
            for first, events in entries:
                pen.entry("turn_1", first, *events)
        pen.flush()
    else:
        for first, events in entries:
            pen.entry("turn_1", first, *events).wait()
    stored = pen.journal.events("turn_1", -1, 1 << 20)

    assert told(line for _, _, line in stored.items) == [
        ("attempt.started", None, 0),
        ("text.delta", "a", 1),
        ("retry.scheduled", None, 2),
        ("attempt.started", None, 3),
    ]
    assert pen.journal.statistics().withdrawals == 1


def test_empty_row_takes_back_and_adds_nothing(pen, started, words, read):
    pen.begin("turn_1")
    pen.write("turn_1", started("turn_1"), *words("turn_1", 1, "a", "b"))
    pen.withdraw("turn_1", 1)
    pen.withdraw("turn_1", 1)
    pen.write("turn_1", *words("turn_1", 1, "c"))

    assert told(read(pen.journal, "turn_1", after=0)) == [("text.delta", "c", 1)]


def test_lost_turn_gets_back_what_no_successor_has_replaced(pen, started, words, retry, lost):
    pen.begin("turn_1")
    usage = UsageReported("turn_1", 1, 4, START_S, usage=Usage(input_tokens=7))
    pen.write("turn_1", started("turn_1"), *words("turn_1", 1, "a", "b", "c"), usage)
    pen.entry("turn_1", 2, retry(2), started("turn_1", 3, attempt=2)).wait()
    events, end = lost()

    assert events[2:] == [
        ("retry.scheduled", None, 2),
        ("attempt.started", None, 3),
        ("text.delta", "b", 4),
        ("text.delta", "c", 5),
        ("usage.reported", None, 6),
        ("turn.failed", None, 7),
    ]
    assert (end.answer.text, end.answer.usage.input_tokens) == ("abc", 7)
    assert [report.number for report in end.answer.attempts] == [1, 2]


def test_successors_progress_drops_what_was_withdrawn(pen, started, words, retry, lost):
    pen.begin("turn_1")
    pen.write("turn_1", started("turn_1"), *words("turn_1", 1, "a", "b"))
    superseded = AttemptSuperseded("turn_1", 1, 4, START_S, retracts=1)
    with pen.held():
        pen.entry("turn_1", 2, retry(2), started("turn_1", 3, attempt=2))
        pen.entry("turn_1", 4, superseded, *words("turn_1", 5, "B", attempt=2))
    events, end = lost()

    assert [text for _, text, _ in events if text] == ["a", "B"]
    assert end.answer.text == "B"


def test_second_withdrawal_does_not_hide_the_first(pen, started, words, retry, lost):
    pen.begin("turn_1")
    pen.write("turn_1", started("turn_1"), *words("turn_1", 1, "a", "b"))
    pen.entry("turn_1", 2, retry(2), retry(3)).wait()
    pen.withdraw("turn_1", 3)
    pen.write("turn_1", started("turn_1", 3, attempt=2), *words("turn_1", 4, "B", attempt=2))
    events, end = lost()

    assert [text for _, text, _ in events if text] == ["a", "B"]
    assert end.answer.text == "B"


def test_attempt_that_was_voided_by_evidence_alone_is_not_the_answer(
    pen, started, words, retry, lost
):
    pen.begin("turn_1")
    pen.write("turn_1", started("turn_1"), *words("turn_1", 1, "a"), retry(2))
    superseded = AttemptSuperseded("turn_1", 1, 4, START_S, retracts=1)
    pen.write("turn_1", started("turn_1", 3, attempt=2), superseded)
    _, end = lost()

    assert (end.answer.text, end.answer.partial, end.attempt) == ("", False, 2)


def test_what_the_sink_released_itself_is_not_given_back_again(pen, started, words, retry, lost):
    pen.begin("turn_1")
    pen.write("turn_1", started("turn_1"), *words("turn_1", 1, "a", "b"))
    pen.entry("turn_1", 2, retry(2)).wait()
    pen.write("turn_1", *words("turn_1", 3, "b"))
    events, end = lost()

    assert [text for _, text, _ in events if text] == ["a", "b"]
    assert end.answer.text == "ab"


def test_withdrawn_twice_comes_back_in_order(pen, started, words, retry, lost):
    pen.begin("turn_1")
    pen.write("turn_1", started("turn_1"), *words("turn_1", 1, "a", "b", "c"))
    pen.withdraw("turn_1", 2)
    pen.entry("turn_1", 2, retry(2), started("turn_1", 3, attempt=2)).wait()
    usage = UsageReported("turn_1", 2, 4, START_S, usage=Usage(input_tokens=7))
    pen.write("turn_1", usage)
    pen.withdraw("turn_1", 4)
    events, end = lost()

    assert [kind for kind, _, _ in events[4:]] == [
        "text.delta",
        "text.delta",
        "usage.reported",
        "turn.failed",
    ]
    assert end.answer.text == "abc"


@pytest.mark.parametrize("seed", range(20))
def test_journal_is_the_list_that_it_is_told(pen, started, words, read, seed):
    """Play entries and withdrawals at random, in random groups, against a list."""
    dice = random.Random(seed)
    turns = {f"turn_{number}": [started(f"turn_{number}")] for number in range(3)}
    for turn_id, events in turns.items():
        pen.begin(turn_id)
        pen.write(turn_id, *events)
    for _ in range(40):
        with pen.held():
            for _ in range(dice.randrange(1, 6)):
                turn_id, events = dice.choice(list(turns.items()))
                if dice.random() < 0.4:
                    del events[dice.randrange(1, len(events) + 1) :]
                first = len(events)
                more = [str(dice.random()) for _ in range(dice.choice((0, 1, 3, 400)))]
                events += words(turn_id, first, *more)
                pen.entry(turn_id, first, *events[first:])
        pen.flush()
        turn_id, events = dice.choice(list(turns.items()))
        after = dice.randrange(-1, len(events))
        expected = [msgspec.json.encode(event) for event in events[after + 1 :]]
        limit_bytes = dice.choice((1, 500, 50_000, 1 << 20)) if len(expected) < 500 else 50_000
        assert read(pen.journal, turn_id, after, limit_bytes) == expected

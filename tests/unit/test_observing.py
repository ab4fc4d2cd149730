"""Observers beside the path: bounded, paired, and harmless whatever they do."""

import threading

import pytest

import tidegate as tg
from tidegate import observing
from tidegate.observing import Observing, chunk_from
from tidegate.protocol.deltas import ENVELOPE, Block, Reasoning, Refusal, Text, Tool
from tidegate.testing.eventually import eventually


GUARD_S = 20
TURN = "turn_x_1"


class Notes(tg.Observer):
    """Keeps what it is told; stands still while ``go`` is not set."""

    def __init__(self):
        self.notes = []
        self.at_work = threading.Event()
        self.go = threading.Event()
        self.go.set()

    def _note(self, *what):
        self.at_work.set()
        self.go.wait(GUARD_S)
        self.notes.append(what)

    def started(self, turn_id, attempt):
        self._note("started", turn_id, attempt.number)

    def chunk(self, turn_id, attempt, chunk):
        self._note("chunk", turn_id, attempt, chunk)

    def ended(self, turn_id, attempt, response):
        self._note("ended", turn_id, attempt.number, attempt.outcome, response)

    @property
    def kinds(self):
        return [note[0] for note in self.notes]


class Broken(Notes):
    def _note(self, *what):
        super()._note(*what)
        raise SystemExit("observers may raise whatever they like")


def report(number=1, outcome=""):
    return tg.AttemptReport(number=number, token=number, endpoint="chat http://h", outcome=outcome)


def play(watch, number=1, *texts, response=None):
    """Tell of one attempt, from its beginning to its end."""
    watch.started(TURN, report(number))
    for text in texts:
        watch.accepted(number, (Text(text),))
    watch.ended(report(number, "completed"), lambda: response)
    watch.wake()


@pytest.fixture
def watched():
    """Make the watch of some observers; their threads end with the test."""
    made = []

    def make(*observers):
        made.append((Observing(observers), observers))
        return made[-1][0]

    yield make
    for watch, observers in made:
        for observer in observers:
            observer.go.set()
        watch.close()


def chunk(text):
    return {"type": "text.delta", "text": text, "choice": 0}


def test_an_attempt_is_told_in_order(watched):
    notes = Notes()
    watch = watched(notes)
    play(watch, 1, "a", "b", response={"whole": "ab"})
    watch.close()

    assert notes.notes == [
        ("started", TURN, 1),
        ("chunk", TURN, 1, chunk("a")),
        ("chunk", TURN, 1, chunk("b")),
        ("ended", TURN, 1, "completed", {"whole": "ab"}),
    ]
    assert (watch.dropped, watch.errors) == (0, 0)


def test_observer_that_overrides_nothing_is_one(watched):
    class Idle(tg.Observer):
        go = threading.Event()

    watch = watched(Idle())
    play(watch, 1, "a")
    watch.close()

    assert watch.errors == 0


def test_whatever_an_observer_raises_is_counted_and_logged_once(watched, caplog):
    broken, notes = Broken(), Notes()
    watch = watched(broken, notes)
    play(watch, 1, "a", "b")
    watch.close()

    assert broken.kinds == notes.kinds == ["started", "chunk", "chunk", "ended"]
    assert watch.errors == 4
    assert len(caplog.records) == 1
    assert "Broken" in caplog.text


def test_what_does_not_fit_is_dropped_and_counted(watched, monkeypatch):
    monkeypatch.setattr(observing, "QUEUE_BYTES_MAX", 300)
    notes = Notes()
    notes.go.clear()
    watch = watched(notes)
    play(watch, 1, *("x" * 18 for _ in range(9)), response={})
    watch.wake()
    notes.go.set()
    watch.close()

    # 64 for the attempt, 50 for each chunk; the whole response does not fit either.
    assert notes.kinds == ["started", *["chunk"] * 4, "ended"]
    assert notes.notes[-1] == ("ended", TURN, 1, "completed", None)
    assert watch.dropped == 9 - 4 + 1


def test_attempt_whose_beginning_does_not_fit_is_left_out_whole(watched, monkeypatch):
    monkeypatch.setattr(observing, "QUEUE_BYTES_MAX", 100)
    notes = Notes()
    notes.go.clear()
    watch = watched(notes)
    play(watch, 1)
    play(watch, 2, "a", "b")
    notes.go.set()
    watch.close()

    assert notes.kinds == ["started", "ended"]
    assert watch.dropped == 1 + 2


def test_a_chunk_larger_than_the_bound_is_told_to_who_keeps_up(watched, monkeypatch):
    monkeypatch.setattr(observing, "QUEUE_BYTES_MAX", 100)
    notes = Notes()
    watch = watched(notes)
    watch.started(TURN, report())
    watch.wake()
    eventually(lambda: notes.kinds == ["started"] and not watch._followers[0]._waiting)
    watch.accepted(1, (Text("x" * 1000),))
    watch.wake()

    eventually(lambda: notes.kinds == ["started", "chunk"])


def test_a_slow_observer_costs_no_other_a_chunk(watched, monkeypatch):
    monkeypatch.setattr(observing, "QUEUE_BYTES_MAX", 200)
    slow, quick = Notes(), Notes()
    slow.go.clear()
    watch = watched(slow, quick)
    for number in range(1, 6):
        play(watch, number, "a")
        eventually(lambda count=number: quick.kinds.count("ended") == count)
        eventually(lambda: not watch._followers[1]._waiting)

    assert quick.kinds == ["started", "chunk", "ended"] * 5
    assert watch.dropped > 0


def test_close_waits_no_longer_than_it_says_and_then_leaves_the_observer_alone(
    watched, monkeypatch, caplog
):
    monkeypatch.setattr(observing, "DRAIN_S", 0.01)
    stuck = Notes()
    stuck.go.clear()
    watch = watched(stuck)
    play(watch, 1, "a", "b")
    assert stuck.at_work.wait(GUARD_S)

    watch.close()

    assert "has not returned" in caplog.text
    stuck.go.set()
    watch._followers[0]._thread.join(GUARD_S)
    assert stuck.kinds == ["started"]


def test_attempt_that_nobody_ended_ends_with_the_runtime(watched):
    notes = Notes()
    watch = watched(notes)
    watch.started(TURN, report())
    watch.close()

    assert notes.notes == [("started", TURN, 1), ("ended", TURN, 1, "failed", None)]


def test_observer_may_close_what_it_observes(watched):
    closed = threading.Event()

    class Closing(Notes):
        def started(self, turn_id, attempt):
            watch.close()
            closed.set()

    watch = watched(Closing())
    play(watch, 1)

    assert closed.wait(GUARD_S)


@pytest.mark.parametrize("observers", [[object()], [tg.Observer], "ab", tg.Observer(), None])
def test_what_is_no_observer_is_an_error(observers):
    with pytest.raises(tg.ConfigurationError, match="instances of tidegate"):
        Observing(observers)


@pytest.mark.parametrize(
    ("piece", "expected"),
    [
        (Text("a", 1), {"type": "text.delta", "text": "a", "choice": 1}),
        (Reasoning("a"), {"type": "reasoning.delta", "text": "a", "choice": 0}),
        (Refusal("a"), {"type": "refusal.delta", "text": "a", "choice": 0}),
        (
            Tool(1, "id", "name", "{}"),
            {
                "type": "tool_call.delta",
                "index": 1,
                "id": "id",
                "name": "name",
                "arguments": "{}",
                "choice": 0,
                "whole": False,
            },
        ),
        (Block(2, b'{"a":[1]}'), {"type": "block", "index": 2, "data": {"a": [1]}}),
        (Block(ENVELOPE), {"type": "block", "index": -1, "data": {}}),
        (
            tg.Usage(input_tokens=1),
            {"type": "usage.reported", "usage": {"input_tokens": 1}},
        ),
    ],
)
def test_chunks_are_plain_json(piece, expected):
    assert chunk_from(piece) == expected

"""A turn folded into a lane, event by event."""

import pytest

from tidegate.daemon.turns.lanes import ATTEMPTS_MAX, MARKS_MAX, Lane
from tidegate.daemon.turns.recent import queue_places
from tidegate.protocol.answers import Answer, AttemptReport, Usage
from tidegate.protocol.events import (
    AttemptStarted,
    AttemptSuperseded,
    Notice,
    ReasoningDelta,
    RefusalDelta,
    RetryScheduled,
    TextDelta,
    ToolCallDelta,
    TurnCompleted,
    TurnFailed,
    TurnInterrupted,
    UsageReported,
)
from tidegate.protocol.failures import Failure, FailureKind


CUT = Failure(kind=FailureKind.TRUNCATED, detail="the words of a provider")


class Events:
    """Events of one turn, one second after the other."""

    def __init__(self):
        self.all = []

    def __call__(self, struct, attempt, /, **fields):
        offset = len(self.all)
        self.all.append(struct("turn_1", attempt, offset, 100.0 + offset, **fields))
        return self


@pytest.fixture
def events():
    return Events()


def lane_of(events):
    lane = Lane()
    lane.feed(events.all)
    return lane


def test_progress_is_counted_by_its_kind(events):
    events(AttemptStarted, 1, token=7)
    events(ReasoningDelta, 1, text="hm")
    events(TextDelta, 1, text="Hel")(TextDelta, 1, text="lo")(RefusalDelta, 1, text="no")
    events(ToolCallDelta, 1, index=0, id="a", name="look")(ToolCallDelta, 1, index=1)
    events(ToolCallDelta, 1, index=1, arguments="{}")

    [attempt] = lane_of(events).attempts
    assert (attempt.number, attempt.token, attempt.started_at_s) == (1, 7, 100.0)
    assert (attempt.text_chars, attempt.reasoning_chars, attempt.tools) == (7, 2, 2)
    assert attempt.deltas == 7
    assert (attempt.first_progress_at_s, attempt.last_progress_at_s) == (101.0, 107.0)
    assert (attempt.outcome, attempt.ended_at_s) == ("running", None)


def test_events_may_come_one_by_one_or_together(events):
    events(AttemptStarted, 1)(TextDelta, 1, text="a")(TextDelta, 1, text="b")
    events(RetryScheduled, 1, cause=CUT, delay_s=1.0)(AttemptStarted, 2)
    events(TextDelta, 2, text="c")(TextDelta, 2, text="d")(TurnCompleted, 2, answer=Answer())
    whole, single = lane_of(events), Lane()
    for event in events.all:
        single.feed([event])

    assert single.attempts == whole.attempts
    assert single.marks == whole.marks
    assert single.events == whole.events == 8


def test_failed_attempt_is_fenced_where_its_retry_is_scheduled(events):
    events(AttemptStarted, 1)(TextDelta, 1, text="some")
    events(RetryScheduled, 1, cause=CUT, delay_s=0.5)(AttemptStarted, 2)

    lane = lane_of(events)
    first, second = lane.attempts
    assert (first.outcome, first.failure, first.ended_at_s) == ("failed", "truncated", 102.0)
    assert (second.outcome, second.started_at_s) == ("running", 103.0)
    assert [(mark.kind, mark.at_s, mark.delay_s) for mark in lane.marks] == [
        ("fenced", 102.0, None),
        ("retry", 102.0, 0.5),
    ]


def test_superseded_attempt_stays_failed_and_is_void(events):
    events(AttemptStarted, 1)(TextDelta, 1, text="some")
    events(RetryScheduled, 1, cause=CUT, delay_s=0.5)(AttemptStarted, 2)
    events(AttemptSuperseded, 1, retracts=4)(TextDelta, 2, text="other")

    first, second = lane_of(events).attempts
    assert (first.outcome, first.void) == ("failed", True)
    assert (second.void, second.text_chars) == (False, 5)


def test_no_words_of_anybody_are_in_a_lane(events):
    events(AttemptStarted, 1)(TextDelta, 1, text="secret")(ReasoningDelta, 1, text="secret")
    events(Notice, 1, kind="reconnecting", text="secret")
    events(RetryScheduled, 1, cause=CUT, delay_s=0.5)
    events(TurnFailed, 1, error=CUT, answer=Answer(text="secret", failure=CUT))

    lane = lane_of(events)
    shown = repr((lane.attempts, lane.marks, lane.ended_by))
    assert "secret" not in shown
    assert "words of a provider" not in shown
    assert lane.ended_by == "truncated"


def test_clock_runs_from_the_last_progress_or_from_the_start(events):
    events(AttemptStarted, 1)
    assert lane_of(events).quiet_since_s == 100.0
    events(TextDelta, 1, text="a")(UsageReported, 1, usage=Usage(output_tokens=3))
    assert lane_of(events).quiet_since_s == 101.0
    events(RetryScheduled, 1, cause=CUT, delay_s=9.0)
    assert lane_of(events).quiet_since_s is None
    events(AttemptStarted, 2)
    assert lane_of(events).quiet_since_s == 104.0


def test_end_is_told_as_who_decided_about_the_attempts_says_it(events):
    events(AttemptStarted, 1, token=1)(AttemptStarted, 2, token=2)(TextDelta, 2, text="a")
    reports = (
        AttemptReport(number=1, token=1, endpoint="", outcome="failed", failure=CUT, ended_s=0.5),
        AttemptReport(
            number=2,
            token=2,
            endpoint="",
            outcome="completed",
            started_at_s=101.0,
            first_progress_s=0.25,
            ended_s=2.0,
        ),
    )
    usage = Usage(input_tokens=5, output_tokens=9)
    events(TurnCompleted, 2, answer=Answer(attempts=reports, usage_all_attempts=usage))

    lane = lane_of(events)
    assert [each.outcome for each in lane.attempts] == ["failed", "completed"]
    assert lane.attempts[0].failure == "truncated"
    assert (lane.attempts[1].first_progress_at_s, lane.attempts[1].ended_at_s) == (101.25, 103.0)
    assert (lane.input_tokens, lane.output_tokens, lane.ended_by) == (5, 9, None)
    assert lane.current is None


def test_interrupt_has_its_reason(events):
    events(AttemptStarted, 1)(TurnInterrupted, 1, reason="enough", answer=Answer())

    lane = lane_of(events)
    assert lane.ended_by == "enough"
    assert lane.attempts[0].outcome == "interrupted"


def test_withdrawn_events_are_forgotten_and_their_progress_is_not(events):
    events(AttemptStarted, 1, token=7)(TextDelta, 1, text="withdrawn")
    lane = lane_of(events)
    del events.all[1:]
    events(RetryScheduled, 1, cause=CUT, delay_s=0.5)

    lane.restart()
    lane.feed(events.all)

    [attempt] = lane.attempts
    assert (attempt.text_chars, attempt.deltas, lane.events) == (0, 0, 2)
    assert attempt.first_progress_at_s == attempt.last_progress_at_s == 101.0
    assert attempt.failure == "truncated"


def test_lane_is_bounded(events):
    for number in range(1, 101):
        events(AttemptStarted, number)(TextDelta, number, text="a")
        events(RetryScheduled, number, cause=CUT, delay_s=0.0)
    reports = tuple(
        AttemptReport(number=number, token=number, endpoint="", outcome="failed")
        for number in range(1, 101)
    )
    events(TurnFailed, 100, error=CUT, answer=Answer(attempts=reports))

    lane = lane_of(events)
    assert [each.number for each in lane.attempts] == [*range(101 - ATTEMPTS_MAX, 101)]
    assert lane.left_out == 100 - ATTEMPTS_MAX
    assert len(lane.marks) == MARKS_MAX


def test_places_in_the_queue_are_those_in_which_owners_are_served():
    waiting = {"a": ("a1", "a2", "a3"), "b": ("b1",), "c": ("c1", "c2")}
    order = ["a1", "b1", "c1", "a2", "c2", "a3"]

    places = {}
    for owner in waiting:
        places |= queue_places(waiting, owner)
    assert sorted(places, key=places.get) == order
    assert sorted(places.values()) == [1, 2, 3, 4, 5, 6]
    assert queue_places(waiting, "nobody") == {}

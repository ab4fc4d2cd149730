"""What a turn's machine does when something takes too long, or somebody has had enough."""

import pytest

from tests.unit.actors.supervisor.building import (
    LOST,
    TURN,
    Desk,
    armed,
    cancels,
    disarmed,
    ended,
    evidence,
    fenced,
    fired,
    interrupt,
    not_idle,
    questions,
    start,
    to_sink,
)
from tests.unit.actors.supervisor.test_machine import BACKING_OFF, ENDED, ENDING, STALE_ALARMS
from tidegate.actors.supervisor.orders import AskIdle, CancelWorker, ToSink
from tidegate.protocol.failures import FailureKind
from tidegate.protocol.sink import Conclude, Fence, FenceIfIdle, Limit, Seal


# Silence


@pytest.mark.parametrize(
    ("limit", "idle_since_s"),
    [(Limit.FIRST_EVENT, 50.0), (Limit.PROGRESS, 70.0), (Limit.ALIVE, 30.0)],
)
def test_alarm_is_a_question_to_the_worker_of_the_attempt(limit, idle_since_s):
    [asked] = Desk(start(), 150.0).tell(fired(limit.value, 1))

    assert isinstance(asked, AskIdle)
    assert asked.generation == 1
    question = asked.question
    assert isinstance(question, FenceIfIdle)
    assert (question.turn, question.token, question.limit) == (TURN, 1, limit)
    assert question.idle_since_s == pytest.approx(idle_since_s, abs=1e-3)


def test_alarm_that_fires_on_time_asks_behind_the_instant_it_counts_from():
    """Otherwise rounding could make it count once more."""
    [question] = questions(Desk(0.1, start(), 0.1 + 80.0).tell(fired("progress", 1)))

    assert question.idle_since_s > 0.1


def test_false_alarm_counts_from_what_it_is_told():
    desk = Desk(start(), 80.0, fired("progress", 1))

    assert armed(desk.tell(not_idle(1, 33.0))) == {("progress", 1): 113.0}


def test_alarm_that_does_not_matter_any_more_is_not_armed():
    assert Desk(start()).tell(not_idle(1, None, Limit.FIRST_EVENT)) == []


@pytest.mark.parametrize("told", [BACKING_OFF, ENDING, ENDED])
def test_answer_to_an_alarm_of_an_attempt_that_is_over_arms_nothing(told):
    assert Desk(*told).tell(not_idle(1, 5.0)) == []


def test_answer_to_an_alarm_of_an_older_attempt_arms_nothing():
    assert Desk(*BACKING_OFF, fired("backoff", TURN)).tell(not_idle(1, 5.0)) == []


@pytest.mark.parametrize("told", [BACKING_OFF, ENDING, ENDED, (start(), ended(1))])
def test_alarm_of_an_attempt_that_is_over_asks_nothing(told):
    assert Desk(*told).tell(fired("progress", 1)) == []


@pytest.mark.parametrize("told", [BACKING_OFF, ENDING, ENDED])
def test_grace_of_an_attempt_that_is_over_fences_nobody(told):
    assert Desk(*told).tell(fired("grace", 1)) == []


def test_alarm_of_an_older_attempt_asks_nothing():
    assert Desk(*BACKING_OFF, fired("backoff", TURN)).tell(fired("progress", 1)) == []


# Evidence


def test_evidence_ends_the_alarms_and_begins_the_grace():
    orders = Desk(start(), 5.0).tell(evidence(1))

    assert armed(orders) == {("grace", 1): 7.0}
    assert disarmed(orders) == STALE_ALARMS


def test_end_of_the_grace_is_a_fence():
    [fence] = to_sink(Desk(start(), evidence(1)).tell(fired("grace", 1)))

    assert isinstance(fence, Fence)
    assert (fence.token, fence.failure.kind) == (1, FailureKind.TRUNCATED)


@pytest.mark.parametrize("told", [BACKING_OFF, ENDING, ENDED])
def test_evidence_of_an_attempt_that_is_over_begins_no_grace(told):
    assert Desk(*told).tell(evidence(1)) == []


def test_evidence_of_an_older_attempt_begins_no_grace():
    assert Desk(*BACKING_OFF, fired("backoff", TURN)).tell(evidence(1)) == []


# Interrupts


def test_interrupt_seals_first():
    orders = Desk(start()).tell(interrupt())

    assert orders[0] == ToSink(Seal(TURN, "enough"))
    assert isinstance(orders[-2], CancelWorker)


@pytest.mark.parametrize("told", [(start(),), (start(target=None),), BACKING_OFF])
def test_interrupt_in_every_phase_is_one_message_and_disarms_the_timers(told):
    desk = Desk(*told)
    token = desk.turn.token
    orders = desk.tell(interrupt())

    assert to_sink(orders) == [Seal(TURN, "enough")]
    assert {("backoff", TURN), ("deadline", TURN), ("progress", token)} <= disarmed(orders)
    assert desk.turn.phase == "ending"


def test_interrupt_cancels_every_attempt():
    desk = Desk(start(), 5.0)
    orders = desk.tell(interrupt())

    assert cancels(orders) == [(1, 1)]
    assert armed(orders) == {("kill", 1): 5.25}


def test_interrupt_of_a_turn_whose_end_was_ordered_counts_against_it():
    orders = Desk(*ENDING).tell(interrupt())

    assert orders == [ToSink(Seal(TURN, "enough"))]


def test_interrupt_of_a_turn_that_has_ended_is_nothing():
    assert Desk(*ENDED).tell(interrupt()) == []


def test_interrupt_is_noted_as_a_single_one_only_behind_an_attempt():
    assert Desk(start(), interrupt()).turn.single_interrupt
    assert not Desk(start(target=None), interrupt()).turn.single_interrupt
    assert not Desk(start(), interrupt(single=False)).turn.single_interrupt


# The deadline


def test_deadline_fences_an_attempt_and_no_retry_follows():
    desk = Desk(start(deadline_s=50.0))
    [fence] = to_sink(desk.tell(fired("deadline", TURN)))
    assert isinstance(fence, Fence)
    assert (fence.failure.kind, fence.failure.reason) == (FailureKind.STALLED, "deadline")

    [conclude] = to_sink(desk.tell(fenced(1, LOST)))
    assert conclude.failure.reason == "deadline"


@pytest.mark.parametrize("told", [(start(target=None),), BACKING_OFF])
def test_deadline_without_an_attempt_ends_the_turn(told):
    [conclude] = to_sink(Desk(*told).tell(fired("deadline", TURN)))

    assert isinstance(conclude, Conclude)
    assert conclude.failure.reason == "deadline"
    assert not conclude.failure.retryable


@pytest.mark.parametrize("told", [ENDING, ENDED])
def test_deadline_of_a_turn_that_ends_is_nothing(told):
    assert Desk(*told).tell(fired("deadline", TURN)) == []

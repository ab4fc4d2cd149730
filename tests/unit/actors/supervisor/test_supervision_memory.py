"""What all turns of a runtime share: breakers, and what was learned of an endpoint."""

import pytest

from tests.unit.actors.supervisor.building import (
    FATAL,
    STALLED,
    TURN,
    Desk,
    ended,
    fenced,
    interrupt,
    prepared,
    start,
    starts,
)
from tests.unit.actors.supervisor.test_supervision import OTHER, conclusion, fails, over
from tidegate.actors.supervisor.supervision import STREAMING_MEMORY_S
from tidegate.protocol.failures import Failure, FailureKind


def test_breaker_opens_after_five_turns_that_went_stale():
    desk = Desk()
    for turn in range(1, 6):
        fails(desk, turn)

    orders = desk.tell(start(6))

    assert conclusion(orders).kind is FailureKind.CIRCUIT_OPEN
    assert starts(orders) == []
    assert desk.counts["stale_kills"] == 5


def test_turn_that_the_breaker_refused_stays_refused():
    desk = Desk()
    fails(desk, 1, stale_giveup=1)
    desk.tell(start(2, target=None, stale_giveup=1))

    assert desk.tell(prepared()) == []


def test_complete_answer_closes_the_breaker():
    desk = Desk()
    for turn in range(1, 5):
        fails(desk, turn)
    desk.tell(start(5))
    over(desk, 5, 5)
    fails(desk, 6)

    assert starts(desk.tell(start(7)))


@pytest.mark.parametrize(("visible", "allowed"), [(True, True), (False, False)])
def test_partial_answer_closes_the_breaker_if_it_is_visible(visible, allowed):
    desk = Desk()
    for turn in range(1, 5):
        fails(desk, turn)
    [begun] = starts(desk.tell(start(5, retries=0)))
    desk.tell(desk.now_s + 100.0, fenced(begun.token, STALLED, turn=5))
    over(desk, 5, begun.token, "failed", visible=visible)

    assert bool(starts(desk.tell(start(6)))) is allowed


def test_http_error_of_the_provider_closes_the_breaker():
    desk = Desk()
    for turn in range(1, 5):
        fails(desk, turn)
    fails(desk, 5, FATAL)
    fails(desk, 6)

    assert starts(desk.tell(start(7)))


def test_deadline_is_no_stale_kill():
    desk = Desk()
    deadline = Failure(kind=FailureKind.STALLED, reason="deadline")
    fails(desk, 1, deadline, stale_giveup=1)

    assert starts(desk.tell(start(2, stale_giveup=1)))
    assert desk.counts["stale_kills"] == 0


@pytest.mark.parametrize(
    ("single", "received", "after_s", "allowed"),
    [
        (True, False, 30.0, False),
        (True, False, 29.0, True),
        (True, True, 30.0, True),
        (False, False, 30.0, True),
    ],
)
def test_interrupt_of_a_long_wait_in_vain_counts(single, received, after_s, allowed):
    desk = Desk(start(stale_giveup=1), after_s, interrupt(single=single))
    over(desk, TURN, 1, "interrupted", received=received)

    assert bool(starts(desk.tell(start(OTHER, stale_giveup=1)))) is allowed


def test_probe_that_was_interrupted_leaves_its_place():
    desk = Desk()
    fails(desk, 1, stale_giveup=1)
    desk.tell(desk.now_s + 60.0, start(2, stale_giveup=1))
    assert not starts(desk.tell(start(3, stale_giveup=1)))

    desk.tell(interrupt(2))
    over(desk, 2, 2, "interrupted")

    assert starts(desk.tell(start(4, stale_giveup=1)))


def test_refused_stream_options_are_remembered_for_the_endpoint():
    desk = Desk(start(), fenced(1, FATAL, refused="stream_options"))

    assert starts(desk.tell(start(OTHER)))[0].order.stream_options == b""


@pytest.mark.parametrize(
    "fields", [{"stream_options": b""}, {"stream": False}], ids=["none given", "no stream"]
)
def test_stream_options_that_were_not_sent_earn_no_free_attempt(fields):
    desk = Desk(start(**fields), ended(1))

    assert conclusion(desk.tell(fenced(1, FATAL, refused="stream_options"))) == FATAL


@pytest.mark.parametrize("fields", [{"refused": "streaming"}, {"learned": "contentless"}])
def test_streaming_that_does_not_work_is_remembered_for_a_while(fields):
    desk = Desk(start(), fenced(1, FATAL, **fields))

    assert not starts(desk.tell(STREAMING_MEMORY_S - 1.0, start(2)))[0].order.stream
    assert starts(desk.tell(STREAMING_MEMORY_S, start(3)))[0].order.stream


def test_streaming_that_was_ignored_is_remembered():
    desk = Desk(start(), ended(1, learned="streaming_ignored"))

    assert not starts(desk.tell(start(OTHER)))[0].order.stream


def test_what_was_refused_once_is_not_remembered_for_other_reasons():
    desk = Desk(start(), fenced(1, FATAL), ended(1))

    order = starts(desk.tell(start(OTHER)))[0].order
    assert order.stream
    assert order.stream_options

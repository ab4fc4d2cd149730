"""A worker that is coming up, or imports an SDK, is not a provider that is silent."""

import pytest

from tidegate.actors.supervisor.orders import AskIdle, CancelWorker, StartTimer, ToWorker
from tidegate.actors.supervisor.pool import Pool
from tidegate.actors.supervisor.supervision import Supervision
from tidegate.protocol.attempts import (
    START_ALLOWANCE_S,
    Ended,
    Target,
    Waking,
    Woken,
    WorkerReady,
)
from tidegate.protocol.base import Generation, TurnNumber
from tidegate.protocol.endpoints import Endpoint
from tidegate.protocol.policy import Policy
from tidegate.protocol.requests import Request
from tidegate.protocol.supervisor import Interrupt, Start, TimerFired, TurnPlan


TURN = TurnNumber(1)
KILL_GRACE_S = 0.25


def started(now_s=0.0):
    request = Request(Endpoint.chat("http://127.0.0.1:1/v1"), {"model": "m", "messages": []})
    policy = Policy(stale_after_s=1.0).resolved(request, environ={}).values()
    plan = TurnPlan("chat", "memory", "circuit", b"{}", True, b"", 1, policy)
    supervision = Supervision(Pool(size=1, restarts_max=5, period_s=30.0))
    supervision.boot()
    return supervision, Start(TURN, plan, Target("chat"))


def alarms(orders):
    return {
        order.name[0]: order.at_s
        for order in orders
        if isinstance(order, StartTimer) and order.name[0] in ("first_event", "progress")
    }


def test_alarms_allow_for_a_worker_that_is_not_ready():
    supervision, start = started()

    orders = supervision.handle(start, 0.0)

    assert any(isinstance(order, ToWorker) for order in orders)
    assert alarms(orders) == {
        "first_event": START_ALLOWANCE_S + 1.0,
        "progress": START_ALLOWANCE_S + 1.0,
    }


def test_alarms_count_from_the_instant_at_which_the_worker_is_ready():
    supervision, start = started()
    supervision.handle(start, 0.0)

    orders = supervision.handle(WorkerReady(Generation(1), 4711), 5.0)

    assert alarms(orders) == {"first_event": 6.0, "progress": 6.0}


def test_alarms_count_from_the_start_on_a_worker_that_is_ready():
    supervision, start = started()
    supervision.handle(WorkerReady(Generation(1), 4711), 1.0)

    assert alarms(supervision.handle(start, 2.0)) == {"first_event": 3.0, "progress": 3.0}


def test_a_worker_that_never_comes_up_is_asked_about_in_the_end():
    supervision, start = started()
    [token] = [o.message.token for o in supervision.handle(start, 0.0) if isinstance(o, ToWorker)]

    [asked] = supervision.handle(TimerFired(("first_event", token)), START_ALLOWANCE_S + 1.0)

    assert isinstance(asked, AskIdle)


def placed():
    """A supervision with an attempt on a worker that is up, and the attempt's token."""
    supervision, start = started()
    supervision.handle(WorkerReady(Generation(1), 4711), 1.0)
    [token] = [o.message.token for o in supervision.handle(start, 2.0) if isinstance(o, ToWorker)]
    return supervision, token


def kill_at_s(orders):
    return [o.at_s for o in orders if isinstance(o, StartTimer) and o.name[0] == "kill"]


def test_alarms_allow_for_an_import():
    supervision, token = placed()

    assert alarms(supervision.handle(Waking(TURN, token), 2.5)) == {
        "first_event": 2.5 + START_ALLOWANCE_S + 1.0,
        "progress": 2.5 + START_ALLOWANCE_S + 1.0,
    }


def test_alarms_count_from_the_end_of_an_import():
    supervision, token = placed()
    supervision.handle(Waking(TURN, token), 2.5)

    assert alarms(supervision.handle(Woken(TURN, token), 8.0)) == {
        "first_event": 9.0,
        "progress": 9.0,
    }


def test_interrupt_in_an_import_cancels_at_once_and_leaves_the_worker_its_time():
    supervision, token = placed()
    supervision.handle(Waking(TURN, token), 2.5)

    orders = supervision.handle(Interrupt(TURN, "enough"), 3.0)

    assert CancelWorker(Generation(1), TURN, token) in orders
    assert kill_at_s(orders) == [pytest.approx(3.0 + START_ALLOWANCE_S + KILL_GRACE_S)]


def test_import_that_was_told_behind_the_cancel_still_counts():
    supervision, token = placed()
    supervision.handle(Interrupt(TURN, "enough"), 2.5)

    orders = supervision.handle(Waking(TURN, token), 3.0)

    assert kill_at_s(orders) == [pytest.approx(3.0 + START_ALLOWANCE_S + KILL_GRACE_S)]
    assert alarms(orders) == {}


@pytest.mark.parametrize("message", [Waking, Woken])
def test_import_of_an_attempt_that_has_ended_starts_no_clock(message):
    supervision, token = placed()
    supervision.handle(Ended(TURN, token), 3.0)

    assert supervision.handle(message(TURN, token), 4.0) == []

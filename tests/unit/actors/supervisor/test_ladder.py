"""The kill ladder: what becomes of a worker that does not acknowledge a cancel."""

from tests.unit.actors.supervisor.building import (
    STALLED,
    TURN,
    Desk,
    armed,
    closed,
    ended,
    fenced,
    fired,
    interrupt,
    killed,
    lost,
    pings,
    pong,
    start,
    to_sink,
)
from tidegate.actors.supervisor.ladder import GRACES_MAX, ROUNDS_MAX
from tidegate.actors.supervisor.orders import PingWorker, StartTimer


def test_cancel_that_is_not_acknowledged_kills_the_worker():
    assert killed(Desk(start(), interrupt()).tell(fired("kill", 1))) == [(1, True)]


def test_worker_that_has_taken_the_cancel_gets_a_grace_and_a_ping():
    desk = Desk(start(1), start(2), interrupt(1), pong(1), 1.0)

    orders = desk.tell(fired("kill", 1))

    assert orders == [PingWorker(1, 1), StartTimer(("kill", 1), 1.25, 1)]
    assert desk.workers[0][1] == "active"


def test_ping_is_answered_round_by_round_until_the_attempt_counts_as_deaf():
    desk = Desk(start(1), start(2), interrupt(1))
    for _ in range(ROUNDS_MAX - 1):
        assert pings(desk.tell(pong(1), fired("kill", 1))) == [(1, 1)]
    assert desk.workers[0][1] == "active"

    assert armed(desk.tell(pong(1), fired("kill", 1))) == {}
    assert desk.workers[0][1] == "quarantined"


def test_worker_that_took_the_cancel_and_got_stuck_by_it_is_killed():
    desk = Desk(start(1), start(2), interrupt(1), pong(1), fired("kill", 1))

    assert killed(desk.tell(fired("kill", 1))) == [(1, True)]


def test_worker_that_is_heard_and_has_not_come_to_the_ping_gets_a_grace():
    desk = Desk(start(), interrupt(), 1.0)

    orders = desk.tell(fired("kill", 1, heard=True))

    assert orders == [StartTimer(("kill", 1), 1.25, 1)]


def test_worker_that_was_heard_and_falls_silent_is_killed():
    desk = Desk(start(), interrupt(), fired("kill", 1, heard=True))

    assert killed(desk.tell(fired("kill", 1))) == [(1, True)]


def test_worker_that_is_heard_and_never_answers_a_ping_is_killed_in_the_end():
    desk = Desk(start(), interrupt())
    for _ in range(GRACES_MAX):
        assert killed(desk.tell(fired("kill", 1, heard=True))) == []

    assert killed(desk.tell(fired("kill", 1, heard=True))) == [(1, True)]


def test_attempt_that_ends_in_a_later_grace_leaves_its_worker_in_service():
    desk = Desk(start(1), start(2), interrupt(1), fired("kill", 1, heard=True), pong(1))
    desk.tell(fired("kill", 1), ended(1, cancelled=True), pong(1))

    assert desk.tell(fired("kill", 1)) == []
    assert desk.workers[0] == (1, "active", 1, 0)


def test_starved_worker_gets_one_more_grace():
    desk = Desk(start(), interrupt(), 1.0)

    orders = desk.tell(fired("kill", 1, starved=True))
    assert (armed(orders), killed(orders)) == ({("kill", 1): 1.25}, [])

    assert killed(desk.tell(fired("kill", 1, starved=True))) == [(1, True)]


def test_ladder_behind_an_acknowledged_cancel_is_over():
    desk = Desk(start(1), start(2), interrupt(1), closed("interrupted"))
    desk.tell(ended(1, cancelled=True))

    assert desk.tell(fired("kill", 1)) == []


def test_ladder_goes_on_while_a_retry_runs_elsewhere():
    desk = Desk(start(), fenced(1, STALLED), fired("backoff", TURN))

    orders = desk.tell(fired("kill", 1))
    assert killed(orders) == [(1, True)]

    [fence] = to_sink(desk.tell(lost(1)))
    assert fence.token == 2


def test_pong_for_an_attempt_that_is_over_is_nothing():
    assert Desk(start(), fenced(1), ended(1)).tell(pong(1)) == []

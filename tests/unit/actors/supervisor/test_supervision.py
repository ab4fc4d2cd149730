"""What the turns of a runtime share: workers, tokens, breakers, memory. Faults stay apart."""

import pytest

from tests.unit.actors.supervisor.building import (
    FATAL,
    PERIOD_S,
    STALLED,
    TURN,
    Desk,
    armed,
    cancels,
    closed,
    ended,
    fenced,
    fired,
    ignored,
    interrupt,
    killed,
    lost,
    pong,
    prepared,
    ready,
    spawned,
    start,
    starts,
    to_sink,
)
from tidegate.protocol.attempts import START_ALLOWANCE_S
from tidegate.protocol.failures import Failure, FailureKind
from tidegate.protocol.sink import Admit, Conclude, Fence, Forget, Seal


OTHER = 2
GRACE_S = 0.25
WORKER_GONE = Failure(kind=FailureKind.WORKER_LOST, retryable=True)


def over(desk, turn, token, kind="completed", **fields):
    """Let a turn end, with everything that belongs to it."""
    desk.tell(closed(kind, turn=turn, **fields))
    return desk.tell(ended(token, turn=turn, cancelled=kind != "completed"))


def fails(desk, turn, failure=STALLED, **fields):
    """Start a turn, let its attempt fail without a retry, and let it end."""
    [begun] = starts(desk.tell(start(turn, retries=0, **fields)))
    desk.tell(desk.now_s + 100.0, fenced(begun.token, failure, turn=turn))
    return over(desk, turn, begun.token, "failed", visible=False)


def conclusion(orders):
    [failure] = [message.failure for message in to_sink(orders) if isinstance(message, Conclude)]
    return failure


def test_boot_starts_the_active_workers_and_the_standby():
    assert spawned(Desk(size=2).booted) == [1, 2, 3]


def test_tokens_grow_over_all_turns():
    desk = Desk()

    assert [starts(desk.tell(start(turn)))[0].token for turn in (1, 2, 3)] == [1, 2, 3]


def test_token_of_a_turn_that_is_over_is_not_given_again():
    desk = Desk(start(TURN))
    over(desk, TURN, 1)

    assert starts(desk.tell(start(OTHER)))[0].token == 2


def test_turn_that_is_told_twice_is_started_once():
    desk = Desk(start(TURN))

    assert desk.tell(start(TURN)) == []
    assert desk.counts["told_twice"] == 1


def test_interrupt_that_overtakes_its_start_sends_nothing():
    desk = Desk(interrupt())

    orders = desk.tell(start())

    assert to_sink(orders) == [Seal(TURN, "enough")]
    assert starts(orders) == []


def test_interrupt_that_overtakes_its_start_goes_before_a_failure_of_it():
    desk = Desk(interrupt())

    assert to_sink(desk.tell(start(target=None, failure=FATAL))) == [Seal(TURN, "enough")]


def test_interrupt_that_overtakes_its_start_is_for_that_turn_alone():
    desk = Desk(interrupt(OTHER))

    assert starts(desk.tell(start(TURN)))
    assert not starts(desk.tell(start(OTHER)))


def test_interrupt_of_a_turn_that_is_over_is_late():
    desk = Desk(start(TURN))
    over(desk, TURN, 1)

    assert desk.tell(interrupt()) == []
    assert desk.counts["late_interrupts"] == 1


def test_target_that_comes_for_a_turn_that_is_over_is_late():
    desk = Desk(start(target=None), interrupt(), closed("interrupted"))

    assert desk.tell(prepared()) == []
    assert desk.counts["late_reports"] == 1


def test_turn_that_waits_for_its_target_has_no_attempt():
    assert starts(Desk().tell(start(target=None))) == []


def test_attempts_go_to_the_idlest_worker():
    desk = Desk(size=2)

    places = [starts(desk.tell(start(turn)))[0].generation for turn in (1, 2, 3)]

    assert places == [1, 2, 1]


def test_worker_that_is_up_goes_before_one_that_is_not():
    desk = Desk(ready(2), size=2, up=False)

    assert starts(desk.tell(start()))[0].generation == 2


def test_loss_of_a_worker_fails_its_attempts_and_promotes_the_standby():
    desk = Desk(start(TURN), start(OTHER))

    orders = desk.tell(lost(1))

    fences = [(each.turn, each.token) for each in to_sink(orders) if isinstance(each, Fence)]
    assert fences == [(TURN, 1), (OTHER, 2)]
    assert desk.workers == [(2, "active", 0, 0), (3, "standby", 0, 0)]
    assert spawned(orders) == [3]
    assert desk.counts["workers_lost"] == 1


def test_loss_of_a_worker_leaves_the_attempts_of_others():
    desk = Desk(start(TURN), start(OTHER), size=2)

    [fence] = to_sink(desk.tell(lost(2)))

    assert fence.turn == OTHER


def test_without_a_worker_a_turn_fails_by_the_restarts():
    desk = Desk(lost(1), lost(2), restarts_max=0)

    failure = conclusion(desk.tell(start()))

    assert failure.kind is FailureKind.WORKER_LOST
    assert failure.reason == "restart_intensity"
    assert (failure.retryable, failure.retry_after_s) == (False, None), "they never come back"


def test_without_a_worker_a_turn_fails_with_the_rest_of_the_period():
    desk = Desk(5.0, lost(1), lost(2), restarts_max=1)
    desk.tell(lost(3))

    failure = conclusion(desk.tell(5.0 + 1.2, start()))

    assert (failure.retryable, failure.retry_after_s) == (True, PERIOD_S - 1)


def test_turn_that_lost_its_worker_fails_with_the_rest_of_the_period():
    desk = Desk(5.0, start(retries=0), lost(1), lost(2), restarts_max=1)
    desk.tell(lost(3))

    failure = conclusion(desk.tell(6.0, fenced(1, WORKER_GONE)))

    assert (failure.retryable, failure.retry_after_s) == (True, PERIOD_S - 1)


def test_turn_that_lost_one_worker_need_not_wait():
    desk = Desk(start(retries=0), lost(1))

    assert conclusion(desk.tell(fenced(1, WORKER_GONE))) == WORKER_GONE


def test_who_comes_when_he_was_told_to_finds_a_worker_before_the_timer():
    desk = Desk(5.0, lost(1), lost(2), restarts_max=1)
    desk.tell(lost(3))

    orders = desk.tell(5.0 + PERIOD_S, start())

    assert spawned(orders) == [4]
    assert [each.generation for each in starts(orders)] == [4]


def test_restarts_go_on_when_the_period_is_over():
    desk = Desk(5.0, restarts_max=1)
    assert armed(desk.tell(lost(1))) == {}
    assert armed(desk.tell(lost(2))) == {("replenish", 0): 5.0 + PERIOD_S}

    assert spawned(desk.tell(5.0 + PERIOD_S, fired("replenish", 0))) == [4]


def test_fault_in_one_turn_ends_it_and_no_other():
    desk = Desk(start(TURN), start(OTHER))

    orders = desk.tell(fired("nonsense", 1))

    assert conclusion(orders).kind is FailureKind.INTERNAL
    assert [message.turn for message in to_sink(orders)] == [TURN]
    [(turn, fault)] = desk.supervision.faults
    assert (turn, type(fault)) == (TURN, ValueError)
    assert cancels(desk.tell(closed("failed"))) == [(1, 1)]
    assert desk.supervision.turns[OTHER].phase == "running"


def test_report_of_a_turn_that_is_over_is_late():
    desk = Desk(start())
    over(desk, TURN, 1)

    assert desk.tell(ended(1, cancelled=True)) == []
    assert desk.counts["late_reports"] == 1


def test_timer_of_a_token_that_is_over_is_late():
    desk = Desk(start())
    over(desk, TURN, 1)

    assert desk.tell(fired("kill", 1), fired("backoff", TURN)) == []
    assert desk.counts["late_timers"] == 1


def test_pong_of_a_token_that_is_over_is_nothing():
    desk = Desk(start())
    over(desk, TURN, 1)

    assert desk.tell(pong(1)) == []


def test_end_of_a_turn_and_of_its_attempts_makes_the_sink_forget():
    desk = Desk(start())

    assert Forget(TURN) not in to_sink(desk.tell(closed("failed")))
    assert Forget(TURN) in to_sink(desk.tell(ended(1, cancelled=True)))
    assert desk.supervision.turns == {}


def test_ended_attempt_leaves_its_worker():
    desk = Desk(start())
    assert desk.workers[0] == (1, "active", 1, 0)

    desk.tell(interrupt())
    assert desk.workers[0] == (1, "active", 1, 1)

    desk.tell(ended(1, cancelled=True))
    assert desk.workers[0] == (1, "active", 0, 0)


def test_worker_whose_loop_turns_is_quarantined_and_ends_with_its_last_attempt():
    desk = Desk(start(TURN), start(OTHER), interrupt(TURN))

    orders = desk.tell(*ignored(1))
    assert (killed(orders), spawned(orders)) == ([], [3])
    assert desk.workers[0] == (1, "quarantined", 2, 1)
    assert desk.counts["workers_quarantined"] == 1

    assert killed(desk.tell(ended(2, turn=OTHER))) == [(1, False)]


def test_quarantined_worker_gets_no_more_attempts():
    desk = Desk(start(TURN), start(OTHER), interrupt(TURN), *ignored(1))

    assert starts(desk.tell(start(3)))[0].generation == 2


def test_worker_that_answers_nothing_is_killed_with_its_stack_in_the_log():
    desk = Desk(start(), interrupt())

    assert killed(desk.tell(fired("kill", 1))) == [(1, True)]
    assert desk.counts["workers_killed"] == 1


@pytest.mark.parametrize("how", ["killed", "quarantined"])
def test_worker_is_counted_once_however_many_attempts_ask_for_its_end(how):
    desk = Desk(start(1), start(2), start(3), interrupt(1), interrupt(2))

    for token in (1, 2):
        desk.tell(*(ignored(token) if how == "quarantined" else [fired("kill", token)]))

    assert desk.counts[f"workers_{how}"] == 1


def test_killed_worker_is_lost_like_any_other():
    desk = Desk(start(), interrupt(), closed("interrupted"), fired("kill", 1))

    orders = desk.tell(lost(1))

    assert to_sink(orders) == [Forget(TURN)]
    assert spawned(orders) == []


def test_worker_that_comes_up_is_not_killed_for_its_silence():
    desk = Desk(start(), up=False)

    assert armed(desk.tell(interrupt())) == {("kill", 1): START_ALLOWANCE_S + GRACE_S}


def test_kill_grace_counts_from_when_the_worker_is_up():
    desk = Desk(start(), interrupt(), closed("interrupted"), up=False)

    assert armed(desk.tell(7.0, ready(1))) == {("kill", 1): 7.0 + GRACE_S}


def test_kill_grace_on_a_worker_that_is_up_counts_from_the_cancel():
    desk = Desk(start(), up=False)
    desk.tell(7.0, ready(1))

    assert armed(desk.tell(8.0, interrupt())) == {("kill", 1): 8.0 + GRACE_S}


def test_other_worker_that_comes_up_changes_nothing():
    desk = Desk(start(), interrupt(), up=False)

    assert desk.tell(7.0, ready(2)) == []


@pytest.mark.parametrize("phase", ["backing_off", "ending"])
def test_worker_that_comes_up_wakes_no_alarm_of_an_attempt_that_is_over(phase):
    desk = Desk(start(), up=False)
    desk.tell(fenced(1) if phase == "backing_off" else interrupt())

    assert list(armed(desk.tell(7.0, ready(1)))) == [("kill", 1)]


def test_admission_goes_before_the_start():
    kinds = [type(message) for message in to_sink(Desk().tell(start()))]

    assert kinds == [Admit]

"""The supervisor's machine, one rule at a time, from what it is told to what it orders."""

import pytest

from tests.unit.actors.supervisor.building import (
    FATAL,
    LOST,
    STALLED,
    TARGET,
    TURN,
    Desk,
    armed,
    cancels,
    closed,
    disarmed,
    ended,
    fenced,
    fired,
    interrupt,
    lost,
    prepared,
    start,
    starts,
    to_sink,
)
from tidegate.actors.supervisor.orders import ToSink, ToWorker
from tidegate.actors.supervisor.state import AttemptGone, AttemptPlaced, PhaseChanged, evolve
from tidegate.protocol.attempts import Order, StartAttempt
from tidegate.protocol.failures import Failure, FailureKind
from tidegate.protocol.sink import Admit, Announce, Conclude, Forget


STALE_ALARMS = {("first_event", 1), ("progress", 1), ("alive", 1)}
ALL_TIMERS = STALE_ALARMS | {("grace", 1), ("backoff", TURN), ("deadline", TURN)}
BACKING_OFF = (start(), ended(1), fenced(1))
ENDING = (start(), ended(1), fenced(1, FATAL))
ENDED = (start(), closed("failed"))


def kinds(orders):
    return [type(message) for message in to_sink(orders)]


# Starting


def test_start_with_a_target_admits_and_starts():
    admit, sent = Desk(3.0).tell(start())[:2]

    assert admit == ToSink(Admit(TURN, 1, 1, False, "chat http://host", 1))
    assert isinstance(sent, ToWorker)
    assert sent.generation == 1


def test_start_carries_all_that_the_attempt_needs():
    [sent] = starts(Desk().tell(start(connect_timeout_s=7.0, event_bytes_max=999)))

    assert sent == StartAttempt(
        TURN,
        1,
        1,
        Order(
            target=TARGET,
            body=b"{}",
            stream=True,
            stream_options=b'{"include_usage":true}',
            choices=1,
            connect_timeout_s=7.0,
            event_bytes_max=999,
            life_every_s=1.0,
        ),
        256 << 10,
    )


@pytest.mark.parametrize(("alive_s", "every_s"), [(2.0, 0.5), (4.0, 1.0), (100.0, 1.0)])
def test_life_is_reported_four_times_in_its_limit_and_once_a_second_at_least(alive_s, every_s):
    [sent] = starts(Desk().tell(start(alive_timeout_s=alive_s)))

    assert sent.order.life_every_s == every_s


def test_start_arms_an_alarm_for_each_silence():
    assert armed(Desk(3.0).tell(start())) == {
        ("first_event", 1): 103.0,
        ("progress", 1): 83.0,
        ("alive", 1): 123.0,
    }


def test_start_without_streaming_arms_what_is_limited():
    assert set(armed(Desk().tell(start(stream=False)))) <= STALE_ALARMS
    assert not starts(Desk().tell(start(stream=False)))[0].order.stream


def test_start_with_a_deadline_arms_it():
    assert armed(Desk(3.0).tell(start(target=None, deadline_s=9.0))) == {("deadline", TURN): 12.0}


def test_start_with_a_failure_ends_without_an_attempt():
    orders = Desk().tell(start(target=None, failure=FATAL))

    assert to_sink(orders) == [Conclude(TURN, FATAL)]
    assert starts(orders) == []


def test_target_that_comes_starts_the_attempt():
    assert starts(Desk(start(target=None)).tell(prepared()))


def test_target_that_cannot_be_had_ends_the_turn():
    orders = Desk(start(target=None)).tell(prepared(None, FATAL))

    assert to_sink(orders) == [Conclude(TURN, FATAL)]


@pytest.mark.parametrize("told", [(start(),), BACKING_OFF, ENDING, ENDED])
def test_target_that_comes_a_second_time_starts_nothing(told):
    assert Desk(*told).tell(prepared()) == []


# Failures and retries


def test_failure_is_announced_and_followed_by_a_back_off():
    orders = Desk(start(), 5.0, ended(1)).tell(fenced(1))

    assert to_sink(orders) == [Announce(TURN, LOST, 1.0, ())]
    assert armed(orders) == {("backoff", TURN): 6.0}
    assert disarmed(orders) == STALE_ALARMS


def test_failure_behind_its_end_cancels_nobody():
    assert cancels(Desk(start(), ended(1)).tell(fenced(1))) == []


def test_fence_of_an_attempt_that_runs_cancels_it():
    orders = Desk(start(), 5.0).tell(fenced(1, STALLED))

    assert cancels(orders) == [(1, 1)]
    assert armed(orders)["kill", 1] == 5.25


def test_retry_is_a_new_attempt_with_a_new_token():
    orders = Desk(*BACKING_OFF, 9.0).tell(fired("backoff", TURN))

    assert to_sink(orders) == [Admit(TURN, 2, 2, False, "chat http://host", 1)]
    assert starts(orders)[0].token == 2
    assert armed(orders)["progress", 2] == 89.0


def test_retry_that_was_announced_says_what_was_lost():
    [announce] = to_sink(Desk(start(after_visible_text="restart")).tell(fenced(1, taken_any=True)))

    assert [kind for kind, _ in announce.notices] == ["reconnecting"]


def test_back_off_grows_with_the_attempts():
    desk = Desk(*BACKING_OFF, fired("backoff", TURN), 5.0, ended(2))

    assert armed(desk.tell(fenced(2))) == {("backoff", TURN): 7.0}


def test_chance_stretches_the_back_off():
    desk = Desk(start(backoff_jitter=0.5), ended(1), chance=0.5)

    assert armed(desk.tell(fenced(1))) == {("backoff", TURN): 1.25}


def test_retries_come_to_an_end():
    desk = Desk(start(retries=1), ended(1), fenced(1), fired("backoff", TURN), ended(2))

    assert kinds(desk.tell(fenced(2))) == [Conclude]


def test_failure_that_is_not_transient_ends_the_turn():
    orders = Desk(start(deadline_s=50.0), ended(1)).tell(fenced(1, FATAL))

    assert to_sink(orders) == [Conclude(TURN, FATAL)]
    assert disarmed(orders) == ALL_TIMERS
    assert armed(orders) == {}


def test_free_attempt_does_not_count():
    desk = Desk(start(retries=0), ended(1), fenced(1, FATAL, refused="stream_options"))
    [admit] = to_sink(desk.tell(fired("backoff", TURN)))

    assert admit.free
    assert desk.turn.used == 1
    assert not desk.turn.asked.usage_options


def test_back_off_keeps_what_the_next_attempt_asks_for():
    desk = Desk(start(), ended(1), fenced(1, FATAL, refused="streaming"))
    assert not desk.turn.asked.stream

    desk.tell(interrupt())
    assert not desk.turn.asked.stream


def test_attempt_behind_a_free_one_counts():
    desk = Desk(start(retries=1), ended(1), fenced(1, FATAL, refused="stream_options"))
    desk.tell(fired("backoff", TURN), ended(2), fenced(2))
    [admit] = to_sink(desk.tell(fired("backoff", TURN)))

    assert not admit.free
    assert desk.turn.used == 2


def test_retry_after_empty_frames_asks_without_streaming():
    empty = Failure(kind=FailureKind.EMPTY, retryable=True)
    desk = Desk(start(), ended(1), fenced(1, empty, learned="contentless"))
    [sent] = starts(desk.tell(fired("backoff", TURN)))

    assert (sent.order.stream, sent.order.stream_options) == (False, b"")


@pytest.mark.parametrize("told", [BACKING_OFF, ENDING, ENDED])
def test_report_of_a_fence_is_judged_once(told):
    assert Desk(*told).tell(fenced(1)) == []


def test_report_of_an_older_fence_is_not_judged():
    assert Desk(*BACKING_OFF, fired("backoff", TURN)).tell(fenced(1)) == []


@pytest.mark.parametrize("told", [(start(),), ENDING, ENDED])
def test_late_back_off_starts_nothing(told):
    assert Desk(*told).tell(fired("backoff", TURN)) == []


# Ends of attempts


def test_end_of_an_attempt_disarms_the_ladder():
    assert disarmed(Desk(start()).tell(ended(1))) == {("kill", 1)}


def test_end_is_taken_once():
    assert Desk(start(), ended(1)).tell(ended(1)) == []


def test_end_of_the_last_attempt_of_a_turn_that_has_ended_is_the_end_of_all():
    assert kinds(Desk(*ENDED).tell(ended(1, cancelled=True))) == [Forget]


def test_end_of_an_older_attempt_leaves_the_turn_running():
    desk = Desk(start(), fenced(1), fired("backoff", TURN))

    assert to_sink(desk.tell(ended(1, cancelled=True))) == []
    assert [attempt.token for attempt in desk.turn.live] == [2]


def test_end_of_the_turn_cancels_every_attempt_that_was_not_told():
    desk = Desk(start(), fenced(1), fired("backoff", TURN), 5.0)
    orders = desk.tell(closed("interrupted"))

    assert cancels(orders) == [(1, 2)]
    assert armed(orders) == {("kill", 2): 5.25}


def test_end_of_the_turn_disarms_everything_but_the_ladder():
    desk = Desk(start(deadline_s=50.0))

    assert disarmed(desk.tell(closed())) == ALL_TIMERS


def test_end_of_a_turn_without_attempts_is_the_end_of_all():
    assert kinds(Desk(start(target=None), interrupt()).tell(closed("interrupted"))) == [Forget]


def test_end_of_the_turn_is_taken_once():
    assert Desk(*ENDED).tell(closed("failed")) == []


# Workers that are lost


def test_loss_of_the_worker_fences_the_current_attempt():
    orders = Desk(start()).tell(lost(1))
    [fence] = to_sink(orders)

    assert (fence.turn, fence.token, fence.failure.kind) == (TURN, 1, FailureKind.WORKER_LOST)
    assert fence.failure.retryable
    assert disarmed(orders) == {("kill", 1)}


def test_retry_after_a_loss_runs_on_the_next_worker():
    desk = Desk(start(), lost(1), fenced(1))

    assert starts(desk.tell(fired("backoff", TURN)))[0].generation == 2


def test_loss_fences_no_attempt_that_is_over():
    desk = Desk(start(), ended(1), fenced(1))

    assert to_sink(desk.tell(lost(1))) == []


def test_loss_of_an_older_attempts_worker_fences_nobody():
    desk = Desk(start(), fenced(1), lost(2), size=2)
    desk.tell(fired("backoff", TURN))
    assert [attempt.generation for attempt in desk.turn.live] == [1, 3]

    assert to_sink(desk.tell(lost(1))) == []
    assert [attempt.token for attempt in desk.turn.live] == [2]


def test_loss_fences_nobody_while_the_retry_waits():
    assert to_sink(Desk(start(), fenced(1)).tell(lost(1))) == []


def test_loss_of_the_last_worker_of_a_turn_that_has_ended_is_the_end_of_all():
    assert kinds(Desk(*ENDED).tell(lost(1))) == [Forget]


def test_end_behind_a_loss_is_late():
    assert Desk(start(), lost(1)).tell(ended(1)) == []


# Defects


def test_token_that_falls_is_a_defect():
    desk = Desk(start())
    placed = AttemptPlaced(1, 1, False, desk.turn.asked, 0.0)

    with pytest.raises(AssertionError, match="S1"):
        evolve(desk.turn, placed)


@pytest.mark.parametrize("told", [ENDING, ENDED])
def test_attempt_behind_the_end_is_a_defect(told):
    desk = Desk(*told)
    placed = AttemptPlaced(9, 1, False, desk.turn.asked, 0.0)

    with pytest.raises(AssertionError, match="S2"):
        evolve(desk.turn, placed)


def test_change_behind_the_end_is_a_defect():
    with pytest.raises(AssertionError, match="S2"):
        evolve(Desk(*ENDED).turn, PhaseChanged("running"))


def test_attempt_that_leaves_twice_is_a_defect():
    with pytest.raises(AssertionError, match="S3"):
        evolve(Desk(start(), ended(1)).turn, AttemptGone(1))

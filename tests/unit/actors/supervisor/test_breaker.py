"""Whether a silent endpoint is asked at all: by rule, then by every sequence."""

import itertools

import pytest

from tidegate.actors.supervisor.breaker import Allowed, Breaker, Refused, is_answer
from tidegate.protocol.endpoints import Endpoint
from tidegate.protocol.failures import Failure, FailureKind
from tidegate.protocol.policy import Policy
from tidegate.protocol.requests import Request


def resolved(**fields):
    request = Request(Endpoint.chat("http://host"), {})
    return Policy(**fields).resolved(request, environ={}).values()


USUAL = resolved()


def killed(times, *, every_s=10.0):
    breaker = Breaker()
    for number in range(times):
        breaker = breaker.stale_killed(number * every_s, (number + 1) * every_s)
    return breaker


def test_closed_breaker_lets_every_turn_through():
    assert Breaker().admit(1, USUAL, 0.0) == (Breaker(), Allowed())
    assert isinstance(killed(4).admit(1, USUAL, 40.0)[1], Allowed)


def test_fifth_stale_kill_opens_it():
    before = killed(5)
    after, admission = before.admit(1, USUAL, 50.0)

    assert after == before
    assert isinstance(admission, Refused)
    assert admission.failure.kind is FailureKind.CIRCUIT_OPEN
    assert "unresponsive" in admission.failure.detail
    assert admission.failure.retry_after_s == 60.0


def test_own_threshold_of_a_turn_holds():
    assert isinstance(killed(1).admit(1, resolved(stale_giveup=1), 11.0)[1], Refused)
    assert isinstance(killed(9).admit(1, resolved(stale_giveup=10), 91.0)[1], Allowed)


def test_zero_disables_it():
    assert killed(100).admit(1, resolved(stale_giveup=0), 1_000.0)[1] == Allowed()


def test_outage_of_many_turns_counts_once():
    breaker = Breaker()
    for at_s in (180.0, 180.1, 181.0, 200.0):
        breaker = breaker.stale_killed(0.0, at_s)

    assert breaker.streak == 1
    assert breaker.killed_at_s == 180.0


def test_retry_begun_in_the_instant_of_the_kill_counts():
    assert Breaker().stale_killed(0.0, 5.0).stale_killed(5.0, 10.0).streak == 2


def test_attempt_begun_before_the_last_answer_does_not_count():
    answered = killed(4).answered(50.0)

    assert answered.streak == 0
    assert answered.stale_killed(45.0, 60.0).streak == 0
    assert answered.stale_killed(50.0, 60.0).streak == 1


def test_interrupt_after_half_a_minute_of_nothing_counts():
    assert Breaker().interrupted(0.0, 30.0, received=False).streak == 1
    assert Breaker().interrupted(0.0, 29.9, received=False).streak == 0
    assert Breaker().interrupted(0.0, 300.0, received=True).streak == 0


def test_interrupts_within_one_outage_count_once():
    breaker = Breaker().interrupted(0.0, 40.0, received=False)

    assert breaker.interrupted(5.0, 45.0, received=False).streak == 1


def test_cool_down_lets_one_turn_through_and_the_others_fail():
    breaker = killed(5)
    assert isinstance(breaker.admit(1, USUAL, 109.9)[1], Refused)

    breaker, admission = breaker.admit(1, USUAL, 110.0)
    assert admission == Allowed(probe=True)
    _, other = breaker.admit(2, USUAL, 1_000.0)
    assert isinstance(other, Refused)
    assert other.failure.retry_after_s is None


def test_answer_to_the_probe_closes_it():
    breaker, _ = killed(5).admit(1, USUAL, 110.0)
    breaker = breaker.answered(111.0).ended(1)

    assert breaker.admit(2, USUAL, 111.0) == (breaker, Allowed())


def test_answer_to_an_older_turn_closes_it_too():
    breaker, _ = killed(5).admit(1, USUAL, 110.0)

    assert breaker.answered(111.0).admit(2, USUAL, 111.0)[1] == Allowed()


def test_stale_probe_opens_it_for_another_cool_down():
    breaker, _ = killed(5).admit(1, USUAL, 110.0)
    breaker = breaker.stale_killed(110.0, 290.0).ended(1)

    assert isinstance(breaker.admit(2, USUAL, 349.0)[1], Refused)
    assert breaker.admit(2, USUAL, 350.0)[1] == Allowed(probe=True)


def test_probe_that_ends_in_any_other_way_leaves_its_place_at_once():
    breaker, _ = killed(5).admit(1, USUAL, 110.0)
    breaker = breaker.ended(1)

    assert breaker.admit(2, USUAL, 110.0)[1] == Allowed(probe=True)


def test_end_of_another_turn_leaves_the_probe_its_place():
    breaker, _ = killed(5).admit(1, USUAL, 110.0)

    assert breaker.ended(2) == breaker


@pytest.mark.parametrize(
    ("kind", "status", "answer"),
    [
        (FailureKind.BAD_REQUEST, 400, True),
        (FailureKind.AUTH, 401, True),
        (FailureKind.RATE_LIMITED, 429, True),
        (FailureKind.SERVER_ERROR, 500, True),
        (FailureKind.OVERLOADED, 529, True),
        (FailureKind.SERVER_ERROR, 502, False),
        (FailureKind.SERVER_ERROR, 504, False),
        (FailureKind.SERVER_ERROR, 524, False),
        (FailureKind.CONNECTION_LOST, None, False),
        (FailureKind.STALLED, 200, False),
        (FailureKind.TRUNCATED, 200, False),
    ],
)
def test_answer_of_the_provider_itself(kind, status, answer):
    assert is_answer(Failure(kind=kind, status=status)) is answer


GIVEUP = resolved(stale_giveup=2, giveup_cooldown_s=3)
STEPS = ("start", "kill newest", "kill oldest", "kill and retry", "answer", "end", "wait")
OPEN = ("start", "kill newest", "start", "kill newest")


def play(steps):
    """Run steps on a breaker; turns are numbers, one second passes with each step."""
    breaker, now_s, turns, started = Breaker(), 0.0, itertools.count(1), {}
    for step in steps:
        now_s += 3.0 if step == "wait" else 1.0
        if step == "start":
            turn = next(turns)
            breaker, admission = breaker.admit(turn, GIVEUP, now_s)
            if isinstance(admission, Allowed):
                started[turn] = now_s
        elif step in ("kill newest", "kill oldest") and started:
            turn = (max if step == "kill newest" else min)(started)
            breaker = breaker.stale_killed(started.pop(turn), now_s).ended(turn)
        elif step == "kill and retry" and started:
            turn = max(started)
            breaker = breaker.stale_killed(started[turn], now_s)
            started[turn] = now_s
        elif step == "answer" and started:
            turn = min(started)
            del started[turn]
            breaker = breaker.answered(now_s).ended(turn)
            assert breaker.admit(0, GIVEUP, now_s)[1] == Allowed()
        elif step == "end" and started:
            turn = min(started)
            del started[turn]
            breaker = breaker.ended(turn)
        assert breaker.probe is None or breaker.probe in started
    return breaker, now_s


def test_every_sequence_keeps_the_place_of_the_probe_and_ends_open_to_somebody():
    probes = 0
    for steps in itertools.product(STEPS, repeat=5):
        breaker, now_s = play(OPEN + steps)
        if breaker.probe is not None:
            probes += 1
            breaker = breaker.ended(breaker.probe)
        _, admission = breaker.admit(99, GIVEUP, now_s + 3.0)
        assert isinstance(admission, Allowed), steps

    assert probes > 1_000

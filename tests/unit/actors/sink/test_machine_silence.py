"""What the sink's machine takes for a silence, and whose it is."""

import pytest

from tests.unit.actors.sink.building import (
    OPEN,
    SEAL,
    TURN,
    admit,
    fence,
    finished,
    life,
    question,
    text,
)
from tests.unit.actors.sink.test_machine import after, effects
from tidegate.actors.sink.effects import Report
from tidegate.actors.sink.machine import decide
from tidegate.protocol.attempts import START_ALLOWANCE_S, Waking, Woken
from tidegate.protocol.failures import FailureKind
from tidegate.protocol.sink import Limit, NotIdle


def test_question_before_the_first_event_is_for_the_first_limit():
    state = after(OPEN, admit(1))

    for limit in (Limit.PROGRESS, Limit.ALIVE):
        answer = NotIdle(TURN, 1, limit, 50.0)
        assert effects(state, question(1, 40.0, limit), 50.0) == (Report(answer),)


def test_attempt_without_an_event_is_stale_by_the_first_limit():
    [freeze] = effects(after(OPEN, admit(1)), question(1, 40.0, Limit.FIRST_EVENT), 50.0)

    assert freeze.failure.kind is FailureKind.STALLED
    assert freeze.failure.reason == "first_byte"
    assert freeze.failure.retryable


def test_comments_are_no_event():
    told = (OPEN, admit(1), life(1, event=False))
    [freeze] = effects(after(*told), question(1, 40.0, Limit.FIRST_EVENT), 50.0)

    assert freeze.failure.reason == "no_progress"


@pytest.mark.parametrize("first", [life(1), text(1, 0)])
def test_first_limit_does_not_matter_behind_the_first_event(first):
    answer = NotIdle(TURN, 1, Limit.FIRST_EVENT, None)

    assert effects(after(OPEN, admit(1), first), question(1, 40.0, Limit.FIRST_EVENT), 50.0) == (
        Report(answer),
    )


@pytest.mark.parametrize("limit", Limit)
def test_no_limit_matters_behind_evidence(limit):
    state = after(OPEN, admit(1), finished(1, 0))

    assert effects(state, question(1, 40.0, limit), 50.0) == (
        Report(NotIdle(TURN, 1, limit, None)),
    )


def test_progress_behind_the_instant_of_the_question_answers_it():
    state = after(OPEN, admit(1), 10.0, text(1, 0), 20.0, text(1, 1))

    assert effects(state, question(1, 15.0), 50.0) == (
        Report(NotIdle(TURN, 1, Limit.PROGRESS, 20.0)),
    )


def test_progress_at_the_instant_of_the_question_does_not_count():
    state = after(OPEN, admit(1), 10.0, text(1, 0), 20.0, text(1, 1))
    [freeze] = effects(state, question(1, 20.0), 50.0)

    assert freeze.failure.reason == "idle"
    assert freeze.failure.detail == "no progress for 30.0 s: nothing came"


def test_life_is_no_progress():
    state = after(OPEN, admit(1), 10.0, text(1, 0), 20.0, life(1))
    [freeze] = effects(state, question(1, 15.0), 50.0)

    assert freeze.failure.reason == "no_progress"
    assert freeze.failure.detail == "no progress for 40.0 s: what came were signs of life alone"


def test_first_event_counts_where_there_was_no_progress_yet():
    state = after(OPEN, admit(1), 10.0, life(1), 20.0, life(1))

    assert effects(state, question(1, 5.0), 50.0) == (
        Report(NotIdle(TURN, 1, Limit.PROGRESS, 10.0)),
    )


def test_any_byte_is_life():
    state = after(OPEN, admit(1), 10.0, text(1, 0), 20.0, life(1, event=False))

    assert effects(state, question(1, 15.0, Limit.ALIVE), 50.0) == (
        Report(NotIdle(TURN, 1, Limit.ALIVE, 20.0)),
    )


def test_progress_is_life():
    state = after(OPEN, admit(1), 10.0, life(1), 20.0, text(1, 0))

    assert effects(state, question(1, 15.0, Limit.ALIVE), 50.0) == (
        Report(NotIdle(TURN, 1, Limit.ALIVE, 20.0)),
    )


def test_dead_provider_is_idle():
    state = after(OPEN, admit(1), 10.0, text(1, 0))
    [freeze] = effects(state, question(1, 15.0, Limit.ALIVE), 50.0)

    assert freeze.failure.reason == "idle"


def first_event(idle_since_s):
    return question(1, idle_since_s, Limit.FIRST_EVENT)


def not_idle(count_from_s):
    return (Report(NotIdle(TURN, 1, Limit.FIRST_EVENT, count_from_s)),)


def test_worker_that_imports_is_no_silent_provider():
    state = after(OPEN, admit(1), 10.0, Waking(TURN, 1))
    until_s = 10.0 + START_ALLOWANCE_S

    assert effects(state, first_event(5.0), 12.0) == not_idle(until_s)
    assert effects(state, first_event(until_s - 1.0), 100.0) == not_idle(until_s)


def test_import_that_does_not_end_is_a_silence_in_the_end():
    state = after(OPEN, admit(1), 10.0, Waking(TURN, 1))
    [freeze] = effects(state, first_event(10.0 + START_ALLOWANCE_S), 100.0)

    assert freeze.failure.kind is FailureKind.STALLED


def test_silence_counts_from_the_end_of_an_import():
    state = after(OPEN, admit(1), 10.0, Waking(TURN, 1), 15.0, Woken(TURN, 1))
    [freeze] = effects(state, first_event(15.0), 20.0)

    assert effects(state, first_event(14.0), 20.0) == not_idle(15.0)
    assert freeze.failure.reason == "first_byte"


def test_import_of_an_attempt_excuses_no_other():
    state = after(OPEN, admit(1), 10.0, Waking(TURN, 1), admit(2))
    [freeze] = effects(state, question(2, 11.0, Limit.FIRST_EVENT), 20.0)

    assert freeze.token == 2


@pytest.mark.parametrize("message", [Waking(TURN, 1), Woken(TURN, 1)])
@pytest.mark.parametrize(
    "told", [(OPEN, admit(1), admit(2)), (OPEN, admit(1), fence(1)), (OPEN, SEAL)]
)
def test_import_of_an_attempt_without_a_right_is_reported_alone(told, message):
    assert decide(after(*told), message, 50.0) == ((), (Report(message),))

"""The sink's machine, one rule at a time."""

from functools import reduce

import pytest

from tests.unit.actors.sink.building import (
    LOST,
    OPEN,
    SEAL,
    STALLED,
    TURN,
    WINDOW_BYTES,
    admit,
    announce,
    conclude,
    ended,
    fence,
    finished,
    life,
    question,
    text,
    usage,
)
from tidegate.actors.sink.effects import (
    BeginAttempt,
    Close,
    CreditReviewed,
    Freeze,
    Grant,
    Note,
    Publish,
    Refuse,
    Report,
    Supersede,
    Write,
)
from tidegate.actors.sink.machine import decide
from tidegate.actors.sink.state import TurnState, evolve
from tidegate.protocol.answers import Usage
from tidegate.protocol.attempts import Opened
from tidegate.protocol.deltas import EVENT_OVERHEAD_BYTES
from tidegate.protocol.failures import FailureKind
from tidegate.protocol.sink import EvidenceTaken, Limit, NotIdle


def after(*messages):
    """Return the state once all messages were taken; a number is the time from there on."""
    state, now_s = TurnState(), 0.0
    for message in messages:
        if isinstance(message, float):
            now_s = message
            continue
        decision = decide(state, message, now_s)
        assert decision.events, f"setup was refused: {decision}"
        state = reduce(evolve, decision.events, state)
    return state


def effects(state, message, now_s=0.0):
    return decide(state, message, now_s).effects


def assert_refused(state, message, why):
    assert decide(state, message, 0.0) == ((), (Refuse(why),))


WRITING = (OPEN, admit(1), text(1, 0))
PROVEN = (*WRITING, finished(1, 1))
FENCED = (*WRITING, fence(1))
SEALED = (*WRITING, SEAL)


def test_delta_of_the_current_attempt_is_accepted():
    state = after(OPEN, admit(1))
    decision = decide(state, text(1, 0), 0.0)

    assert decision.effects == (Supersede(), Write(text(1, 0)))
    assert reduce(evolve, decision.events, state).next_seq == 1


def test_only_the_first_progress_supersedes():
    assert effects(after(*WRITING), text(1, 1)) == (Write(text(1, 1)),)


def test_deltas_of_one_message_count_one_by_one():
    assert after(OPEN, admit(1), text(1, 0, "a", "b", "c")).next_seq == 3


@pytest.mark.parametrize("make", [text, finished])
@pytest.mark.parametrize(
    ("told", "token", "seq", "why"),
    [
        (WRITING, 1, 0, "duplicate"),
        (WRITING, 1, 2, "gap"),
        (WRITING, 2, 0, "token_not_admitted"),
        ((OPEN,), 1, 0, "token_not_admitted"),
        ((*FENCED, admit(2)), 1, 1, "stale_token"),
        (FENCED, 1, 1, "fenced"),
        (SEALED, 1, 1, "turn_closed"),
        (PROVEN, 1, 1, "after_evidence"),
    ],
)
def test_what_does_not_fit_is_refused(make, told, token, seq, why):
    assert_refused(after(*told), make(token, seq), why)


def counted(token):
    return usage(token, Usage())


def asked(token):
    return question(token, 9.0)


@pytest.mark.parametrize("make", [life, fence, counted, asked])
@pytest.mark.parametrize(
    ("told", "token", "why"),
    [
        (WRITING, 2, "token_not_admitted"),
        ((*FENCED, admit(2)), 1, "stale_token"),
        (FENCED, 1, "fenced"),
        (SEALED, 1, "turn_closed"),
    ],
)
def test_what_has_no_right_changes_nothing(make, told, token, why):
    assert_refused(after(*told), make(token), why)


def test_turn_cannot_be_opened_twice():
    assert_refused(after(*WRITING), OPEN, "told_twice")


def test_seal_before_the_turn_is_opened_is_remembered():
    sealed = after(SEAL)
    decision = decide(sealed, OPEN, 0.0)

    assert decision.effects == (Close("interrupted", reason="enough"),)
    assert reduce(evolve, decision.events, sealed).closed == "interrupted"


def test_seal_closes_at_once():
    assert effects(after(*WRITING), SEAL) == (Close("interrupted", reason="enough"),)


def test_seal_wins_over_evidence_that_was_not_followed_by_the_end():
    assert effects(after(*PROVEN), SEAL) == (Close("interrupted", reason="enough"),)


@pytest.mark.parametrize("message", [SEAL, conclude(), announce(), admit(2), fence(1)])
def test_closed_turn_stays_as_it_is(message):
    assert_refused(after(*SEALED), message, "turn_closed")


def test_admission_gives_a_full_window():
    state = after(*FENCED, admit(2))

    assert (state.token, state.current, state.next_seq) == (2, True, 0)
    assert (state.sent_bytes, state.limit_bytes) == (0, WINDOW_BYTES)
    assert not state.progressed


def test_admission_begins_an_attempt():
    assert effects(after(OPEN), admit(1)) == (BeginAttempt(admit(1)),)


def test_admission_ends_the_right_of_a_smaller_token():
    assert_refused(after(*WRITING, admit(2)), text(1, 1), "stale_token")


def test_token_is_admitted_once():
    assert_refused(after(*FENCED), admit(1), "stale_token")


def test_nobody_is_admitted_after_evidence():
    assert_refused(after(*PROVEN), admit(2), "after_evidence")


def test_evidence_is_noted_and_reported():
    assert effects(after(*WRITING), finished(1, 1)) == (
        Note(finished(1, 1)),
        Report(EvidenceTaken(TURN, 1)),
    )


def test_evidence_without_a_delta_supersedes_like_progress():
    found = effects(after(OPEN, admit(1)), finished(1, 0))

    assert found[0] == Supersede()


def test_delta_behind_evidence_without_a_delta_is_refused():
    assert_refused(after(OPEN, admit(1), finished(1, 0)), text(1, 0), "after_evidence")


@pytest.mark.parametrize("end", [fence(1), conclude()])
def test_end_after_evidence_completes(end):
    assert effects(after(*PROVEN), end) == (Close("completed"),)


def test_failure_after_evidence_completes():
    assert effects(after(*PROVEN), ended(1)) == (Report(ended(1)), Close("completed"))


def test_fence_before_evidence_freezes():
    assert effects(after(*WRITING), fence(1)) == (Freeze(1, STALLED),)


def test_failure_before_evidence_freezes_behind_its_report():
    end = ended(1, LOST, refused="streaming", learned="contentless")

    assert effects(after(*WRITING), end) == (
        Report(end),
        Freeze(1, LOST, "streaming", "contentless"),
    )


def test_end_without_evidence_and_without_a_failure_is_one_of_ours():
    _, freeze = effects(after(*WRITING), ended(1, None))

    assert freeze.failure.kind is FailureKind.INTERNAL


@pytest.mark.parametrize("told", [FENCED, SEALED, (*FENCED, admit(2))])
def test_end_of_an_attempt_without_a_right_is_reported_and_changes_nothing(told):
    assert decide(after(*told), ended(1), 0.0) == ((), (Report(ended(1)),))


def test_conclusion_fails_the_turn():
    assert effects(after(*FENCED), conclude(STALLED)) == (Close("failed", STALLED),)


def test_conclusion_before_any_attempt_fails_the_turn():
    assert effects(after(OPEN), conclude(STALLED)) == (Close("failed", STALLED),)


def test_announcement_is_published():
    assert effects(after(*FENCED), announce()) == (Publish(announce()),)


@pytest.mark.parametrize("fact", [Opened(TURN, 1, "req"), usage(1, Usage())])
def test_fact_of_the_current_attempt_is_noted(fact):
    assert effects(after(*PROVEN), fact) == (Note(fact),)


def spent():
    """A worker that has sent all it may: its window is of one delta."""
    return after(OPEN, admit(1), 10.0, text(1, 0, "x" * (WINDOW_BYTES - EVENT_OVERHEAD_BYTES)))


@pytest.mark.parametrize("limit", [Limit.PROGRESS, Limit.ALIVE])
def test_provider_that_waits_for_credit_is_not_idle(limit):
    assert effects(spent(), question(1, 40.0, limit), 50.0) == (
        Report(NotIdle(TURN, 1, limit, 50.0)),
    )


def test_provider_with_a_byte_of_credit_left_may_be_idle():
    size = WINDOW_BYTES - EVENT_OVERHEAD_BYTES - 1
    state = after(OPEN, admit(1), 10.0, text(1, 0, "x" * size))

    [freeze] = effects(state, question(1, 40.0), 50.0)
    assert isinstance(freeze, Freeze)


def test_credit_that_returns_begins_the_silence_anew():
    state = spent()
    state = reduce(evolve, decide(state, CreditReviewed(WINDOW_BYTES, False), 30.0).events, state)

    assert effects(state, question(1, 20.0), 50.0) == (
        Report(NotIdle(TURN, 1, Limit.PROGRESS, 30.0)),
    )


def test_credit_before_it_is_spent_leaves_the_silence_as_it_is():
    state = after(OPEN, admit(1), 10.0, text(1, 0))
    state = reduce(evolve, decide(state, CreditReviewed(5, False), 30.0).events, state)

    [freeze] = effects(state, question(1, 20.0), 50.0)
    assert isinstance(freeze, Freeze)


def test_what_was_read_is_granted_again():
    assert effects(after(*WRITING), CreditReviewed(5, False)) == (Grant(1, WINDOW_BYTES + 5),)


@pytest.mark.parametrize("told", [(OPEN,), FENCED])
def test_nothing_is_granted_without_a_current_attempt(told):
    assert effects(after(*told), CreditReviewed(500, False)) == ()


def test_nothing_is_granted_in_a_closed_turn():
    assert_refused(after(*SEALED), CreditReviewed(500, True), "turn_closed")


def test_review_that_finds_nothing_new_changes_nothing():
    assert decide(after(*WRITING), CreditReviewed(0, False), 0.0) == ((), ())


def test_waiting_is_noted_where_it_grants_nothing():
    state = after(OPEN, admit(1), CreditReviewed(0, True))

    assert state.waiting
    assert state.limit_bytes == WINDOW_BYTES
    assert not after(OPEN, admit(1), CreditReviewed(0, True), CreditReviewed(0, False)).waiting


def test_waiting_grants_a_window_beyond_what_was_sent():
    size = 5 + EVENT_OVERHEAD_BYTES
    state = after(OPEN, admit(1), text(1, 0, "12345"))

    assert effects(state, CreditReviewed(0, True)) == (Grant(1, size + WINDOW_BYTES),)


def test_while_somebody_waits_credit_comes_before_it_is_spent():
    half = "x" * (WINDOW_BYTES // 2 - EVENT_OVERHEAD_BYTES)
    state = after(OPEN, admit(1), CreditReviewed(0, True))

    assert effects(state, text(1, 0, half)) == (Supersede(), Write(text(1, 0, half)))
    *_, grant = effects(state, text(1, 0, half + "x"))
    assert grant == Grant(1, WINDOW_BYTES // 2 + 1 + WINDOW_BYTES)


def test_while_nobody_waits_no_delta_brings_credit():
    half = "x" * (WINDOW_BYTES // 2)

    assert len(effects(after(OPEN, admit(1)), text(1, 0, half))) == 2


def test_waiting_holds_for_the_next_attempt():
    assert after(*WRITING, CreditReviewed(0, True), fence(1), admit(2)).waiting


def test_fact_after_the_end_is_a_defect():
    with pytest.raises(AssertionError, match="I3"):
        evolve(after(*SEALED), decide(after(*WRITING), text(1, 1), 0.0).events[0])


def test_token_that_falls_is_a_defect():
    [admitted] = decide(after(OPEN), admit(1), 0.0).events

    with pytest.raises(AssertionError, match="I1"):
        evolve(after(*WRITING), admitted)


def test_write_beyond_the_fence_is_a_defect():
    [accepted] = decide(after(*WRITING), text(1, 1), 0.0).events

    with pytest.raises(AssertionError, match="I2"):
        evolve(after(*FENCED), accepted)
    with pytest.raises(AssertionError, match="I2"):
        evolve(after(*PROVEN), accepted)


def test_second_fence_is_a_defect():
    [fenced] = decide(after(*WRITING), fence(1), 0.0).events

    with pytest.raises(AssertionError, match="I2"):
        evolve(after(*FENCED), fenced)


def test_completion_without_evidence_is_a_defect():
    [completed] = decide(after(*PROVEN), fence(1), 0.0).events

    with pytest.raises(AssertionError, match="I4"):
        evolve(after(*WRITING), completed)

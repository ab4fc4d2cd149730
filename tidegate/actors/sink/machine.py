"""Decides what may be written to a turn, by which attempt, and how the turn ends.

Theory of operation
-------------------
The supervisor numbers attempts with a growing *token*. The sink admits one token at a time; a delta
is accepted if and only if it carries that token and the next *seq* of its attempt. An attempt loses
its right to write by a fence (its failure, a true stale alarm, an order), by the admission of a
larger token, or by the end of the turn. After evidence it cannot be fenced: its failure, an order
or its end then complete the turn.

Of attempts that made progress, the last one is the answer. It is voided by the first progress or
evidence of its successor and by nothing else, so a successor that brings nothing takes nothing
away.

The invariants are in ``state.py``. This module does no I/O and reads no clock.
"""

from __future__ import annotations

from typing import assert_never

from tidegate.actors.decision import Decision
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
    SinkDecision,
    SinkEffect,
    Supersede,
    Write,
    WriterMessage,
)
from tidegate.actors.sink.silence import STALLS, counted_from, stall_reason
from tidegate.actors.sink.state import (
    AttemptAdmitted,
    AttemptFenced,
    CreditSettled,
    DeltasAccepted,
    EvidenceAccepted,
    LifeTaken,
    SealRemembered,
    SilenceExcused,
    SinkFact,
    TurnEnded,
    TurnOpened,
    TurnState,
)
from tidegate.protocol.attempts import (
    START_ALLOWANCE_S,
    Deltas,
    Described,
    Ended,
    Finished,
    Life,
    Opened,
    UsageSeen,
    Waking,
    Woken,
)
from tidegate.protocol.base import Token
from tidegate.protocol.deltas import size_bytes
from tidegate.protocol.failures import Failure, FailureKind
from tidegate.protocol.sink import (
    Admit,
    Announce,
    Conclude,
    EvidenceTaken,
    Fence,
    FenceIfIdle,
    Limit,
    NotIdle,
    OpenTurn,
    Seal,
)


_UNASKED = Failure(
    kind=FailureKind.INTERNAL, detail="the attempt ended without evidence and without a failure"
)


def decide(state: TurnState, message: WriterMessage, now_s: float) -> SinkDecision:
    """Say what ``message`` means in ``state``, and change nothing."""
    match message:
        case Deltas():
            return _decide_deltas(state, message, now_s)
        case Finished():
            return _decide_finished(state, message, now_s)
        case Life(token=token, event=event):
            if why := fence_refusal(state, token):
                return _refuse(why)
            return Decision(events=(LifeTaken(event, now_s),))
        case Opened() | Described() | UsageSeen():
            if why := fence_refusal(state, message.token):
                return _refuse(why)
            return Decision(effects=(Note(message),))
        case Ended():
            return _decide_ended(state, message)
        case Waking() | Woken():
            return _decide_import(state, message, now_s)
        case CreditReviewed():
            return _decide_credit(state, message, now_s)
        case Seal():
            return _decide_seal(state, message)
        case OpenTurn():
            return _decide_open(state, message)
        case Admit():
            return _decide_admit(state, message, now_s)
        case Fence(token=token, failure=failure):
            if why := fence_refusal(state, token):
                return _refuse(why)
            return _end_attempt(state, Freeze(token, failure))
        case FenceIfIdle():
            return _decide_idle(state, message, now_s)
        case Announce():
            return _refuse("turn_closed") if state.closed else Decision((), (Publish(message),))
        case Conclude(failure=failure):
            return _decide_conclude(state, failure)
        case _:
            assert_never(message)


def fence_refusal(state: TurnState, token: Token) -> str | None:
    """Say why ``token`` may not write, or None if it may (R1)."""
    if state.closed:
        return "turn_closed"
    if token < state.token:
        return "stale_token"
    if token > state.token:
        return "token_not_admitted"
    return None if state.current else "fenced"


def _refuse(why: str) -> SinkDecision:
    return Decision(effects=(Refuse(why),))


def _close(kind: str, failure: Failure | None = None, reason: str = "") -> SinkDecision:
    return Decision((TurnEnded(kind),), (Close(kind, failure, reason),))


def _end_attempt(state: TurnState, freeze: Freeze) -> SinkDecision:
    """R4 and R11: after evidence complete the turn, before it fence and report."""
    if state.finishes is not None:
        return _close("completed")
    return Decision((AttemptFenced(),), (freeze,))


def _decide_open(state: TurnState, message: OpenTurn) -> SinkDecision:
    if state.opened:
        return _refuse("told_twice")
    opened = TurnOpened(message.window_bytes)
    if state.seal is None:
        return Decision((opened,))
    closed = _close("interrupted", reason=state.seal)
    return Decision((opened, *closed.events), closed.effects)


def _decide_seal(state: TurnState, message: Seal) -> SinkDecision:
    if state.closed:
        return _refuse("turn_closed")
    if not state.opened:
        return Decision((SealRemembered(message.reason),))
    return _close("interrupted", reason=message.reason)


def _decide_admit(state: TurnState, message: Admit, now_s: float) -> SinkDecision:
    if state.closed:
        return _refuse("turn_closed")
    if message.token <= state.token:
        return _refuse("stale_token")
    if state.finishes is not None:
        return _refuse("after_evidence")
    return Decision((AttemptAdmitted(message.token, now_s),), (BeginAttempt(message),))


def _decide_deltas(state: TurnState, message: Deltas, now_s: float) -> SinkDecision:
    if why := fence_refusal(state, message.token):
        return _refuse(why)
    if state.finishes is not None:
        return _refuse("after_evidence")
    if message.seq != state.next_seq:
        return _refuse("duplicate" if message.seq < state.next_seq else "gap")
    size = sum(map(size_bytes, message.deltas))
    facts: tuple[SinkFact, ...] = (DeltasAccepted(len(message.deltas), size, now_s),)
    effects: tuple[SinkEffect, ...] = (Write(message),)
    if not state.progressed:
        effects = (Supersede(), *effects)
    if state.waiting and state.sent_bytes + size > state.limit_bytes - state.window_bytes // 2:
        limit = state.sent_bytes + size + state.window_bytes
        facts = (*facts, CreditSettled(limit, waiting=True))
        effects = (*effects, Grant(message.token, limit))
    return Decision(facts, effects)


def _decide_finished(state: TurnState, message: Finished, now_s: float) -> SinkDecision:
    if why := fence_refusal(state, message.token):
        return _refuse(why)
    if state.finishes is not None:
        return _refuse("after_evidence")
    if message.seq != state.next_seq:
        return _refuse("duplicate" if message.seq < state.next_seq else "gap")
    taken = Report(EvidenceTaken(message.turn, message.token))
    effects: tuple[SinkEffect, ...] = (Note(message), taken)
    if not state.progressed:
        effects = (Supersede(), *effects)
    return Decision((EvidenceAccepted(message.finishes, now_s),), effects)


def _decide_ended(state: TurnState, message: Ended) -> SinkDecision:
    """R3: the end of every attempt is reported; only the current one's changes the turn."""
    report = Report(message)
    if fence_refusal(state, message.token):
        return Decision(effects=(report,))
    failure = message.failure or _UNASKED
    freeze = Freeze(message.token, failure, message.refused, message.learned)
    ended = _end_attempt(state, freeze)
    return Decision(ended.events, (report, *ended.effects))


def _decide_import(state: TurnState, message: Waking | Woken, now_s: float) -> SinkDecision:
    """Excuse a silence; the kill ladder wants to know of it as well, whoever may write."""
    report = Report(message)
    if fence_refusal(state, message.token):
        return Decision(effects=(report,))
    until_s = now_s + START_ALLOWANCE_S if isinstance(message, Waking) else now_s
    return Decision((SilenceExcused(until_s),), (report,))


def _decide_conclude(state: TurnState, failure: Failure) -> SinkDecision:
    if state.closed:
        return _refuse("turn_closed")
    if state.current and state.finishes is not None:
        return _close("completed")
    return _close("failed", failure)


def _decide_idle(state: TurnState, message: FenceIfIdle, now_s: float) -> SinkDecision:
    """R5: the question came behind everything the worker had sent, so the state is the truth."""
    if why := fence_refusal(state, message.token):
        return _refuse(why)
    limit = message.limit
    if state.finishes is not None or (limit is Limit.FIRST_EVENT and state.event_s is not None):
        return _not_idle(message, None)
    if state.sent_bytes >= state.limit_bytes:
        return _not_idle(message, now_s)  # it waits for credit, not for the provider
    since_s = counted_from(state, limit, message.idle_since_s)
    if since_s is None:
        return _not_idle(message, now_s)  # before the first event another limit counts
    if since_s > message.idle_since_s:
        return _not_idle(message, since_s)
    reason = stall_reason(state, limit, since_s)
    failure = Failure(
        kind=FailureKind.STALLED,
        reason=reason,
        retryable=True,
        detail=f"no progress for {now_s - since_s:.1f} s: {STALLS[reason]}",
    )
    return Decision((AttemptFenced(),), (Freeze(message.token, failure),))


def _not_idle(message: FenceIfIdle, count_from_s: float | None) -> SinkDecision:
    answer = NotIdle(message.turn, message.token, message.limit, count_from_s)
    return Decision(effects=(Report(answer),))


def _decide_credit(state: TurnState, message: CreditReviewed, now_s: float) -> SinkDecision:
    if state.closed:
        return _refuse("turn_closed")
    read = state.sent_bytes if message.waiting else message.taken_bytes
    limit = read + state.window_bytes
    if limit <= state.limit_bytes or not state.current:
        if message.waiting == state.waiting:
            return Decision()
        return Decision((CreditSettled(state.limit_bytes, message.waiting),))
    stopped = state.sent_bytes >= state.limit_bytes
    settled = CreditSettled(limit, message.waiting, now_s if stopped else None)
    return Decision((settled,), (Grant(state.token, limit),))

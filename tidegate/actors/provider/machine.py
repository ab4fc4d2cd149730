"""Decides what one attempt tells the host, and when its socket rests and closes.

Theory of operation
-------------------
The shell hands over what happens to one provider stream: headers, reads (already decoded), the
end of the body, a failure, a cancel, credit. The machine answers with messages to the host and
orders about the socket. It repairs and retries nothing.

What a body ends with counts only until there is evidence. Evidence is sticky: afterwards no delta
is sent and nothing is a failure. A cancel beats every failure that comes after it, so that the
closing of a socket by our own hand never looks like trouble.

Invariants (asserted in ``evolve``)
  I1  deltas are numbered from 0 without gaps, and none follows ``Finished``
  I2  ``Finished`` is sent at most once
  I3  ``Ended`` is sent exactly once, and nothing after it
  I4  reading rests only while the credit is used up and there is no evidence

Path: ``provider/dialects`` -> this -> ``provider/actor.py``
"""

from __future__ import annotations

from math import inf
from typing import Literal, TypeAlias, assert_never

import msgspec
from msgspec.structs import replace

from tidegate.actors.decision import Decision
from tidegate.actors.provider.dialects.batch import Batch
from tidegate.actors.provider.facts import (
    AttemptEffect,
    AttemptEnded,
    AttemptEvent,
    AttemptFailed,
    AttemptMessage,
    BatchCame,
    BodyEnded,
    CancelCame,
    CloseSocket,
    CreditCame,
    CreditTaken,
    DeltasSent,
    DrainSocket,
    EvidenceSent,
    HeadersCame,
    HeadersTaken,
    LifeSent,
    PauseReading,
    PreparingBegan,
    PreparingOver,
    ReadingPaused,
    ResumeReading,
    Send,
    SendNow,
)
from tidegate.protocol.attempts import (
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
from tidegate.protocol.base import Seq, Token, TurnNumber
from tidegate.protocol.deltas import Block, Delta, Tool, size_bytes
from tidegate.protocol.failures import Failure, FailureKind


AttemptDecision: TypeAlias = Decision[AttemptEvent, AttemptEffect]
FIRST = Seq(0)
Phase: TypeAlias = Literal["connecting", "streaming", "finished", "ended"]


class AttemptState(msgspec.Struct, frozen=True):
    """All that is known of one attempt.

    Attributes:
        limit_bytes: what ``sent_bytes`` must reach for the socket to rest.
        seq: number of the next delta.
        paused: whether the socket rests.
        event_seen: whether an event was reported, by a delta or as life.
        last_life_s: when life was last reported.
        life_every_s: the shortest time between two reports of life, beyond the first event.
    """

    turn: TurnNumber
    token: Token
    limit_bytes: int
    sent_bytes: int = 0
    seq: Seq = FIRST
    phase: Phase = "connecting"
    paused: bool = False
    event_seen: bool = False
    last_life_s: float = -inf
    life_every_s: float = 1.0


def decide(state: AttemptState, message: AttemptMessage, now_s: float) -> AttemptDecision:
    """Say what ``message`` means in ``state``, and change nothing."""
    if state.phase == "ended":
        return Decision()
    match message:
        case BatchCame(batch):
            return _decide_batch(state, batch, now_s)
        case HeadersCame(request_id):
            opened = Opened(state.turn, state.token, request_id)
            return Decision((HeadersTaken(),), (Send(opened),))
        case BodyEnded(batch, failure, learned):
            return _decide_body_ended(state, batch, failure, learned)
        case AttemptFailed(failure, refused):
            return _end(state, _failure_of(state, failure), refused=refused, close=True)
        case CancelCame():
            ended = Ended(state.turn, state.token, cancelled=True)
            return Decision((AttemptEnded(),), (CloseSocket(), SendNow(ended)))
        case CreditCame(limit_bytes):
            return _decide_credit(state, limit_bytes)
        case PreparingBegan():
            return Decision(effects=(SendNow(Waking(state.turn, state.token)),))
        case PreparingOver():
            return Decision(effects=(Send(Woken(state.turn, state.token)),))
        case _:
            assert_never(message)


def _decide_batch(state: AttemptState, batch: Batch, now_s: float) -> AttemptDecision:
    events, effects, sent_bytes = _taken(state, batch)
    finished = batch.finishes is not None or state.phase == "finished"
    if batch.done and finished:
        ended = SendNow(Ended(state.turn, state.token))
        return Decision((*events, AttemptEnded()), (*effects, ended, DrainSocket()))
    if batch.done or batch.failure is not None:
        failure = None if finished else batch.failure or _truncated("ended without a finish reason")
        end = _end(state, failure, close=True)
        return Decision((*events, *end.events), (*effects, *end.effects))
    if not finished:
        if not any(map(_has_content, batch.deltas)):
            _add_life(state, batch, now_s, events, effects)
        if sent_bytes >= state.limit_bytes and not state.paused:
            events.append(ReadingPaused())
            effects.append(PauseReading())
    return Decision(tuple(events), tuple(effects))


def _decide_body_ended(
    state: AttemptState, batch: Batch, failure: Failure | None, learned: str
) -> AttemptDecision:
    events, effects, _ = _taken(state, batch)
    if batch.finishes is not None or state.phase == "finished":
        end = _end(state, None, learned=learned, close=failure is not None)
    else:
        why = _failure_of(state, failure) if failure else batch.failure
        why = why or _truncated("the body ended without a finish reason")
        learned = "contentless" if batch.contentless else ""
        end = _end(state, why, learned=learned, close=failure is not None)
    return Decision((*events, *end.events), (*effects, *end.effects))


def _decide_credit(state: AttemptState, limit_bytes: int) -> AttemptDecision:
    if limit_bytes <= state.limit_bytes:
        return Decision()
    resumed = state.paused and state.sent_bytes < limit_bytes
    return Decision((CreditTaken(limit_bytes),), (ResumeReading(),) if resumed else ())


def _taken(
    state: AttemptState, batch: Batch
) -> tuple[list[AttemptEvent], list[AttemptEffect], int]:
    """Report what a batch holds, in the order in which the host must learn of it.

    Returns:
        Events, effects, and what all deltas so far take of the window.
    """
    turn, token, sent_bytes = state.turn, state.token, state.sent_bytes
    events: list[AttemptEvent] = []
    effects: list[AttemptEffect] = []
    if batch.described is not None:
        effects.append(Send(Described(turn, token, *batch.described)))
    if state.phase != "finished":
        deltas = tuple(batch.deltas)
        if deltas:
            size = sum(map(size_bytes, deltas))
            sent_bytes += size
            effects.append(Send(Deltas(turn, token, state.seq, deltas)))
            events.append(DeltasSent(state.seq, len(deltas), size))
        if batch.finishes is not None:
            seq = Seq(state.seq + len(deltas))
            effects.append(Send(Finished(turn, token, seq, batch.finishes)))
            events.append(EvidenceSent())
            if state.paused:
                effects.append(ResumeReading())
    if batch.usage is not None:
        effects.append(Send(UsageSeen(turn, token, batch.usage, batch.details)))
    return events, effects, sent_bytes


def _add_life(
    state: AttemptState,
    batch: Batch,
    now_s: float,
    events: list[AttemptEvent],
    effects: list[AttemptEffect],
) -> None:
    event = batch.events > 0
    first = event and not state.event_seen
    if first or now_s - state.last_life_s >= state.life_every_s:
        effects.append(Send(Life(state.turn, state.token, event)))
        events.append(LifeSent(now_s, event))


def _has_content(delta: Delta) -> bool:
    if isinstance(delta, Tool):
        return bool(delta.arguments or delta.id or delta.name)
    if isinstance(delta, Block):
        return bool(delta.data)
    return bool(delta.text)


def _end(
    state: AttemptState,
    failure: Failure | None,
    *,
    refused: str = "",
    learned: str = "",
    close: bool,
) -> AttemptDecision:
    ended = Ended(state.turn, state.token, failure, refused=refused, learned=learned)
    effects = (CloseSocket(), SendNow(ended)) if close else (SendNow(ended),)
    return Decision((AttemptEnded(),), effects)


def _failure_of(state: AttemptState, failure: Failure) -> Failure | None:
    """Return what a failure means here: none after evidence, a truncated body in a body."""
    if state.phase == "finished":
        return None
    if state.phase == "streaming" and failure.kind is FailureKind.CONNECTION_LOST:
        return replace(failure, kind=FailureKind.TRUNCATED)
    return failure


def _truncated(detail: str) -> Failure:
    return Failure(kind=FailureKind.TRUNCATED, reason="no_evidence", retryable=True, detail=detail)


def evolve(state: AttemptState, event: AttemptEvent) -> AttemptState:
    """Apply one fact. Never refuses: the fact has happened."""
    assert state.phase != "ended", "I3: something after Ended"
    match event:
        case DeltasSent(seq, count, size):
            assert state.phase != "finished", "I1: a delta after Finished"
            assert seq == state.seq, "I1: a gap between deltas"
            return replace(
                state,
                seq=Seq(seq + count),
                sent_bytes=state.sent_bytes + size,
                event_seen=True,
            )
        case HeadersTaken():
            return replace(state, phase="streaming")
        case LifeSent(at_s, is_event):
            return replace(state, last_life_s=at_s, event_seen=state.event_seen or is_event)
        case EvidenceSent():
            assert state.phase != "finished", "I2: Finished twice"
            return replace(state, phase="finished", event_seen=True, paused=False)
        case ReadingPaused():
            assert state.phase != "finished", "I4: rest after evidence"
            assert state.sent_bytes >= state.limit_bytes, "I4: rest with credit left"
            return replace(state, paused=True)
        case CreditTaken(limit_bytes):
            paused = state.paused and state.sent_bytes >= limit_bytes
            return replace(state, limit_bytes=limit_bytes, paused=paused)
        case AttemptEnded():
            return replace(state, phase="ended", paused=False)
        case _:
            assert_never(event)

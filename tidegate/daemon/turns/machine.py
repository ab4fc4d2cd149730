"""Decides which turns start, which wait, which are refused, and which are ended before their time.

Theory of operation
-------------------
A turn that is asked for is started, queued or refused, at once. The queue is served owner by owner
and, for each of them, first in, first out. A turn keeps its place from the order to start it until
it has ended, whoever has interrupted it: what is interrupted ends soon, and until then it costs
what any other costs.

The queue has ``max_queued`` places for all, and no owner can shut another out of it: once they are
taken, an owner of whom fewer turns wait than its share (``max_queued`` by the number of owners who
wait, itself included, and at least 1) may still let one wait. So a turn is refused only if others
of its owner wait, or if there is no queue. The queue stays bounded: as the n-th owner comes to a
full one, it adds ``max_queued / n`` at most, so that no more than ``max_queued * (1 + 1/2 + ... +
1/n)`` turns of n owners wait (and one of each, if there are more owners than places). For a single
owner that is ``max_queued``.

An interrupt needs no place. It ends a turn that waits without any request (R7), and a turn that was
started by one order, even if the runtime has yet to take it. What is said of a turn before it was
asked for is kept until then, so it does not matter which of the two is quicker.

A client that left and a client that was cut off are told apart: only who leaves says anything about
what becomes of the turn. Whoever reads a turn's events stops the clock of ``continue:SECONDS``, and
when the last one is gone, it begins anew. It never runs for a turn whose client has not left, so
leaving the events ends nothing that would have gone on without them.

The invariants are in ``state.py``. This module does no I/O and reads no clock.
"""

from __future__ import annotations

import math
from typing import Literal, assert_never

from tidegate.actors.decision import Decision
from tidegate.daemon.turns.endings import (
    TurnsDecision,
    after,
    interrupted,
    interrupted_these,
    joined,
    settled,
)
from tidegate.daemon.turns.messages import (
    AnnounceDrain,
    Asked,
    Attached,
    ClientCut,
    ClientLeft,
    Detached,
    Drain,
    Drained,
    DrainOver,
    Ended,
    EndUnstarted,
    Forget,
    GraceOver,
    InterruptAsked,
    JournalTrouble,
    JournalWell,
    LimitsChanged,
    Refuse,
    SetDrainTimer,
    Start,
    Started,
    StartFailed,
    TurnsEffect,
    TurnsMessage,
)
from tidegate.daemon.turns.state import (
    ClientGone,
    ClockStopped,
    DrainBegan,
    DrainDone,
    Hosted,
    JournalChanged,
    LimitsSet,
    TurnForgotten,
    TurnOver,
    TurnPlaced,
    TurnQueued,
    TurnsFact,
    TurnsState,
    TurnTaken,
    WatchersChanged,
    evolve,
)


DISCONNECTED = "SSE client disconnected"
DRAINING = "daemon draining"
STOPPING = "daemon stopping"
UNKEPT = "journal unavailable"

QUEUE_RETRY_S = 1
"""When it is worth asking again if the queue is full."""

JOURNAL_RETRY_S = 5
"""When it is worth asking again if nothing can be kept."""


def decide(state: TurnsState, message: TurnsMessage, now_s: float) -> TurnsDecision:
    """Say what ``message`` means in ``state``, and change nothing."""
    match message:
        case Asked():
            return _decide_asked(state, message, now_s)
        case InterruptAsked(turn=turn, reason=reason):
            return settled(state, turn, interrupted(state, turn, reason))
        case ClientLeft(turn=turn):
            return settled(state, turn, _decide_client(state, turn, "left"))
        case ClientCut(turn=turn):
            return settled(state, turn, _decide_client(state, turn, "cut"))
        case Attached(turn=turn):
            return settled(state, turn, _decide_watchers(state, turn, 1))
        case Detached(turn=turn):
            return settled(state, turn, _decide_watchers(state, turn, -1))
        case GraceOver():
            return settled(state, message.turn, _decide_grace(state, message))
        case Started(turn=turn):
            starting = _phase(state, turn) == "starting"
            return Decision((TurnTaken(turn),)) if starting else Decision()
        case StartFailed():
            return _decide_unstarted(state, message)
        case Ended(turn=turn):
            hosted = state.turns.get(turn)
            return _over(state, turn) if hosted and hosted.occupies else Decision()
        case Forget(turn=turn):
            forgotten = _phase(state, turn) in ("awaited", "ended")
            return Decision((TurnForgotten(turn),)) if forgotten else Decision()
        case Drain() | DrainOver() | JournalTrouble() | JournalWell() | LimitsChanged():
            return _decide_all(state, message, now_s)
        case _:
            assert_never(message)


def refusal(state: TurnsState, turn: str, owner: str, now_s: float) -> Refuse | None:
    """Say why a turn that ``owner`` asks for now is refused, or None if it is not."""
    if state.mode != "open":
        left_s = max(1, math.ceil(state.until_s - now_s))
        return Refuse(turn, 503, "draining", left_s)
    if not state.well:
        return Refuse(turn, 503, "journal_unavailable", JOURNAL_RETRY_S)
    if state.running >= state.limits.max_running and not state.has_place(owner):
        return Refuse(turn, 429, "queue_full", QUEUE_RETRY_S)
    return None


def _phase(state: TurnsState, turn: str) -> str:
    hosted = state.turns.get(turn)
    return hosted.phase if hosted else ""


def _decide_asked(state: TurnsState, message: Asked, now_s: float) -> TurnsDecision:
    turn = message.turn
    early = state.turns.get(turn, Hosted())
    if early.phase != "awaited":
        return Decision()
    if early.reason is not None:
        return Decision((TurnOver(turn),), (EndUnstarted(turn, "interrupted", early.reason),))
    if refused := refusal(state, turn, message.owner, now_s):
        return Decision((TurnOver(turn),), (refused,))
    queued = TurnQueued(turn, message.owner, message.on_disconnect, message.client)
    decision: TurnsDecision = Decision((queued,))
    told = evolve(state, queued)
    if told.turns[turn].client == "left":
        decision = joined(decision, _left(told, turn))
    decision = joined(decision, _filled(after(state, decision.events)))
    return settled(state, turn, decision)


def _decide_client(state: TurnsState, turn: str, how: Literal["left", "cut"]) -> TurnsDecision:
    hosted = state.turns.get(turn, Hosted())
    gone: TurnsDecision = Decision((ClientGone(turn, how),))
    if hosted.phase == "awaited":
        # Nobody is cut off who has not been asked about, and who has no client is not left.
        return gone if how == "left" and hosted.client == "none" else Decision()
    if hosted.phase == "ended" or hosted.client != "here":
        return Decision()
    return joined(gone, _left(state, turn)) if how == "left" else gone


def _left(state: TurnsState, turn: str) -> TurnsDecision:
    """Say what it means for a turn that was asked for that its client left."""
    policy = state.turns[turn].on_disconnect
    if policy is None or policy.kind == "continue":
        return Decision()
    return interrupted(state, turn, DISCONNECTED)


def _decide_watchers(state: TurnsState, turn: str, more: int) -> TurnsDecision:
    hosted = state.turns.get(turn, Hosted())
    if hosted.phase == "ended" or hosted.watchers + more < 0:
        return Decision()
    if hosted == Hosted(watchers=-more):
        return Decision((TurnForgotten(turn),))  # nothing else was known of it
    return Decision((WatchersChanged(turn, hosted.watchers + more),))


def _decide_grace(state: TurnsState, message: GraceOver) -> TurnsDecision:
    hosted = state.turns.get(message.turn)
    if hosted is None or hosted.clock != message.number:
        return Decision()
    stopped: TurnsDecision = Decision((ClockStopped(message.turn),))
    return joined(stopped, interrupted(state, message.turn, DISCONNECTED))


def _decide_unstarted(state: TurnsState, message: StartFailed) -> TurnsDecision:
    turn = message.turn
    hosted = state.turns.get(turn)
    if hosted is None or hosted.phase != "starting":
        return Decision()
    if hosted.reason is None:
        end = EndUnstarted(turn, "failed", message.reason)
    else:
        end = EndUnstarted(turn, "interrupted", hosted.reason)
    return joined(Decision(effects=(end,)), _over(state, turn))


def _over(state: TurnsState, turn: str) -> TurnsDecision:
    """Take note that a turn gives back its place, and give it to the next."""
    decision = settled(state, turn, Decision((TurnOver(turn),)))
    left = after(state, decision.events)
    return joined(decision, joined(_filled(left), _drained(left)))


def _filled(state: TurnsState) -> TurnsDecision:
    """Start whoever waits while there is room, one of each owner before a second one of any."""
    facts: list[TurnsFact] = []
    starts: list[TurnsEffect] = []
    while state.waiting and state.running < state.limits.max_running:
        turn = next(iter(state.waiting.values()))[0]
        facts.append(TurnPlaced(turn))
        starts.append(Start(turn))
        state = evolve(state, facts[-1])
    return Decision(tuple(facts), tuple(starts))


def _drained(state: TurnsState) -> TurnsDecision:
    if state.mode == "draining" and not state.running:
        return Decision((DrainDone(),), (Drained(),))
    return Decision()


def _decide_all(
    state: TurnsState,
    message: Drain | DrainOver | JournalTrouble | JournalWell | LimitsChanged,
    now_s: float,
) -> TurnsDecision:
    match message:
        case Drain(within_s=within_s):
            return _decide_drain(state, within_s, now_s)
        case DrainOver():
            return _interrupted_all(state, STOPPING) if state.mode == "draining" else Decision()
        case JournalTrouble():
            trouble: TurnsDecision = Decision((JournalChanged(well=False),))
            return joined(trouble, _interrupted_all(state, UNKEPT))
        case JournalWell():
            return Decision((JournalChanged(well=True),))
        case LimitsChanged(limits=limits):
            changed = LimitsSet(limits)
            return joined(Decision((changed,)), _filled(evolve(state, changed)))
        case _:
            assert_never(message)


def _decide_drain(state: TurnsState, within_s: float, now_s: float) -> TurnsDecision:
    until_s = now_s + within_s
    if state.mode != "open":
        if state.mode == "drained" or until_s >= state.until_s:
            return Decision()
        return Decision((DrainBegan(until_s),), (SetDrainTimer(within_s),))
    orders = (AnnounceDrain(within_s), SetDrainTimer(within_s))
    begun: TurnsDecision = Decision((DrainBegan(until_s),), orders)
    waiting = [turn for turns in state.waiting.values() for turn in turns]
    decision = joined(begun, interrupted_these(state, waiting, DRAINING))
    return joined(decision, _drained(after(state, decision.events)))


def _interrupted_all(state: TurnsState, reason: str) -> TurnsDecision:
    known = [turn for turn, hosted in state.turns.items() if hosted.phase != "awaited"]
    return interrupted_these(state, known, reason)

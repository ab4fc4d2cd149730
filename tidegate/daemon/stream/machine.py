"""Decides what is written to one client, and when it is cut off.

Theory of operation
-------------------
The status of a stream is held back until the provider has shown its first outcome, so that an error
has its true one; or until ``commit_after_s``, so that nobody between takes a long wait for a dead
one. What is no stream is one reply, with its status, when the turn is over.

From then on there is one write at a time. What becomes ready while one is not taken waits behind
it, and goes out together in the next. Frames are never torn apart by anything else: a heartbeat is
written only if nothing waits and nothing is being written. Large writes go in pieces, so that a
client that is slow and reads is told apart from one that does not read.

A client is cut off if it leaves a write untaken for ``slow_s``, or if more than ``queue_bytes``
wait behind one for which it had time. The end of a turn may wait whatever its size, for nothing
comes behind it.

The response leaves the turn once: when it has taken all of it, when the client is gone, or when it
cuts it off. What is still to be written then is written; the turn has nothing to do with it.

The invariants are in ``state.py``. This module does no I/O and reads no clock.
"""

from __future__ import annotations

from typing import assert_never

from tidegate.actors.decision import Decision
from tidegate.daemon.stream.messages import (
    Abort,
    Answer,
    Began,
    CancelTimers,
    ClientLeft,
    Completed,
    End,
    Failed,
    InterruptTurn,
    Items,
    Lag,
    LeaveTurn,
    Reply,
    RetryComing,
    Send,
    SendHead,
    SendHeartbeat,
    SetTimer,
    StreamEffect,
    StreamMessage,
    Timer,
    TimerFired,
    WriteTaken,
)
from tidegate.daemon.stream.state import (
    ContentShown,
    EndOrdered,
    FramesQueued,
    FramesTaken,
    HeadSent,
    ResponseOver,
    SlowTimed,
    StreamFact,
    StreamState,
    TurnLeft,
    WriteDone,
    WriteOrdered,
    evolve,
)


PIECE_BYTES = 65_536
"""The size of a write that a client must take in ``slow_s``."""

PATIENCE_S = 0.25
"""How long a write is anybody's; whoever takes it sooner does not lag, whatever comes at once."""

UNREADABLE = "a retry cannot follow what the client has read"

StreamDecision = Decision[StreamFact, StreamEffect]


def decide(state: StreamState, message: StreamMessage, now_s: float) -> StreamDecision:
    """Say what ``message`` means in ``state``, and change nothing."""
    if state.phase == "over":
        return Decision()
    match message:
        case Items():
            return _decide_items(state, message, now_s)
        case WriteTaken():
            return _decide_taken(state, now_s)
        case TimerFired(timer=timer):
            return _decide_timer(state, timer, now_s)
        case ClientLeft():
            return _over(state, LeaveTurn("left"))
        case Lag(waiting_bytes=waiting_bytes):
            lags = state.phase != "closing" and _lags(state, waiting_bytes, now_s)
            return _over(state, LeaveTurn("cut"), Abort()) if lags else Decision()
        case Began() | Completed() | Failed() | RetryComing():
            return Decision() if state.phase == "closing" else _decide_turn(state, message, now_s)
        case _:
            assert_never(message)


def _decide_turn(
    state: StreamState, message: Began | Completed | Failed | RetryComing, now_s: float
) -> StreamDecision:
    plan = state.plan
    match message:
        case Began():
            if not plan.streamed:
                return Decision()
            if plan.commit_after_s == 0:
                return _written(state, (HeadSent(),), now_s)
            return Decision(effects=(SetTimer("commit", plan.commit_after_s),))
        case Completed(frames=frames, reply=reply):
            if not plan.streamed:
                assert reply is not None, "what is no stream is a reply"
                return _answered(state, reply, now_s)
            head = (HeadSent(),) if state.phase == "held" else ()
            facts = (*head, *_queued(frames), TurnLeft("normal"))
            return _written(state, facts, now_s, LeaveTurn("ended"))
        case Failed(frames=frames, reply=reply):
            if state.phase == "held":
                return _answered(state, reply, now_s)
            facts = (*_queued(frames), TurnLeft("error"))
            return _written(state, facts, now_s, LeaveTurn("ended"))
        case RetryComing(frames=frames):
            if plan.retractable or not state.content:
                return Decision()
            orders = (InterruptTurn(UNREADABLE), LeaveTurn("ended"))
            return _written(state, (*_queued(frames), TurnLeft("error")), now_s, *orders)
        case _:
            assert_never(message)


def _decide_items(state: StreamState, message: Items, now_s: float) -> StreamDecision:
    if state.phase == "closing" or not state.plan.streamed:
        return Decision()
    data = message.data
    if state.content and state.write_since_s is None and 0 < len(data) <= PIECE_BYTES:
        # What nearly all are: nothing waits before it, and it is one write.
        ordered, timers = _ordered(state, now_s)
        return Decision(ordered, (Send(data), *timers))
    if _lags(state, len(data), now_s):
        return _over(state, LeaveTurn("cut"), Abort())
    facts: tuple[StreamFact, ...] = _queued(data)
    if message.content and not state.content:
        facts = (ContentShown(), *facts)
        if state.phase == "held":
            facts = (HeadSent(), *facts)
    return _written(state, facts, now_s)


def _decide_taken(state: StreamState, now_s: float) -> StreamDecision:
    if state.write_since_s is None:
        return Decision()
    if state.end == "ordered":
        return Decision((WriteDone(), ResponseOver()), (CancelTimers(),))
    if not state.rest and not state.behind and state.end == "none":
        return Decision((WriteDone(),))
    return _written(state, (WriteDone(),), now_s)


def _decide_timer(state: StreamState, timer: Timer, now_s: float) -> StreamDecision:
    match timer:
        case "commit":
            return _written(state, (HeadSent(),), now_s) if state.phase == "held" else Decision()
        case "heartbeat":
            return _decide_heartbeat(state, now_s)
        case "slow":
            if state.write_since_s is None:
                return Decision((SlowTimed(runs=False),))
            left_s = state.write_since_s + state.plan.slow_s - now_s
            if left_s > 0:
                return Decision(effects=(SetTimer("slow", left_s),))
            return _over(state, LeaveTurn("cut"), Abort())
        case _:
            assert_never(timer)


def _decide_heartbeat(state: StreamState, now_s: float) -> StreamDecision:
    """Write one if the silence was long enough; after the last frame none is ever due."""
    if state.phase != "open":
        return Decision()
    every_s = state.plan.heartbeat_s
    if state.write_since_s is not None:
        return Decision(effects=(SetTimer("heartbeat", every_s),))
    left_s = state.quiet_since_s + every_s - now_s
    if left_s > 0:
        return Decision(effects=(SetTimer("heartbeat", left_s),))
    facts, timers = _ordered(state, now_s)
    return Decision(facts, (SendHeartbeat(), SetTimer("heartbeat", every_s), *timers))


def _lags(state: StreamState, more_bytes: int, now_s: float) -> bool:
    """Say whether too much waits behind a write that is not taken."""
    if state.write_since_s is None or now_s - state.write_since_s < PATIENCE_S:
        return False
    return state.behind_bytes + more_bytes > state.plan.queue_bytes


def _over(state: StreamState, leave: LeaveTurn, *first: StreamEffect) -> StreamDecision:
    """End the response without another byte."""
    leaving = () if state.phase == "closing" else (leave,)
    return Decision((ResponseOver(),), (*first, *leaving, CancelTimers()))


def _answered(state: StreamState, reply: Reply, now_s: float) -> StreamDecision:
    """Write a whole response; what was ready for a stream is none of it."""
    ordered, timers = _ordered(state, now_s)
    facts = (FramesTaken(), *ordered, TurnLeft("ordered"))
    return Decision(facts, (Answer(reply), LeaveTurn("ended"), *timers))


def _written(
    state: StreamState, facts: tuple[StreamFact, ...], now_s: float, *orders: StreamEffect
) -> StreamDecision:
    """Write what may be written after ``facts``; ``orders`` have nothing to do with that."""
    effects: tuple[StreamEffect, ...] = ()
    for fact in facts:
        state = evolve(state, fact)
        if isinstance(fact, HeadSent):
            effects = (SendHead(), SetTimer("heartbeat", state.plan.heartbeat_s))
    if state.phase == "held" or state.write_since_s is not None:
        return Decision(facts, orders)
    pieces = state.rest
    if not pieces and state.behind:
        pieces = _pieces(state.behind)
        facts = (*facts, FramesTaken())
        state = evolve(state, facts[-1])
    if pieces:
        effects = (*effects, Send(pieces[0]))
    ends = state.end in ("normal", "error") and len(pieces) <= 1 and not state.behind
    if ends:
        effects = (*effects, End(ok=state.end == "normal"))
    if not effects:
        return Decision(facts, orders)
    ordered, timers = _ordered(state, now_s, pieces[1:])
    end = (EndOrdered(),) if ends else ()
    return Decision((*facts, *ordered, *end), (*effects, *orders, *timers))


def _ordered(
    state: StreamState, now_s: float, rest: tuple[bytes, ...] = ()
) -> tuple[tuple[StreamFact, ...], tuple[StreamEffect, ...]]:
    """Return what follows from writing something, for which the client has ``slow_s``."""
    ordered = WriteOrdered(now_s, rest)
    if state.slow:
        return (ordered,), ()
    return (ordered, SlowTimed(runs=True)), (SetTimer("slow", state.plan.slow_s),)


def _queued(frames: bytes) -> tuple[FramesQueued, ...]:
    return (FramesQueued(frames),) if frames else ()


def _pieces(frames: tuple[bytes, ...]) -> tuple[bytes, ...]:
    data = frames[0] if len(frames) == 1 else b"".join(frames)
    return tuple(data[at : at + PIECE_BYTES] for at in range(0, len(data), PIECE_BYTES))

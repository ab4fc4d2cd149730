"""Decides about the attempts at one turn: start, retry, stale alarm, interrupt, kill ladder.

Theory of operation
-------------------
The supervisor never looks at deltas. It orders (admit, fence, announce, conclude, seal) and hears
of attempts through the sink alone, so what it hears is in the order in which the sink took it. A
failure comes as ``Fenced``, with a snapshot; the rest is a pure function of that (``retry.py``).

An interrupt seals at once, in every phase; the attempts are cancelled behind it. A cancel that is
not acknowledged climbs the kill ladder: its worker is quarantined if its loop still turns, and
killed if not. Every timer has a name with the token or turn that it is about, so a late one finds
nothing.

The facts and invariants are in ``state.py``. This module does no I/O and reads no clock.
"""

from __future__ import annotations

from typing import assert_never

import msgspec

from tidegate.actors.decision import Decision
from tidegate.actors.supervisor import retry
from tidegate.actors.supervisor.ladder import (
    cancel_live,
    cancel_stale_timers,
    cancel_timers,
    decide_kill,
)
from tidegate.actors.supervisor.orders import (
    AskIdle,
    Begin,
    CancelTimer,
    Context,
    Fired,
    Known,
    Learn,
    Lost,
    Ponged,
    Settled,
    StartTimer,
    ToSink,
    TurnDecision,
    TurnEffect,
    TurnMessage,
    WorkerUp,
)
from tidegate.actors.supervisor.starting import (
    budgets,
    change_up,
    conclude,
    give_up,
    start_attempt,
)
from tidegate.actors.supervisor.state import (
    AttemptChanged,
    AttemptGone,
    DeadlinePassed,
    InterruptTaken,
    PhaseChanged,
    TargetKnown,
    TurnFact,
    TurnState,
    evolve,
)
from tidegate.protocol.attempts import Ended, Waking, Woken
from tidegate.protocol.base import Token
from tidegate.protocol.failures import Failure, FailureKind
from tidegate.protocol.sink import (
    Announce,
    EvidenceTaken,
    Fence,
    Fenced,
    FenceIfIdle,
    Forget,
    Limit,
    NotIdle,
    Seal,
    TurnClosed,
)
from tidegate.protocol.supervisor import Interrupt


_ROUNDING_S = 1e-6
"""So that an alarm which fires exactly on time is not taken for one that fires too early."""

_DEADLINE = Failure(
    kind=FailureKind.STALLED, reason="deadline", detail="the turn's deadline has passed"
)
_GRACE = Failure(kind=FailureKind.TRUNCATED, detail="the body did not end within the finish grace")
_WORKER_LOST = Failure(
    kind=FailureKind.WORKER_LOST,
    retryable=True,
    detail="the worker process ended under the attempt",
)


def decide(state: TurnState, message: TurnMessage, context: Context) -> TurnDecision:
    """Say what ``message`` means in ``state``, and change nothing."""
    match message:
        case Fenced():
            return _decide_fenced(state, message, context)
        case Ended(token=token):
            return _decide_gone(state, token)
        case EvidenceTaken(token=token):
            return _decide_evidence(state, token, context)
        case NotIdle():
            return _decide_not_idle(state, message)
        case TurnClosed():
            return _decide_closed(state, message, context)
        case Fired():
            return _decide_fired(state, message, context)
        case Interrupt():
            return _decide_interrupt(state, message, context)
        case Begin(target=target, failure=failure):
            if state.phase != "preparing":
                return Decision()  # interrupted, or past its deadline
            if target is None:
                assert failure is not None, "a turn that begins has a target or a failure"
                return conclude(state, failure)
            return start_attempt(state, context, facts=(TargetKnown(target),))
        case Ponged(token=token):
            attempt = state.attempt(token)
            if attempt is None:
                return Decision()
            return Decision((AttemptChanged(msgspec.structs.replace(attempt, ponged=True)),))
        case WorkerUp(generation=generation):
            placed = [each for each in state.live if each.generation == generation]
            return change_up(state, placed, context, up=True)
        case Waking(token=token) | Woken(token=token):
            named = [each for each in state.live if each.token == token]
            return change_up(state, named, context, up=isinstance(message, Woken))
        case Lost(generation=generation):
            return _decide_lost(state, generation)
        case _:
            assert_never(message)


def _decide_fenced(state: TurnState, message: Fenced, context: Context) -> TurnDecision:
    """R4: the attempt is harmless; decide what follows from the snapshot."""
    if message.token != state.token or state.phase != "running":
        return Decision()  # an end has been ordered meanwhile
    cancelled = cancel_live(state, context)
    learned = Learn(message.failure, message.refused, message.learned, state.started_s)
    effects = (*cancel_stale_timers(state), *cancelled.effects, learned)
    decision = retry.after_failure(
        message.failure,
        message.snapshot,
        state.plan.policy,
        used=state.used,
        asked=state.asked,
        refused=message.refused,
        learned=message.learned,
        irrevocable=state.plan.irrevocable,
        chance=context.chance,
    )
    if state.overdue or isinstance(decision, retry.GiveUp):
        concluded = give_up(state, _DEADLINE if state.overdue else message.failure, context)
        return Decision((*cancelled.events, *concluded.events), (*effects, *concluded.effects))
    announce = Announce(state.turn, message.failure, decision.delay_s, decision.notices)
    waiting = PhaseChanged("backing_off", decision.asked, decision.free)
    timer = StartTimer(("backoff", state.turn), context.now_s + decision.delay_s)
    return Decision((*cancelled.events, waiting), (*effects, ToSink(announce), timer))


def _decide_gone(state: TurnState, token: Token) -> TurnDecision:
    attempt = state.attempt(token)
    if attempt is None:
        return Decision()
    effects = (
        CancelTimer(("kill", token)),
        Settled(attempt.generation, cancelled=attempt.cancelled),
    )
    gone = AttemptGone(token)
    return Decision((gone,), (*effects, *_forget(evolve(state, gone))))


def _decide_lost(state: TurnState, generation: int) -> TurnDecision:
    """R10: fail every attempt placed there, once."""
    facts: list[TurnFact] = []
    effects: list[TurnEffect] = []
    for attempt in state.live:
        if attempt.generation == generation:
            facts.append(AttemptGone(attempt.token))
            effects.append(CancelTimer(("kill", attempt.token)))
            if attempt.token == state.token and state.phase == "running":
                effects.append(ToSink(Fence(state.turn, attempt.token, _WORKER_LOST)))
    for fact in facts:
        state = evolve(state, fact)
    if not facts:
        return Decision()
    return Decision(tuple(facts), (*effects, *_forget(state)))


def _decide_evidence(state: TurnState, token: Token, context: Context) -> TurnDecision:
    """R11: from here on only the end, or the end of the grace, is waited for."""
    if token != state.token or state.phase != "running":
        return Decision()
    grace = StartTimer(("grace", token), context.now_s + state.plan.policy.finish_grace_s)
    return Decision(effects=(*cancel_stale_timers(state), grace))


def _decide_not_idle(state: TurnState, message: NotIdle) -> TurnDecision:
    if message.token != state.token or state.phase != "running" or message.count_from_s is None:
        return Decision()
    budget_s = dict(budgets(state, state.asked))[message.limit]
    assert budget_s is not None, "an alarm has a budget"
    timer = StartTimer((message.limit.value, message.token), message.count_from_s + budget_s)
    return Decision(effects=(timer,))


def _decide_closed(state: TurnState, message: TurnClosed, context: Context) -> TurnDecision:
    if state.phase == "ended":
        return Decision()
    cancelled = cancel_live(state, context)
    ended = PhaseChanged("ended")
    for fact in (*cancelled.events, ended):
        state = evolve(state, fact)
    effects = (
        *cancel_timers(state),
        *cancelled.effects,
        Known(message, state.started_s, state.single_interrupt),
        *_forget(state),
    )
    return Decision((*cancelled.events, ended), effects)


def _decide_interrupt(state: TurnState, message: Interrupt, context: Context) -> TurnDecision:
    """R6: seal at once; the attempts are cancelled behind it."""
    if state.phase in ("ending", "ended"):
        # A seal still counts against an end that was ordered and has not been taken.
        seal = () if state.phase == "ended" else (ToSink(Seal(state.turn, message.reason)),)
        return Decision(effects=seal)
    cancelled = cancel_live(state, context)
    taken = InterruptTaken(message.single and state.number > 0)
    seal = (ToSink(Seal(state.turn, message.reason)),)
    effects = (*seal, *cancel_timers(state), *cancelled.effects)
    return Decision((taken, *cancelled.events), effects)


def _decide_fired(state: TurnState, message: Fired, context: Context) -> TurnDecision:
    kind, about = message.name
    if kind == "kill":
        attempt = state.attempt(about)
        return decide_kill(state, attempt, message, context) if attempt else Decision()
    if kind == "backoff":
        return start_attempt(state, context) if state.phase == "backing_off" else Decision()
    if kind == "deadline":
        return _decide_deadline(state)
    if about != state.token or state.phase != "running":
        return Decision()
    token = state.token
    if kind == "grace":
        return Decision(effects=(ToSink(Fence(state.turn, token, _GRACE)),))
    limit = Limit(kind)
    budget_s = dict(budgets(state, state.asked))[limit]
    assert budget_s is not None, "an alarm has a budget"
    question = FenceIfIdle(state.turn, token, limit, context.now_s - budget_s + _ROUNDING_S)
    attempt = state.attempt(token)
    if attempt is None:
        return Decision()  # its end is known and on its way through the sink
    return Decision(effects=(AskIdle(attempt.generation, question),))


def _decide_deadline(state: TurnState) -> TurnDecision:
    match state.phase:
        case "running":
            # The attempt may have been fenced already, with the report still on its way.
            fence = ToSink(Fence(state.turn, state.token, _DEADLINE))
            return Decision((DeadlinePassed(),), (fence,))
        case "preparing" | "backing_off":
            return conclude(state, _DEADLINE)
        case _:
            return Decision()


def _forget(state: TurnState) -> tuple[ToSink, ...]:
    if state.phase == "ended" and not state.live:
        return (ToSink(Forget(state.turn)),)
    return ()

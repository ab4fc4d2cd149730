"""How turns are ended before their time, and when the clock of one that was left runs; pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from tidegate.actors.decision import Decision
from tidegate.daemon.turns.messages import (
    CancelTimer,
    EndUnstarted,
    Interrupt,
    SetTimer,
    TurnsEffect,
)
from tidegate.daemon.turns.state import (
    ClockStarted,
    ClockStopped,
    Hosted,
    TurnInterrupted,
    TurnOver,
    TurnsFact,
    TurnsState,
    evolve,
)


TurnsDecision: TypeAlias = Decision[TurnsFact, TurnsEffect]


def after(state: TurnsState, facts: Iterable[TurnsFact]) -> TurnsState:
    """Return the state after ``facts``."""
    for fact in facts:
        state = evolve(state, fact)
    return state


def joined(first: TurnsDecision, second: TurnsDecision) -> TurnsDecision:
    """Return both decisions as one."""
    return Decision((*first.events, *second.events), (*first.effects, *second.effects))


def interrupted(state: TurnsState, turn: str, reason: str) -> TurnsDecision:
    """End a turn before its time, unless that is decided already."""
    hosted = state.turns.get(turn, Hosted())
    if hosted.phase == "ended" or hosted.reason is not None:
        return Decision()
    decided = TurnInterrupted(turn, reason)
    if hosted.phase == "awaited":
        return Decision((decided,))
    if hosted.phase == "queued":
        unstarted = EndUnstarted(turn, "interrupted", reason)
        return Decision((decided, TurnOver(turn)), (unstarted,))
    return Decision((decided,), (Interrupt(turn, reason),))


def settled(state: TurnsState, turn: str, decision: TurnsDecision) -> TurnsDecision:
    """Let the turn's clock run, or stop it, as it must after ``decision``."""
    hosted = after(state, decision.events).turns.get(turn, Hosted())
    policy = hosted.on_disconnect
    may_run = hosted.phase in ("queued", "starting", "running") and hosted.reason is None
    alone = hosted.client == "left" and not hosted.watchers
    if may_run and alone and policy and policy.seconds is not None:
        if hosted.clock:
            return decision
        timer = SetTimer(turn, hosted.clocks + 1, policy.seconds)
        return joined(decision, Decision((ClockStarted(turn),), (timer,)))
    if not hosted.clock:
        return decision
    cancel = CancelTimer(turn, hosted.clock)
    return joined(decision, Decision((ClockStopped(turn),), (cancel,)))


def interrupted_these(state: TurnsState, turns: Iterable[str], reason: str) -> TurnsDecision:
    """End several turns before their time, each for the same reason."""
    decision: TurnsDecision = Decision()
    for turn in turns:
        one = settled(state, turn, interrupted(state, turn, reason))
        decision = joined(decision, one)
    return decision

"""Starts an attempt, or ends the turn if there is no worker for it, and starts its clocks; pure."""

from __future__ import annotations

import msgspec

from tidegate.actors.decision import Decision
from tidegate.actors.supervisor.ladder import cancel_timers, counted_from, kill_timer
from tidegate.actors.supervisor.orders import (
    Context,
    Locate,
    StartTimer,
    ToSink,
    ToWorker,
    TurnDecision,
    TurnEffect,
)
from tidegate.actors.supervisor.retry import Asked
from tidegate.actors.supervisor.state import (
    AttemptChanged,
    AttemptPlaced,
    LiveAttempt,
    PhaseChanged,
    TurnFact,
    TurnState,
    evolve,
)
from tidegate.protocol.attempts import Order, StartAttempt
from tidegate.protocol.base import Generation
from tidegate.protocol.captures import capture_name
from tidegate.protocol.failures import Failure, FailureKind
from tidegate.protocol.sink import Admit, Conclude, Limit


_NO_WORKER = Failure(
    kind=FailureKind.WORKER_LOST,
    reason="restart_intensity",
    retryable=True,
    detail="workers ended too often in too short a time, so none is left to run the attempt; "
    "the log of tidegate.worker says why they ended",
)


def start_attempt(
    state: TurnState, context: Context, facts: tuple[TurnFact, ...] = ()
) -> TurnDecision:
    """R2: admit before start; and locate before that, if what failed may have moved."""
    moving = state.plan.moving
    if moving is not None and state.phase == "backing_off":
        locating = PhaseChanged("preparing", free=state.free_next)
        return Decision((locating,), (Locate(state.turn, moving),))
    for fact in facts:
        state = evolve(state, fact)
    if context.generation is None:
        concluded = give_up(state, _NO_WORKER, context)
        return Decision((*facts, *concluded.events), concluded.effects)
    assert state.target is not None, "an attempt needs a target"
    plan, token, generation = state.plan, context.token, context.generation
    up = context.ready
    if plan.inline:
        generation, up = Generation(-token), False
    asked = context.memory.limit(state.asked)
    free = state.free_next
    placed = AttemptPlaced(token, generation, free, asked, context.now_s, up)
    admit = Admit(state.turn, token, state.number + 1, free, plan.label, generation)
    limits = plan.policy.limits(stream=asked.stream)
    order = Order(
        target=state.target,
        body=plan.body,
        stream=asked.stream,
        stream_options=plan.stream_options if asked.usage_options else b"",
        choices=plan.choices,
        buffered_tools=asked.buffered_tools,
        connect_timeout_s=plan.policy.connect_timeout_s,
        event_bytes_max=plan.policy.event_bytes_max,
        life_every_s=min(1.0, (limits.alive_s or 4.0) / 4),
        capture=capture_name(plan.capture, state.turn, state.number + 1),
    )
    start = StartAttempt(state.turn, token, generation, order, plan.policy.window_bytes)
    from_s = counted_from(context.now_s, up=up)
    # Whoever reads a stream inline may come for it when he likes: it begins when it is up.
    timers = () if plan.inline else stale_timers(evolve(state, placed), from_s)
    effects: tuple[TurnEffect, ...] = (ToSink(admit), ToWorker(generation, start), *timers)
    return Decision((*facts, placed), effects)


def change_up(
    state: TurnState, attempts: list[LiveAttempt], context: Context, *, up: bool
) -> TurnDecision:
    """Let every clock of ``attempts`` begin anew: no request can have left while one is not up."""
    from_s = counted_from(context.now_s, up=up)
    facts: list[TurnFact] = []
    effects: list[TurnEffect] = []
    for attempt in attempts:
        facts.append(AttemptChanged(msgspec.structs.replace(attempt, up=up)))
        if attempt.cancelled:
            effects.append(kill_timer(state, attempt, from_s))
        else:  # then it is the latest: whoever places another cancels those before
            effects.extend(stale_timers(state, from_s))
    return Decision(tuple(facts), tuple(effects))


def stale_timers(state: TurnState, from_s: float) -> tuple[StartTimer, ...]:
    """Return the alarms of the latest attempt, counted from ``from_s``."""
    return tuple(
        StartTimer((limit.value, state.token), from_s + budget_s)
        for limit, budget_s in budgets(state, state.asked)
        if budget_s is not None
    )


def budgets(state: TurnState, asked: Asked) -> tuple[tuple[Limit, float | None], ...]:
    """Return how long each silence of an attempt may last, in seconds; None for ever."""
    limits = state.plan.policy.limits(stream=asked.stream)
    return (
        (Limit.FIRST_EVENT, limits.first_event_s),
        (Limit.PROGRESS, limits.progress_s),
        (Limit.ALIVE, limits.alive_s),
    )


def give_up(state: TurnState, failure: Failure, context: Context) -> TurnDecision:
    """End the turn as failed; if no worker is left, say when it is worth asking again."""
    if failure.kind is FailureKind.WORKER_LOST and context.generation is None:
        back_in_s = context.back_in_s
        failure = msgspec.structs.replace(
            failure, retryable=back_in_s is not None, retry_after_s=back_in_s
        )
    return conclude(state, failure)


def conclude(state: TurnState, failure: Failure) -> TurnDecision:
    """End the turn as failed."""
    effects: tuple[TurnEffect, ...] = (
        ToSink(Conclude(state.turn, failure)),
        *cancel_timers(state),
    )
    return Decision((PhaseChanged("ending"),), effects)

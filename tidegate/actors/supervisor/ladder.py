"""Ends attempts: the cancel, the kill ladder behind it, and the timers that end with them; pure.

A cancel carries a ping. If the attempt's end is not reported within the kill grace, what came from
the worker meanwhile decides:

- a pong: the cancel was taken, and a loop with much to do needs a few rounds more to carry it out.
  The next grace begins with another ping. An attempt that outlasts so many rounds of its worker's
  loop ignores its cancel: the worker is quarantined, and the others on it finish;
- anything else: the loop turns and has not come to the ping, so there is another grace;
- nothing, though the worker was runnable and got no processor: there is one such grace;
- nothing: the worker is killed.

So what is busy is waited for, whatever the load, and no attempt is waited for without end. A worker
that is still coming up cannot answer, and one that imports an SDK may be slow to: its graces count
from when that is over. A worker of one custom stream is killed at once: nothing else runs there
that could finish.
"""

from __future__ import annotations

import msgspec

from tidegate.actors.decision import Decision
from tidegate.actors.supervisor.orders import (
    CancelTimer,
    CancelWorker,
    Context,
    Fired,
    PingWorker,
    Quarantine,
    StartTimer,
    TurnDecision,
    TurnEffect,
    WorkerWedged,
)
from tidegate.actors.supervisor.state import AttemptChanged, LiveAttempt, TurnFact, TurnState
from tidegate.protocol.attempts import START_ALLOWANCE_S
from tidegate.protocol.sink import Limit


ROUNDS_MAX = 4
"""Pongs, each to a ping sent behind the one before, that an attempt which was cancelled may last.

A sound one ends within three rounds of the loop: it is woken, its socket closes, it reports.
"""

GRACES_MAX = 20
"""Graces for a worker that is heard and answers no ping: a handler of its own may never return."""


def cancel_live(state: TurnState, context: Context) -> TurnDecision:
    """Tell every live attempt to end that was not told yet."""
    facts: list[TurnFact] = []
    effects: list[TurnEffect] = []
    for attempt in state.live:
        if not attempt.cancelled:
            from_s = counted_from(context.now_s, up=attempt.up)
            facts.append(_changed(attempt, cancelled=True))
            effects.append(CancelWorker(attempt.generation, state.turn, attempt.token))
            effects.append(kill_timer(state, attempt, from_s))
    return Decision(tuple(facts), tuple(effects))


def counted_from(now_s: float, *, up: bool) -> float:
    """Return from when an attempt's silence counts, if until now it is excused or is not."""
    return now_s if up else now_s + START_ALLOWANCE_S


def kill_timer(state: TurnState, attempt: LiveAttempt, from_s: float) -> StartTimer:
    """Return the timer of the ladder's next step."""
    at_s = from_s + state.plan.policy.kill_grace_s
    return StartTimer(("kill", attempt.token), at_s, attempt.generation)


def decide_kill(
    state: TurnState, attempt: LiveAttempt, fired: Fired, context: Context
) -> TurnDecision:
    """Take the next step of the ladder: a cancel was not acknowledged."""
    if state.plan.factory:
        return Decision(effects=(WorkerWedged(attempt.generation),))
    again = kill_timer(state, attempt, context.now_s)
    if attempt.ponged:
        rounds = attempt.rounds + 1
        if rounds == ROUNDS_MAX:
            return Decision(effects=(Quarantine(attempt.generation),))
        ping = PingWorker(attempt.generation, attempt.token)
        return Decision((_changed(attempt, ponged=False, rounds=rounds),), (ping, again))
    if fired.heard and attempt.graces < GRACES_MAX:
        return Decision((_changed(attempt, graces=attempt.graces + 1),), (again,))
    if fired.starved and not attempt.starved:
        return Decision((_changed(attempt, starved=True),), (again,))
    return Decision(effects=(WorkerWedged(attempt.generation),))


def _changed(attempt: LiveAttempt, **fields: object) -> AttemptChanged:
    return AttemptChanged(msgspec.structs.replace(attempt, **fields))


def cancel_stale_timers(state: TurnState) -> tuple[CancelTimer, ...]:
    """Return the orders against the latest attempt's stale alarms."""
    return tuple(CancelTimer((limit.value, state.token)) for limit in Limit)


def cancel_timers(state: TurnState) -> tuple[CancelTimer, ...]:
    """Return the orders against every timer of a turn but those of the ladder."""
    return (
        *cancel_stale_timers(state),
        CancelTimer(("grace", state.token)),
        CancelTimer(("backoff", state.turn)),
        CancelTimer(("deadline", state.turn)),
    )

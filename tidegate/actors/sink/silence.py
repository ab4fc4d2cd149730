"""Since when an attempt is silent, and what kind of silence it is; pure."""

from __future__ import annotations

from typing import assert_never

from tidegate.actors.sink.state import TurnState
from tidegate.protocol.sink import Limit


STALLS = {
    "first_byte": "not a byte came of an answer",
    "idle": "nothing came",
    "no_progress": "what came were signs of life alone",
}
"""What each reason of a stall is in words."""


def counted_from(state: TurnState, limit: Limit, idle_since_s: float) -> float | None:
    """Return the instant from which a silence counts; None if another limit counts yet.

    Args:
        state: the turn.
        limit: which silence is asked about.
        idle_since_s: since when whoever asks believes in it.
    """
    match limit:
        case Limit.FIRST_EVENT:
            return max(idle_since_s, state.excused_until_s)
        case Limit.PROGRESS:
            marks = (state.event_s, state.progress_s)
        case Limit.ALIVE:
            marks = (state.life_s, None)
        case _:
            assert_never(limit)
    seen = [mark for mark in marks if mark is not None]
    return max(*seen, state.credit_s) if seen else None


def stall_reason(state: TurnState, limit: Limit, since_s: float) -> str:
    """Return the reason of a failure for a silence that has lasted since ``since_s``."""
    if limit is Limit.FIRST_EVENT:
        return "first_byte" if state.life_s is None else "no_progress"
    lived = state.life_s is not None and state.life_s > since_s
    return "no_progress" if lived else "idle"

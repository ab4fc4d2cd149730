"""How a turn ends that the runtime never took: with one event, and no request; pure."""

from __future__ import annotations

from tidegate.daemon.turns.messages import EndUnstarted
from tidegate.protocol.answers import Answer
from tidegate.protocol.events import Terminal, TurnFailed, TurnInterrupted
from tidegate.protocol.failures import Failure, FailureKind


def ending_from(turn_id: str, effect: EndUnstarted, at_s: float) -> Terminal:
    """Return the terminal event, which is the only one.

    Args:
        turn_id: of the turn.
        effect: what ends it.
        at_s: now, seconds since the epoch.
    """
    if effect.how == "interrupted":
        failure = Failure(kind=FailureKind.INTERRUPTED, detail=effect.reason)
        return TurnInterrupted(turn_id, 0, 0, at_s, effect.reason, Answer(failure=failure))
    failure = Failure(kind=FailureKind.BAD_REQUEST, reason="not_started", detail=effect.reason)
    return TurnFailed(turn_id, 0, 0, at_s, failure, Answer(failure=failure))

"""A turn as it is shown: in lists, by itself, and as a lane of what it went through."""

from __future__ import annotations

from typing import Any

import msgspec

from tidegate.daemon.journal.lines import events_from
from tidegate.daemon.journal.model import FinalState, TurnRecord
from tidegate.daemon.turns.hosted import HostedTurn
from tidegate.protocol.answers import Answer
from tidegate.protocol.events import TERMINAL, Terminal, TurnFailed, TurnInterrupted


def summary_of(record: TurnRecord) -> dict[str, Any]:
    """Return what a list says of a turn."""
    return {
        "id": record.id,
        "state": record.state,
        "endpoint": record.endpoint,
        "wire": record.wire,
        "model": record.model,
        "api": record.api,
        "attempt": record.attempt,
        "created_at": record.created_at,
        "ended_at": record.ended_at,
        "on_disconnect": record.on_disconnect or None,
    }


def live_summary(hosted: HostedTurn) -> dict[str, Any]:
    """Return what a list says of a turn that is in memory."""
    return {**summary_of(hosted.record), "attempt": hosted.attempt, "events": hosted.offset}


def live_view(hosted: HostedTurn) -> dict[str, Any]:
    """Return all that there is of a turn that is in memory."""
    terminal = hosted.terminal
    answer = hosted.snapshot() if terminal is None else terminal.answer
    return {**live_summary(hosted), **_end_of(terminal), "answer": _shown(answer)}


def stored_view(record: TurnRecord, last: bytes) -> dict[str, Any]:
    """Return all that is kept of a turn.

    Args:
        record: the turn's.
        last: its last event as JSON; empty if its events are no longer kept.
    """
    if not last:
        return expired_view(record)
    [event] = events_from(last)
    view = {**summary_of(record), "events": event.offset + 1}
    if not isinstance(event, TERMINAL):
        return {**view, "answer": None}
    return {**view, **_end_of(event), "answer": _shown(event.answer)}


def expired_view(record: TurnRecord) -> dict[str, Any]:
    """Return the final state of a turn whose events are no longer kept."""
    final = final_of(record)
    return {
        **summary_of(record),
        "expired": True,
        "final": msgspec.to_builtins(final),
        "events": final.offset + 1 if final is not None else 0,
    }


def final_of(record: TurnRecord) -> FinalState | None:
    """Return what is kept of a turn for longest; None if it has not ended."""
    return msgspec.json.decode(record.final, type=FinalState) if record.final else None


def _end_of(terminal: Terminal | None) -> dict[str, Any]:
    match terminal:
        case TurnFailed():
            return {"error": msgspec.to_builtins(terminal.error)}
        case TurnInterrupted():
            return {"reason": terminal.reason}
        case _:
            return {}


def _shown(answer: Answer) -> dict[str, Any]:
    shown: dict[str, Any] = msgspec.to_builtins(answer)
    return shown

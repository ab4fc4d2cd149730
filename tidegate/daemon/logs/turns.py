"""One line about each turn, when it has ended."""

from __future__ import annotations

import logging
from typing import Protocol

from tidegate.daemon.journal.model import TurnRecord
from tidegate.daemon.logs.lines import about
from tidegate.protocol.events import Terminal, TurnFailed


_log = logging.getLogger("tidegate.daemon.turns")


class EndedTurn(Protocol):
    """What is to be known of a turn that has ended: its end is in one of the two."""

    @property
    def record(self) -> TurnRecord: ...  # noqa: D102
    @property
    def terminal(self) -> Terminal | None: ...  # noqa: D102
    @property
    def ending(self) -> Terminal | None: ...  # noqa: D102


class Listener(Protocol):
    """Whoever else hears of turns."""

    def interrupt_asked(self, turn_id: str) -> None:
        """It is being interrupted."""

    def turn_ended(self, hosted: EndedTurn) -> None:
        """It has ended, for all to read."""


class TurnLog:
    """Writes a line about each turn, and tells the next one of it.

    What is in the line was never any text of a request or an answer: not the provider's words
    about a failure, and not the reason that somebody gave for an interrupt.

    Args:
        listener: who hears of the turn next.
    """

    def __init__(self, listener: Listener) -> None:
        self._listener = listener

    def interrupt_asked(self, turn_id: str) -> None:
        """It is being interrupted."""
        self._listener.interrupt_asked(turn_id)

    def turn_ended(self, hosted: EndedTurn) -> None:
        """It has ended, for all to read."""
        self._listener.turn_ended(hosted)
        record, terminal = hosted.record, hosted.terminal or hosted.ending
        if terminal is None:
            return
        failure = terminal.error if isinstance(terminal, TurnFailed) else terminal.answer.failure
        attempts = terminal.answer.attempts
        ended_at = record.ended_at if record.ended_at is not None else terminal.at_s
        extra = about(
            turn=record.id,
            attempt=terminal.attempt,
            token=attempts[-1].token if attempts else None,
            endpoint=record.endpoint,
            owner=record.owner or None,
            api=record.api,
            state=record.state,
            kind=failure.kind.value if failure is not None else None,
            reason=(failure.reason or None) if failure is not None else None,
            status=failure.status if failure is not None else None,
            duration_s=round(ended_at - record.created_at, 6),
        )
        is_failed = record.state == "failed"
        _log.log(logging.WARNING if is_failed else logging.INFO, "turn ended", extra=extra)

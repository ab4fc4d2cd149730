"""What the sink tells those who only look on: what it has accepted of each attempt.

Path: ``sink/writer.py`` -> this -> ``tidegate/observing.py``
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeAlias

from tidegate.actors.causes import log_fault
from tidegate.actors.sink.attempts import AttemptRecord
from tidegate.actors.sink.terminal import answer_from
from tidegate.protocol.answers import AttemptReport, Usage
from tidegate.protocol.base import Token
from tidegate.protocol.deltas import Delta


Piece: TypeAlias = Delta | Usage
Response: TypeAlias = Callable[[], dict[str, Any] | None]

_log = logging.getLogger("tidegate.sink")


class Watch(Protocol):
    """Looks on; each call returns at once and raises nothing.

    Only one thread calls at a time, and it holds the lock of a turn.
    """

    def started(self, turn_id: str, report: AttemptReport) -> None:
        """Take note that an attempt was admitted."""

    def accepted(self, token: Token, pieces: Sequence[Piece]) -> None:
        """Take note of what came of it."""

    def ended(self, report: AttemptReport, response: Response) -> None:
        """Take note that it is over.

        Args:
            report: what became of it.
            response: makes the response of what was accepted; for any thread, and any time later.
        """

    def wake(self) -> None:
        """See to what was noted; called without a lock, when the readers have been woken."""


def response_of(record: AttemptRecord, wire: str) -> dict[str, Any] | None:
    """Return what an attempt that has ended brought, in its wire's own JSON; None if nothing."""
    if record.first_progress_s is None and not record.assembly.finishes:
        return None
    try:
        return answer_from(record, (record,), (), wire=wire).native()
    except NotImplementedError:
        return None
    except Exception as fault:  # noqa: BLE001 - the rim: whoever looks on is not ended by it
        log_fault(_log, f"token {record.token}: its response cannot be put together", fault)
        return None

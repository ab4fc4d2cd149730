"""Why a turn is not taken on, for whoever asked."""

from __future__ import annotations

from typing import Any

from tidegate.daemon.turns.messages import Refuse
from tidegate.errors import TidegateError


CONFLICT = "the idempotency key was used for another request: use another key, or the same request"
_WHY = {
    "queue_full": "as many turns run and wait as the daemon takes on: try again later",
    "draining": "the daemon is stopping: try again later, or another one",
    "journal_unavailable": "the journal cannot be written, so that no turn is taken on",
}


class Refused(TidegateError):
    """A turn is not taken on.

    Attributes:
        status: of HTTP.
        kind: one word for programs.
        retry_after_s: when another try is worth it; None if it never is.
    """

    def __init__(self, message: str, status: int, kind: str, retry_after_s: int | None) -> None:
        super().__init__(message)
        self.status = status
        self.kind = kind
        self.retry_after_s = retry_after_s

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self), self.status, self.kind, self.retry_after_s)


def refusal_from(refused: Refuse) -> Refused:
    """Return the error of a refusal."""
    return Refused(_WHY[refused.kind], refused.status, refused.kind, refused.retry_after_s)

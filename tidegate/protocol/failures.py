"""A failure as data: what crosses processes in place of an exception."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from tidegate.errors import (
    AuthRejected,
    BadRequest,
    CircuitOpen,
    ConnectionLost,
    ContentRefused,
    ContextOverflow,
    EmptyStream,
    InternalError,
    Interrupted,
    MalformedStream,
    MalformedToolCall,
    Overloaded,
    QuotaExhausted,
    RateLimited,
    ServerFault,
    SlowClient,
    StreamStalled,
    StreamTruncated,
    TurnError,
    WorkerLost,
)
from tidegate.protocol.base import Record


if TYPE_CHECKING:
    from tidegate.protocol.answers import Answer

DETAIL_CHARS_MAX = 4096


class FailureKind(StrEnum):
    """What happened, in the words that decide about a retry."""

    INTERRUPTED = "interrupted"
    STALLED = "stalled"
    CONNECTION_LOST = "connection_lost"
    TRUNCATED = "truncated"
    EMPTY = "empty"
    MALFORMED = "malformed"
    MALFORMED_TOOL_CALL = "malformed_tool_call"
    RATE_LIMITED = "rate_limited"
    QUOTA_EXHAUSTED = "quota_exhausted"
    OVERLOADED = "overloaded"
    SERVER_ERROR = "server_error"
    BAD_REQUEST = "bad_request"
    AUTH = "auth"
    CONTEXT_OVERFLOW = "context_overflow"
    CONTENT_REFUSED = "content_refused"
    CIRCUIT_OPEN = "circuit_open"
    WORKER_LOST = "worker_lost"
    SLOW_CLIENT = "slow_client"
    INTERNAL = "internal"


class Failure(Record, frozen=True, kw_only=True):
    """One failed attempt, or the failed turn.

    Attributes:
        kind: what happened.
        reason: which limit or phase: ``first_byte``, ``idle``, ``no_progress``, ``deadline``,
            ``connect``, ``dns``, ``tls`` and the like.
        retryable: whether another attempt could succeed; not whether one was made.
        status: HTTP status, if there was a response.
        code: the provider's machine-readable code.
        detail: the cause in words, at most 4,096 characters, keys removed.
        cause: class name of the exception behind it.
        request_id: the provider's name for the request.
        retry_after_s: seconds that the provider asked to wait, or until it is worth asking again:
            until the breaker lets a turn through, or until there are workers again.
        raw_text: what could not be decoded (``malformed``), cut and scrubbed like ``detail``.
    """

    kind: FailureKind
    reason: str = ""
    retryable: bool = False
    status: int | None = None
    code: str | None = None
    detail: str = ""
    cause: str = ""
    request_id: str | None = None
    retry_after_s: float | None = None
    raw_text: str = ""

    def __str__(self) -> str:
        words = [self.kind.value]
        if self.reason:
            words.append(f"({self.reason})")
        if self.status is not None:
            words.append(f"HTTP {self.status}")
        if self.code:
            words.append(f"code {self.code}")
        head = " ".join(words)
        return f"{head}: {self.detail}" if self.detail else head


_ERRORS: dict[FailureKind, type[TurnError]] = {
    FailureKind.INTERRUPTED: Interrupted,
    FailureKind.STALLED: StreamStalled,
    FailureKind.CONNECTION_LOST: ConnectionLost,
    FailureKind.TRUNCATED: StreamTruncated,
    FailureKind.EMPTY: EmptyStream,
    FailureKind.MALFORMED: MalformedStream,
    FailureKind.MALFORMED_TOOL_CALL: MalformedToolCall,
    FailureKind.RATE_LIMITED: RateLimited,
    FailureKind.QUOTA_EXHAUSTED: QuotaExhausted,
    FailureKind.OVERLOADED: Overloaded,
    FailureKind.SERVER_ERROR: ServerFault,
    FailureKind.BAD_REQUEST: BadRequest,
    FailureKind.AUTH: AuthRejected,
    FailureKind.CONTEXT_OVERFLOW: ContextOverflow,
    FailureKind.CONTENT_REFUSED: ContentRefused,
    FailureKind.CIRCUIT_OPEN: CircuitOpen,
    FailureKind.WORKER_LOST: WorkerLost,
    FailureKind.SLOW_CLIENT: SlowClient,
    FailureKind.INTERNAL: InternalError,
}


def error_from(failure: Failure, answer: Answer) -> TurnError:
    """Make the exception that stands for ``failure``."""
    return _ERRORS[failure.kind](str(failure), failure, answer)

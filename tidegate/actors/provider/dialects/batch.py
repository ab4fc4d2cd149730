"""What one read of a body brought, in the same words for every wire.

Path: a wire's decoder -> this -> ``provider/machine.py``
"""

from __future__ import annotations

from typing import Protocol

import msgspec

from tidegate.protocol.answers import Finish, Usage
from tidegate.protocol.deltas import Delta
from tidegate.protocol.failures import DETAIL_CHARS_MAX, Failure, FailureKind


NON_JSON_CODE = "provider_stream_non_json_data"
SHAPE_CODE = "provider_stream_unusable_data"
TOO_LONG_CODE = "provider_stream_event_too_long"


class Batch(msgspec.Struct):
    """What one read brought.

    Attributes:
        deltas: in order; those before a bad frame are here.
        events: frames with a payload, end marks included.
        described: the response's id, model and time of creation, if one of them became known.
        usage: the newest figures, if they have changed.
        details: what the wire says beside those figures, a JSON object for the answer's envelope.
        finishes: the finish of each choice, once, when the last of them is known.
        done: whether the wire's end mark was seen, or a body that is not streamed was complete.
        failure: why the stream is over; never after evidence.
        contentless: at the end, whether there were only frames without a payload.
    """

    deltas: list[Delta] = []
    events: int = 0
    described: tuple[str, str, int] | None = None
    usage: Usage | None = None
    details: bytes = b""
    finishes: tuple[Finish, ...] | None = None
    done: bool = False
    failure: Failure | None = None
    contentless: bool = False


class Decoder(Protocol):
    """Decodes one streamed body, fed in pieces of any size."""

    def feed(self, data: bytes) -> Batch:
        """Take the next bytes of the body."""

    def eof(self) -> Batch:
        """Say that the body has ended; without evidence the batch has a failure.

        It is ``truncated`` if anything of use had come, else ``empty``. A failure that was known
        before is told again.
        """


def truncated(detail: str) -> Failure:
    """Return the failure of a body that is not whole."""
    return Failure(kind=FailureKind.TRUNCATED, retryable=True, detail=detail)


def empty(detail: str = "the body ended without anything of use") -> Failure:
    """Return the failure of a body in which nothing came."""
    return Failure(kind=FailureKind.EMPTY, retryable=True, detail=detail)


def malformed(
    code: str, detail: str, data: bytes = b"", *, reason: str = "", retryable: bool = False
) -> Failure:
    """Return the failure of a body that cannot be understood.

    Args:
        code: one of the codes above.
        detail: what is wrong, in words.
        data: what could not be read; cut to the length that a failure may show.
        reason: finer than the kind.
        retryable: whether the wire is known to break frames now and then.
    """
    raw_text = data[: 4 * DETAIL_CHARS_MAX].decode("utf-8", "replace")[:DETAIL_CHARS_MAX]
    return Failure(
        kind=FailureKind.MALFORMED,
        code=code,
        reason=reason,
        retryable=retryable,
        detail=detail[:DETAIL_CHARS_MAX],
        raw_text=raw_text,
    )

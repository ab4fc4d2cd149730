"""What the renderers of the compatible APIs have in common: their form, and the bytes of a frame.

Path: ``turns/`` -> a front -> ``stream/writer.py``
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, Protocol, TypeAlias

import msgspec

from tidegate.protocol.answers import Answer
from tidegate.protocol.deltas import Block
from tidegate.protocol.events import AnyEvent
from tidegate.protocol.failures import Failure


Api: TypeAlias = Literal["chat", "responses", "messages"]
Item: TypeAlias = AnyEvent | Block
Look: TypeAlias = Callable[[], Answer]
"""Returns the answer as it stands; it costs more than a frame."""

HEARTBEAT = b": heartbeat\n\n"
"""A comment, which every reader of server-sent events passes over."""

_encode = msgspec.json.Encoder().encode
_LINE_ENDS = (
    ("\u2028".encode(), b"\\u2028"),
    ("\u2029".encode(), b"\\u2029"),
    ("\u0085".encode(), b"\\u0085"),
)
"""What some clients take for the end of a line, and how JSON can write it."""


class Opening(msgspec.Struct, frozen=True):
    """What is known of an answer when its first content comes.

    Attributes:
        turn_id: the turn's.
        model: as the provider calls it, else as the request does.
        response_id: as the provider calls it, else made from the turn's id.
        created: seconds since the epoch, the provider's, else when the turn was made.
    """

    turn_id: str
    model: str
    response_id: str
    created: int

    def told_by(self, answer: Answer) -> Opening:
        """Return this with what ``answer`` knows better."""
        return Opening(
            turn_id=self.turn_id,
            model=answer.model or self.model,
            response_id=answer.response_id or self.response_id,
            created=answer.created or self.created,
        )


class ErrorReply(msgspec.Struct, frozen=True):
    """An error before the first byte of an answer, in its API's own form."""

    status: int
    headers: dict[str, str]
    body: dict[str, Any]


class Front(Protocol):
    """Renders one turn for one client, as server-sent events of its API.

    Attributes:
        content_sent: whether any frame with content of the answer was rendered.
        heartbeat: a sign of life, which may stand between any two frames and before the first.
    """

    content_sent: bool
    heartbeat: bytes

    def frames(self, item: Item, look: Look) -> bytes:
        """Return the whole frames that ``item`` makes, maybe none.

        Args:
            item: the next of the turn's; with the terminal event the stream ends.
            look: called at most once, at the first content.
        """

    def failed(self, failure: Failure) -> bytes:
        """Return the frames that end a stream by ``failure``; none if it has ended."""


def encoded(value: Any) -> bytes:
    """Return ``value`` as JSON in which nothing could be taken for the end of a line.

    Raises:
        RecursionError: it is nested too deep.
    """
    return unbroken(_encode(value))


def unbroken(json: bytes) -> bytes:
    """Return JSON with the same meaning in which nothing could be taken for the end of a line."""
    if not json.isascii():
        for end, written in _LINE_ENDS:
            json = json.replace(end, written)
    return json


def comment(text: str) -> bytes:
    """Return a frame that no program reads."""
    return f": {' '.join(text.split())}\n\n".encode("utf-8", "replace")


def named_frame(name: str, data: Mapping[str, Any]) -> bytes:
    """Return an event with a name."""
    return b"event: %b\ndata: %b\n\n" % (name.encode(), encoded(data))

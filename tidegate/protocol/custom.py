"""What a custom stream yields, and what makes one; see ``docs/custom.md``.

Path: the user's own stream -> this -> ``dialects/custom.py``
"""

from __future__ import annotations

from collections.abc import AsyncIterable, Awaitable, Iterable
from typing import Any, Literal, Protocol, TypeAlias

import msgspec

from tidegate.protocol.answers import Usage
from tidegate.protocol.deltas import Reasoning, Refusal, Text, Tool


__all__ = [
    "Finish",
    "Piece",
    "Reasoning",
    "Refusal",
    "Response",
    "Stream",
    "Streams",
    "Text",
    "Tool",
    "Usage",
]


class Finish(msgspec.Struct, frozen=True):
    """The evidence: the answer is complete. A stream that ends without it is truncated."""

    finish: Literal["stop", "tool_calls", "length", "content_filter"] = "stop"


class Response(msgspec.Struct, frozen=True):
    """What the provider calls the response and its model; ``created`` is seconds since 1970."""

    id: str = ""
    model: str = ""
    created: int = 0


Piece: TypeAlias = str | Text | Reasoning | Refusal | Tool | Usage | Response | Finish
"""A piece of an answer; plain text is ``Text``, and an empty one says that the stream lives."""

Stream: TypeAlias = Iterable[Piece] | AsyncIterable[Piece] | Awaitable[AsyncIterable[Piece]]
"""One answer; an object that has ``close`` or ``aclose`` is closed once, however it ends."""


class Streams(Protocol):
    """What a factory returns: made once in each thread that reads its streams."""

    def stream(self, payload: dict[str, Any], /) -> Stream:
        """Return the answer to a request's payload, which is a copy."""

    def close(self) -> object:
        """Let go of what its streams share, such as a client; never called under a stream."""

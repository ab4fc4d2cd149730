"""What a scripted provider does, step by step, as plain data.

An ``Answer`` is a status, headers and steps. It is turned into bytes once, when it is first
played, so that a thousand streams of the same answer share them and a write costs no formatting.

Path: a test's steps -> this -> ``tidegate.lab.connection``
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from email.utils import format_datetime
from enum import StrEnum
from functools import cached_property
from http import HTTPStatus
from typing import TypeAlias

import msgspec


GZIP_FORMAT = 31  # zlib's number for the largest window in a gzip wrapper
EVENT_STREAM = {"content-type": "text/event-stream"}
FINAL_CHUNK = b"0\r\n\r\n"


class End(StrEnum):
    """How an answer ends. An answer without one ends as ``KEEPALIVE``."""

    EOF = "eof"
    """The body is complete, then the connection is closed."""
    CUT = "cut"
    """The connection is closed in the middle of the body."""
    RESET = "reset"
    """TCP reset, behind everything that was written."""
    HOLD = "hold"
    """Silent and open until the client leaves."""
    KEEPALIVE = "keepalive"
    """The body is complete, and the connection waits for the next request."""


@dataclass(frozen=True, slots=True)
class Send:
    """One write, which is one HTTP chunk; ``piece`` bytes at a time if that is given."""

    data: bytes
    piece: int | None = None


@dataclass(frozen=True, slots=True)
class Zip:
    """One write of what the answer's one gzip stream makes of ``data``, flushed."""

    data: bytes


@dataclass(frozen=True, slots=True)
class Wait:
    """Silence."""

    wait_s: float


@dataclass(frozen=True, slots=True)
class Pace:
    """One write every ``every_s`` seconds, the first after one interval; all of it ``times`` times.

    The instants are counted from the step's beginning: a late write does not delay the next.
    """

    frames: tuple[bytes, ...]
    every_s: float
    times: int = 1


@dataclass(frozen=True, slots=True)
class Blast:
    """Write after write, as fast as the client reads; all of it ``times`` times."""

    blocks: tuple[bytes, ...]
    times: int = 1


@dataclass(frozen=True, slots=True)
class Gate:
    """Wait until the test opens the gate of this name. A gate once open stays open."""

    name: str


@dataclass(frozen=True, slots=True)
class HttpDate:
    """A header's value: an HTTP date so many seconds from now, cut to whole seconds."""

    in_s: float


Step: TypeAlias = Send | Zip | Wait | Pace | Blast | Gate | End
HeaderValue: TypeAlias = str | HttpDate


@dataclass(frozen=True)
class Answer:
    """What one request is answered with.

    A body is chunked unless ``headers`` has a content-length or ``verbatim`` says that the steps'
    bytes are to be written as they are.

    Attributes:
        steps: what is written and waited for; anything after an ``End`` is an error.
        status: the HTTP status.
        headers: by default those of an event stream.
        delay_s: silence before everything, the status line included.
        headers_with_first_frame: keep the header block back until the first byte of the body.
        keepalive_close_after_s: close the kept-alive connection after so long without a request.
        repeat: answer all further requests with this one.
        verbatim: add no chunk framing and no framing header.

    Raises:
        ValueError: a step behind the end.
    """

    steps: Sequence[Step] = ()
    status: int = 200
    headers: Mapping[str, HeaderValue] = field(default_factory=lambda: dict(EVENT_STREAM))
    delay_s: float = 0.0
    headers_with_first_frame: bool = False
    keepalive_close_after_s: float | None = None
    repeat: bool = False
    verbatim: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "steps", tuple(self.steps))
        if any(isinstance(step, End) for step in self.steps[:-1]):
            raise ValueError(f"a step behind the end: {self.steps!r:.200}")

    @classmethod
    def json(
        cls, value: object, status: int = 200, headers: Mapping[str, HeaderValue] | None = None
    ) -> Answer:
        """Make an answer of one JSON document, with its length in the head."""
        return cls.whole(msgspec.json.encode(value), "application/json", status, headers)

    @classmethod
    def whole(
        cls,
        body: bytes,
        content_type: str,
        status: int = 200,
        headers: Mapping[str, HeaderValue] | None = None,
    ) -> Answer:
        """Make an answer of one body, with its length in the head."""
        own = {"content-type": content_type, "content-length": str(len(body))}
        return cls((Send(body),), status=status, headers={**own, **(headers or {})})

    @cached_property
    def _names(self) -> frozenset[str]:
        return frozenset(name.lower() for name in self.headers)

    @property
    def chunked(self) -> bool:
        """Whether each write is framed as one HTTP chunk."""
        return not (self.verbatim or "content-length" in self._names)

    @property
    def end(self) -> End:
        """How it ends."""
        last = self.steps[-1] if self.steps else None
        return last if isinstance(last, End) else End.KEEPALIVE

    @cached_property
    def program(self) -> tuple[Step, ...]:
        """The steps with their bytes as they go over the socket, the end apart."""
        return tuple(_compiled(self))

    def head(self, now: datetime) -> bytes:
        """Return the status line and header block; ``now`` is what dates are counted from."""
        lines = [f"HTTP/1.1 {self.status} {_phrase(self.status)}"]
        lines += [f"{name}: {_text(value, now)}" for name, value in self.headers.items()]
        if self.chunked and "transfer-encoding" not in self._names:
            lines.append("transfer-encoding: chunked")
        # Said aloud, or a client may take the connection for its next request just as it closes.
        if self.end is End.EOF and "connection" not in self._names:
            lines.append("connection: close")
        return "\r\n".join([*lines, "", ""]).encode()


def _compiled(answer: Answer) -> Iterator[Step]:
    zipped = zlib.compressobj(wbits=GZIP_FORMAT)
    frame = _chunk if answer.chunked else bytes
    for step in answer.steps:
        match step:
            case Send(data, piece):
                yield from (Send(frame(part)) for part in _parts(data, piece))
            case Zip(data):
                yield Send(frame(zipped.compress(data) + zipped.flush(zlib.Z_SYNC_FLUSH)))
            case Pace(frames, every_s, times):
                yield Pace(tuple(map(frame, frames)), every_s, times)
            case Blast(blocks, times):
                yield Blast(tuple(map(frame, blocks)), times)
            case Wait() | Gate():
                yield step
            case End():
                pass
    if answer.end in {End.EOF, End.KEEPALIVE}:
        if any(isinstance(step, Zip) for step in answer.steps):
            yield Send(frame(zipped.flush()))
        if answer.chunked:
            yield Send(FINAL_CHUNK)


def _parts(data: bytes, piece: int | None) -> Iterable[bytes]:
    if piece is None:
        return (data,)
    return (data[start : start + piece] for start in range(0, len(data), piece))


def _chunk(data: bytes) -> bytes:
    # An empty chunk would be the final one.
    return b"%x\r\n%b\r\n" % (len(data), data) if data else b""


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Status"


def _text(value: HeaderValue, now: datetime) -> str:
    if isinstance(value, HttpDate):
        return format_datetime(now + timedelta(seconds=value.in_s), usegmt=True)
    return value

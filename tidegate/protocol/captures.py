"""A capture: what went over the wire in one attempt, as lines of JSON.

The first line is a ``Began``. A file that was cut anywhere is valid as far as it goes, and several
files behind one another are one file of several attempts.

Path: ``provider/recording.py`` -> this -> ``tidegate/lab/capture.py``
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from enum import StrEnum
from typing import TypeAlias

import msgspec

from tidegate.protocol.base import TurnNumber


VERSION = 1
SUFFIX = ".jsonl"
PART = ".part"
"""Stands behind the name of a file that is still written, or whose worker was killed."""


class How(StrEnum):
    """How an exchange ended."""

    EOF = "eof"
    """The body is complete."""
    CUT = "cut"
    """The connection was closed before the response was complete."""
    RESET = "reset"
    """The connection was reset."""
    FAILED = "failed"
    """No response came: no connection was made, or the server broke it first."""
    LEFT = "left"
    """We went, while the response was not complete."""
    FULL = "full"
    """The file had reached its greatest size; more came."""


class _Line(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What each line has: ``at_s`` counts from the attempt's beginning."""

    at_s: float = 0.0


class Began(_Line, frozen=True, kw_only=True, tag_field="type", tag="capture"):
    """An attempt began.

    Attributes:
        version: of this form.
        began: the time, in the form of ISO 8601.
        wire: as in ``Target``.
    """

    version: int
    began: str
    wire: str


class Requested(_Line, frozen=True, kw_only=True, tag_field="type", tag="request"):
    """A request is sent."""

    method: str
    url: str
    headers: list[tuple[str, str]]
    text: str | None = None
    b64: str | None = None


class Headed(_Line, frozen=True, kw_only=True, tag_field="type", tag="head"):
    """The head of a response has come."""

    status: int
    headers: list[tuple[str, str]]


class Came(_Line, frozen=True, kw_only=True, tag_field="type", tag="body"):
    """A part of the body has come, without the framing of HTTP: what one read gave.

    Attributes:
        text: the bytes, if they are UTF-8.
        b64: the bytes in Base64, if they are not.
    """

    text: str | None = None
    b64: str | None = None


class Over(_Line, frozen=True, kw_only=True, tag_field="type", tag="end"):
    """The exchange is over."""

    how: How
    error: str = ""


Line: TypeAlias = Began | Requested | Headed | Came | Over

_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(Line)


def line_from(line: Line) -> bytes:
    """Encode a line, its end included."""
    return _encoder.encode(line) + b"\n"


def written(data: bytes) -> dict[str, str]:
    """Return the field that says ``data``."""
    try:
        return {"text": data.decode()}
    except UnicodeDecodeError:
        return {"b64": base64.b64encode(data).decode()}


def bytes_of(line: Requested | Came) -> bytes:
    """Return the bytes that a line tells of.

    Raises:
        ValueError: it is not Base64.
    """
    if line.b64 is not None:
        return base64.b64decode(line.b64, validate=True)
    return (line.text or "").encode()


def capture_name(prefix: str, turn: TurnNumber, attempt: int) -> str:
    """Return the name of an attempt's file, in the order of names also that of attempts.

    Args:
        prefix: how all of a runtime's begin; empty if none is wanted, and then the name is too.
        turn: the turn.
        attempt: its place in the turn, from 1.
    """
    return f"{prefix}{turn}-{attempt:02}{SUFFIX}" if prefix else ""


def is_capture(text: bytes) -> bool:
    """Say whether a file begins like a capture."""
    return text.lstrip().startswith(b'{"type":"capture"')


def lines_from(text: bytes) -> Iterator[Line]:
    """Read a file; a last line that is not whole was being written when its worker was killed.

    Raises:
        ValueError: it is not of this form, or of a later version.
    """
    lines = text.split(b"\n")
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            decoded = _decoder.decode(line)
        except msgspec.DecodeError as error:
            if number == len(lines):
                return
            raise ValueError(f"line {number} is not of a capture: {error}") from error
        if isinstance(decoded, Began) and decoded.version > VERSION:
            raise ValueError(
                f"line {number} begins a capture of version {decoded.version}, and this tidegate "
                f"knows {VERSION}: use a newer one"
            )
        yield decoded

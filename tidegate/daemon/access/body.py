"""The body of a request: read within its limits, then read as JSON."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, TypeAlias

import msgspec

from tidegate.daemon.access import headers as head
from tidegate.daemon.access.keys import Headers
from tidegate.errors import TidegateError


Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]

BODY_WITHIN_S = 30.0

_BYTE = re.compile(r"\(byte (\d+)\)")
_JSON = re.compile(r"application/(?:[\w.!#$&^-]+\+)?json")


class ClientGone(TidegateError):
    """The client left before its request was whole; there is nobody to answer."""


class BodyRefused(TidegateError):
    """The body cannot be taken.

    Attributes:
        status: to answer with: 400, 408, 413 or 415.
        kind: one word for programs.
        message: the words, which never hold anything out of the body.
    """

    def __init__(self, status: int, kind: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.kind = kind
        self.message = message

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.status, self.kind, self.message)


async def read_body(
    receive: Receive, headers: Headers, limit: int, within_s: float = BODY_WITHIN_S
) -> bytes:
    """Read the whole body.

    Args:
        receive: of ASGI.
        headers: of the request.
        limit: the largest body, in bytes.
        within_s: the longest time that all of it may take.

    Raises:
        BodyRefused: it is larger, or takes longer.
        ClientGone: the client left.
    """
    declared = head.text(headers, b"content-length")
    if declared.isdigit() and int(declared) > limit:
        raise _too_large(limit)
    try:
        async with asyncio.timeout(within_s):
            return await _read(receive, limit)
    except TimeoutError:
        raise BodyRefused(
            408, "timeout", f"the body was not there within {within_s:g} s: send it at once"
        ) from None


async def _read(receive: Receive, limit: int) -> bytes:
    pieces: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] != "http.request":
            raise ClientGone("the client left while it sent its request")
        piece = message.get("body", b"")
        size += len(piece)
        if size > limit:
            raise _too_large(limit)
        pieces.append(piece)
        if not message.get("more_body", False):
            return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def object_from(body: bytes, headers: Headers) -> dict[str, Any]:
    """Read a body as a JSON object.

    Raises:
        BodyRefused: it says that it is something else (415), or it is none (400); the words name
            the place.
    """
    kind, _, rest = head.text(headers, b"content-type").lower().partition(";")
    charset = _charset_in(rest)
    if kind and not _JSON.fullmatch(kind.strip()):
        raise _unsupported(f"the body is {kind[:100]!r}: send 'Content-Type: application/json'")
    if charset and charset not in ("utf-8", "utf8"):
        raise _unsupported(f"the body is in {charset[:100]!r}: send it in UTF-8")
    coding = head.text(headers, b"content-encoding").lower()
    if coding not in ("", "identity"):
        raise _unsupported(f"the body is coded as {coding[:100]!r}: send it as it is")
    if not body.strip():
        raise _malformed("the body is empty: send a JSON object")
    try:
        value = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise _malformed(f"the body is no JSON: {_words_for(str(error), body)}") from None
    except RecursionError:
        raise _malformed("the body is nested too deep to be read") from None
    if not isinstance(value, dict):
        raise _malformed(f"the body is JSON, but {_named(value)}: send an object")
    return value


def _charset_in(parameters: str) -> str:
    """Return the encoding out of the parameters of a content type; empty for none."""
    for each in parameters.split(";"):
        name, _, value = each.partition("=")
        if name.strip() == "charset":
            return value.strip().strip('"')
    return ""


def _words_for(error: str, body: bytes) -> str:
    """Say what is wrong and where, without a word of the body."""
    try:
        body.decode()
    except UnicodeDecodeError as found:
        return f"it is not UTF-8, at {_place(found.start, body)}"
    what = error.removeprefix("JSON is malformed: ")
    if "truncated" in what:
        # Half a surrogate pair at the end of a string is told in the same words.
        return f"it ends too early, or within an escape, at {_place(len(body), body)}"
    found_at = _BYTE.search(what)
    if found_at is None:
        return what
    # What is meant is the byte itself or the one before it.
    return f"{_BYTE.sub('', what).strip()}, near {_place(int(found_at[1]), body)}"


def _place(offset: int, body: bytes) -> str:
    before = body[:offset]
    line = before.count(b"\n") + 1
    column = offset - (before.rfind(b"\n") + 1) + 1
    return f"byte {offset} (line {line}, column {column})"


def _named(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "a truth value"
        case list():
            return "an array"
        case str():
            return "a string"
        case _:
            return "a number"


def _too_large(limit: int) -> BodyRefused:
    return BodyRefused(
        413,
        "too_large",
        f"the body is larger than {limit} bytes: shorten it, or raise body_bytes_max in the"
        " daemon's configuration",
    )


def _unsupported(message: str) -> BodyRefused:
    return BodyRefused(415, "unsupported_media_type", message)


def _malformed(message: str) -> BodyRefused:
    return BodyRefused(400, "bad_request", message)

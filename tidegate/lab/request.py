"""One HTTP request out of a connection's bytes, whole.

Path: ``tidegate.lab.connection`` -> this -> ``tidegate.lab.record``
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import msgspec


HEAD_END = b"\r\n\r\n"
HEAD_BYTES_MAX = 1 << 20


class MalformedRequest(ValueError):
    """The client's bytes are not an HTTP/1.1 request."""


@dataclass(frozen=True, eq=False, slots=True)
class RawRequest:
    """What a client sent.

    Attributes:
        method: as sent.
        target: as sent; to a proxy it is a whole URL.
        headers: names in lower case, repeated ones joined with a comma.
        body: all of it, without chunk framing.
    """

    method: str
    target: str
    headers: dict[str, str] = field(repr=False)  # keys are in it
    body: bytes = field(repr=False)

    @property
    def path(self) -> str:
        """The target's path, without host and query."""
        return urlsplit(self.target).path

    @property
    def last(self) -> bool:
        """Whether the client wants the connection closed behind the answer."""
        return "close" in self.headers.get("connection", "").lower()

    def json(self) -> Any:
        """Decode the body.

        Raises:
            ValueError: it is not JSON.
        """
        try:
            return msgspec.json.decode(self.body)
        except msgspec.DecodeError as error:
            raise ValueError(f"body {self.body!r:.200}: {error}") from error


class RequestReader:
    """Takes bytes as they come and gives requests when they are complete."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._head: RawRequest | None = None
        self._body_begins = 0

    def feed(self, data: bytes) -> list[RawRequest]:
        """Take the next bytes and return the requests they complete.

        Raises:
            MalformedRequest: and nothing that follows can be read.
        """
        self._buffer += data
        requests = []
        while (request := self._next()) is not None:
            requests.append(request)
        return requests

    def _next(self) -> RawRequest | None:
        if self._head is None:
            # Seen early: who says hello in TLS to a plain lab would wait for ever.
            if self._buffer and not (65 <= self._buffer[0] <= 90):
                raise MalformedRequest(f"no method in {bytes(self._buffer[:20])!r}")
            end = self._buffer.find(HEAD_END)
            if end < 0:
                if len(self._buffer) > HEAD_BYTES_MAX:
                    raise MalformedRequest(f"head over {HEAD_BYTES_MAX} bytes")
                return None
            self._head = _head_from(bytes(self._buffer[:end]))
            self._body_begins = end + len(HEAD_END)
        head = self._head
        if "chunked" in head.headers.get("transfer-encoding", "").lower():
            found = _dechunked(self._buffer, self._body_begins)
        else:
            found = _sized(self._buffer, self._body_begins, head)
        if found is None:
            return None
        body, end = found
        del self._buffer[:end]
        self._head = None
        return RawRequest(head.method, head.target, head.headers, body)


def _head_from(head: bytes) -> RawRequest:
    first, *lines = head.decode("latin-1").split("\r\n")
    try:
        method, target, _version = first.split(" ")
    except ValueError:
        raise MalformedRequest(f"request line {first!r:.200}") from None
    headers: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon:
            raise MalformedRequest(f"header {line!r:.200}")
        key = name.strip().lower()
        headers[key] = f"{headers[key]}, {value.strip()}" if key in headers else value.strip()
    return RawRequest(method, target, headers, b"")


def _sized(buffer: bytearray, begin: int, head: RawRequest) -> tuple[bytes, int] | None:
    length = head.headers.get("content-length", "0")
    if not length.isdecimal():
        raise MalformedRequest(f"content-length {length!r:.200}")
    end = begin + int(length)
    return (bytes(buffer[begin:end]), end) if len(buffer) >= end else None


def _dechunked(buffer: bytearray, begin: int) -> tuple[bytes, int] | None:
    parts: list[bytes] = []
    at = begin
    while True:
        line_end = buffer.find(b"\r\n", at)
        if line_end < 0:
            return None
        try:
            size = int(bytes(buffer[at:line_end]).split(b";")[0], 16)
        except ValueError:
            raise MalformedRequest(f"chunk size {bytes(buffer[at:line_end])!r:.200}") from None
        at = line_end + 2
        if size == 0:
            # Trailers are not looked at; an empty line ends them.
            end = buffer.find(HEAD_END, line_end)
            return None if end < 0 else (b"".join(parts), end + len(HEAD_END))
        if len(buffer) < at + size + 2:
            return None
        parts.append(bytes(buffer[at : at + size]))
        at += size + 2

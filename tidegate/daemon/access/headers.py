"""What a request's headers must keep to, before anything in them is believed; pure."""

from __future__ import annotations

import re

import msgspec

from tidegate.daemon.access.keys import Headers


HEADERS_MAX = 128
HEAD_BYTES_MAX = 64 << 10

_VISIBLE = re.compile(rb"[\x21-\x7e]+")
_TEXT = re.compile(rb"[\x20-\x7e\t]*")

# Whose meaning would depend on which of two is read; and, for ours, how long one may be.
_SINGLE: dict[bytes, int] = {
    b"authorization": 4096,
    b"content-type": 256,
    b"host": 256,
    b"idempotency-key": 255,
    b"last-event-id": 64,
    b"origin": 512,
    b"tidegate-on-disconnect": 64,
    b"x-api-key": 4096,
}
_OURS = frozenset({b"idempotency-key", b"last-event-id", b"tidegate-on-disconnect"})


class Trouble(msgspec.Struct, frozen=True):
    """Why the headers are not taken: the status to answer with, and the words."""

    status: int
    kind: str
    message: str


def first(headers: Headers, name: bytes) -> bytes | None:
    """Return the value of a header, None if it is not there."""
    for each, value in headers:
        if each == name:
            return value
    return None


def text(headers: Headers, name: bytes) -> str:
    """Return the value of a header as text, empty if it is not there."""
    return (first(headers, name) or b"").decode("latin-1").strip()


def trouble_with(headers: Headers) -> Trouble | None:
    """Return what is wrong with the headers of a request, without showing their values."""
    if len(headers) > HEADERS_MAX:
        return Trouble(
            431,
            "headers_too_large",
            f"{len(headers)} headers are too many: send at most {HEADERS_MAX}",
        )
    size = sum(len(name) + len(value) + 4 for name, value in headers)
    if size > HEAD_BYTES_MAX:
        return Trouble(
            431,
            "headers_too_large",
            f"the headers have {size} bytes: send at most {HEAD_BYTES_MAX}",
        )
    seen: set[bytes] = set()
    for name, value in headers:
        if name not in _SINGLE:
            continue
        shown = name.decode("ascii")
        if name in seen:
            return _bad(f"the header {shown} stands there twice: send it once")
        seen.add(name)
        if (wrong := _trouble_in(name, value)) is not None:
            return _bad(f"the header {shown} {wrong}")
    return None


def _trouble_in(name: bytes, value: bytes) -> str | None:
    if len(value) > _SINGLE[name]:
        return f"has {len(value)} characters: send at most {_SINGLE[name]}"
    if name == b"idempotency-key":
        if not _VISIBLE.fullmatch(value):
            return "must be 1 to 255 visible ASCII characters without spaces"
    elif not _TEXT.fullmatch(value):
        return "has characters that are not ASCII: send it without"
    elif name in _OURS and not value.strip():
        return "is empty: leave it out, or give it a value"
    return None


def _bad(message: str) -> Trouble:
    return Trouble(400, "bad_request", message)

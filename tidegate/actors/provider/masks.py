"""Takes keys out of what goes into a capture; pure.

In heads whatever was given with the endpoint is masked, and what is called like a secret. In bodies
only what is surely one, for a short word may be part of the wire's own form. There the mask is as
long as the secret, so that lengths and frames stay right.

Path: ``provider/exceptions.py`` -> this -> ``provider/recording.py``
"""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import msgspec

from tidegate.actors.provider.scrubbing import MASK, secrets_of
from tidegate.protocol.attempts import Target
from tidegate.protocol.secrets import is_secret_name


KEY_CHARS_MIN = 8
"""A shorter key is none; such as ``none`` and ``EMPTY``, which local servers are given."""

VALUE_CHARS_MIN = 16
"""A shorter value of a header that is not called like a secret may be a word of the wire's."""


class Masks:
    """What is secret about one target.

    Args:
        target: where the attempt goes, and as whom.
    """

    def __init__(self, target: Target) -> None:
        self._given = secrets_of(target)
        named = msgspec.structs.replace(
            target, headers=_named(target.headers), query=_named(target.query)
        )
        keys = [each for each in secrets_of(named) if len(each) >= KEY_CHARS_MIN]
        values = [each for each in self._given if len(each) >= VALUE_CHARS_MIN]
        whole = sorted({*keys, *values}, key=len, reverse=True)
        self._in_bodies = tuple(each.encode("utf-8", "surrogateescape") for each in whole)

    def headers(self, headers: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
        """Return headers without secrets."""
        return [(name, self._value(name, value)) for name, value in headers]

    def url(self, url: str) -> str:
        """Return an address without secrets, and without whom it is for."""
        parts = urlsplit(url)
        query = [
            (name, self._value(name, value))
            for name, value in parse_qsl(parts.query, keep_blank_values=True)
        ]
        host = parts.netloc.rpartition("@")[2]
        return self.text(
            urlunsplit((parts.scheme, host, parts.path, urlencode(query, safe="*"), ""))
        )

    def text(self, text: str) -> str:
        """Return what somebody says of a connection, without secrets."""
        for secret in self._given:
            text = text.replace(secret, MASK)
        return text

    def whole(self, body: bytes) -> bytes:
        """Return a whole body without secrets."""
        for secret in self._in_bodies:
            body = body.replace(secret, b"*" * len(secret))
        return body

    def body(self) -> BodyMask:
        """Return what masks a body that comes in parts."""
        return BodyMask(self)

    def begun(self, data: bytes) -> int:
        """Return with how many bytes of a secret ``data`` ends that may go on."""
        return max((_overlap(data, secret) for secret in self._in_bodies), default=0)

    def _value(self, name: str, value: str) -> str:
        return MASK if is_secret_name(name) else self.text(value)


class BodyMask:
    """Masks a body that comes in parts, wherever they are cut.

    Args:
        masks: say what is secret.
    """

    def __init__(self, masks: Masks) -> None:
        self._masks = masks
        self._held = b""

    def feed(self, data: bytes) -> bytes:
        """Take the next part; what may be the beginning of a secret is held back."""
        data = self._masks.whole(self._held + data)
        keep = len(data) - self._masks.begun(data)
        self._held = data[keep:]
        return data[:keep]

    def rest(self) -> bytes:
        """Return what was held back, when nothing more comes."""
        rest, self._held = self._held, b""
        return rest


def _named(pairs: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
    return tuple((name, value) for name, value in pairs if is_secret_name(name))


def _overlap(data: bytes, secret: bytes) -> int:
    for length in range(min(len(secret) - 1, len(data)), 0, -1):
        if data.endswith(secret[:length]):
            return length
    return 0

"""Who may call: keys as they are presented, and as they are kept."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Iterable, Sequence
from typing import TypeAlias

import msgspec

from tidegate.errors import ConfigurationError


Headers: TypeAlias = Sequence[tuple[bytes, bytes]]
"""Names in lower case and values, as ASGI hands them over."""

OWNER_CHARS = 16


class Presented(msgspec.Struct, frozen=True):
    """A key out of a request.

    Attributes:
        text: the key.
        by_browser: whether a browser may have added it by itself (HTTP Basic), whoever made the
            page that asks.
    """

    text: str
    by_browser: bool = False


class Keys:
    """The keys that open the daemon; only their digests are kept.

    Args:
        keys: each in clear text; none for a daemon that asks for none.

    Raises:
        ConfigurationError: a key is empty.
    """

    __slots__ = ("_owners",)

    def __init__(self, keys: Iterable[str] = ()) -> None:
        texts = list(keys)
        if "" in texts:
            raise ConfigurationError("keys: one of them is empty: leave it out or set it")
        self._owners = {_digest(text): owner_of(text) for text in texts}

    def __len__(self) -> int:
        return len(self._owners)

    def __repr__(self) -> str:
        return f"<Keys: {len(self)}>"

    def owner(self, presented: str) -> str | None:
        """Return who presents this key, None if it is nobody's.

        The time this takes says nothing about the keys: digests of one length are compared, each
        in constant time, and all of them whichever fits.
        """
        digest = _digest(presented)
        found = None
        for known, owner in self._owners.items():
            if hmac.compare_digest(known, digest):
                found = owner
        return found


def owner_of(key: str) -> str:
    """Return the name under which a key's turns are kept: the same after every restart."""
    digest = hashlib.blake2b(_bytes(key), digest_size=OWNER_CHARS // 2, person=b"tidegate-owner")
    return digest.hexdigest()


def presented_in(headers: Headers) -> list[Presented]:
    """Return the keys that a request presents, in whichever of the three ways.

    ``Authorization: Bearer KEY``, ``x-api-key: KEY``, and for browsers ``Authorization: Basic``
    with the key as the password of any user.
    """
    found = []
    for name, value in headers:
        if name == b"x-api-key":
            found.append(Presented(value.decode("latin-1").strip()))
        elif name == b"authorization":
            scheme, _, rest = value.decode("latin-1").strip().partition(" ")
            if scheme.lower() == "bearer":
                found.append(Presented(rest.strip()))
            elif scheme.lower() == "basic":
                found.append(Presented(_password(rest.strip()), by_browser=True))
    return [each for each in found if each.text]


def _password(encoded: str) -> str:
    """Return the password out of the credentials of HTTP Basic; empty if there is none."""
    try:
        decoded = base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError):
        return ""
    return decoded.decode("latin-1").partition(":")[2]


def _digest(key: str) -> bytes:
    return hashlib.blake2b(_bytes(key), digest_size=32).digest()


def _bytes(key: str) -> bytes:
    return key.encode("utf-8", "surrogatepass")

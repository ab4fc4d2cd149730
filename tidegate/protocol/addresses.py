"""Checks of what an endpoint is made of, each refusing with the value and a way out."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from tidegate.errors import ConfigurationError
from tidegate.protocol.secrets import Secret
from tidegate.protocol.wires import Wire


_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f\ud800-\udfff]")
"""Half a surrogate pair is no character either, and cannot be encoded."""
_SLASH = "(?:/|%2[Ff])"
_REQUEST_PATH = re.compile(
    rf"(?:{_SLASH}+(?:chat{_SLASH}+completions|completions|responses|"
    rf"model{_SLASH}+[^/]+{_SLASH}+converse(?:-stream)?)|(?<=/v1){_SLASH}+messages){_SLASH}*$"
)
"""What clients add to an address, on whichever wire, and however it was typed."""


def shown(address: str) -> str:
    """Write an address without user, password, query and final slash."""
    parts = urlsplit(address)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path.rstrip('/')}"


def check_base_url(name: str, address: Any) -> None:
    """Check the address of a provider.

    Raises:
        ConfigurationError: it is no HTTP address, or carries what belongs elsewhere.
    """
    check_address(name, address)
    parts = urlsplit(address)
    if parts.query or parts.fragment:
        raise ConfigurationError(
            f"{name}={shown(address)!r} with a query or fragment: give the address alone, and "
            "the rest as query={...}"
        )
    if "@" in parts.netloc:
        raise ConfigurationError(
            f"{name}={shown(address)!r} with a user or password: give them as a header, for an "
            "address is printed and stored"
        )


def check_base_of(name: str, address: str, wire: Wire) -> None:
    """Check that an address is the one to which the wire's own path is added.

    Args:
        name: of the option or the variable that gave it.
        address: one that ``check_base_url`` has let through.
        wire: whose requests go there.

    Raises:
        ConfigurationError: it has the path of a request already; the text says what to give.
    """
    if (tail := _REQUEST_PATH.search(urlsplit(address).path)) is None:
        return
    base = address.removesuffix(tail[0]).rstrip("/")
    if wire == "messages":
        base = base.removesuffix("/v1")
    raise ConfigurationError(
        f"{name}={address!r} ends in the path of a request, which is added to it: give {base!r}"
    )


def check_address(name: str, address: Any) -> None:
    """Check an HTTP address.

    Raises:
        ConfigurationError: it is none.
    """
    if not isinstance(address, str):
        raise ConfigurationError(f"{name}={address!r}: give an address as text")
    if not _is_http(address):
        raise ConfigurationError(
            f"{name}={address.rpartition('@')[2]!r}: give an http:// or https:// address with a "
            "host, such as http://127.0.0.1:8000/v1"
        )


def _is_http(address: str) -> bool:
    if _CONTROL.search(address) or " " in address or "\t" in address:
        return False
    try:
        parts = urlsplit(address)
        port = parts.port
        (parts.hostname or "").encode("idna")  # else it could not be looked up
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.hostname) and port != 0


def check_text(name: str, text: Any) -> None:
    """Check an optional text that will stand in a header or a query.

    Raises:
        ConfigurationError: it is empty, no text, or has a control character.
    """
    if text is None:
        return
    if not isinstance(text, str) or not text or _CONTROL.search(text):
        raise ConfigurationError(
            f"{name}={text!r}: give a text without control characters, or leave it out"
        )


def check_pairs(name: str, pairs: Any) -> None:
    """Check headers or query parameters.

    Raises:
        ConfigurationError: names or values that no request could carry; values are not shown.
    """
    if not isinstance(pairs, Mapping):
        raise ConfigurationError(f"{name}={type(pairs).__name__}: give a dict of texts")
    for key, value in pairs.items():
        if not isinstance(key, str) or not key or _CONTROL.search(key):
            raise ConfigurationError(f"{name}: {key!r} cannot be a name, give a text")
        if name == "headers" and not _HEADER_NAME.fullmatch(key):
            raise ConfigurationError(f"headers: {key!r} cannot be the name of a header")
        if name == "headers" and isinstance(value, Secret):
            continue
        if not isinstance(value, str) or _CONTROL.search(value):
            raise ConfigurationError(
                f"{name}[{key!r}]: give a text without control characters, such as line breaks"
            )

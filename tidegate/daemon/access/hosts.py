"""Which names of this machine, and which pages of others, a request may come with; pure.

A page from anywhere can make its own name lead to 127.0.0.1 and then talk to a daemon there as if
it were its own server ("DNS rebinding"). The name it used is in ``Host``, so on a loopback address
only names that are known to mean this machine are answered.
"""

from __future__ import annotations

import ipaddress
import re

import msgspec


_NAME = re.compile(r"[a-z0-9](?:[a-z0-9_.-]*[a-z0-9])?\.?")
_PORT = re.compile(r"[0-9]{1,5}")


class Authority(msgspec.Struct, frozen=True):
    """What stands in ``Host``: a name or an address, without brackets, and a port or nothing."""

    name: str
    port: str = ""


def authority_from(text: str) -> Authority | None:
    """Read the value of ``Host``, or the end of an origin; None if it is neither."""
    text = text.strip().lower()
    if text.startswith("["):
        name, closed, rest = text[1:].partition("]")
        if not closed or not _is_address(name) or (rest and not rest.startswith(":")):
            return None
        port = rest[1:]
    else:
        name, colon, port = text.partition(":")
        if not _NAME.fullmatch(name) or (colon and not port):
            return None
    if port and not _PORT.fullmatch(port):
        return None
    return Authority(name, port)


def is_loopback(name: str) -> bool:
    """Return whether a name can mean nothing but this machine.

    An address cannot be pointed elsewhere, and ``localhost`` is resolved by the browser itself.
    """
    if name == "localhost":
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def is_listed(authority: Authority, hosts: frozenset[str]) -> bool:
    """Return whether a host is one of those configured: with a port that one, else any port."""
    if authority.name in hosts:
        return True
    shown = f"[{authority.name}]" if ":" in authority.name else authority.name
    return shown in hosts or f"{shown}:{authority.port}" in hosts


def is_same_origin(origin: str, host: str) -> bool:
    """Return whether a page was loaded from the very server that it asks.

    The scheme is left out of it, for a proxy that speaks TLS may stand in front of the daemon.
    """
    scheme, separator, authority = origin.strip().lower().partition("://")
    if not separator or scheme not in ("http", "https"):
        return False
    ours = authority_from(host)
    return ours is not None and authority_from(authority) == ours


def _is_address(text: str) -> bool:
    try:
        return isinstance(ipaddress.ip_address(text), ipaddress.IPv6Address)
    except ValueError:
        return False

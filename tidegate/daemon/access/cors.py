"""What a browser is told about pages of other origins; pure.

Without a list there is nothing: a page of another origin can neither read an answer nor send a
header of its own.
"""

from __future__ import annotations

import re

from tidegate.daemon.access import headers as head
from tidegate.daemon.access.keys import Headers


METHODS = "GET, POST, DELETE"
EXPOSED = "tidegate-turn, retry-after, request-id, x-request-id"
PREFLIGHT_KEPT_S = 600

_NAMES = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+(?:\s*,\s*[A-Za-z0-9!#$%&'*+.^_`|~-]+)*")
_NAMES_CHARS_MAX = 4096


def is_listed(origin: str, origins: frozenset[str]) -> bool:
    """Return whether a page of this origin may ask; ``*`` in the list means each that is one."""
    return bool(origin) and (origin in origins or ("*" in origins and origin != "null"))


def is_preflight(method: str, headers: Headers) -> bool:
    """Return whether a browser asks beforehand."""
    return (
        method == "OPTIONS"
        and head.first(headers, b"origin") is not None
        and head.first(headers, b"access-control-request-method") is not None
    )


def answer_headers(origin: str, origins: frozenset[str]) -> dict[str, str]:
    """Return what goes with every answer, errors included, so that a page can read it.

    ``vary`` goes with all of them, lest a cache give one page the answer meant for another.
    """
    if not origins:
        return {}
    if not is_listed(origin, origins):
        return {"vary": "origin"}
    return {
        "access-control-allow-origin": origin,
        "access-control-expose-headers": EXPOSED,
        "vary": "origin",
    }


def preflight_headers(headers: Headers, origins: frozenset[str]) -> dict[str, str]:
    """Return the answer to a preflight of an origin that is listed."""
    answer = answer_headers(head.text(headers, b"origin"), origins)
    answer["access-control-allow-methods"] = METHODS
    answer["access-control-max-age"] = str(PREFLIGHT_KEPT_S)
    answer["vary"] = (
        "origin, access-control-request-headers, access-control-request-private-network"
    )
    wanted = head.text(headers, b"access-control-request-headers")
    if len(wanted) <= _NAMES_CHARS_MAX and _NAMES.fullmatch(wanted):
        # SDKs in browsers add headers of their own; what they may do is decided by the key.
        answer["access-control-allow-headers"] = wanted
    if head.text(headers, b"access-control-request-private-network") == "true":
        answer["access-control-allow-private-network"] = "true"
    return answer

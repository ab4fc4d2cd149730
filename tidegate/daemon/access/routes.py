"""What is to be known of a path before its route is asked; pure."""

from __future__ import annotations

import re
from typing import Literal, TypeAlias

from tidegate.daemon.access.keys import Headers


Api: TypeAlias = Literal["turns", "chat", "responses", "messages"]
"""In whose words an answer is given; ``turns`` are our own."""

PROBES = frozenset({"/livez", "/readyz"})
"""What a load balancer asks, which has no key."""

POLLED = frozenset({"/v1/lanes"})
"""What those who watch ask for again and again, which must not eat what their work needs."""

_WATCHED = frozenset({"/", "/metrics", "/favicon.ico", "/openapi.json"})
_WATCHED_BELOW = "/page/"
_INTERRUPT = re.compile(r"/v1/turns/[^/]+/interrupt")
_COMPATIBLE: tuple[tuple[str, Api], ...] = (
    ("/v1/chat/", "chat"),
    ("/v1/responses", "responses"),
    ("/v1/messages", "messages"),
)


def api_of(path: str, headers: Headers) -> Api:
    """Return whose shape an error on this path has.

    ``/v1/models`` is asked by clients of all wires; the one of the messages wire says its version.
    """
    for start, api in _COMPATIBLE:
        if path.startswith(start):
            return api
    if path.startswith("/v1/models"):
        return "messages" if any(name == b"anthropic-version" for name, _ in headers) else "chat"
    return "turns"


def is_watched(path: str) -> bool:
    """Return whether a person looks at it, or a scraper: open to the machine it runs on."""
    return path in _WATCHED or path.startswith(_WATCHED_BELOW)


def is_counted(method: str, path: str) -> bool:
    """Return whether a request counts against the rate limit; an interrupt never does."""
    if path in POLLED or (method == "POST" and _INTERRUPT.fullmatch(path)):
        return False
    return path.startswith("/v1/")

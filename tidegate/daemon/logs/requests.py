"""One line about each request, in place of the server's own."""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, MutableMapping
from typing import Any

from tidegate.daemon.access.body import Receive
from tidegate.daemon.access.middleware import App, Scope, Send
from tidegate.daemon.access.routes import POLLED, PROBES
from tidegate.daemon.logs.lines import about


_log = logging.getLogger("tidegate.daemon.requests")

_PATH_CHARS_MAX = 200
_CLIENT_LEFT = 499
"""What nginx and others write for a client that left before it was answered."""


class AccessLog:
    """Writes a line when a request is over; plain ASGI.

    The line has the path without its query, and what has been left in ``scope["state"]``: the
    ``owner``, and the ``turn`` if there is one.

    Args:
        app: what serves the requests.
    """

    def __init__(self, app: App) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        level = logging.DEBUG if scope.get("path") in PROBES | POLLED else logging.INFO
        if scope["type"] != "http" or not _log.isEnabledFor(level):
            await self._app(scope, receive, send)
            return
        status = _CLIENT_LEFT
        began_s = time.monotonic()

        def sending(message: MutableMapping[str, Any]) -> Awaitable[None]:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            return send(message)

        try:
            await self._app(scope, receive, sending)
        except Exception:
            status = 500 if status == _CLIENT_LEFT else status
            raise
        finally:
            state = scope.get("state", {})
            extra = about(
                turn=state.get("turn"),
                owner=state.get("owner") or None,
                method=scope["method"],
                path=_path(scope),
                status=status,
                duration_s=round(time.monotonic() - began_s, 6),
            )
            _log.log(level, "request", extra=extra)


def _path(scope: Scope) -> str:
    """Return the path as it came, without spaces and controls, and no longer than fits."""
    raw: bytes = scope.get("raw_path") or scope["path"].encode()
    path = raw.partition(b"?")[0].decode("ascii", "replace")
    return path if len(path) <= _PATH_CHARS_MAX else f"{path[:_PATH_CHARS_MAX]}..."

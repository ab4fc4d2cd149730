"""All turns at one glance: what the live page and ``tidegate top`` draw.

Path: ``app.py`` -> this -> ``turns/recent.py``
"""

from __future__ import annotations

import time
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from tidegate.daemon.api.failing import failing
from tidegate.daemon.api.turns import json_response, number
from tidegate.daemon.journal.model import JournalError, TurnRecord
from tidegate.daemon.service import Service, in_thread, owner_of
from tidegate.daemon.turns.recent import RECENT_MAX


LIMIT_MAX = 2000
LIMIT_DEFAULT = 1000


class LaneRoutes:
    """``GET /v1/lanes``.

    Args:
        service: the daemon.
    """

    def __init__(self, service: Service) -> None:
        self._service = service
        self._began_s = time.monotonic()
        try:
            self._version = version("tidegate")
        except PackageNotFoundError:
            self._version = "unknown"

    @failing
    async def index(self, request: Request) -> Response:
        """Show the turns of this key that wait, run, or have ended lately, and the daemon."""
        limit = number(
            request.query_params.get("limit"), "limit", LIMIT_DEFAULT, least=1, most=LIMIT_MAX
        )
        service, owner = self._service, owner_of(request.scope)
        if service.lanes.needs(owner):
            service.lanes.recall(owner, await self._before(owner))
        registry = service.registry
        await service.lanes.look(owner, tuple(registry.hosted.values()))
        lanes = service.lanes.of(owner, registry.hosted.values(), registry.state)
        body = {
            "now_s": time.time(),
            "daemon": self._daemon(),
            "left_out": max(0, len(lanes) - limit),
            "lanes": lanes[:limit],
        }
        return json_response(body)

    def _daemon(self) -> dict[str, Any]:
        service = self._service
        state = service.registry.state
        return {
            "version": self._version,
            "uptime_s": time.monotonic() - self._began_s,
            "running": state.running,
            "queued": state.queued,
            "max_running": state.limits.max_running,
            "workers": service.registry.runtime.statistics().workers,
            "draining": state.mode != "open",
            "journal_well": state.well,
        }

    async def _before(self, owner: str) -> list[TurnRecord]:
        """Return what ended before this daemon began; nothing if the journal cannot be read."""
        journal = self._service.journal
        try:
            found: list[TurnRecord] = await in_thread(
                lambda: journal.turns(owner=owner, limit=RECENT_MAX, live={})
            )
        except JournalError:
            return []  # what runs is shown all the same
        return found

"""Whether the daemon lives, and whether it can take on turns; asked without a key."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from tidegate.daemon.api.turns import json_response
from tidegate.daemon.service import Service


class HealthRoutes:
    """``/livez`` and ``/readyz``.

    Args:
        service: the daemon.
    """

    def __init__(self, service: Service) -> None:
        self._service = service

    async def live(self, _request: Request) -> Response:
        """Say that the event loop turns."""
        return json_response({"status": "ok"})

    async def ready(self, _request: Request) -> Response:
        """Say whether a turn would be taken on, and if not, why."""
        why = self._why_not()
        return json_response(why or {"status": "ok"}, 503 if why else 200)

    def _why_not(self) -> Mapping[str, Any] | None:
        service = self._service
        state = service.registry.state
        if state.mode != "open":
            return {"status": "draining"}
        if not state.well:
            return {"status": "journal_unavailable"}
        if not service.registry.runtime.is_running:
            return {"status": "runtime_stopped"}
        if not service.registry.runtime.statistics().workers:
            return {"status": "no_workers"}  # they ended too often in too short a time
        if not service.usable():
            return {"status": "no_usable_endpoint"}
        return None

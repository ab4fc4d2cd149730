"""The daemon's routes, behind its door.

Path: ``serve.py`` -> this -> ``access/middleware.py``, ``api/``
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match, Route

from tidegate.daemon.access.body import Receive
from tidegate.daemon.access.middleware import Scope, Send
from tidegate.daemon.access.routes import Api as Shape
from tidegate.daemon.access.routes import api_of
from tidegate.daemon.api.asking import Api
from tidegate.daemon.api.compatible import Compatible
from tidegate.daemon.api.events import Events
from tidegate.daemon.api.health import HealthRoutes
from tidegate.daemon.api.lanes import LaneRoutes
from tidegate.daemon.api.metrics import MetricsRoute
from tidegate.daemon.api.models import ModelRoutes
from tidegate.daemon.api.openapi import document
from tidegate.daemon.api.turns import TurnRoutes, json_response
from tidegate.daemon.page.routes import page_routes
from tidegate.daemon.refusing import refused
from tidegate.daemon.service import Service


V1 = "/v1"
COMPATIBLE: dict[str, Api] = {
    "/v1/chat/completions": "chat",
    "/v1/responses": "responses",
    "/v1/messages": "messages",
}
_SLASHES = re.compile("/{2,}")


class App:
    """All routes; those that cost tokens are asked without what Starlette puts around a route.

    Args:
        service: the daemon.
    """

    def __init__(self, service: Service) -> None:
        routes = routes_of(service)
        self._direct = {path: Compatible(service, api) for path, api in COMPATIBLE.items()}
        self._rest = Starlette(
            routes=routes, exception_handlers={404: _unknown_path, 405: _wrong_method}
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        direct = self._direct.get(scope["path"])
        if direct is not None and scope["method"] == "POST":
            await direct(scope, receive, send)
        else:
            await self._rest(scope, receive, send)


def routes_of(service: Service) -> list[Route]:
    """Return all routes."""
    turns, models, health = TurnRoutes(service), ModelRoutes(service), HealthRoutes(service)
    return [
        *(
            Route(path, Compatible(service, api), methods=["POST"])
            for path, api in COMPATIBLE.items()
        ),
        Route("/v1/models", models.index),
        Route("/v1/models/{model:path}", models.show),
        Route("/v1/turns", turns.index, methods=["GET"]),
        Route("/v1/turns", turns.create, methods=["POST"]),
        Route("/v1/turns/{turn}", turns.show, methods=["GET"]),
        Route("/v1/turns/{turn}", turns.forget, methods=["DELETE"]),
        Route("/v1/turns/{turn}/events", Events(service), methods=["GET"]),
        Route("/v1/turns/{turn}/interrupt", turns.interrupt, methods=["POST"]),
        Route("/v1/lanes", LaneRoutes(service).index, methods=["GET"]),
        Route("/livez", health.live),
        Route("/readyz", health.ready),
        Route("/metrics", MetricsRoute(service.metrics).show),
        Route("/openapi.json", _openapi(service)),
        *page_routes(),
    ]


async def _unknown_path(request: Request, _error: Exception) -> Response:
    path = request.url.path
    meant = _meant(path, request.app.routes)
    if meant is None:
        advice = (
            f"ask for a turn by POST to one of {', '.join(COMPATIBLE)}; all other paths are in "
            "/openapi.json"
        )
    else:
        base = f"{request.base_url.scheme}://{request.base_url.netloc}{meant.base}"
        advice = f"{meant.path!r:.200} is meant, so give {base!r:.200} as the base URL"
    api = api_of(meant.path if meant else path, request.scope["headers"])
    return _problem(api, 404, "path_unknown", f"there is nothing at {path!r:.200}: {advice}")


class _Meant(NamedTuple):
    """A path that there is, and the path of the base URL with which a client would ask there."""

    path: str
    base: str


def _meant(path: str, routes: list[Route]) -> _Meant | None:
    """Return what a client asks for whose base URL has a ``/v1`` or a slash too many or too few."""
    single = _SLASHES.sub("/", path)
    for each in (
        _Meant(single.removeprefix(V1), ""),
        _Meant(f"{V1}{single}", V1),
        _Meant(single, path.partition("//")[0]),
    ):
        known = any(route.path_regex.match(each.path) for route in routes)
        if each.path != path and each.path.startswith(f"{V1}/") and known:
            return each
    return None


async def _wrong_method(request: Request, _error: Exception) -> Response:
    allowed = ", ".join(sorted(_methods_at(request)))
    path = request.url.path
    words = f"{request.method} is not possible at {path!r:.200}: ask by {allowed}"
    api = api_of(path, request.scope["headers"])
    return _problem(api, 405, "method_not_allowed", words, {"allow": allowed})


def _methods_at(request: Request) -> set[str]:
    """Return what is possible at a path, which may have several routes."""
    routes: list[Route] = request.app.routes
    here = [each for each in routes if each.matches(request.scope)[0] is not Match.NONE]
    return {method for each in here for method in each.methods or ()}


def _problem(
    api: Shape, status: int, kind: str, message: str, headers: dict[str, str] | None = None
) -> Response:
    reply = refused(api, status, kind, message, headers or {})
    return json_response(reply.body, reply.status, reply.headers)


def _openapi(service: Service) -> Callable[[Request], Awaitable[Response]]:
    async def show(_request: Request) -> Response:
        return json_response(document(service.config))

    return show

"""The live page: three files and an icon, served as they are.

They are read once, when the daemon begins. The page may load nothing from anywhere else, nor be
shown inside of another one.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route


FILES = {
    "/": ("page.html", "text/html; charset=utf-8"),
    "/page/page.js": ("page.js", "text/javascript; charset=utf-8"),
    "/page/page.css": ("page.css", "text/css; charset=utf-8"),
    "/page/icon.svg": ("icon.svg", "image/svg+xml"),
    "/favicon.ico": ("icon.svg", "image/svg+xml"),
}
HEADERS = {
    "cache-control": "no-cache",
    "content-security-policy": (
        "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}


def page_routes() -> list[Route]:
    """Return the page's routes."""
    return [Route(path, _showing(*file), methods=["GET"]) for path, file in FILES.items()]


def _showing(name: str, kind: str) -> Callable[[Request], Awaitable[Response]]:
    data = Path(__file__).with_name(name).read_bytes()

    async def show(_request: Request) -> Response:
        return Response(data, headers={**HEADERS, "content-type": kind})

    return show

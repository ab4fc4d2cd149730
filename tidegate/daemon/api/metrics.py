"""``/metrics``, in the form that the scraper takes."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from tidegate.daemon.metrics import Metrics


class MetricsRoute:
    """Shows what was counted.

    Args:
        metrics: has it.
    """

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    async def show(self, request: Request) -> Response:
        """Answer a scraper."""
        body, content_type = self._metrics.scrape(request.headers.get("accept", ""))
        return Response(body, headers={"content-type": content_type, "cache-control": "no-store"})

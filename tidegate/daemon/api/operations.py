"""The description of what shows how the daemon stands, to people and to programs; pure."""

from __future__ import annotations

import re
from typing import Any

from tidegate.daemon.api.describing import Operation, answer, answers, parameter
from tidegate.daemon.api.lanes import LIMIT_DEFAULT, LIMIT_MAX
from tidegate.daemon.api.schemas import TEXT, ref
from tidegate.daemon.page.routes import FILES


_WORD = re.compile(r"\w+")


def operations() -> dict[str, Any]:
    """Return the paths that operators ask, their machines, and the live page."""
    return {**_probes(), **_watching()}


def _probes() -> dict[str, Any]:
    status = answer("It is.", ref("Status"))
    probe: Operation = {"tags": ["operations"], "security": []}
    refused = answers({})
    del refused["401"], refused["429"]
    not_ready = {"503": answer("It is not; the status says why.", ref("Status"))}
    forms = {kind: {"schema": TEXT} for kind in ("text/plain", "application/openmetrics-text")}
    text = {"description": "All series.", "content": forms}
    return {
        "/livez": {
            "get": {
                **probe,
                "operationId": "live",
                "summary": "Whether the daemon turns.",
                "responses": {"200": status, **refused},
            }
        },
        "/readyz": {
            "get": {
                **probe,
                "operationId": "ready",
                "summary": "Whether it takes on turns.",
                "responses": {"200": status, **not_ready, **refused},
            }
        },
        "/metrics": {
            "get": {
                "tags": ["operations"],
                "operationId": "metrics",
                "summary": "What was counted, for Prometheus.",
                "responses": answers({"200": text}),
            }
        },
        "/openapi.json": {
            "get": {
                "tags": ["operations"],
                "operationId": "describe",
                "summary": "This description.",
                "responses": answers({"200": answer("It.", {"type": "object"})}),
            }
        },
    }


def _watching() -> dict[str, Any]:
    limit = {"type": "integer", "minimum": 1, "maximum": LIMIT_MAX, "default": LIMIT_DEFAULT}
    lanes = {
        "get": {
            "tags": ["operations"],
            "operationId": "lanes",
            "summary": "All turns of this key at one glance, and how the daemon stands.",
            "parameters": [parameter("limit", "query", "How many.", limit)],
            "responses": answers({"200": answer("Them.", ref("Lanes"))}, 503),
        }
    }
    return {"/v1/lanes": lanes, **{path: _file(path, kind) for path, (_, kind) in FILES.items()}}


def _file(path: str, kind: str) -> dict[str, Any]:
    content = {kind.partition(";")[0]: {"schema": TEXT}}
    return {
        "get": {
            "tags": ["operations"],
            "operationId": "_".join(_WORD.findall(path)) or "page",
            "summary": "A part of the live page." if path != "/" else "The live page.",
            "responses": answers({"200": {"description": "It.", "content": content}}),
        }
    }

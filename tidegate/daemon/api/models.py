"""``GET /v1/models``: what a client may name, as far as the configuration says it."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from tidegate.daemon.access.routes import api_of
from tidegate.daemon.api.turns import json_response
from tidegate.daemon.config.model import DaemonConfig
from tidegate.daemon.fronts import Api, refusal_of
from tidegate.daemon.service import Service


_ANY = "*?["
"""What makes a pattern of a name."""


def models_of(config: DaemonConfig, *, messages: bool) -> list[tuple[str, str]]:
    """Return names of models and whose they are; a pattern is no name, and is left out.

    Args:
        config: names the endpoints.
        messages: whether only those matter that are asked on the messages wire.
    """
    found: dict[str, str] = {}
    for name, endpoint in config.endpoints.items():
        if messages and "messages" not in endpoint.wires:
            continue
        names = [each for each in endpoint.models if not any(mark in each for mark in _ANY)]
        if endpoint.local_model is not None:
            names.append(endpoint.local_model)
        for each in names:
            found.setdefault(each, name)
    return list(found.items())


class ModelRoutes:
    """The routes under ``/v1/models``.

    Args:
        service: the daemon.
    """

    def __init__(self, service: Service) -> None:
        self._service = service

    async def index(self, request: Request) -> Response:
        """List the models, in the form of the client's wire."""
        messages = _is_messages(request)
        models = models_of(self._service.config, messages=messages)
        if not messages:
            data = [_openai(name, owner) for name, owner in models]
            return json_response({"object": "list", "data": data})
        data = [_anthropic(name) for name, _ in models]
        return json_response(
            {
                "data": data,
                "has_more": False,
                "first_id": data[0]["id"] if data else None,
                "last_id": data[-1]["id"] if data else None,
            }
        )

    async def show(self, request: Request) -> Response:
        """Show one model."""
        messages = _is_messages(request)
        wanted = request.path_params["model"]
        for name, owner in models_of(self._service.config, messages=messages):
            if name == wanted:
                return json_response(_anthropic(name) if messages else _openai(name, owner))
        api: Api = "messages" if messages else "chat"
        refusal = refusal_of(
            api, 404, "model_not_found", f"no endpoint names a model {wanted!r:.200}"
        )
        return json_response(refusal.body, refusal.status, refusal.headers)


def _is_messages(request: Request) -> bool:
    return api_of(request.url.path, request.scope["headers"]) == "messages"


def _openai(name: str, owner: str) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": 0, "owned_by": owner}


def _anthropic(name: str) -> dict[str, Any]:
    return {
        "type": "model",
        "id": name,
        "display_name": name,
        "created_at": "1970-01-01T00:00:00Z",
    }

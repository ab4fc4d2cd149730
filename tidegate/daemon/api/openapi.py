"""The API's description, as ``/openapi.json`` shows it: OpenAPI 3.2.

It is the first version that knows streams: ``itemSchema`` is of one event. What providers say is
passed on, so that it is described as loosely as it is known. Every status that can come back is
there; those that a provider may send are ``4XX`` and ``5XX``.
"""

from __future__ import annotations

import functools
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Protocol

from tidegate.daemon.access.routes import is_watched
from tidegate.daemon.api.describing import (
    ALWAYS,
    REASONS,
    SSE,
    Operation,
    answer,
    answers,
    body,
    header,
    on_disconnect,
    parameter,
    turn_header,
    turn_id,
)
from tidegate.daemon.api.events import OFFSET_MAX
from tidegate.daemon.api.operations import operations
from tidegate.daemon.api.schemas import STATES, TEXT, ref, schemas


_KEYS: list[dict[str, list[str]]] = [{"bearer": []}, {"header": []}, {"browser": []}]
_TAGS = {
    "compatible": "The providers' own APIs.",
    "turns": "Turns as resources, which outlive their clients.",
    "operations": "How the daemon stands.",
}


class Configured(Protocol):
    """What of the configuration is told."""

    @property
    def keys(self) -> tuple[str, ...]: ...  # noqa: D102

    @property
    def is_loopback(self) -> bool: ...  # noqa: D102


def document(config: Configured) -> dict[str, Any]:
    """Return the description, which is not to be changed.

    Args:
        config: says whether a key is needed, and who can come without one.
    """
    return _document(needs_key=bool(config.keys), loopback=config.is_loopback)


@functools.cache
def _document(*, needs_key: bool, loopback: bool) -> dict[str, Any]:
    paths = {**_compatible(), **_models(), **_turns(), **_turn(), **operations()}
    if needs_key and loopback:
        for path in filter(is_watched, paths):
            for operation in paths[path].values():
                operation["security"] = [{}, *_KEYS]
    return {
        "openapi": "3.2.0",
        "info": {
            "title": "tidegate",
            "version": _version(),
            "description": "LLM provider streams: one answer, one writer, nothing late gets in.",
        },
        "servers": [{"url": "/"}],
        "tags": [{"name": name, "description": words} for name, words in _TAGS.items()],
        "security": _KEYS if needs_key else [],
        "paths": paths,
        "components": {
            "schemas": schemas(),
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer"},
                "header": {"type": "apiKey", "in": "header", "name": "x-api-key"},
                "browser": {"type": "http", "scheme": "basic"},
            },
        },
    }


def _compatible() -> dict[str, Any]:
    routes = {
        "/v1/chat/completions": ("chat", "OpenAI's chat completions.", "OpenAIError"),
        "/v1/responses": ("responses", "OpenAI's Responses.", "OpenAIError"),
        "/v1/messages": ("messages", "Anthropic's messages.", "AnthropicError"),
    }
    return {
        path: {"post": _provider(name, words, error)}
        for path, (name, words, error) in routes.items()
    }


def _provider(name: str, words: str, error: str) -> Operation:
    # What cannot be read as HTTP has no path, and is told in our own form.
    refused = {"anyOf": [ref(error), ref("Error")]}
    answers = {
        "200": answer("The provider's answer.", ref("ProviderAnswer"), stream=True, turn=True),
        **{str(code): answer(REASONS[code], refused) for code in (*ALWAYS, 404, 413, 415, 503)},
        "4XX": answer("The provider's own error.", refused),
        "5XX": answer("The provider's error, or that it did not answer.", refused),
    }
    return {
        "operationId": name,
        "tags": ["compatible"],
        "summary": words,
        "description": "Passed natively to the first endpoint of this wire that takes the model.",
        "parameters": [on_disconnect()],
        "requestBody": body(ref("ProviderRequest")),
        "responses": answers,
    }


def _models() -> dict[str, Any]:
    version_header = header("anthropic-version", "Asks for Anthropic's form of the answer.", TEXT)
    refused = {"anyOf": [ref("OpenAIError"), ref("AnthropicError"), ref("Error")]}
    model = parameter("model", "path", "Its name.", {**TEXT, "minLength": 1})
    return {
        "/v1/models": {
            "get": {
                "operationId": "listModels",
                "tags": ["compatible"],
                "summary": "The models that the configuration names.",
                "parameters": [version_header],
                "responses": answers({"200": answer("Them.", ref("Models"))}, error=refused),
            }
        },
        "/v1/models/{model}": {
            "get": {
                "operationId": "showModel",
                "tags": ["compatible"],
                "summary": "One model.",
                "parameters": [model, version_header],
                "responses": answers({"200": answer("It.", ref("Model"))}, 404, error=refused),
            }
        },
    }


def _turns() -> dict[str, Any]:
    limit = {"type": "integer", "minimum": 1, "maximum": 1000, "default": 100}
    key = {**TEXT, "pattern": "^[!-~]{1,255}$"}
    turn = {**TEXT, "minLength": 1}
    return {
        "/v1/turns": {
            "get": {
                "operationId": "listTurns",
                "tags": ["turns"],
                "summary": "The turns of this key, the newest first.",
                "parameters": [
                    parameter("limit", "query", "How many.", limit),
                    parameter("before", "query", "The id of the last one that is known.", turn),
                    parameter("state", "query", "Those alone.", {"enum": list(STATES)}),
                ],
                "responses": answers({"200": answer("Them.", ref("Turns"))}, 503),
            },
            "post": {
                "operationId": "makeTurn",
                "tags": ["turns"],
                "summary": "Take on a turn, which goes on whether or not somebody reads it.",
                "parameters": [
                    header("Idempotency-Key", "The same key and body are the same turn.", key),
                    on_disconnect(),
                ],
                "requestBody": body(ref("TurnRequest")),
                "responses": answers(
                    {"202": answer("It is taken on.", ref("TurnSummary"), turn=True)},
                    *(404, 409, 413, 415, 503),
                ),
            },
        }
    }


def _turn() -> dict[str, Any]:
    shown = {"200": answer("The turn, with its answer so far.", ref("Turn"))}
    one: Operation = {"tags": ["turns"], "parameters": [turn_id()]}
    return {
        "/v1/turns/{turn}": {
            "get": {
                **one,
                "operationId": "showTurn",
                "summary": "A turn.",
                "responses": answers(shown, 404, 503),
            },
            "delete": {
                **one,
                "operationId": "forgetTurn",
                "summary": "Forget a turn that has ended.",
                "responses": answers({"204": {"description": "It is forgotten."}}, 404, 409, 503),
            },
        },
        "/v1/turns/{turn}/interrupt": {
            "post": {
                **one,
                "operationId": "interruptTurn",
                "summary": "Interrupt a turn; also if it has ended, and however often.",
                "requestBody": body(ref("InterruptRequest"), required=False),
                "responses": answers(
                    {**shown, "202": answer("It is being interrupted.", ref("TurnSummary"))},
                    *(404, 413, 415, 503),
                ),
            }
        },
        "/v1/turns/{turn}/events": {"get": _events(one)},
    }


def _events(one: Operation) -> Operation:
    offset = {"type": "integer", "minimum": -1, "maximum": OFFSET_MAX}
    stream = {
        "description": "Each event as a frame: its type, its offset as id, and itself as data.",
        "headers": turn_header(),
        "content": {SSE: {"itemSchema": ref("EventFrame")}},
    }
    return {
        **one,
        "operationId": "readEvents",
        "summary": "A turn's events from the first one, or from where a reader has been.",
        "parameters": [
            *one["parameters"],
            parameter("after", "query", "The offset of the last event that is known.", offset),
            header("Last-Event-ID", "Likewise; it comes first.", offset),
        ],
        "responses": answers(
            {"200": stream, "410": answer(REASONS[410], ref("ExpiredTurn"))}, 404, 503
        ),
    }


def _version() -> str:
    try:
        return version("tidegate")
    except PackageNotFoundError:
        return "unknown"

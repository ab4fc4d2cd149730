"""The pieces that the API's description is made of; pure."""

from __future__ import annotations

from typing import Any, TypeAlias

from tidegate.daemon.api.schemas import ON_DISCONNECT, TEXT, Schema, ref


Operation: TypeAlias = dict[str, Any]

JSON = "application/json"
SSE = "text/event-stream"

REASONS = {
    400: "The request makes no sense; the words name the value and the way out.",
    401: "A key is needed, or this one is wrong.",
    403: "The name of the host or the page's origin is not one that may ask.",
    404: "There is nothing of that name, or it belongs to another key.",
    408: "The request was not whole in time.",
    409: "It cannot be done as things stand.",
    410: "The events are no longer kept; the turn's end is.",
    413: "The body is too large.",
    415: "The body is no JSON by its own account.",
    429: "Too much at once; Retry-After says when to come back.",
    431: "The headers are too large.",
    503: "No turn is taken on or run at the moment, or the journal cannot be used.",
}
ALWAYS = (400, 401, 403, 408, 429, 431)
"""What can come of every request but a probe."""


def answers(good: dict[str, Any], *codes: int, error: Schema | None = None) -> dict[str, Any]:
    """Return what a route answers with: its own, and what can go wrong with it and with any."""
    return {
        **good,
        **{
            str(code): answer(REASONS[code], error or ref("Error"))
            for code in sorted({*ALWAYS, *codes})
        },
    }


def answer(words: str, schema: Schema, *, stream: bool = False, turn: bool = False) -> Operation:
    """Return a response with a body of JSON or a stream, and the turn's id in its head or not."""
    content: dict[str, Any] = {JSON: {"schema": schema}}
    if stream:
        content[SSE] = {"itemSchema": ref("Frame")}
    return {
        "description": words,
        "content": content,
        **({"headers": turn_header()} if turn else {}),
    }


def body(schema: Schema, *, required: bool = True) -> Operation:
    """Return a request's JSON body."""
    return {"required": required, "content": {JSON: {"schema": schema}}}


def parameter(name: str, place: str, words: str, schema: Schema) -> Operation:
    """Return a parameter of a path, which is always there, or of a query or a header."""
    required = place == "path"
    return {
        "name": name,
        "in": place,
        "required": required,
        "description": words,
        "schema": schema,
    }


def header(name: str, words: str, schema: Schema) -> Operation:
    """Return a header that a request may have."""
    return parameter(name, "header", words, schema)


def turn_id() -> Operation:
    """Return the parameter of all paths of one turn."""
    return parameter("turn", "path", "Its id.", {**TEXT, "minLength": 1, "pattern": "^[^/]+$"})


def on_disconnect() -> Operation:
    """Return the header that says what becomes of a turn."""
    words = "What becomes of the turn if its client leaves: interrupt, continue, continue:SECONDS."
    return header("tidegate-on-disconnect", words, {**TEXT, "pattern": ON_DISCONNECT})


def turn_header() -> Operation:
    """Return the header of responses that belong to a turn."""
    return {"tidegate-turn": {"description": "The turn's id.", "schema": TEXT}}

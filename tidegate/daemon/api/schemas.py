"""The schemas of the API's description: of what the daemon itself says, from its own structs."""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec

from tidegate.daemon.journal.model import FinalState
from tidegate.protocol.answers import Answer
from tidegate.protocol.events import AnyEvent
from tidegate.protocol.failures import Failure
from tidegate.protocol.policy import Policy


Schema: TypeAlias = dict[str, Any]

STATES = ("queued", "running", "completed", "failed", "interrupted")
ON_DISCONNECT = r"^(interrupt|continue|continue:[0-9]+(\.[0-9]+)?)$"
TEXT: Schema = {"type": "string"}
OBJECT: Schema = {"type": "object"}

_TEMPLATE = "#/components/schemas/{name}"


def ref(name: str) -> Schema:
    """Return what stands for a schema of ``schemas()``."""
    return {"$ref": _TEMPLATE.format(name=name)}


def schemas() -> dict[str, Schema]:
    """Return all schemas, by name."""
    structs = (AnyEvent, Answer, Failure, FinalState, Policy)
    [event, *_], found = msgspec.json.schema_components(structs, ref_template=_TEMPLATE)
    return {**found, "Event": event, **_bodies(), **_errors(), **_views(), **_lanes(), **_frames()}


def nullable(schema: Schema) -> Schema:
    """Return a schema that takes null too."""
    return {"anyOf": [schema, {"type": "null"}]}


def _bodies() -> dict[str, Schema]:
    return {
        "TurnRequest": {
            "type": "object",
            "description": "What a turn is to be.",
            "required": ["endpoint", "payload"],
            "additionalProperties": False,
            "properties": {
                "endpoint": {**TEXT, "description": "Its name in the configuration."},
                "payload": {**OBJECT, "description": "The provider's own JSON."},
                "wire": {
                    **nullable({"enum": ["chat", "responses", "messages", "converse"]}),
                    "description": "Of the payload, for an endpoint that speaks several.",
                },
                "policy": {**ref("Policy"), "description": "In place of the configuration's."},
                "on_disconnect": {
                    **TEXT,
                    "description": "interrupt, continue or continue:SECONDS; of no consequence"
                    " here, where no client waits.",
                },
            },
        },
        "InterruptRequest": {
            "type": "object",
            "properties": {"reason": {**TEXT, "maxLength": 500}},
            "additionalProperties": False,
        },
        "ProviderRequest": {
            "type": "object",
            "description": "The provider's own JSON; what is not named here is passed on.",
            "properties": {"model": TEXT, "stream": nullable({"type": "boolean"})},
        },
        "ProviderAnswer": {**OBJECT, "description": "The provider's own JSON."},
    }


def _errors() -> dict[str, Schema]:
    own = {
        "type": "object",
        "required": ["type", "message"],
        "properties": _texts("type", "message"),
    }
    openai = {
        "type": "object",
        "required": ["message", "type", "param", "code"],
        "properties": {
            **_texts("message", "type"),
            "param": nullable(TEXT),
            "code": nullable(TEXT),
        },
    }
    return {
        "Error": {"type": "object", "required": ["error"], "properties": {"error": own}},
        "OpenAIError": {"type": "object", "required": ["error"], "properties": {"error": openai}},
        "AnthropicError": {
            "type": "object",
            "required": ["type", "error"],
            "properties": {"type": {"const": "error"}, "error": own},
        },
    }


def _views() -> dict[str, Schema]:
    summary: dict[str, Schema] = {
        **_texts("id", "endpoint", "wire", "model"),
        "state": {"enum": list(STATES)},
        "api": {"enum": ["turns", "chat", "responses", "messages"]},
        "attempt": {"type": "integer", "minimum": 0},
        "created_at": {"type": "number"},
        "ended_at": nullable({"type": "number"}),
        "on_disconnect": nullable({**TEXT, "pattern": ON_DISCONNECT}),
        "events": {"type": "integer", "minimum": 0},
    }
    more: dict[str, Schema] = {
        "answer": nullable(ref("Answer")),
        "error": ref("Failure"),
        "reason": TEXT,
        "expired": {"const": True},
        "final": nullable(ref("FinalState")),
    }
    required = [name for name in summary if name != "events"]
    listed = {"type": "object", "required": required, "properties": summary}
    turns = {"type": "array", "items": ref("TurnSummary")}
    return {
        "TurnSummary": {**listed, "description": "A turn as a list shows it."},
        "Turn": {
            **listed,
            "description": "A turn with its answer so far; expired without, but with its end.",
            "properties": {**summary, **more},
        },
        "Turns": {"type": "object", "required": ["turns"], "properties": {"turns": turns}},
        "ExpiredTurn": {
            "allOf": [ref("Error")],
            "required": ["turn"],
            "description": "The events are no longer kept; how the turn ended is.",
            "properties": {"turn": ref("Turn")},
        },
        "Status": {"type": "object", "required": ["status"], "properties": {"status": TEXT}},
        "Models": {
            "type": "object",
            "required": ["data"],
            "properties": {"data": {"type": "array", "items": ref("Model")}},
        },
        "Model": {"type": "object", "required": ["id"], "properties": {"id": TEXT}},
    }


def _frames() -> dict[str, Schema]:
    event = {"contentMediaType": "application/json", "contentSchema": ref("Event")}
    return {
        "Frame": {
            "type": "object",
            "description": "An event of a stream, as the provider's own clients expect it.",
            "required": ["data"],
            "properties": _texts("event", "data"),
        },
        "EventFrame": {
            "type": "object",
            "description": "An event of a turn, or without an id what befalls the daemon.",
            "required": ["event", "data"],
            "properties": {
                "event": TEXT,
                "id": {**TEXT, "pattern": "^[0-9]+$"},
                "data": {**TEXT, **event},
            },
        },
    }


def _lanes() -> dict[str, Schema]:
    return {
        "Lanes": {
            "type": "object",
            "required": ["now_s", "daemon", "left_out", "lanes"],
            "properties": {
                "now_s": {"type": "number"},
                "daemon": {**OBJECT, "description": "How it stands."},
                "left_out": {"type": "integer", "minimum": 0},
                "lanes": {"type": "array", "items": ref("Lane")},
            },
        },
        "Lane": {
            "type": "object",
            "description": "A turn as it is drawn; more is told of it than is named here.",
            "required": ["id", "state", "attempts", "marks"],
            "properties": {
                "id": TEXT,
                "state": {"enum": list(STATES)},
                "attempts": {"type": "array", "items": OBJECT},
                "marks": {"type": "array", "items": OBJECT},
            },
        },
    }


def _texts(*names: str) -> dict[str, Schema]:
    return dict.fromkeys(names, TEXT)

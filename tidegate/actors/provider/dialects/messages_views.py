"""What is read of a Messages answer, and the meaning of its stop reasons, figures and errors.

Nearly all frames are deltas of text, so that the one struct that each frame is decoded to has only
the fields of those; a frame of another type is decoded a second time, as plain JSON.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from tidegate.actors.provider.dialects import faults
from tidegate.actors.provider.dialects.chat_views import Unusable, count_from, value_from
from tidegate.protocol.answers import Finish, Usage
from tidegate.protocol.failures import Failure


class DeltaView(msgspec.Struct, gc=False):
    """The words in a piece of a block."""

    type: str = ""
    text: str | None = None
    thinking: str | None = None
    partial_json: str | None = None


class EventView(msgspec.Struct, gc=False):
    """One frame's payload."""

    type: str = ""
    index: int | None = None
    delta: DeltaView | None = None


event_from = msgspec.json.Decoder(EventView).decode
"""Decode a payload; raises ``msgspec.DecodeError`` or ``RecursionError``."""

_object = msgspec.json.Decoder(dict[str, Any])


def object_from(data: bytes) -> dict[str, Any]:
    """Decode a JSON object, as widely as RFC 8259 allows.

    Raises:
        Unusable: it is JSON, but no object.
        ValueError, RecursionError: it is no JSON.
    """
    try:
        return _object.decode(data)
    except msgspec.DecodeError:
        value = value_from(data)
    if not isinstance(value, dict):
        raise Unusable(f"a frame is a {type(value).__name__} and no object")
    return value


def event_from_value(value: Any) -> EventView:
    """Read a payload that ``event_from`` would not.

    Raises:
        Unusable: the shape is wrong.
    """
    try:
        return msgspec.convert(value, EventView)
    except (msgspec.ValidationError, RecursionError) as error:
        raise Unusable(str(error)) from error


def part_of(value: Mapping[str, Any], key: str) -> dict[str, Any]:
    """Return the object at ``key``; a new one if there is none.

    Raises:
        Unusable: there is something else.
    """
    part = value.get(key)
    if part is None:
        return {}
    if not isinstance(part, dict):
        raise Unusable(f"{key} is a {type(part).__name__}")
    return part


def text_of(value: Mapping[str, Any], key: str) -> str:
    """Return the text at ``key``, empty if there is none; a number is its digits.

    Raises:
        Unusable: there is something else.
    """
    text = value.get(key)
    if text is None:
        return ""
    if not isinstance(text, str | int):
        raise Unusable(f"{key} is a {type(text).__name__}")
    return str(text)


_FINISHES: dict[str, Finish] = {
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "content_filter",
}


def finish_from(reason: str) -> Finish:
    """Say what a stop reason means; one that nobody knows is a normal stop."""
    return _FINISHES.get(reason, "stop")


_FIGURES = {
    "input_tokens": "input_tokens",
    "output_tokens": "output_tokens",
    "cache_read_input_tokens": "cached_input_tokens",
}


def updated(usage: Usage | None, figures: Mapping[str, Any]) -> Usage | None:
    """Return ``usage`` with those figures that a frame has; each is a total, and replaces.

    Args:
        usage: what is known; None for nothing.
        figures: a frame's usage.
    """
    found = {ours: count_from(figures.get(theirs)) for theirs, ours in _FIGURES.items()}
    details = figures.get("output_tokens_details")
    if isinstance(details, dict):
        found["reasoning_tokens"] = count_from(details.get("thinking_tokens"))
    changed = {name: count for name, count in found.items() if count is not None}
    if not changed:
        return usage
    return msgspec.structs.replace(usage or Usage(), **changed)


_ERROR_STATUSES = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "gateway_timeout_error": 504,
    "timeout_error": 504,
    "overloaded_error": 529,
}
"""The status with which the provider sends each error when no stream has begun."""


def failure_from_event(value: Any) -> Failure:
    """Make the failure of an error inside a stream: the same as of one before it."""
    error = value.get("error") if isinstance(value, dict) else None
    kind = error.get("type") if isinstance(error, dict) else None
    status = _ERROR_STATUSES.get(kind) if isinstance(kind, str) else None
    if status is None:
        return faults.failure_from_frame(value)
    return faults.failure_from_error_body(status, value, {}, now_s=0.0)

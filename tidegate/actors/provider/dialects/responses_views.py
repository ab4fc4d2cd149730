"""What is read of the Responses wire's events, and the meaning of its odder values.

One struct does for every type of event and names only the fields that are used; what is large and
seldom needed stays raw. A payload whose fields have other types than they should is read once more,
field by field, and what makes no sense is then as good as absent.
"""

from __future__ import annotations

from typing import Any

import msgspec

from tidegate.actors.provider.dialects import faults
from tidegate.actors.provider.dialects.batch import SHAPE_CODE, malformed
from tidegate.actors.provider.dialects.chat_views import (
    Unusable,
    joined_text,
    value_from,
    values_from,
)
from tidegate.protocol.answers import Finish
from tidegate.protocol.failures import Failure, FailureKind


NULL = msgspec.Raw(b"null")
STATUSES = ("completed", "incomplete", "failed", "cancelled", "in_progress", "queued")
"""What a response can say of itself."""


class EventView(msgspec.Struct, gc=False):
    """One event's payload."""

    type: str = ""
    delta: Any = None
    output_index: int | None = None
    content_index: int | None = None
    summary_index: int | None = None
    item_id: str | None = None
    item: msgspec.Raw = NULL
    response: msgspec.Raw = NULL
    arguments: msgspec.Raw = NULL
    input: msgspec.Raw = NULL
    text: Any = None
    refusal: Any = None
    choices: msgspec.Raw = NULL


class ResponseView(msgspec.Struct, gc=False):
    """The response as an event or a document has it, mostly for its end."""

    id: Any = None
    model: Any = None
    created_at: Any = None
    status: Any = None
    error: Any = None
    incomplete_details: Any = None
    usage: Any = None
    output: msgspec.Raw = NULL


class ItemView(msgspec.Struct, gc=False):
    """One item of the output, announced or whole."""

    type: str = ""
    id: str | None = None
    call_id: str | None = None
    name: str | None = None
    phase: Any = None
    arguments: msgspec.Raw = NULL
    input: msgspec.Raw = NULL
    content: Any = None
    summary: Any = None


_event = msgspec.json.Decoder(EventView)
event_from = _event.decode
"""Decode a payload; raises ``msgspec.DecodeError`` or ``RecursionError``."""

_response = msgspec.json.Decoder(ResponseView)
_item = msgspec.json.Decoder(ItemView)
_fields = msgspec.json.Decoder(dict[str, msgspec.Raw])
_list = msgspec.json.Decoder(list[msgspec.Raw])
_text = msgspec.json.Decoder(str)


def event_from_value(value: Any) -> EventView:
    """Read a payload that ``event_from`` would not.

    Raises:
        Unusable: it is no object.
    """
    view: EventView = _leniently(EventView, value, "an event")
    return view


def response_from(raw: bytes) -> ResponseView:
    """Read a response, as far as it makes sense."""
    try:
        return _response.decode(raw)
    except (msgspec.DecodeError, RecursionError):
        pass
    try:
        view: ResponseView = _leniently(ResponseView, value_from(bytes(raw)), "a response")
    except (ValueError, RecursionError):
        view = ResponseView()
    return view


def item_from(raw: bytes) -> ItemView:
    """Read an item, as far as it makes sense."""
    try:
        return _item.decode(raw)
    except (msgspec.DecodeError, RecursionError):
        pass
    try:
        view: ItemView = _leniently(ItemView, value_from(bytes(raw)), "an item")
    except (ValueError, RecursionError):
        view = ItemView()
    return view


def items_from(raw: bytes) -> list[msgspec.Raw]:
    """Return the items of an output; none if it is no list."""
    try:
        return _list.decode(raw)
    except (msgspec.DecodeError, RecursionError):
        return []


def envelope_from(raw: bytes) -> bytes:
    """Return a response as it is, without its output, as JSON; empty if it is no object."""
    try:
        fields = _fields.decode(raw)
    except (msgspec.DecodeError, RecursionError):
        return b""
    fields.pop("output", None)
    return msgspec.json.encode(values_from(fields))


def skeleton_from(raw: bytes) -> dict[str, Any]:
    """Return an item as it is, without the words that deltas carry; empty if it is no object."""
    try:
        item = value_from(bytes(raw))
    except (ValueError, RecursionError):
        return {}
    if not isinstance(item, dict):
        return {}
    if item.get("type") in ("function_call", "custom_tool_call"):
        item.pop("arguments", None)
        item.pop("input", None)
    for slot in ("content", "summary"):
        parts = item.get(slot)
        for part in parts if isinstance(parts, list) else ():
            if kind := _kind_of(part):
                part.pop(WORD_FIELDS[kind], None)
    return item


WORD_FIELDS = {
    "output_text": "text",
    "refusal": "refusal",
    "reasoning_text": "text",
    "summary_text": "text",
}
"""By type of a part, the field that has its words."""


def words_of(part: Any) -> tuple[str, str]:
    """Return the type of a part of an item, and its words; empty for one that has none."""
    kind = _kind_of(part)
    return (kind, joined_text(part.get(WORD_FIELDS[kind]))) if kind else ("", "")


def _kind_of(part: Any) -> str:
    kind = part.get("type") if isinstance(part, dict) else None
    return kind if isinstance(kind, str) and kind in WORD_FIELDS else ""


def arguments_from(raw: msgspec.Raw) -> str | None:
    """Return arguments that are whole: text, or any other value as JSON; None if there are none."""
    data = bytes(raw)
    if data == b"null":
        return None
    try:
        return _text.decode(data)
    except msgspec.ValidationError:
        return data.decode("utf-8", "replace")
    except msgspec.DecodeError:
        return joined_text(value_from(data))  # a lone surrogate


def finish_from(response: ResponseView, kind: str) -> Finish | Failure:
    """Say how a response ended, by its status and by the type of the event that told.

    Args:
        response: the event's, or a whole one.
        kind: what follows ``response.`` in the event's type; empty for a whole response.
    """
    status = response.status if isinstance(response.status, str) else ""
    if status in ("", "in_progress", "queued") and kind:
        status = kind
    if response.error or status in ("failed", "cancelled"):
        return _broken(response, status)
    if status == "incomplete":
        details = response.incomplete_details
        reason = details.get("reason") if isinstance(details, dict) else None
        return "content_filter" if reason == "content_filter" else "length"
    if status in ("in_progress", "queued"):
        detail = f"the response is {status}: leave out background"
        return malformed(SHAPE_CODE, detail, reason="background")
    return "stop"


def failure_from_error(value: Any) -> Failure:
    """Make the failure of an ``error`` event, which may tell the parameter that is to blame."""
    failure = faults.failure_from_frame(value)
    error = value.get("error") if isinstance(value, dict) else None
    for part in (error, value):
        param = part.get("param") if isinstance(part, dict) else None
        if isinstance(param, str) and param:
            return msgspec.structs.replace(failure, detail=f"{failure.detail} (param: {param})")
    return failure


def _broken(response: ResponseView, status: str) -> Failure:
    if response.error:
        return failure_from_error({"error": response.error})
    return Failure(
        kind=FailureKind.SERVER_ERROR,
        retryable=True,
        code=status,
        detail=f"the response ended as {status}, and nothing says why",
    )


def _leniently(kind: Any, value: Any, what: str) -> Any:
    if not isinstance(value, dict):
        raise Unusable(f"{what} is a {type(value).__name__}")
    found = {}
    for field in msgspec.structs.fields(kind):
        if value.get(field.name) is None:
            continue
        given = msgspec.json.encode(value[field.name])
        try:
            found[field.name] = msgspec.json.decode(given, type=field.type)
        except msgspec.ValidationError:
            if field.name.endswith("id"):
                found[field.name] = str(value[field.name])
    return kind(**found)

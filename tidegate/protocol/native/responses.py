"""An answer as a ``response`` of the Responses API."""

from __future__ import annotations

import copy
from typing import Any

from tidegate.protocol.answers import Answer, Part, ToolCall, Usage
from tidegate.protocol.deltas import ENVELOPE


_TYPES = ("output_text", "refusal", "reasoning_text", "summary_text")
_WORD_FIELDS = {"refusal": "refusal"}
_PARTS: dict[str, dict[str, Any]] = {"output_text": {"annotations": []}}
_ITEMS: dict[str, dict[str, Any]] = {
    "message": {"role": "assistant", "status": "completed", "content": []},
    "reasoning": {"summary": []},
    "function_call": {"status": "completed"},
}


def response_from(answer: Answer) -> dict[str, Any]:
    """Return ``answer`` as a complete ``response``.

    An answer that is not whole is ``incomplete``, without a reason that the wire did not give.
    Calls that cannot be trusted are left out. The items stand in the order of the output if the
    wire told each one's place, else in that of their appearance.
    """
    whole = answer.finish is not None and not answer.partial
    envelope = next((part.data for part in answer.parts if part.index == ENVELOPE), {})
    known = {
        "id": answer.response_id,
        "object": "response",
        "created_at": answer.created,
        "status": "completed" if whole else "incomplete",
        "model": answer.model,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "error": None,
        "incomplete_details": None,
    }
    native = known | {name: value for name, value in envelope.items() if value is not None}
    native["output"] = _output_from(answer, whole=whole)
    if answer.usage is not None:
        native["usage"] = _laid_over(_usage_from(answer.usage), envelope.get("usage") or {})
    return native


def _output_from(answer: Answer, *, whole: bool) -> list[dict[str, Any]]:
    parts = [part for part in answer.parts if part.index != ENVELOPE] or _parts_of_words(answer)
    if all("output_index" in part.data for part in parts):
        parts.sort(key=lambda part: part.data["output_index"])
    calls = {call.id: call for call in answer.tool_calls}
    items = (_item_from(part, answer, calls, whole=whole) for part in parts)
    return [item for item in items if item is not None]


def _item_from(
    part: Part, answer: Answer, calls: dict[str, ToolCall], *, whole: bool
) -> dict[str, Any] | None:
    told = copy.deepcopy(part.data.get("item", {}))
    kind = told.get("type")
    item = {"id": f"item_{part.index}", **_ITEMS.get(kind, {}), **told}
    if "status" in item and (item["status"] == "in_progress" or "status" not in told):
        item["status"] = "completed" if whole else "incomplete"
    if kind in ("function_call", "custom_tool_call"):
        call = next((calls[call_id] for call_id in part.calls if call_id in calls), None)
        return None if call is None else item | _call_from(call, kind)
    ranges = {
        "text": iter(part.text),
        "reasoning": iter(part.reasoning),
        "refusal": iter(part.refusal),
    }
    untold: dict[tuple[str, int, str], dict[str, Any]] = {}
    for slot, at, name, said in part.data.get("words", ()):
        start, end = next(ranges[said], (0, 0))
        words: str = getattr(answer, said)[start:end]
        place = _told_part(item, slot, at, name)
        if place is None:
            place = untold.setdefault((slot, at, name), {"type": name, **_PARTS.get(name, {})})
        field = _WORD_FIELDS.get(name, "text")
        place[field] = place.get(field, "") + words
    for slot in ("content", "summary"):
        more = [untold[key] for key in sorted(untold) if key[0] == slot]
        if isinstance(item.get(slot), list) or more:
            item[slot] = [_with_words(each) for each in (*_parts_in(item, slot), *more)]
    return item


def _parts_in(item: dict[str, Any], slot: str) -> list[Any]:
    parts = item.get(slot)
    return parts if isinstance(parts, list) else []


def _told_part(item: dict[str, Any], slot: str, at: int, name: str) -> dict[str, Any] | None:
    """Return the part that the wire has described there, if it is of this type."""
    parts = _parts_in(item, slot)
    part = parts[at] if 0 <= at < len(parts) else None
    return part if isinstance(part, dict) and part.get("type") == name else None


def _with_words(part: Any) -> Any:
    """Give a part of words that had none an empty text, as it would have."""
    if isinstance(part, dict) and part.get("type") in _TYPES:
        return {_WORD_FIELDS.get(part["type"], "text"): "", **part}
    return part


def _call_from(call: ToolCall, kind: str) -> dict[str, Any]:
    named = {"call_id": call.id, "name": call.name}
    if kind == "custom_tool_call":
        return {**named, "input": call.parsed()}
    return {**named, "arguments": call.arguments}


def _parts_of_words(answer: Answer) -> list[Part]:
    """Return the parts of an answer of which nothing is known but the words."""
    parts: list[Part] = []
    data: dict[str, Any]
    if answer.reasoning:
        data = {
            "item": {"type": "reasoning"},
            "words": [["summary", 0, "summary_text", "reasoning"]],
        }
        parts.append(Part(index=len(parts), data=data, reasoning=((0, len(answer.reasoning)),)))
    said = [("output_text", "text"), ("refusal", "refusal")]
    rows = [["content", name, field] for name, field in said if getattr(answer, field)]
    if rows:
        words = [[slot, at, name, field] for at, (slot, name, field) in enumerate(rows)]
        text, refusal = ((0, len(answer.text)),), ((0, len(answer.refusal)),)
        data = {"item": {"type": "message"}, "words": words}
        parts.append(Part(index=len(parts), data=data, text=text, refusal=refusal))
    for call in answer.tool_calls:
        data = {"item": {"type": "function_call"}}
        parts.append(Part(index=len(parts), data=data, calls=(call.id,)))
    return parts


def _usage_from(usage: Usage) -> dict[str, Any]:
    return {
        "input_tokens": usage.input_tokens,
        "input_tokens_details": {
            "cached_tokens": usage.cached_input_tokens,
            "cache_write_tokens": 0,
        },
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
        "total_tokens": usage.input_tokens + usage.output_tokens,
    }


def _laid_over(known: dict[str, Any], told: dict[str, Any]) -> dict[str, Any]:
    """Lay what the wire told over what is known, at each level: servers leave figures out."""
    laid = dict(known)
    for name, value in told.items():
        below = known.get(name)
        if isinstance(below, dict) and isinstance(value, dict):
            laid[name] = _laid_over(below, value)
        elif value is not None:
            laid[name] = value
    return laid

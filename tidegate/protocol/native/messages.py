"""An answer as a ``message`` of the Messages API."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from tidegate.protocol.answers import Answer, Part, ToolCall
from tidegate.protocol.deltas import ENVELOPE


def message_from(answer: Answer) -> dict[str, Any]:
    """Return ``answer`` as a complete ``message``.

    ``stop_reason`` is what the wire said, and null where it said nothing: an answer that is not
    whole is not passed off as one that came to its limit. Calls that cannot be trusted are left
    out, and an answer of which nothing is left is one empty block of text, for callers look at the
    first one.
    """
    envelope = next((part.data for part in answer.parts if part.index == ENVELOPE), {})
    calls = {call.id: call for call in answer.tool_calls}
    blocks = (_block_from(part, answer, calls) for part in answer.parts if part.index != ENVELOPE)
    content = [block for block in blocks if block is not None]
    if not content and answer.finish in (None, "incomplete"):
        content = [{"type": "text", "text": ""}]
    return {
        "id": answer.response_id,
        "type": "message",
        "role": "assistant",
        "model": answer.model,
        "stop_reason": None,
        "stop_sequence": None,
        **envelope,
        "content": content,
        "usage": _usage_from(answer, envelope.get("usage")),
    }


def _block_from(part: Part, answer: Answer, calls: dict[str, ToolCall]) -> dict[str, Any] | None:
    data = dict(part.data)
    kind = data.get("type")
    if kind == "tool_use":
        call = next((calls[call_id] for call_id in part.calls if call_id in calls), None)
        if call is None:
            return None
        return {**data, "id": call.id, "name": call.name, "input": call.parsed()}
    if kind == "text":
        return {**data, "text": _joined(answer.text, part.text)}
    if kind == "thinking":
        thinking = _joined(answer.reasoning, part.reasoning)
        return {"signature": "", **data, "thinking": thinking}
    pieces = data.pop("partial_json", None)
    if pieces is not None:
        data["input"] = _input_from(pieces) or data.get("input") or {}
    return data


def _joined(text: str, ranges: Iterable[tuple[int, int]]) -> str:
    return "".join(text[start:end] for start, end in ranges)


def _input_from(pieces: Sequence[str]) -> dict[str, Any] | None:
    """Join the input of a tool that the provider runs; None if it was cut."""
    try:
        value = json.loads("".join(pieces))
    except (TypeError, ValueError):  # the provider may have a field of that name itself
        return None
    return value if isinstance(value, dict) else None


def _usage_from(answer: Answer, told: Any) -> dict[str, Any]:
    figures: dict[str, Any] = {"input_tokens": 0, "output_tokens": 0}
    if isinstance(told, dict):
        figures |= told
    if (usage := answer.usage) is not None:
        figures["input_tokens"] = usage.input_tokens
        figures["output_tokens"] = usage.output_tokens
        if usage.cached_input_tokens:
            figures["cache_read_input_tokens"] = usage.cached_input_tokens
    return figures

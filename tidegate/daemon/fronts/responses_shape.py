"""The forms of the Responses API: a response, its items and their parts, with all their fields.

Pure data for ``fronts/responses.py`` and ``fronts/responses_items.py``.
"""

from __future__ import annotations

from typing import Any

from tidegate.daemon.fronts.base import Opening
from tidegate.protocol.answers import Answer, Part
from tidegate.protocol.deltas import ENVELOPE
from tidegate.protocol.failures import FailureKind
from tidegate.protocol.native.responses import response_from


CALLS = ("function_call", "custom_tool_call")

_ECHOED = (
    "instructions",
    "max_output_tokens",
    "metadata",
    "previous_response_id",
    "prompt_cache_key",
    "reasoning",
    "safety_identifier",
    "service_tier",
    "store",
    "temperature",
    "text",
    "tool_choice",
    "top_logprobs",
    "top_p",
    "truncation",
    "user",
)
"""Fields of a request that its response repeats."""

_FAILED_CODES = {
    FailureKind.RATE_LIMITED: "rate_limit_exceeded",
    FailureKind.QUOTA_EXHAUSTED: "rate_limit_exceeded",
    FailureKind.BAD_REQUEST: "invalid_prompt",
    FailureKind.CONTEXT_OVERFLOW: "invalid_prompt",
    FailureKind.CONTENT_REFUSED: "invalid_prompt",
}
"""The closed list of codes that a failed response can have; any other failure is the server's."""

_NO_USAGE = {
    "input_tokens": 0,
    "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
    "output_tokens": 0,
    "output_tokens_details": {"reasoning_tokens": 0},
    "total_tokens": 0,
}


def begun_response(opening: Opening, request: dict[str, Any]) -> dict[str, Any]:
    """Return a response of which nothing has come yet: what the request says of it."""
    tools = request.get("tools")
    return {
        "id": opening.response_id,
        "object": "response",
        "created_at": opening.created,
        "status": "in_progress",
        "background": False,
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "max_output_tokens": None,
        "metadata": {},
        "model": opening.model,
        "output": [],
        "parallel_tool_calls": request.get("parallel_tool_calls") is not False,
        "previous_response_id": None,
        "temperature": None,
        "tool_choice": "auto",
        "tools": [_tool(each) for each in tools] if isinstance(tools, list) else [],
        "top_p": None,
        "usage": None,
        **{name: request[name] for name in _ECHOED if request.get(name) is not None},
    }


def _tool(tool: Any) -> Any:
    if isinstance(tool, dict) and tool.get("type") == "function":
        return {"parameters": None, "strict": None, **tool}
    return tool


def whole_response(answer: Answer, opening: Opening) -> dict[str, Any]:
    """Return a complete response, by the name under which it began."""
    native = response_from(answer)
    native["id"] = opening.response_id
    native["model"] = native["model"] or opening.model
    native["created_at"] = native["created_at"] or opening.created
    native.setdefault("usage", _NO_USAGE)
    return native


def failed_code(kind: FailureKind) -> str:
    """Return the code of a failed response."""
    return _FAILED_CODES.get(kind, "server_error")


def shown_parts(answer: Answer) -> list[Part]:
    """Return which part of an answer each item of its output is, in the output's order."""
    parts = [part for part in answer.parts if part.index != ENVELOPE]
    if all("output_index" in part.data for part in parts):
        parts.sort(key=lambda part: part.data["output_index"])
    calls = {call.id for call in answer.tool_calls}
    return [
        part
        for part in parts
        if part.data.get("item", {}).get("type") not in CALLS or calls.intersection(part.calls)
    ]


_PARTS: dict[str, dict[str, Any]] = {
    "output_text": {"text": "", "annotations": []},
    "refusal": {"refusal": ""},
    "reasoning_text": {"text": ""},
    "summary_text": {"text": ""},
}
"""The types of parts that are words, and what they have at least."""


def empty_part(kind: str) -> dict[str, Any]:
    """Return a part of an item before its first words."""
    return {"type": kind, **_PARTS.get(kind, _PARTS["output_text"])}


def word_field(kind: str) -> str:
    """Return the field in which a part has its words."""
    return "refusal" if kind == "refusal" else "text"


def filled(part: Any) -> Any:
    """Return a part as it was told, with no words if none were."""
    kind = part.get("type") if isinstance(part, dict) else None
    return {**_PARTS[kind], **part} if isinstance(kind, str) and kind in _PARTS else part


def empty_item(kind: str) -> dict[str, Any]:
    """Return what an item of some type has at least."""
    match kind:
        case "message":
            return {"role": "assistant", "status": "in_progress", "content": []}
        case "reasoning":
            return {"summary": []}
        case "function_call":
            return {"status": "in_progress", "arguments": ""}
        case "custom_tool_call":
            return {"input": ""}
        case _:
            return {}


def said_item(item_id: str, text: str) -> dict[str, Any]:
    """Return a message that is whole."""
    part = {**empty_part("output_text"), "text": text}
    known = {"id": item_id, "type": "message", **empty_item("message")}
    return {**known, "status": "completed", "content": [part]}

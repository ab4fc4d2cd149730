"""An answer as the response of Bedrock's Converse."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable
from typing import Any

import msgspec

from tidegate.protocol.answers import Answer, Part, ToolCall, Usage
from tidegate.protocol.deltas import ENVELOPE


_REASONS = {
    "stop": "end_turn",
    "tool_calls": "tool_use",
    "length": "max_tokens",
    "content_filter": "content_filtered",
    "error": "malformed_model_output",
}
"""What the wire would have said, for an answer of which it did not."""


def converse_response_from(answer: Answer) -> dict[str, Any]:
    """Return ``answer`` as Converse would have sent it; bytes are in base64, as in its JSON.

    Calls that cannot be trusted are left out, and ``stopReason`` is null where the wire said
    nothing.
    """
    calls = {call.id: call for call in answer.tool_calls}
    around: dict[str, Any] = {}
    content: list[dict[str, Any]] = []
    for part in answer.parts:
        if part.index == ENVELOPE:
            around = part.data
        else:
            content += _blocks_from(part, answer, calls)
    native = {
        "output": {"message": {"role": "assistant", "content": content}},
        "stopReason": _REASONS.get(answer.finish or ""),
        "metrics": {"latencyMs": _latency_ms(answer)},
        **around,
    }
    if "usage" not in native and answer.usage is not None:
        native["usage"] = _usage_from(answer.usage)
    return native


def _blocks_from(part: Part, answer: Answer, calls: dict[str, ToolCall]) -> list[dict[str, Any]]:
    """Return what one block of the stream is in the message; more than one only by a mishap."""
    data = part.data
    if "whole" in data:
        return [data["whole"]]
    blocks = [_text_from(_words(answer.text, part.text), data)] if part.text else []
    if part.reasoning or "signature" in data or "redacted" in data:
        blocks.append(
            {"reasoningContent": _reasoning_from(_words(answer.reasoning, part.reasoning), data)}
        )
    blocks += [_call_from(calls[each]) for each in part.calls if each in calls]
    if "toolUse" in data:
        blocks.append({"toolUse": {**data["toolUse"], "input": _input_from(data)}})
    if "toolResult" in data:
        blocks.append({"toolResult": data["toolResult"]})
    if "image" in data:
        blocks.append({"image": _image_from(data)})
    return blocks


def _text_from(text: str, data: dict[str, Any]) -> dict[str, Any]:
    if not data.get("citations"):
        return {"text": text}
    return {"citationsContent": {"content": [{"text": text}], "citations": data["citations"]}}


def _reasoning_from(text: str, data: dict[str, Any]) -> dict[str, Any]:
    if "redacted" in data:
        return {"redactedContent": _joined(data["redacted"])}
    signature = {"signature": "".join(data["signature"])} if "signature" in data else {}
    return {"reasoningText": {"text": text, **signature}}


def _call_from(call: ToolCall) -> dict[str, Any]:
    return {"toolUse": {"toolUseId": call.id, "name": call.name, "input": call.parsed()}}


def _input_from(data: dict[str, Any]) -> Any:
    text = "".join(data.get("input", ()))
    try:
        return msgspec.json.decode(text) if text else {}
    except msgspec.DecodeError:
        return text


def _image_from(data: dict[str, Any]) -> dict[str, Any]:
    image = dict(data["image"])
    if "bytes" in data:
        source = image.get("source")
        rest = source if isinstance(source, dict) else {}
        image["source"] = {**rest, "bytes": _joined(data["bytes"])}
    return image


def _joined(pieces: list[str]) -> str:
    """Join pieces of bytes, each of which is in base64 by itself."""
    if len(pieces) == 1:
        return pieces[0]
    try:
        return base64.b64encode(b"".join(map(base64.b64decode, pieces))).decode()
    except (binascii.Error, ValueError):
        return "".join(pieces)


def _words(text: str, ranges: Iterable[tuple[int, int]]) -> str:
    return "".join(text[begin:end] for begin, end in ranges)


def _latency_ms(answer: Answer) -> int:
    """Return what the attempt took, should the wire not have told."""
    ended_s = answer.attempts[-1].ended_s if answer.attempts else None
    return round((ended_s or 0.0) * 1000)


def _usage_from(usage: Usage) -> dict[str, Any]:
    return {
        "inputTokens": usage.input_tokens,
        "outputTokens": usage.output_tokens,
        "totalTokens": usage.input_tokens + usage.output_tokens,
        "cacheReadInputTokens": usage.cached_input_tokens,
    }

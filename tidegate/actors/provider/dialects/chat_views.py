"""What is read of a chat completion, streamed or whole, and the meaning of its odder values.

The structs name only the fields that are used. Where servers disagree about a type the field is
``Any`` and the functions here read it; what they cannot read is ``Unusable``. No struct can be part
of a cycle, so the collector need not look at them: there is one set for each delta.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from tidegate.protocol.answers import Finish, Usage
from tidegate.protocol.deltas import Reasoning, Refusal, Text
from tidegate.protocol.failures import FailureKind
from tidegate.wire.sse import is_json


class Unusable(ValueError):
    """Valid JSON whose shape makes no sense on this wire; never leaves the decoder."""


class FunctionView(msgspec.Struct, gc=False):
    """A function's name and a piece of its arguments: a JSON string, or an object as such."""

    name: str | None = None
    arguments: msgspec.Raw = msgspec.Raw(b"null")


class ToolView(msgspec.Struct, gc=False):
    """A piece of a tool call."""

    index: int | str | None = None
    id: str | int | None = None
    function: FunctionView | None = None
    extra_content: Any = None


class DeltaView(msgspec.Struct, gc=False):
    """A piece of a choice, or a whole message."""

    content: Any = None
    reasoning_content: Any = None
    reasoning: Any = None
    reasoning_details: Any = None
    refusal: Any = None
    tool_calls: list[ToolView | None] | ToolView | None = None
    function_call: FunctionView | None = None
    annotations: Any = None
    extra_content: Any = None


class ChoiceView(msgspec.Struct, gc=False):
    """One choice of a chunk (``delta``) or of a whole completion (``message``)."""

    index: int | None = None
    delta: DeltaView | None = None
    message: DeltaView | None = None
    finish_reason: str | None = None
    error: Any = None
    usage: Any = None
    logprobs: Any = None


class ChunkView(msgspec.Struct, gc=False):
    """One frame's payload, or the whole body of an answer that is not streamed."""

    choices: list[ChoiceView | None] | None = None
    id: Any = None
    model: Any = None
    created: Any = None
    usage: Any = None
    error: Any = None
    system_fingerprint: Any = None
    service_tier: Any = None
    provider: Any = None
    citations: Any = None
    prompt_filter_results: Any = None
    timings: Any = None
    x_groq: Any = None


# It looks at the structure only, and not into the strings.
_structure = msgspec.json.Decoder(msgspec.Raw)
_chunk = msgspec.json.Decoder(ChunkView)
chunk_from = _chunk.decode
"""Decode a payload; raises ``msgspec.DecodeError`` or ``RecursionError``."""


def value_from(data: bytes) -> Any:
    """Decode any JSON, as widely as RFC 8259 allows.

    A lone surrogate, which no UTF-8 can carry on, becomes U+FFFD.

    Raises:
        ValueError, RecursionError: it is no JSON.
    """
    text = data.decode("utf-8")
    value = json.loads(text)
    if "\\ud" in text or "\\uD" in text:
        plain = json.dumps(value, ensure_ascii=False)
        return json.loads(plain.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace"))
    return value


def values_from(fields: Mapping[str, msgspec.Raw]) -> dict[str, Any]:
    """Return what is passed on as it is, without the fields that nobody could read.

    What is raw has the structure of JSON, and no more than that.
    """
    values = {}
    for name, raw in fields.items():
        try:
            values[name] = value_from(bytes(raw))
        except (ValueError, RecursionError):
            continue
    return values


def chunk_from_value(value: Any) -> ChunkView:
    """Read a payload that ``chunk_from`` would not.

    Raises:
        Unusable: the shape is wrong.
    """
    try:
        return chunk_from(json.dumps(value).encode())
    except (msgspec.DecodeError, RecursionError) as error:
        raise Unusable(str(error)) from error


def of_groq(chunk: ChunkView, name: str) -> Any:
    """Return what Groq has put into a place of its own, None if it is not there."""
    return chunk.x_groq.get(name) if isinstance(chunk.x_groq, dict) else None


def calls_of(delta: DeltaView) -> list[ToolView | None]:
    """Return the pieces of calls, which some servers do not put into a list if there is one.

    Raises:
        Unusable: it is an object, and no call.
    """
    calls = delta.tool_calls
    if not isinstance(calls, ToolView):
        return calls or []
    if calls.id is None and calls.function is None:
        raise Unusable("tool_calls is an object, and no call")
    return [calls]


def is_cut(document: bytes) -> bool:
    """Say whether ``document`` is no JSON, but would be if it went on."""
    try:
        _structure.decode(document)
    except msgspec.DecodeError as error:
        # A lone surrogate is reported in the same words.
        return "truncated" in str(error) and not is_json(document)
    except RecursionError:
        return False
    return False


def content_deltas(content: Any, choice: int) -> Iterator[Text | Reasoning | Refusal]:
    """Read content that is not plain text: one block, or a list of blocks.

    Raises:
        Unusable: it is neither.
    """
    for block in content if isinstance(content, list) else [content]:
        if isinstance(block, str):
            delta: Text | Reasoning | Refusal = Text(block, choice)
        elif not isinstance(block, dict):
            raise Unusable(f"content is a {type(block).__name__}")
        elif block.get("type") in ("thinking", "reasoning"):
            inner = block.get("thinking") or block.get("reasoning") or block.get("text")
            delta = Reasoning(joined_text(inner), choice)
        elif block.get("type") == "refusal":
            delta = Refusal(joined_text(block.get("refusal")), choice)
        else:
            # Pictures and sound have no text, and no place in an answer.
            delta = Text(joined_text(block.get("text")), choice)
        if delta.text:
            yield delta


def joined_text(value: Any) -> str:
    """Join the text of a string, a block or a list of blocks; what has no text adds none."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "".join(map(joined_text, value))
    if isinstance(value, dict):
        return joined_text(value.get("text") or value.get("summary") or value.get("content"))
    return ""


def usage_from(value: Any) -> Usage | None:
    """Read a usage object; None for anything that counts nothing."""
    if not isinstance(value, dict):
        return None
    asked = _part(value, "prompt_tokens_details") or _part(value, "input_tokens_details")
    told = _part(value, "completion_tokens_details") or _part(value, "output_tokens_details")
    counts = [
        _count(value, "prompt_tokens", "input_tokens"),
        _count(value, "completion_tokens", "output_tokens"),
        _count({**value, **asked}, "cached_tokens", "prompt_cache_hit_tokens"),
        _count({**value, **told}, "reasoning_tokens"),
    ]
    if all(count is None for count in counts):
        return None
    taken, given, cached, reasoned = (count or 0 for count in counts)
    return Usage(
        input_tokens=taken,
        output_tokens=given,
        cached_input_tokens=cached,
        reasoning_tokens=reasoned,
    )


def _part(value: dict[str, Any], key: str) -> dict[str, Any]:
    part = value.get(key)
    return part if isinstance(part, dict) else {}


def _count(value: dict[str, Any], *keys: str) -> int | None:
    for key in keys:
        count = count_from(value.get(key))
        if count is not None:
            return count
    return None


def count_from(value: Any) -> int | None:
    """Return a number that counts something; None for anything that can be none.

    It has to go through MessagePack and through other people's JSON.
    """
    if isinstance(value, int | float) and -_COUNT_MAX <= value <= _COUNT_MAX:
        return max(0, int(value))
    return None


_COUNT_MAX = (1 << 53) - 1
"""The largest that every reader of JSON takes as it is; infinity and NaN are not below it."""


_FINISHES: dict[str, Finish] = {
    "tool_calls": "tool_calls",
    "tool_call": "tool_calls",
    "tool_use": "tool_calls",
    "function_call": "tool_calls",
    "length": "length",
    "max_tokens": "length",
    "max_output_tokens": "length",
    "model_length": "length",
    "content_filter": "content_filter",
    "content_filtered": "content_filter",
    "guardrail_intervened": "content_filter",
    "prohibited_content": "content_filter",
    "safety": "content_filter",
    "sensitive": "content_filter",
}
_BROKEN = {
    "error": FailureKind.SERVER_ERROR,
    "error_finish": FailureKind.SERVER_ERROR,
    "abort": FailureKind.SERVER_ERROR,
    "network_error": FailureKind.SERVER_ERROR,
    "function_call_filter": FailureKind.MALFORMED_TOOL_CALL,
    "insufficient_system_resource": FailureKind.OVERLOADED,
}
_NO_REASON = ("", "null", "none")


def finish_from(reason: str | None) -> Finish | FailureKind | None:
    """Say what a finish reason means.

    A reason that nobody knows is a normal stop. Some reasons say that the answer broke off: the
    kind of failure. Some servers write an empty reason in each chunk: None. Gemini's says more
    behind a colon.
    """
    reason = (reason or "").partition(":")[0].strip().lower()
    if reason in _NO_REASON:
        return None
    return _BROKEN.get(reason) or _FINISHES.get(reason, "stop")

"""An answer as a ``chat.completion``."""

from __future__ import annotations

from typing import Any

from tidegate.protocol.answers import Answer, Choice, ToolCall, Usage
from tidegate.protocol.deltas import ENVELOPE


def chat_completion_from(answer: Answer) -> dict[str, Any]:
    """Return ``answer`` as a complete ``chat.completion``.

    ``finish_reason`` is what the wire said, and null where it said nothing. Calls that cannot be
    trusted are left out. Reasoning is in ``reasoning_content``, as most servers have it. What the
    server sent beside the words (log probabilities, annotations, sealed reasoning, what it adds to
    a call, its fingerprint and its own figures) is there as it came.
    """
    around = next((dict(part.data) for part in answer.parts if part.index == ENVELOPE), {})
    extras, told = around.pop("choices", {}), around.pop("usage", {})
    native: dict[str, Any] = {
        "id": answer.response_id,
        "object": "chat.completion",
        "created": answer.created,
        "model": answer.model,
        "choices": [
            _choice_from(choice, extras.get(str(choice.index), {}))
            for choice in answer.choices or (_only(answer),)
        ],
        **around,
    }
    if answer.usage is not None:
        native["usage"] = _usage_from(answer.usage) | told
    return native


def _only(answer: Answer) -> Choice:
    return Choice(
        text=answer.text,
        reasoning=answer.reasoning,
        refusal=answer.refusal,
        tool_calls=answer.tool_calls,
        finish=None if answer.finish == "incomplete" else answer.finish,
    )


def _choice_from(choice: Choice, extras: dict[str, Any]) -> dict[str, Any]:
    message: dict[str, Any] = {
        "role": "assistant",
        "content": choice.text or None,
        "refusal": choice.refusal or None,
    }
    if choice.reasoning:
        message["reasoning_content"] = choice.reasoning
    if choice.tool_calls:
        calls = extras.get("calls", {})
        message["tool_calls"] = [
            _call_from(call) | calls.get(call.id, {}) for call in choice.tool_calls
        ]
    for name in ("annotations", "extra_content"):
        if name in extras:
            message[name] = extras[name]
    if details := extras.get("reasoning_details"):
        message["reasoning_details"] = [_detail_from(each, choice.reasoning) for each in details]
    return {
        "index": choice.index,
        "message": message,
        "finish_reason": choice.wire_finish or choice.finish,
        "logprobs": extras.get("logprobs"),
    }


def _detail_from(detail: dict[str, Any], reasoning: str) -> dict[str, Any]:
    since, until = detail["span"]
    words = {detail["field"]: reasoning[since:until]} if detail["field"] else {}
    return {**detail["about"], **words}


def _call_from(call: ToolCall) -> dict[str, Any]:
    return {
        "id": call.id,
        "type": "function",
        "function": {"name": call.name, "arguments": call.arguments},
    }


def _usage_from(usage: Usage) -> dict[str, Any]:
    return {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.input_tokens + usage.output_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cached_input_tokens},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
    }

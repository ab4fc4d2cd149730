"""What a test has to know of a wire to ask the same thing on each of them."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import anthropic.types
import openai.types.chat
import openai.types.responses

import tidegate as tg
from tests.e2e.converse_checks import valid as valid_converse


CITY = {"type": "object", "properties": {"city": {"type": "string"}}}
WEATHER = {"name": "get_weather", "description": "Get weather for a city"}


@dataclass(frozen=True)
class Wire:
    """How one wire says it.

    Attributes:
        name: as tidegate has it.
        endpoint: makes one of a server's address, without the version, and headers.
        prompt: makes a payload of the user's words and a limit of tokens.
        tool: the payload's fields that offer the tool.
        answered: makes the payload that follows an answer with calls, of the payload before, the
            answer's native form and what the tool says.
        valid: checks a native form with the official SDK's own type.
        kinds: names the blocks of a native form.
    """

    name: str
    endpoint: Callable[..., tg.Endpoint]
    prompt: Callable[[str, int], dict[str, Any]]
    tool: dict[str, Any]
    answered: Callable[[dict, dict, str], dict[str, Any]]
    valid: Callable[[dict], object]
    kinds: Callable[[dict], list[str]]

    def request(self, base, words, *, limit=60, tools=False, headers=None, stream=True, **policy):
        """Return a request of an impatient caller; other keywords are fields of its policy."""
        payload = self.prompt(words, limit) | (self.tool if tools else {})
        patience = tg.Policy(**{"retries": 1, "backoff_s": (0.01,), "backoff_jitter": 0.0} | policy)
        endpoint = self.endpoint(base, headers or {})
        return tg.Request(endpoint, payload, policy=patience, stream=stream)

    def after_tool(self, request, answer, result):
        """Return the request that follows ``answer``: what it says, and what the tool says."""
        payload = self.answered(request.payload, answer.native(), result)
        return tg.Request(request.endpoint, payload, policy=request.policy)


def _spoken(words):
    return [{"role": "user", "content": words}]


def _chat_answered(payload, native, result):
    message = native["choices"][0]["message"]
    results = [
        {"role": "tool", "tool_call_id": call["id"], "content": result}
        for call in message["tool_calls"]
    ]
    return payload | {"messages": [*payload["messages"], message, *results]}


def _chat_kinds(native):
    message = native["choices"][0]["message"]
    reasoning = ["reasoning"] * bool(message.get("reasoning_content") or message.get("reasoning"))
    return (
        reasoning
        + ["text"] * bool(message["content"])
        + ["call"] * len(message.get("tool_calls") or ())
    )


def _responses_answered(payload, native, result):
    results = [
        {"type": "function_call_output", "call_id": item["call_id"], "output": result}
        for item in native["output"]
        if item["type"] == "function_call"
    ]
    return payload | {"input": [*payload["input"], *native["output"], *results]}


def _messages_answered(payload, native, result):
    results = [
        {"type": "tool_result", "tool_use_id": block["id"], "content": result}
        for block in native["content"]
        if block["type"] == "tool_use"
    ]
    said = {"role": "assistant", "content": native["content"]}
    told = {"role": "user", "content": results}
    return payload | {"messages": [*payload["messages"], said, told]}


def _converse_answered(payload, native, result):
    message = native["output"]["message"]
    results = [
        {"toolResult": {"toolUseId": use["toolUseId"], "content": [{"text": result}]}}
        for block in message["content"]
        if (use := block.get("toolUse"))
    ]
    told = {"role": "user", "content": results}
    return payload | {"messages": [*payload["messages"], message, told]}


_NAMES = {
    "message": "text",
    "function_call": "call",
    "thinking": "reasoning",
    "tool_use": "call",
    "toolUse": "call",
    "reasoningContent": "reasoning",
}


def _named(kinds):
    return [_NAMES.get(kind, kind) for kind in kinds]


CHAT = Wire(
    name="chat",
    endpoint=lambda base, headers: tg.Endpoint.chat(f"{base}/v1", "key", headers=headers),
    prompt=lambda words, limit: {
        "model": "smollm2",
        "messages": _spoken(words),
        "max_tokens": limit,
        "temperature": 0,
    },
    tool={"tools": [{"type": "function", "function": WEATHER | {"parameters": CITY}}]},
    answered=_chat_answered,
    valid=partial(openai.types.chat.ChatCompletion.model_validate, strict=True),
    kinds=_chat_kinds,
)
RESPONSES = Wire(
    name="responses",
    endpoint=lambda base, headers: tg.Endpoint.responses(f"{base}/v1", "key", headers=headers),
    prompt=lambda words, limit: {
        "model": "smollm2",
        "input": _spoken(words),
        "max_output_tokens": limit,
        "temperature": 0,
    },
    tool={"tools": [{"type": "function", **WEATHER, "parameters": CITY, "strict": False}]},
    answered=_responses_answered,
    valid=partial(openai.types.responses.Response.model_validate, strict=True),
    kinds=lambda native: _named(item["type"] for item in native["output"]),
)
MESSAGES = Wire(
    name="messages",
    endpoint=lambda base, headers: tg.Endpoint.messages(base, "key", headers=headers),
    prompt=lambda words, limit: {
        "model": "smollm2",
        "messages": _spoken(words),
        "max_tokens": limit,
        "temperature": 0,
    },
    tool={"tools": [WEATHER | {"input_schema": CITY}]},
    answered=_messages_answered,
    valid=partial(anthropic.types.Message.model_validate, strict=True),
    kinds=lambda native: _named(block["type"] for block in native["content"]),
)
CONVERSE = Wire(
    name="converse",
    endpoint=lambda base, headers: tg.Endpoint.converse(
        "us-east-1", base, api_key="key", headers=headers
    ),
    prompt=lambda words, limit: {
        "modelId": "smollm2",
        "messages": [{"role": "user", "content": [{"text": words}]}],
        "inferenceConfig": {"maxTokens": limit, "temperature": 0},
    },
    tool={"toolConfig": {"tools": [{"toolSpec": WEATHER | {"inputSchema": {"json": CITY}}}]}},
    answered=_converse_answered,
    valid=valid_converse,
    kinds=lambda native: _named(
        kind for block in native["output"]["message"]["content"] for kind in block
    ),
)
WIRES = (CHAT, RESPONSES, MESSAGES, CONVERSE)

"""The bodies to begin with: the golden ones of the tests, and what else the wires may carry."""

import json
from collections.abc import Iterable

from tests.unit.actors.provider import responses_golden as golden
from tests.unit.actors.provider import test_chat_bodies as chat
from tests.unit.actors.provider import test_converse_bodies as converse
from tests.unit.actors.provider import test_messages_bodies as messages
from tests.unit.wire import test_eventstream as eventstream
from tidegate.lab import chat as chat_lab
from tidegate.lab import converse as converse_lab
from tidegate.lab import messages as messages_lab
from tidegate.lab.script import Send


ODD_EVENTS = [
    b"\xef\xbb\xbfdata: a\n\ndata:b\r\rdata\r\ndata: c\r\n\r\nevent:x\nid: 1\nretry: 2\n: p\n\n",
    b"event: e\ndata: 1\n\nevent: f\ndata: 2\n\nevent: g\ndata: \n\nevent:\n\ndata: {",
    b'data: {"a":\ndata:  1}',
]
HEADERS = eventstream.framed(eventstream.HEADERS)
_DETAILS = [
    {"type": "reasoning.text", "text": "hm", "signature": "c2ln", "index": 0},
    {"type": "reasoning.encrypted", "data": "b3Bh", "index": 1, "id": "r1"},
]
_CITED = {"type": "url_citation", "url_citation": {"url": "https://a", "title": "A"}}
_CHAT = [
    chat.chunk(chat.choice({"reasoning_details": _DETAILS, "reasoning": "hm"})),
    chat.chunk(chat.choice({"content": [{"type": "thinking", "thinking": [{"text": "m"}]}]})),
    chat.chunk(chat.choice({"content": [{"type": "text", "text": "four"}], "refusal": None})),
    chat.chunk(chat.choice({"annotations": [_CITED], "extra_content": {"google": {"x": 1}}})),
    chat.chunk(chat.choice({"function_call": {"name": "read", "arguments": '{"a":1}'}})),
    chat.chunk(chat.choice(chat.call(id="a", name="read", arguments={"path": "é"}))),
    chat.chunk({**chat.choice({}, ""), "logprobs": {"content": [{"token": "a"}]}}),
    chat.chunk(x_groq={"id": "req", "usage": chat.USAGE, "error": None}, citations=["a"]),
    chat.chunk(
        {"index": 0, "message": {"role": "assistant", "content": "x"}, "finish_reason": "stop"},
        system_fingerprint="fp",
        service_tier="default",
        provider="p",
        prompt_filter_results=[{"prompt_index": 0}],
        timings={"predicted_ms": 1.5},
        usage=chat.USAGE | {"prompt_tokens_details": {"cached_tokens": 4}},
    ),
    b'event: error\ndata: {"error":{"message":"slow down","code":429,"type":"rate_limit"}}\n\n',
]
_CUT = {"reason": "max_output_tokens"}
_BUSY = {"code": "rate_limit_exceeded", "message": "slow down"}
_RESPONSES = [
    golden.event("output_item.added", output_index=0, item=golden.message(status="in_progress")),
    golden.event("reasoning_text.delta", item_id="rs_1", output_index=0, delta="h"),
    golden.event("refusal.delta", item_id="msg_1", output_index=1, content_index=1, delta="No."),
    golden.event("refusal.done", item_id="msg_1", output_index=1, content_index=1, refusal="No."),
    golden.event("custom_tool_call_input.delta", item_id="ct_1", output_index=2, delta="ls"),
    golden.event("custom_tool_call_input.done", item_id="ct_1", output_index=2, input="ls -l"),
    golden.done({"id": "ct_1", "type": "custom_tool_call", "call_id": "c", "input": "ls"}, 2),
    golden.done({"id": "ws_1", "type": "web_search_call", "status": "completed"}, 3),
    golden.event("incomplete", response=golden.response("incomplete", incomplete_details=_CUT)),
    golden.event("failed", response=golden.response("failed", error=_BUSY)),
    golden.frame({"type": "error", "code": "server_error", "message": "m", "param": None}, "error"),
]
_MESSAGES = [
    messages_lab.block_start(0, "server_tool_use", id="s", name="web_search", input={"q": 1}),
    messages_lab.block_start(1, "tool_use", id="t", name="read", input={"path": "é"}),
    messages_lab.block_start(2, "text", text="a", citations=[messages.CITATION]),
    messages_lab.block_start(3, "thinking", thinking="a", signature="c2ln"),
    messages_lab.stop_reason("refusal", 3, cache_read_input_tokens=4),
    messages_lab.error("overloaded_error", "Overloaded"),
]
_CONVERSE = [
    converse_lab.delta({"reasoningContent": {"redactedContent": "b3Bh"}}),
    converse_lab.delta({"citation": {"title": "a", "location": {"web": {"url": "a"}}}}),
    converse_lab.delta({"toolResult": [{"text": "a"}]}, block=1),
    converse_lab.delta({"image": {"source": {"bytes": "b3Bh"}}}, block=2),
    converse_lab.event("contentBlockStart", {"contentBlockIndex": 2, "start": {"image": {}}}),
    converse_lab.event(
        "messageStop", {"stopReason": "max_tokens", "additionalModelResponseFields": {"a": 1}}
    ),
    converse_lab.exception("throttlingException", "slow down"),
]


def chat_streams() -> list[bytes]:
    """Return streams of chat completions, and one of all that else may come."""
    return [b"".join(body) for body in [*chat.BODIES.values(), _CHAT]]


def chat_documents() -> list[bytes]:
    """Return whole completions."""
    call = {"id": "a", "type": "function", "function": {"name": "read", "arguments": "{}"}}
    message = {"content": "four", "reasoning": "hm", "tool_calls": [call], "refusal": None}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
    fields = {"id": "c1", "model": "m1", "created": 5, "usage": chat.USAGE}
    return _documents(
        chat_lab.completion("four"), {"choices": [choice], **fields}, {"error": {"message": "no"}}
    )


def responses_streams() -> list[bytes]:
    """Return streams of responses."""
    return [b"".join(golden.GOLDEN), b"".join(_RESPONSES)]


def responses_documents() -> list[bytes]:
    """Return whole responses."""
    return _documents(golden.response("completed", golden.ITEMS, usage=golden.FIGURES))


def messages_streams() -> list[bytes]:
    """Return streams of messages."""
    return [*map(messages.bytes_of, messages.BODIES.values()), messages.bytes_of(_MESSAGES)]


def messages_documents() -> list[bytes]:
    """Return whole messages."""
    call = {"type": "tool_use", "id": "t", "name": "read", "input": {"path": "é"}}
    thought = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
    whole = messages_lab.message("four", reason="tool_use")
    return _documents(whole | {"content": [thought, *whole["content"], call]})


def converse_streams() -> list[bytes]:
    """Return event streams of Converse."""
    return [_bytes_of(converse.BODY), _bytes_of(_CONVERSE)]


def converse_documents() -> list[bytes]:
    """Return whole answers of Converse."""
    thought = {"reasoningText": {"text": "Hm", "signature": "c2ln"}}
    call = {"toolUseId": "t1", "name": "read", "input": {"path": "é"}}
    blocks = ({"reasoningContent": thought}, {"text": "four"}, {"toolUse": call})
    return _documents(
        converse_lab.completion(*blocks, reason="tool_use") | converse.METADATA,
        {"message": "slow down", "__type": "a#ThrottlingException"},
    )


def _documents(*values: object) -> list[bytes]:
    return [json.dumps(value, ensure_ascii=False).encode() for value in values]


def _bytes_of(steps: Iterable[Send]) -> bytes:
    return b"".join(step.data for step in steps)

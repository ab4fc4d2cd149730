"""Streams as providers send them, for each wire, with what the client asks besides."""

import json

from tests.unit.actors.provider import responses_golden as responses
from tests.unit.actors.provider import test_chat_bodies as chat
from tidegate.lab import Answer, End, raw
from tidegate.lab import messages as anthropic


def body(*frames):
    """Make the answer of a whole stream, given as bytes or as steps of the lab."""
    data = b"".join(each if isinstance(each, bytes) else each.data for each in frames)
    return Answer([raw(data), End.KEEPALIVE])


DONE = b"data: [DONE]\n\n"
CITED = {
    "type": "url_citation",
    "url_citation": {"url": "https://a", "title": "A", "start_index": 0, "end_index": 1},
}


def _likely(token):
    return {"token": token, "logprob": -0.5, "bytes": [97], "top_logprobs": []}


def _thought(words, index=0, **more):
    return {"type": "reasoning.text", "text": words, "index": index, **more}


def _call(*arguments, finish="tool_calls", **named):
    return body(
        *(chat.chunk(chat.choice(chat.call(**each))) for each in ({**named}, *arguments)),
        chat.chunk(chat.choice({}, finish)),
        DONE,
    )


CHAT = {
    **{
        name: (body(*frames), {"n": 2} if name == "two choices" else {})
        for name, frames in chat.BODIES.items()
    },
    "usage": (body(*chat.BODIES["text"]), {"stream_options": {"include_usage": True}}),
    "call that comes whole": (
        _call({"id": "a", "name": "read", "arguments": '{"path":"é"}'}, arguments=""),
        {},
    ),
    "call without arguments": (_call(id="a", name="list"), {}),
    "name in pieces": (
        _call({"name": "_file"}, {"arguments": "{"}, {"arguments": "}"}, id="a", name="read"),
        {},
    ),
    "call without an id": (_call({"arguments": '{"a":'}, {"arguments": "1}"}, name="read"), {}),
    "id behind the arguments": (_call({"arguments": "{}"}, {"id": "late"}, name="read"), {}),
    "call that is said to be a stop": (
        _call({"arguments": "{}"}, id="a", name="read", finish="stop"),
        {},
    ),
    "text behind a call": (
        body(
            chat.chunk(chat.choice(chat.call(id="a", name="list"))),
            chat.chunk(chat.choice({"content": "done"})),
            chat.chunk(chat.choice({}, "stop")),
            DONE,
        ),
        {},
    ),
    "probabilities": (
        body(
            chat.chunk({**chat.choice({"content": "a"}), "logprobs": {"content": [_likely("a")]}}),
            chat.chunk({**chat.choice({"content": "b"}), "logprobs": {"content": [_likely("b")]}}),
            chat.chunk(chat.choice({}, "stop")),
            DONE,
        ),
        {"logprobs": True},
    ),
    "what stands beside the words": (
        body(
            chat.chunk(
                chat.choice({"content": "a"}), system_fingerprint="fp", service_tier="default"
            ),
            chat.chunk(chat.choice({"annotations": [CITED]})),
            chat.chunk(chat.choice({"content": "b", "annotations": [CITED]})),
            chat.chunk(chat.choice({}, "stop"), system_fingerprint="fp", citations=["https://a"]),
            DONE,
        ),
        {},
    ),
    "call with a signature": (
        body(
            chat.chunk(
                chat.choice(
                    chat.call(
                        id="a",
                        name="read",
                        arguments="{}",
                        extra_content={"google": {"thought_signature": "c2ln"}},
                    )
                )
            ),
            chat.chunk(chat.choice({}, "tool_calls")),
            DONE,
        ),
        {},
    ),
    "sealed reasoning": (
        body(
            chat.chunk(chat.choice({"reasoning": "h", "reasoning_details": [_thought("h")]})),
            chat.chunk(
                chat.choice(
                    {"reasoning": "m", "reasoning_details": [_thought("m", signature="c2ln")]}
                )
            ),
            chat.chunk(chat.choice({"content": "four"})),
            chat.chunk(chat.choice({}, "stop")),
            DONE,
        ),
        {},
    ),
}

CITATION = {
    "type": "char_location",
    "cited_text": "six",
    "document_index": 0,
    "document_title": None,
    "start_char_index": 0,
    "end_char_index": 3,
}
MESSAGES = {
    "text": (
        body(
            anthropic.start(tokens=(12, 1), cache_read_input_tokens=4),
            anthropic.text_start(),
            anthropic.ping(),
            anthropic.text("Grüße, "),
            anthropic.text("Welt 🌊"),
            anthropic.block_stop(0),
            anthropic.stop_reason("stop_sequence", 7, sequence="🌊"),
            anthropic.stop(),
        ),
        {},
    ),
    "all there is": (
        body(
            anthropic.start(cache_creation_input_tokens=9, service_tier="standard"),
            anthropic.thinking_start(0),
            anthropic.thinking("hm", 0),
            anthropic.thinking("m", 0),
            anthropic.signature("c2ln", 0),
            anthropic.block_stop(0),
            anthropic.block_start(1, "redacted_thinking", data="b3BhcXVl"),
            anthropic.block_stop(1),
            anthropic.tool_start(2, "srv_1", "web_search", "server_tool_use"),
            anthropic.tool_input('{"query":', 2),
            anthropic.tool_input('"tides"}', 2),
            anthropic.block_stop(2),
            anthropic.block_start(3, "web_search_tool_result", tool_use_id="srv_1", content=[]),
            anthropic.block_stop(3),
            anthropic.text_start(4),
            anthropic.text("High at ", 4),
            anthropic.text("six.", 4),
            anthropic.block_delta(4, "citations_delta", citation=CITATION),
            anthropic.block_stop(4),
            *anthropic.call(5, "toolu_1", "read", "", '{"path":"é', '"}'),
            *anthropic.call(6, "toolu_2", "list"),
            anthropic.stop_reason(
                "tool_use",
                31,
                input_tokens=20,
                server_tool_use={"web_search_requests": 1, "web_fetch_requests": 0},
            ),
            anthropic.stop(),
        ),
        {},
    ),
    "no end mark": (
        body(anthropic.start(), *anthropic.words("four"), anthropic.stop_reason("max_tokens", 2)),
        {},
    ),
    "two calls at a time": (
        body(
            anthropic.start(),
            anthropic.tool_start(0, "toolu_1", "read"),
            anthropic.tool_input('{"path":', 0),
            anthropic.tool_start(1, "toolu_2", "read"),
            anthropic.tool_input('{"path":', 1),
            anthropic.tool_input('"a"}', 0),
            anthropic.tool_input('"b"}', 1),
            anthropic.block_stop(0),
            anthropic.block_stop(1),
            anthropic.stop_reason("tool_use"),
            anthropic.stop(),
        ),
        {},
    ),
    "refusal": (
        body(
            anthropic.start(),
            *anthropic.words("I will"),
            anthropic.stop_reason("refusal", 3),
            anthropic.stop(),
        ),
        {},
    ),
    "nothing": (body(anthropic.start(), anthropic.stop_reason(), anthropic.stop()), {}),
}

SEARCH = {
    "id": "ws_1",
    "type": "web_search_call",
    "status": "completed",
    "action": {"type": "search", "query": "tides"},
}
ANNOTATION = {
    "type": "url_citation",
    "url": "https://a",
    "title": "A",
    "start_index": 0,
    "end_index": 1,
}


def _annotated(text):
    item = responses.message(text)
    item["content"][0]["annotations"] = [ANNOTATION]
    return item


def _custom(text, status="completed"):
    known = {"id": "ct_1", "type": "custom_tool_call", "call_id": "call_9", "name": "shell"}
    return {**known, "status": status, "input": text}


def _said(name, delta, **where):
    return responses.event(f"{name}.delta", **where, delta=delta)


_REFUSED = {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed"}
_REFUSED["content"] = [{"type": "refusal", "refusal": "I will not."}]
_REASONED = responses.thought(
    content=[{"type": "reasoning_text", "text": "hm"}], encrypted_content="b3Bh"
)
CREATED = responses.event(
    "created", response={"id": "resp_1", "created_at": 1764500000, "model": "gpt-x"}
)

RESPONSES = {
    "all there is": (body(*responses.GOLDEN), {}),
    "refusal": (
        body(
            CREATED,
            responses.added(responses.message(status="in_progress"), 0),
            _said("refusal", "I will ", item_id="msg_1", output_index=0, content_index=0),
            _said("refusal", "not.", item_id="msg_1", output_index=0, content_index=0),
            responses.done(_REFUSED, 0),
            responses.completed(_REFUSED),
        ),
        {},
    ),
    "search, and words with their source": (
        body(
            CREATED,
            responses.added({**SEARCH, "status": "in_progress"}, 0),
            responses.done(SEARCH, 0),
            responses.added(responses.message(status="in_progress"), 1),
            responses.text("High at six."),
            responses.done(_annotated("High at six."), 1),
            responses.completed(SEARCH, _annotated("High at six.")),
        ),
        {"tools": [{"type": "web_search"}]},
    ),
    "custom call": (
        body(
            CREATED,
            responses.added(_custom("", "in_progress"), 0),
            _said("custom_tool_call_input", 'echo "', item_id="ct_1", output_index=0),
            _said("custom_tool_call_input", '\\n"', item_id="ct_1", output_index=0),
            responses.done(_custom('echo "\\n"'), 0),
            responses.completed(_custom('echo "\\n"')),
        ),
        {"tools": [{"type": "custom", "name": "shell"}]},
    ),
    "reasoning itself, sealed": (
        body(
            CREATED,
            responses.added(responses.thought(), 0),
            _said("reasoning_text", "h", item_id="rs_1", output_index=0, content_index=0),
            _said("reasoning_text", "m", item_id="rs_1", output_index=0, content_index=0),
            responses.done(_REASONED, 0),
            responses.added(responses.message(status="in_progress"), 1),
            responses.text("four"),
            responses.done(responses.message("four"), 1),
            responses.completed(_REASONED, responses.message("four")),
        ),
        {},
    ),
    "commentary": (
        body(
            CREATED,
            responses.added(
                responses.message(item_id="c_1", status="in_progress", phase="commentary"), 0
            ),
            responses.text("Let me see.", 0, item_id="c_1"),
            responses.done(responses.message("Let me see.", item_id="c_1", phase="commentary"), 0),
            responses.added(responses.message(status="in_progress"), 1),
            responses.text("four"),
            responses.done(responses.message("four"), 1),
            responses.completed(),
        ),
        {},
    ),
    "cut by the limit": (
        body(
            CREATED,
            responses.added(responses.message(status="in_progress"), 0),
            responses.text("Once", 0),
            responses.event(
                "incomplete",
                response=responses.response(
                    "incomplete",
                    incomplete_details={"reason": "max_output_tokens"},
                    usage=responses.FIGURES,
                ),
            ),
        ),
        {},
    ),
    "ids that change": (
        body(
            CREATED,
            responses.added(responses.message(item_id="first", status="in_progress"), 0),
            responses.text("four", 0, item_id="second"),
            responses.done(responses.message("four", item_id="third"), 0),
            responses.completed(responses.message("four", item_id="fourth")),
        ),
        {},
    ),
    "arguments taken back": (
        body(
            CREATED,
            responses.added(responses.call("", status="in_progress"), 0),
            responses.piece('{"path": "a', 0),
            responses.done(responses.call('{"path":"b"}'), 0),
            responses.completed(responses.call('{"path":"b"}')),
        ),
        {},
    ),
    "nothing is announced": (
        body(
            CREATED,
            responses.frame({"type": "response.output_text.delta", "delta": "four"}),
            responses.frame(
                {"type": "response.completed", "response": {"id": "resp_1", "output": []}}
            ),
        ),
        {},
    ),
}
GOLDENS = {"chat": CHAT, "messages": MESSAGES, "responses": RESPONSES}

_TOOL = {"id": "a", "type": "function", "function": {"name": "read", "arguments": '{"a":1}'}}
_BLOCKS = [
    {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
    {"type": "text", "text": "four"},
    {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"query": "tides"}},
    {"type": "tool_use", "id": "t", "name": "read", "input": {"path": "é"}},
]
DOCUMENTS = {
    "chat": {
        "id": "c1",
        "object": "chat.completion",
        "created": 5,
        "model": "m1",
        "choices": [
            {
                "index": 0,
                "message": {
                    "role": "assistant",
                    "content": "four",
                    "reasoning_content": "hm",
                    "tool_calls": [_TOOL],
                },
                "finish_reason": "tool_calls",
            }
        ],
        "usage": chat.USAGE,
    },
    "messages": anthropic.message(_BLOCKS, reason="tool_use"),
    "responses": responses.response("completed", responses.ITEMS, usage=responses.FIGURES),
}
"""Answers that were not streamed."""


def document(api):
    return Answer.json(json.loads(json.dumps(DOCUMENTS[api])))

"""What servers that are only compatible leave out, add or put elsewhere, on every wire."""

import json

import pytest

import tidegate as tg
from tests.cases.stage import PAYLOADS
from tests.cases.wires import WORDS
from tidegate.lab import Answer, End, chat, converse, frame, messages, responses


@pytest.fixture
def play(stage):
    """Run one turn of a wire, which is not retried, against an answer."""

    def run(wire, *steps, answer=None):
        lab = stage.lab([answer or WORDS[wire].stream(*steps)])
        policy = tg.Policy(retries=0)
        call = stage.call(tg.Request(stage.endpoint(wire, lab), PAYLOADS[wire], policy=policy))
        assert lab.unexpected == []
        return call

    return run


UNANNOUNCED = {
    "responses": [responses.text("still works", 1), responses.completed()],
    "messages": [
        messages.start(),
        messages.text("still works", 1),
        messages.stop_reason(),
        messages.stop(),
    ],
    "converse": [converse.text("still works", block=3), converse.message_stop()],
    "null item": [
        responses.added(None),
        responses.text("still works", 1),
        responses.completed(),
    ],
    "null block": [
        messages.start(),
        messages.event("content_block_start", index=0, content_block=None),
        messages.text("still works", 0),
        messages.stop_reason(),
        messages.stop(),
    ],
}


@pytest.mark.parametrize("what", UNANNOUNCED)
def test_words_of_what_was_never_announced(play, what):
    wire = {"null item": "responses", "null block": "messages"}.get(what, what)
    call = play(wire, *UNANNOUNCED[what])

    assert call.failure is None
    assert (call.visible, call.answer.text, call.answer.finish) == ("still works",) * 2 + ("stop",)
    assert json.dumps(call.answer.native()).count("still works") == 1


NULLS = {
    "responses": [
        responses.event("created", response={"id": "r1", "output": None, "usage": None}),
        responses.event("output_text.delta", output_index=None, item_id=None, delta="hey"),
        responses.event("output_text.delta", output_index=0, logprobs=None, delta=" you"),
        responses.event(
            "completed",
            response={"id": "r1", "status": "completed", "output": None, "usage": None},
        ),
    ],
    "messages": [
        frame({"type": "message_start", "message": {"id": None, "usage": None, "content": None}}),
        frame({"type": "content_block_start", "index": 0, "content_block": {"type": "text"}}),
        messages.text("hey"),
        frame({"type": "content_block_delta", "index": 0, "delta": None}),
        messages.block_delta(0, "text_delta", text=None),
        messages.text(" you"),
        messages.block_stop(0),
        frame({"type": "message_delta", "delta": None, "usage": None}),
        frame(
            {
                "type": "message_delta",
                "delta": {"stop_reason": "end_turn", "stop_sequence": None},
                "usage": None,
            }
        ),
        messages.stop(),
    ],
    "converse": [
        converse.event("messageStart", {"role": None}),
        converse.event("contentBlockStart", {"contentBlockIndex": 0, "start": None}),
        converse.text("hey"),
        converse.event("contentBlockDelta", {"contentBlockIndex": 0, "delta": None}),
        converse.delta({"text": None}),
        converse.text(" you"),
        converse.message_stop(),
        converse.event("metadata", {"usage": None, "metrics": None}),
    ],
}


@pytest.mark.parametrize("wire", NULLS)
def test_null_is_as_good_as_absent(play, wire):
    call = play(wire, *NULLS[wire])

    assert call.failure is None
    assert (call.answer.text, call.answer.finish) == ("hey you", "stop")
    assert call.answer.usage is None


def _item(**fields):
    return {"type": "function_call", "id": "fc1", "name": "move", **fields}


WHOLE = {"x": 1, "y": [2, 3]}
OBJECTS = {
    "responses": [
        responses.item_done(_item(call_id="c1", arguments=WHOLE)),
        responses.completed(_item(call_id="c1", arguments=WHOLE)),
    ],
    "responses, at the end alone": [responses.completed(_item(call_id="c1", arguments=WHOLE))],
    "messages": [
        messages.start(),
        messages.block_start(0, "tool_use", id="c1", name="move", input=WHOLE),
        messages.block_stop(0),
        messages.stop_reason("tool_use"),
        messages.stop(),
    ],
    "converse": [
        converse.tool("move", id="c1"),
        converse.delta({"toolUse": {"input": WHOLE}}),
        converse.block_stop(),
        converse.message_stop("tool_use"),
    ],
}


@pytest.mark.parametrize("what", OBJECTS)
def test_arguments_may_come_as_an_object(play, what):
    call = play(what.partition(",")[0], *OBJECTS[what])

    [move] = call.answer.tool_calls
    assert (move.id, move.name, move.parsed()) == ("c1", "move", WHOLE)
    assert call.answer.finish == "tool_calls"


NAMELESS = {
    "responses": [
        responses.item_done({"type": "function_call", "name": "stop", "arguments": "{}"}, 0),
        responses.item_done({"type": "function_call", "name": "go", "arguments": "{}"}, 1),
        responses.completed(),
    ],
    "messages": [
        messages.start(),
        messages.block_start(0, "tool_use", name="stop", input={}),
        messages.block_stop(0),
        messages.block_start(1, "tool_use", name="go", input={}),
        messages.block_stop(1),
        messages.stop_reason("tool_use"),
        messages.stop(),
    ],
    "converse": [
        converse.event(
            "contentBlockStart",
            {"contentBlockIndex": at, "start": {"toolUse": {"name": name}}},
        )
        for at, name in enumerate(("stop", "go"))
    ]
    + [converse.block_stop(), converse.block_stop(block=1), converse.message_stop("tool_use")],
}


@pytest.mark.parametrize("wire", NAMELESS)
def test_call_without_an_id_gets_one(play, wire):
    call = play(wire, *NAMELESS[wire])

    calls = call.answer.tool_calls
    assert [(each.name, each.parsed()) for each in calls] == [("stop", {}), ("go", {})]
    ids = [each.id for each in calls]
    assert all(ids)
    assert len({*ids}) == 2
    native = json.dumps(call.answer.native())
    assert all(f'"{each}"' in native for each in ids)


FIRST = _item(call_id="c0", arguments="{}") | {"id": "fc0"}
ONLY_AT_THE_END = {
    "announced": [responses.added(_item(call_id="c1"))],
    "begun": [
        responses.added(_item(call_id="c1")),
        responses.arguments('{"x":', item_id="fc1"),
    ],
    "after another": [responses.item_done(FIRST, 0)],
}


@pytest.mark.parametrize("before", ONLY_AT_THE_END)
def test_arguments_that_only_the_whole_response_has_are_not_lost(play, before):
    whole = _item(call_id="c1", arguments=WHOLE)
    output = [FIRST, whole] if before == "after another" else [whole]
    call = play("responses", *ONLY_AT_THE_END[before], responses.completed(*output))

    *_, move = calls = call.answer.tool_calls
    assert len(calls) == len(output)
    assert (move.id, move.name, move.parsed()) == ("c1", "move", WHOLE)


HALVES = {
    "chat": [chat.text("I will "), chat.tool(id="c1", name="pay", arguments='{"a":')],
    "responses": [
        responses.added(responses.message(), 0),
        responses.text("I will "),
        responses.added(responses.call("c1", "pay"), 1),
        responses.arguments('{"a":', 1),
    ],
    "messages": [
        messages.start(),
        *messages.words("I will "),
        messages.tool_start(1, "c1", "pay"),
        messages.tool_input('{"a":', 1),
    ],
    "converse": [
        converse.message_start(),
        converse.text("I will "),
        converse.tool("pay", id="c1", block=1),
        converse.arguments('{"a":', block=1),
    ],
}


@pytest.mark.parametrize("wire", WORDS)
def test_half_a_call_is_no_part_of_a_history(play, wire):
    call = play(wire, *HALVES[wire], End.CUT)

    assert (call.failure.kind, call.answer.text) == ("truncated", "I will ")
    assert (call.answer.tool_calls, call.answer.lost_tools) == ((), ("pay",))
    native = json.dumps(call.answer.native())
    assert "I will " in native
    assert '"c1"' not in native
    assert "pay" not in native


@pytest.mark.parametrize("wire", WORDS)
def test_error_in_a_document_under_status_200_is_that_error(play, wire):
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "busy now"}}
    call = play(wire, answer=Answer.json(error))

    assert call.failure.kind == "overloaded"
    assert call.failure.retryable
    assert "busy now" in call.failure.detail


@pytest.mark.parametrize("wire", WORDS)
def test_error_may_be_a_text_beside_its_message(play, wire):
    body = {"status": 429, "error": "INSUFFICIENT QUOTA", "message": "limit of requests reached"}
    call = play(wire, answer=Answer.json(body, 429))

    assert call.failure.kind == "rate_limited"
    assert "limit of requests reached" in call.failure.detail


FILTERED = {
    "chat": [chat.text("part"), chat.finish("content_filter")],
    "responses": [responses.text("part"), responses.incomplete("content_filter")],
    "messages": [
        messages.start(),
        *messages.words("part"),
        messages.stop_reason("refusal"),
        messages.stop(),
    ],
    "converse": [converse.text("part"), converse.message_stop("content_filtered")],
}


@pytest.mark.parametrize("wire", WORDS)
def test_filtered_end_is_an_end_and_no_normal_one(play, wire):
    call = play(wire, *FILTERED[wire], End.EOF)

    assert call.failure is None
    assert (call.answer.text, call.answer.finish) == ("part", "content_filter")

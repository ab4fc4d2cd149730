"""Bodies that broke something once, most of them found by fuzzing.

*Goal*: none of them breaks a rule that holds for every body, on any wire.
*Method*: the checks of the fuzzer: whole and in pieces, over the pipe, up to the answer.
"""

import json

import pytest

from tests.fuzz.attempt import check_body
from tests.unit.actors.provider import responses_golden as golden
from tests.unit.actors.provider.test_chat_bodies import choice, chunk, decode
from tests.unit.actors.provider.test_messages_bodies import bytes_of
from tests.unit.actors.provider.test_messages_bodies import decode as decode_messages
from tidegate.actors.provider.dialects.converse import ConverseDecoder
from tidegate.actors.provider.dialects.converse_document import decode_document
from tidegate.lab import chat, converse, messages
from tidegate.protocol.deltas import Text
from tidegate.protocol.failures import FailureKind


LIMIT = 1 << 16
DEEP = "[" * 1200 + "]" * 1200


def converse_frame(kind, payload):
    """Write an event whose payload need not be JSON."""
    headers = {":event-type": kind, ":message-type": "event"}
    return converse.encode(headers, payload)


def documents_with(value):
    """Write on each wire a body that has ``value``, as it is, where much is passed on as it is."""
    around = converse.text("a").data + converse.message_stop().data
    figures = b'{"usage":{"inputTokens":1,"outputTokens":2},"metrics":' + value + b"}"
    item = b'{"type":"function_call","id":"f","call_id":"c","name":"n","arguments":' + value + b"}"
    return [
        (
            "responses",
            b'data: {"type":"response.output_item.done","output_index":0,"item":' + item + b"}\n\n"
            b'data: {"type":"response.completed","response":{"status":"completed","x":'
            + value
            + b',"output":[{"type":"x","y":'
            + value
            + b"}]}}\n\n",
        ),
        (
            "responses",
            b'data: {"type":"response.function_call_arguments.done","output_index":0,"arguments":'
            + value
            + b"}\n\n",
        ),
        ("converse", around + converse_frame("metadata", figures)),
        ("converse", b'{"output":{"message":{"content":[{"x":' + value + b'}]}},"t":1}'),
        ("converse", b'{"output":{"message":{"content":[]}},"t":' + value + b"}"),
        (
            "chat",
            b'data: {"choices":[{"delta":{"content":"a","annotations":['
            + value
            + b']},"finish_reason":"stop"}]}\n\n',
        ),
    ]


def calls_with(arguments):
    """Write on each wire an answer of one call."""
    tool = {"index": 0, "id": "a", "function": {"name": "n", "arguments": arguments}}
    announced = golden.added(golden.call("", status="in_progress"), 0)
    return [
        ("chat", chunk(choice({"tool_calls": [tool]}, "tool_calls"))),
        ("responses", announced + golden.piece(arguments, 0) + golden.completed()),
        (
            "messages",
            bytes_of([*messages.call(0, "a", "n", arguments), messages.stop_reason("tool_use", 1)]),
        ),
        (
            "converse",
            converse.tool("n", id="a").data
            + converse.arguments(arguments).data
            + converse.message_stop("tool_use").data,
        ),
    ]


def counts_of(value):
    """Write on each wire an answer whose figures are ``value``."""
    usage = {"prompt_tokens": value, "completion_tokens": value}
    metadata = {"usage": {"inputTokens": value, "outputTokens": 1}}
    return [
        ("chat", chunk(choice({"content": "a"}, "stop"), usage=usage)),
        ("chat", chunk(choice({"content": "a"}, "stop"), created=value)),
        (
            "responses",
            golden.event(
                "completed",
                response=golden.response(
                    "completed", [golden.message("a")], usage={"input_tokens": value}
                ),
            ),
        ),
        (
            "responses",
            golden.event("completed", response=golden.response("completed", created_at=value)),
        ),
        (
            "messages",
            bytes_of([messages.start(tokens=(value, 1)), *messages.words("a"), messages.stop()]),
        ),
        (
            "converse",
            converse.text("a").data
            + converse.message_stop().data
            + converse.event("metadata", metadata).data,
        ),
    ]


@pytest.mark.parametrize("value", [1e308, -1e308, 10**30, 10**400, 2**64])
def test_figures_that_no_integer_holds_are_none(value):
    for wire, body in counts_of(value):
        check_body(wire, body, flags=1, seed=1)


@pytest.mark.parametrize("value", [b'"\xff"', b"1e999", DEEP.encode()])
def test_what_is_passed_on_as_it_is_can_be_read_by_the_host(value):
    for wire, body in documents_with(value):
        check_body(wire, body, flags=1, seed=1)


def test_arguments_nested_too_deep_are_no_call():
    for wire, body in calls_with(DEEP):
        check_body(wire, body, flags=1, seed=1)


def test_figures_that_cannot_be_read_take_no_others_with_them():
    decoder = ConverseDecoder(event_bytes_max=LIMIT)
    decoder.feed(converse.message_stop().data)
    payload = b'{"usage":{"inputTokens":1,"outputTokens":2},"metrics":{"x":"\xff"},"trace":{"a":1}}'
    batch = decoder.feed(converse_frame("metadata", payload))

    assert json.loads(batch.details) == {
        "usage": {"inputTokens": 1, "outputTokens": 2},
        "trace": {"a": 1},
    }


def test_document_with_a_block_that_is_no_text_is_malformed():
    failure = decode_document(b'{"output":{"message":{"content":[{"x":"\xff"}]}}}').failure

    assert failure.kind is FailureKind.MALFORMED


def test_event_over_the_limit_does_not_hide_the_failure_before_it():
    told = b'data: {"error":{"message":"slow down","code":429}}\n\n'
    body = chunk(choice({"content": "a"})) + told + b": " + b"x" * 5000

    assert decode(body, limit=1000).failure.kind is FailureKind.RATE_LIMITED
    assert decode(b"data: [DONE]\n\n: " + b"x" * 5000, limit=1000).failure.kind is (
        FailureKind.TRUNCATED
    )


def test_end_of_a_message_is_the_end_however_it_is_read():
    steps = [*messages.words("a"), messages.stop_reason("end_turn", 7), messages.stop()]
    late = messages.stop_reason("end_turn", 8)

    assert decode_messages(bytes_of([*steps, late])).usage.output_tokens == 7
    check_body("messages", bytes_of([*steps, late]), flags=1, seed=1)


def test_second_start_of_a_message_leaves_what_it_does_not_say():
    nameless = b'data: {"type":"message_start","message":{"model":"other"}}\n\n'
    batch = decode_messages(messages.start().data + nameless)

    assert batch.described == ("msg_lab", "other", 0)


def test_what_stands_beside_words_goes_with_the_words_of_its_frame_however_it_is_read():
    told = choice({}) | {"logprobs": {"content": [{"token": "a"}]}}
    body = chunk(choice({"content": "a"})) + chunk(told) + chunk(choice({"content": "b"}))

    check_body("chat", body, flags=1, seed=1)


@pytest.mark.parametrize("kind", [None, 1, {}, []])
def test_part_whose_type_is_no_text_is_none(kind):
    item = {"id": "m", "type": "message", "content": [{"type": kind, "text": "a"}]}
    body = golden.done(item, 0) + golden.completed(item)

    check_body("responses", body, flags=1, seed=1)


def test_source_of_an_image_may_come_apart():
    image = {"source": {"bytes": "b3Bh"}}
    body = converse.delta({"image": image}).data + converse.delta({"image": {"source": "x"}}).data

    check_body("converse", body + converse.message_stop().data, flags=1, seed=1)


@pytest.mark.parametrize("wire", ["chat", "responses", "messages", "converse"])
def test_page_for_people_is_one_however_small_the_limit_is(wire):
    told = check_body(wire, b"<html>" + b"x" * 5000, flags=8, seed=1)

    assert told.failure[2] == "content_type"


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("blanks", [b"", b"\n", b" " * 200, b"\r\n\t"])
@pytest.mark.parametrize("flags", [0, 1, 2, 3])
def test_document_may_begin_with_a_mark_and_blanks(mark, blanks, flags):
    documents = {
        "chat": chat.completion("a"),
        "messages": messages.message("a", reason="end_turn"),
        "responses": golden.response("completed", [golden.message("a")]),
        "converse": converse.completion({"text": "a"}),
    }
    for wire, document in documents.items():
        told = check_body(wire, mark + blanks + json.dumps(document).encode(), flags=flags, seed=1)

        assert Text("a") in told.deltas


@pytest.mark.parametrize("field", [1, [1], ["{}"]])
def test_field_of_the_provider_may_have_the_name_of_ours(field):
    steps = [
        messages.block_start(0, "server_tool_use", id="s", name="search", partial_json=field),
        messages.block_stop(0),
        messages.stop_reason("end_turn", 1),
    ]

    check_body("messages", bytes_of(steps), flags=1, seed=1)


@pytest.mark.parametrize("first", ["a", 1, {"a": 1}])
def test_logprobs_that_become_a_list_begin_there(first):
    frames = [
        chunk(choice({}) | {"logprobs": {"content": first}}),
        chunk(choice({"content": "a"}, "stop") | {"logprobs": {"content": [1]}}),
    ]
    [_, block] = decode(*frames).deltas

    assert json.loads(block.data)["choices"]["0"]["logprobs"] == {"content": [1]}

"""Each rule of the chat dialect by name: content, finishes, descriptions and usage."""

import json

import pytest

from tidegate.actors.provider.dialects.chat import ChatDecoder, decode_json
from tidegate.protocol.answers import Usage
from tidegate.protocol.deltas import Block, Reasoning, Refusal, Text, Tool
from tidegate.protocol.failures import FailureKind


LIMIT = 1 << 16
DONE = b"data: [DONE]\n\n"


def frame(payload, name=""):
    text = payload if isinstance(payload, str) else json.dumps(payload)
    return (f"event: {name}\n" if name else "").encode() + f"data: {text}\n\n".encode()


def delta(finish=None, **fields):
    return frame({"choices": [{"index": 0, "delta": fields, "finish_reason": finish}]})


def text(value):
    return delta(content=value)


STOP = delta("stop")


def batches(*frames, choices=1):
    decoder = ChatDecoder(choices=choices, event_bytes_max=LIMIT)
    return [*map(decoder.feed, frames), decoder.eof()]


def decode(*frames, choices=1):
    decoder = ChatDecoder(choices=choices, event_bytes_max=LIMIT)
    batch = decoder.feed(b"".join(frames))
    end = decoder.eof()
    batch.failure = batch.failure or end.failure
    batch.contentless = end.contentless
    return batch


# Content


@pytest.mark.parametrize(
    "payload",
    [
        {},
        {"choices": None},
        {"choices": []},
        {"choices": [None]},
        {"choices": [{}]},
        {"choices": [{"index": 0, "delta": None, "finish_reason": None}]},
        {"choices": [{"index": None, "delta": {}, "finish_reason": ""}]},
        {"choices": [{"delta": {"content": None, "tool_calls": None, "function_call": None}}]},
        {"choices": [{"delta": {"role": "", "content": "", "tool_calls": []}}]},
        {"choices": [{"delta": {"tool_calls": [None, {}, {"index": 0, "function": None}]}}]},
        {"choices": [{"delta": {"reasoning_content": "", "refusal": ""}}], "error": None},
        {"id": "", "model": "", "created": 0, "choices": [{"content_filter_offsets": {}}]},
        {"type": "ping"},
        {"usage": None, "error": {}},
    ],
)
def test_frame_that_lacks_anything_is_no_delta_and_no_error(payload):
    batch = decode(text("a"), frame(payload), text("b"), STOP)

    assert batch.deltas == [Text("a"), Text("b")]
    assert batch.finishes == ("stop",)
    assert batch.failure is None


def test_content_may_be_a_list_of_blocks_and_change_its_form():
    blocks = [
        {"type": "thinking", "thinking": [{"type": "text", "text": "h"}, {"text": "m"}]},
        {"type": "reasoning", "reasoning": "."},
        {"type": "text", "text": "Fo"},
        "ur",
        {"type": "refusal", "refusal": "no"},
        {"type": "image_url", "image_url": {"url": "data:"}},
        {"type": "text", "text": ""},
    ]
    batch = decode(delta(content=blocks), text("."), delta(content={"text": "!"}), STOP)

    assert batch.deltas == [
        *(Reasoning("hm"), Reasoning("."), Text("Fo"), Text("ur"), Refusal("no")),
        *(Text("."), Text("!")),
    ]


@pytest.mark.parametrize(
    "fields",
    [
        {"reasoning_content": "hm"},
        {"reasoning": "hm"},
        {"reasoning_content": "hm", "reasoning": "hm", "content": ""},
        {"reasoning_content": "", "reasoning": "hm"},
        {"reasoning": {"text": "hm"}},
        {"reasoning_details": [{"type": "reasoning.text", "text": "h"}, {"summary": "m"}]},
        {"reasoning_details": {"text": "hm"}},
        {"reasoning": "hm", "reasoning_details": [{"text": "hm"}]},
    ],
)
def test_reasoning_is_read_once_under_any_of_its_names(fields):
    words = [each for each in decode(delta(**fields), STOP).deltas if not isinstance(each, Block)]

    assert words == [Reasoning("hm")]


def test_reasoning_that_is_encrypted_has_no_words():
    (sealed,) = decode(delta(reasoning_details=[{"data": "x"}]), STOP).deltas

    assert isinstance(sealed, Block)


def test_pieces_of_one_frame_keep_their_order():
    fields = {"refusal": "no", "content": "a", "reasoning": "r"}

    assert decode(delta(**fields), STOP).deltas == [Reasoning("r"), Text("a"), Refusal("no")]


def test_text_after_a_tool_call_is_still_text():
    call = delta(tool_calls=[{"index": 0, "id": "a", "function": {"name": "f"}}])

    assert decode(call, text("x"), STOP).deltas == [Tool(0, "a", "f"), Text("x")]


def test_lone_surrogate_becomes_the_replacement_character():
    body = '{"choices":[{"delta":{"content":"a\\ud83d"},"finish_reason":"stop"}]}'
    for batch in (decode(frame(body)), batches(frame(body).rstrip())[-1]):
        assert batch.deltas == [Text("a\ufffd")]
        assert batch.finishes == ("stop",)

    arguments = '{"tool_calls":[{"id":"a","function":{"arguments":"\\uD83D"}}]}'
    batch = decode_json(f'{{"choices":[{{"message":{arguments}}}]}}'.encode())

    assert batch.deltas == [Tool(0, "a"), Tool(0, arguments="\ufffd")]


@pytest.mark.parametrize("before", [[], ["Let me see."]])
@pytest.mark.parametrize("beside", [{"delta": {}}, {"delta": {"role": "assistant"}}, {}])
def test_calls_of_a_final_message_count_where_no_delta_brought_any(before, beside):
    call = {"id": "a", "function": {"name": "f", "arguments": "{}"}}
    message = {"content": "".join(before), "tool_calls": [call]}
    end = frame({"choices": [{**beside, "message": message, "finish_reason": "tool_calls"}]})

    assert decode(*map(text, before), end).deltas == [
        *map(Text, before),
        Tool(0, "a", "f", "{}"),
    ]
    known = delta(tool_calls=[{"index": 0, **call}])
    assert decode(known, end).deltas == [Tool(0, "a", "f", "{}")]


def test_one_call_need_not_be_in_a_list():
    call = {"index": 0, "id": "a", "function": {"name": "f", "arguments": "{}"}}
    whole = {"choices": [{"message": {"tool_calls": call}, "finish_reason": "tool_calls"}]}

    assert decode(delta(tool_calls=call), STOP).deltas == [Tool(0, "a", "f", "{}")]
    assert decode(frame(whole)).deltas == [Tool(0, "a", "f", "{}")]


def test_calls_by_their_names_are_no_calls():
    named = {"0": {"id": "a", "function": {"name": "f", "arguments": "{}"}}}

    assert decode(delta(tool_calls=named), STOP).failure.kind is FailureKind.MALFORMED


def test_message_beside_deltas_counts_only_at_the_end():
    call = {"id": "a", "function": {"name": "f", "arguments": "{"}}
    part = {"delta": {"content": "x"}, "message": {"content": "x", "tool_calls": [call]}}

    assert decode(frame({"choices": [part]}), STOP).deltas == [Text("x")]


def test_message_in_a_stream_counts_where_no_delta_came():
    whole = frame({"choices": [{"message": {"content": "a"}, "finish_reason": "stop"}]})

    assert decode(whole).deltas == [Text("a")]
    assert decode(text("a"), whole).deltas == [Text("a")]


# Evidence


@pytest.mark.parametrize(
    ("reason", "finish"),
    [
        ("stop", "stop"),
        ("tool_calls", "tool_calls"),
        ("function_call", "tool_calls"),
        ("length", "length"),
        ("MAX_TOKENS", "length"),
        ("content_filter", "content_filter"),
        ("SAFETY", "content_filter"),
        ("eos", "stop"),
    ],
)
def test_finish_reason_is_mapped(reason, finish):
    assert decode(text("a"), delta(reason)).finishes == (finish,)


@pytest.mark.parametrize("reason", ["", "null", None])
def test_empty_finish_reason_is_none(reason):
    batch = decode(text("a"), delta(reason), DONE)

    assert batch.finishes is None
    assert batch.failure.kind is FailureKind.TRUNCATED


@pytest.mark.parametrize(
    ("reason", "kind"),
    [
        ("error", FailureKind.SERVER_ERROR),
        ("abort", FailureKind.SERVER_ERROR),
        ("insufficient_system_resource", FailureKind.OVERLOADED),
    ],
)
def test_finish_reason_may_be_a_failure(reason, kind):
    batch = decode(text("a"), delta(reason), DONE)

    assert batch.finishes is None
    assert (batch.failure.kind, batch.failure.retryable) == (kind, True)
    assert batch.failure.code == reason


def test_error_of_a_choice_is_the_failure():
    error = {"code": 429, "message": "slow down"}
    batch = decode(frame({"choices": [{"delta": {}, "finish_reason": "error", "error": error}]}))

    assert batch.failure.kind is FailureKind.RATE_LIMITED
    assert batch.failure.detail == "slow down"


@pytest.mark.parametrize(
    "later",
    [
        text("more"),
        delta("length"),
        delta("error"),
        delta(tool_calls=[{"index": 0, "id": "a", "function": {"name": "f"}}]),
        frame({"error": {"message": "late"}}),
        frame("oops"),
        frame("[1]"),
        frame({"choices": 5}),
        frame("late", "error"),
        b"data: \xff\n\n",
        DONE,
    ],
)
def test_evidence_is_sticky(later):
    first, second, third, end = batches(text("a") + STOP, later, later)

    assert first.finishes == ("stop",)
    for batch in (second, third, end):
        assert (batch.deltas, batch.finishes, batch.failure) == ([], None, None)


def test_usage_after_the_evidence_counts():
    usage = {"prompt_tokens": 3, "completion_tokens": 2}
    _, batch, _ = batches(text("a") + STOP, frame({"choices": [], "usage": usage}))

    assert batch.usage == Usage(input_tokens=3, output_tokens=2)


def test_done_alone_is_no_evidence():
    batch = decode(DONE)

    assert batch.done
    assert batch.events == 1
    assert batch.failure.kind is FailureKind.TRUNCATED


def test_what_follows_done_is_not_read():
    batch = decode(text("a"), DONE, text("b"), STOP)

    assert batch.deltas == [Text("a")]
    assert batch.finishes is None


def test_evidence_needs_a_finish_of_every_choice():
    def ends(index):
        return frame({"choices": [{"index": index, "delta": {}, "finish_reason": "stop"}]})

    assert decode(ends(0), ends(0), DONE, choices=2).failure.kind is FailureKind.TRUNCATED
    assert decode(ends(1), ends(0), choices=2).finishes == ("stop", "stop")


def test_choice_that_has_finished_takes_no_more():
    def piece(index, content, finish=None):
        fields = {"index": index, "delta": {"content": content}, "finish_reason": finish}
        return frame({"choices": [fields]})

    frames = piece(0, "a", "stop"), piece(0, "late"), piece(1, "b", "length")

    assert decode(*frames, choices=2).deltas == [Text("a"), Text("b", 1)]


def test_choice_that_was_not_asked_for_is_malformed():
    batch = decode(frame({"choices": [{"index": 2, "delta": {"content": "a"}}]}), choices=2)

    assert batch.failure.kind is FailureKind.MALFORMED
    assert batch.failure.detail == "choice 2 of 2"


def test_single_answer_may_be_spread_over_choices():
    call = {"tool_calls": [{"id": "a", "function": {"name": "f", "arguments": "{}"}}]}
    spread = [
        {"index": 0, "delta": {"content": "a"}, "finish_reason": "tool_calls"},
        {"index": 1, "delta": call, "finish_reason": "tool_calls"},
    ]
    batch = decode(frame({"choices": spread}))

    assert batch.deltas == [Text("a"), Tool(0, "a", "f", "{}")]
    assert batch.finishes == ("tool_calls",)


def test_number_of_choices_that_is_not_positive_is_refused():
    with pytest.raises(ValueError, match="choices 0"):
        ChatDecoder(choices=0, event_bytes_max=LIMIT)


# Descriptions and usage


def test_description_keeps_the_first_id_and_the_last_model():
    first, second, third, _ = batches(
        frame({"id": "c1", "model": "m1", "created": 5.0}),
        frame({"id": "c2", "model": "", "created": 6}),
        frame({"id": "", "model": "m2"}),
    )

    assert first.described == ("c1", "m1", 5)
    assert second.described is None
    assert third.described == ("c1", "m2", 5)


@pytest.mark.parametrize(
    ("value", "usage"),
    [
        ({"prompt_tokens": 3.0, "completion_tokens": None}, Usage(input_tokens=3)),
        ({"input_tokens": 3, "output_tokens": 2}, Usage(input_tokens=3, output_tokens=2)),
        (
            {
                "prompt_tokens": 9,
                "completion_tokens": 4,
                "prompt_tokens_details": {"cached_tokens": 8},
                "completion_tokens_details": {"reasoning_tokens": 1},
            },
            Usage(input_tokens=9, output_tokens=4, cached_input_tokens=8, reasoning_tokens=1),
        ),
        (
            {"prompt_tokens": 9, "prompt_cache_hit_tokens": 8, "prompt_tokens_details": None},
            Usage(input_tokens=9, cached_input_tokens=8),
        ),
        ({"prompt_tokens": -1, "completion_tokens": "2"}, Usage()),
        ({}, None),
        ({"total_tokens": None}, None),
        ([], None),
        (7, None),
    ],
)
def test_usage_is_read_as_far_as_it_makes_sense(value, usage):
    assert decode(text("a"), frame({"choices": [], "usage": value}), STOP).usage == usage


def test_usage_in_the_middle_is_told_when_it_changes_and_the_last_wins():
    def counted(number):
        return frame({"choices": [{"delta": {"content": "x"}}], "usage": {"prompt_tokens": number}})

    first, second, third, _ = batches(counted(1), counted(1), counted(2) + counted(3))

    assert first.usage == Usage(input_tokens=1)
    assert second.usage is None
    assert third.usage == Usage(input_tokens=3)


def test_usage_may_be_in_the_choice_that_finishes():
    ending = {"delta": {}, "finish_reason": "stop", "usage": {"prompt_tokens": 3}}

    assert decode(text("a"), frame({"choices": [ending]})).usage == Usage(input_tokens=3)

"""Whole bodies of the Responses wire: the same however they are cut, and never a wrong one.

*Goal*: cuts, line ends and truncation change nothing but what has not come yet.
*Method*: a golden body, whole, cut at every byte, byte by byte and cut off at every byte; and
bodies of random events.
"""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from openai.types.responses import Response

from tests.unit.actors.provider.responses_golden import (
    FIGURES,
    GOLDEN,
    ITEMS,
    USAGE,
    answer_of,
    call,
    completed,
    decode,
    event,
    frame,
    message,
    response,
    text,
    words,
)
from tidegate.actors.provider.dialects.responses import ResponsesDecoder, decode_response
from tidegate.protocol.deltas import Reasoning, Text, Tool
from tidegate.protocol.failures import FailureKind


EXPECTED = [
    Reasoning("Tides,\n"),
    Reasoning("first."),
    Reasoning("\n\n"),
    Reasoning("Then gates."),
    Text("Grüße, "),
    Text("Welt "),
    Text("🌊"),
    Tool(0, "call_1", "read"),
    Tool(0, arguments='{"path":'),
    Tool(0, arguments='"é"}'),
    Tool(1, "call_2", "list"),
    Tool(1, arguments="{}"),
]


@pytest.fixture(params=["\n", "\r", "\r\n"], ids=["LF", "CR", "CRLF"])
def body(request):
    return b"".join(GOLDEN).replace(b"\n", request.param.encode())


def test_golden_body_gives_its_answer(body):
    batch = decode(body)

    assert words(batch) == EXPECTED
    assert (batch.finishes, batch.usage, batch.failure) == (("tool_calls",), USAGE, None)
    assert batch.described == ("resp_1", "gpt-x", 1764500000)
    assert batch.done


def test_golden_body_cut_anywhere_gives_the_same(body):
    whole = decode(body)

    assert decode(*[bytes([byte]) for byte in body]) == whole
    for at in range(1, len(body)):
        assert decode(body[:at], body[at:]) == whole, f"cut at {at}"


def test_golden_body_cut_off_anywhere_is_truncated_empty_or_right(body):
    whole = decode(body)
    for at in range(len(body)):
        batch = decode(body[:at])

        assert batch.deltas == whole.deltas[: len(batch.deltas)]
        if batch.finishes is None:
            expected = FailureKind.TRUNCATED if batch.deltas else FailureKind.EMPTY
            assert batch.failure.kind is expected
            assert batch.failure.retryable
            assert answer_of(batch).tool_calls == ()
        else:
            assert batch.deltas == whole.deltas
            assert (batch.finishes, batch.usage) == (whole.finishes, whole.usage)


def test_one_provider_delta_is_one_delta_however_it_came(body):
    assert words(ResponsesDecoder(event_bytes_max=1 << 16).feed(body)) == EXPECTED


@pytest.mark.parametrize("names", ["with names", "without names", "only names"])
def test_event_lines_and_types_stand_in_for_one_another(names):
    body = b"".join(GOLDEN)
    if names == "without names":
        lines = [line for line in body.split(b"\n") if not line.startswith(b"event:")]
        body = b"\n".join(lines)
    if names == "only names":
        body = b"".join(_without_type(each) for each in GOLDEN)

    assert decode(body).deltas == decode(b"".join(GOLDEN)).deltas


def test_native_form_is_the_response_as_if_it_had_not_been_streamed():
    native = answer_of(decode(b"".join(GOLDEN))).native()

    assert Response.model_validate(native, strict=True)
    assert native["output"] == ITEMS
    assert native["usage"] == FIGURES
    assert native == response("completed", ITEMS, usage=FIGURES) | {
        name: value for name, value in native.items() if value is None
    }


def test_document_gives_the_same_answer_as_the_stream():
    document = response("completed", ITEMS, usage=FIGURES)
    batch = decode_response(json.dumps(document).encode())
    whole, streamed = answer_of(batch), answer_of(decode(b"".join(GOLDEN)))

    assert batch.done
    assert (whole.text, whole.reasoning) == (streamed.text, streamed.reasoning)
    assert (whole.tool_calls, whole.finish) == (streamed.tool_calls, streamed.finish)
    assert (whole.usage, whole.native()) == (streamed.usage, streamed.native())


def test_document_cut_off_anywhere_is_truncated_or_empty():
    document = json.dumps(response("completed", ITEMS, usage=FIGURES)).encode()
    for at in range(len(document)):
        batch = decode_response(document[:at])

        assert batch.finishes is None
        assert batch.failure.kind is (FailureKind.TRUNCATED if at else FailureKind.EMPTY)


@pytest.mark.parametrize("size", [1, 3, 7, 64, 1000])
def test_arguments_are_the_same_for_every_fragmentation(size):
    arguments = json.dumps({"path": "/tmp/ü", "lines": ["a\nb"] * 20}, ensure_ascii=False)
    pieces = [arguments[at : at + size] for at in range(0, len(arguments), size)]
    frames = [event("output_item.added", output_index=0, item=call(""))]
    frames += [
        event("function_call_arguments.delta", item_id="fc_1", output_index=0, delta=each)
        for each in pieces
    ]
    frames += [event("output_item.done", output_index=0, item=call(arguments)), completed()]
    batch = decode(*frames)

    assert [each.arguments for each in answer_of(batch).tool_calls] == [arguments]
    assert len(words(batch)) == 1 + len(pieces)


def test_huge_delta_in_small_reads_is_decoded_in_linear_time():
    """Copying what is there at each read would be some hundred gigabytes of work."""
    content = "tide " * (1 << 20)
    body = text(content)
    decoder = ResponsesDecoder(event_bytes_max=1 << 23)
    batches = [decoder.feed(body[at : at + 100]) for at in range(0, len(body), 100)]

    assert [delta for batch in batches for delta in words(batch)] == [Text(content)]


def test_event_over_the_limit_is_malformed_behind_the_deltas_before_it():
    body = text("a") + text("b" * 5000)
    for pieces in ([body], [body[at : at + 9] for at in range(0, len(body), 9)]):
        batch = decode(*pieces, limit=1000)

        assert words(batch) == [Text("a")]
        assert batch.failure.kind is FailureKind.MALFORMED
        assert batch.failure.detail == "event over 1000 bytes"


def _without_type(chunk):
    if not chunk.startswith(b"event"):
        return chunk
    name, _, data = chunk.decode().partition("\ndata: ")
    payload = json.loads(data)
    del payload["type"]
    return frame(payload, name.removeprefix("event: "))


TYPES = st.sampled_from(
    [
        *("created", "completed", "incomplete", "failed", "output_item.added", "output_item.done"),
        *("output_text.delta", "output_text.done", "refusal.delta", "refusal.done"),
        *("reasoning_text.delta", "reasoning_summary_text.delta", "reasoning_summary_text.done"),
        *("function_call_arguments.delta", "function_call_arguments.done"),
        *("custom_tool_call_input.delta", "custom_tool_call_input.done", "unheard.of"),
    ]
)
KEYS = st.sampled_from(
    [
        *("id", "type", "item", "response", "delta", "item_id", "output_index", "content_index"),
        *("summary_index", "arguments", "input", "text", "refusal", "content", "summary", "status"),
        *("error", "code", "message", "call_id", "name", "phase", "output", "usage", "choices"),
    ]
)
KINDS = st.sampled_from(["message", "reasoning", "function_call", "custom_tool_call", "shell_call"])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)
ODD = [b"data: \xff\xfe\n\n", b"event: error\ndata: oops\n\n", b'data: "\\ud800"\n\n', b"\r\r\n"]
OTHER = st.sampled_from([None, True, 7, 1.5, "x", [], ["x"], {}, {"text": "x"}, [{"type": 1}]])
FEW = st.integers(0, 2) | OTHER
IDS = st.sampled_from(["a", "b", ""]) | OTHER
PARTS = st.lists(
    st.fixed_dictionaries(
        {"type": st.sampled_from(["output_text", "refusal", "summary_text", "odd"])},
        optional={"text": st.text(max_size=3) | OTHER, "refusal": OTHER},
    ),
    max_size=2,
)
ITEM = st.fixed_dictionaries(
    {"type": KINDS},
    optional={
        **dict.fromkeys(("id", "call_id", "name", "phase"), IDS),
        **dict.fromkeys(("content", "summary"), PARTS | OTHER),
        **{name: st.text(max_size=4) | OTHER for name in ("arguments", "input")},
    },
)
ENDS = st.fixed_dictionaries(
    {}, optional={"status": IDS, "output": st.lists(ITEM | OTHER, max_size=2), "usage": OTHER}
)
SHAPED = st.fixed_dictionaries(
    {"type": TYPES.map("response.{}".format)},
    optional={
        **dict.fromkeys(("output_index", "content_index", "summary_index"), FEW),
        **{name: st.text(max_size=4) | OTHER for name in ("delta", "text", "arguments", "input")},
        "item_id": IDS,
        "item": ITEM | OTHER,
        "response": ENDS | OTHER,
    },
)


@settings(deadline=None, max_examples=150)
@given(st.lists(st.builds(frame, JSON) | st.sampled_from(ODD) | st.binary(max_size=9), max_size=6))
def test_any_frames_end_in_evidence_or_a_failure(frames):
    body = b"".join(frames)
    batch = decode(body)

    assert (batch.finishes is None) != (batch.failure is None)
    assert decode(*[bytes([byte]) for byte in body]) == batch


@settings(deadline=None, max_examples=200)
@given(st.lists(SHAPED, max_size=8))
def test_events_of_the_right_shape_with_any_values_raise_nothing(payloads):
    batch = decode(*map(frame, payloads))
    answer = answer_of(batch)

    assert (batch.finishes is None) != (batch.failure is None)
    assert answer.native()["output"] is not None
    for each in answer.tool_calls:
        each.parsed()


@settings(deadline=None, max_examples=150)
@given(st.builds(lambda value: json.dumps(value).encode(), JSON | ENDS) | st.binary(max_size=9))
def test_any_document_ends_in_evidence_or_a_failure(body):
    batch = decode_response(body)

    assert (batch.finishes is None) != (batch.failure is None)


def test_message_of_several_parts_has_them_apart_in_its_native_form():
    whole = message("one", "two")
    batch = decode(
        text("one", 0),
        text("two", 0, 1),
        event("output_item.done", output_index=0, item=whole),
        completed(),
    )

    assert answer_of(batch).text == "onetwo"
    assert answer_of(batch).native()["output"] == [whole]

"""Whole chat bodies: the same answer however they are cut, and never a wrong one.

*Goal*: cuts, line ends and truncation change nothing but what has not come yet.
*Method*: golden bodies, decoded whole, cut at every byte, byte by byte and cut off at every byte.
"""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.actors.provider.dialects.batch import Batch
from tidegate.actors.provider.dialects.chat import ChatDecoder, decode_json
from tidegate.protocol.answers import Usage
from tidegate.protocol.deltas import Reasoning, Refusal, Text, Tool
from tidegate.protocol.failures import FailureKind


LIMIT = 1 << 16
USAGE = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}


def frame(payload):
    return b"data: " + json.dumps(payload, ensure_ascii=False).encode() + b"\n\n"


def chunk(*choices, **fields):
    return frame({"id": "c1", "model": "m1", "created": 5, "choices": list(choices), **fields})


def choice(delta, finish=None, index=0):
    return {"index": index, "delta": delta, "finish_reason": finish}


def call(index=0, **fields):
    function = {key: fields.pop(key) for key in ("name", "arguments") if key in fields}
    return {"tool_calls": [{"index": index, **fields, "function": function}]}


BODIES = {
    "text": [
        chunk(choice({"role": "assistant", "content": ""})),
        chunk(choice({"content": "Grüße, "})),
        b": ping\n\n",
        chunk(choice({"content": "Welt 🌊"})),
        chunk(choice({}, "stop")),
        chunk(usage=USAGE),
        b"data: [DONE]\n\n",
    ],
    "tools": [
        chunk(choice(call(id="a", name="read", arguments=""))),
        chunk(choice(call(arguments='{"path":"é'))),
        chunk(choice(call(arguments='"}'))),
        chunk(choice(call(1, id="b", name="list", arguments="{}"))),
        chunk(choice({}, "tool_calls")),
        b"data: [DONE]\n\n",
    ],
    "reasoning": [
        chunk(choice({"reasoning_content": "hm"})),
        chunk(choice({"reasoning_content": "m", "content": "four"})),
        chunk(choice({}, "length")),
    ],
    "refusal": [
        chunk(choice({"refusal": "I will "})),
        chunk(choice({"refusal": "not."})),
        chunk(choice({}, "stop"), usage=USAGE),
        b"data: [DONE]\n\n",
    ],
    "two choices": [
        chunk(choice({"content": "a"}), choice({"content": "b"}, index=1)),
        chunk(choice({"content": "B"}, index=1)),
        chunk(choice({}, "stop", 0)),
        chunk(choice({}, "length", 1)),
        b"data: [DONE]\n\n",
    ],
}
CHOICES = {"two choices": 2}
ANSWERS = {
    "text": ([Text("Grüße, "), Text("Welt 🌊")], ("stop",), Usage(input_tokens=7, output_tokens=3)),
    "tools": (
        [
            Tool(0, "a", "read"),
            Tool(0, arguments='{"path":"é'),
            Tool(0, arguments='"}'),
            Tool(1, "b", "list", "{}"),
        ],
        ("tool_calls",),
        None,
    ),
    "reasoning": ([Reasoning("hm"), Reasoning("m"), Text("four")], ("length",), None),
    "refusal": (
        [Refusal("I will "), Refusal("not.")],
        ("stop",),
        Usage(input_tokens=7, output_tokens=3),
    ),
    "two choices": ([Text("a"), Text("b", 1), Text("B", 1)], ("stop", "length"), None),
}


def joined(batches):
    """Put batches together, and check what must hold for any sequence of them."""
    whole = Batch()
    for batch in batches:
        assert whole.finishes is None or not (batch.finishes or batch.deltas or batch.failure)
        whole.deltas += batch.deltas
        whole.events += batch.events
        whole.described = batch.described or whole.described
        whole.usage = batch.usage or whole.usage
        whole.finishes = batch.finishes or whole.finishes
        whole.done = whole.done or batch.done
        whole.failure = batch.failure or whole.failure
        whole.contentless = batch.contentless
    return whole


def decode(*pieces, choices=1, limit=LIMIT):
    decoder = ChatDecoder(choices=choices, event_bytes_max=limit)
    return joined([*[decoder.feed(piece) for piece in pieces], decoder.eof()])


@pytest.fixture(params=BODIES)
def name(request):
    return request.param


@pytest.fixture(params=["\n", "\r", "\r\n"], ids=["LF", "CR", "CRLF"])
def body(request, name):
    return b"".join(BODIES[name]).replace(b"\n", request.param.encode())


@pytest.fixture
def choices(name):
    return CHOICES.get(name, 1)


def test_golden_body_gives_its_answer(name, body, choices):
    batch = decode(body, choices=choices)

    assert (batch.deltas, batch.finishes, batch.usage) == ANSWERS[name]
    assert batch.described == ("c1", "m1", 5)
    assert batch.failure is None
    assert batch.done == (b"[DONE]" in body)


def test_golden_body_cut_anywhere_gives_the_same(body, choices):
    whole = decode(body, choices=choices)

    assert decode(*[bytes([byte]) for byte in body], choices=choices) == whole
    for at in range(1, len(body)):
        assert decode(body[:at], body[at:], choices=choices) == whole, f"cut at {at}"


def test_golden_body_cut_off_anywhere_is_truncated_empty_or_right(name, body, choices):
    deltas, finishes, usage = ANSWERS[name]
    for at in range(len(body)):
        batch = decode(body[:at], choices=choices)

        assert batch.deltas == deltas[: len(batch.deltas)]
        if batch.finishes is None:
            expected = FailureKind.TRUNCATED if batch.deltas else FailureKind.EMPTY
            assert batch.failure.kind is expected
            assert batch.failure.retryable
        else:
            assert (batch.deltas, batch.finishes, batch.failure) == (deltas, finishes, None)
            assert batch.usage in (None, usage)


def test_one_provider_delta_is_one_delta_however_it_came(name, body, choices):
    decoder = ChatDecoder(choices=choices, event_bytes_max=LIMIT)

    assert len(decoder.feed(body).deltas) == len(ANSWERS[name][0])


@pytest.mark.parametrize("size", [1, 3, 7, 64, 1000])
def test_arguments_are_the_same_for_every_fragmentation(size):
    arguments = json.dumps({"path": "/tmp/ü", "lines": ["a\nb"] * 20}, ensure_ascii=False)
    pieces = [arguments[at : at + size] for at in range(0, len(arguments), size)]
    frames = [chunk(choice(call(id="a", name="write")))]
    frames += [chunk(choice(call(arguments=piece))) for piece in pieces]
    batch = decode(*frames, chunk(choice({}, "tool_calls")))

    assert "".join(delta.arguments for delta in batch.deltas) == arguments
    assert len(batch.deltas) == 1 + len(pieces)


def test_huge_delta_in_small_reads_is_decoded_in_linear_time():
    """Copying what is there at each read would be some hundred gigabytes of work."""
    text = "tide " * (1 << 20)
    body = chunk(choice({"content": text}, "stop"))
    decoder = ChatDecoder(event_bytes_max=1 << 23)
    batches = [decoder.feed(body[at : at + 100]) for at in range(0, len(body), 100)]

    assert joined([*batches, decoder.eof()]).deltas == [Text(text)]


def test_event_over_the_limit_is_malformed_behind_the_deltas_before_it():
    body = chunk(choice({"content": "a"})) + chunk(choice({"content": "b" * 5000}))
    for pieces in ([body], [body[at : at + 9] for at in range(0, len(body), 9)]):
        batch = decode(*pieces, limit=1000)

        assert batch.deltas == [Text("a")]
        assert batch.failure.kind is FailureKind.MALFORMED
        assert batch.failure.detail == "event over 1000 bytes"
        assert not batch.failure.retryable


def test_event_over_the_limit_after_the_evidence_changes_nothing():
    body = chunk(choice({"content": "a"}, "stop")) + b": " + b"x" * 5000

    assert decode(body, limit=1000).failure is None


KEYS = st.sampled_from(
    [
        *("id", "model", "created", "choices", "usage", "error", "index", "delta", "message"),
        *("finish_reason", "content", "reasoning", "refusal", "tool_calls", "function_call"),
        *("function", "name", "arguments", "code", "type", "status", "text", "detail"),
    ]
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)
ODD = [b"data: \xff\xfe\n\n", b"event: error\ndata: oops\n\n", b'data: "\\ud800"\n\n', b"\r\r\n"]


@settings(deadline=None, max_examples=150)
@given(st.lists(st.builds(frame, JSON) | st.sampled_from(ODD) | st.binary(max_size=9), max_size=6))
def test_any_frames_end_in_evidence_or_a_failure(frames):
    body = b"".join(frames)
    batch = decode(body)

    assert (batch.finishes is None) != (batch.failure is None)
    assert decode(*[bytes([byte]) for byte in body]) == batch


@settings(deadline=None, max_examples=150)
@given(st.builds(lambda value: json.dumps(value).encode(), JSON) | st.binary(max_size=9))
def test_any_document_ends_in_evidence_or_a_failure(body):
    batch = decode_json(body)

    assert (batch.finishes is None) != (batch.failure is None)


SHAPED = st.fixed_dictionaries(
    {},
    optional={
        "choices": st.lists(
            st.fixed_dictionaries(
                {"delta": st.dictionaries(KEYS, JSON, max_size=3) | st.none()},
                optional={"finish_reason": JSON, "error": JSON, "usage": JSON, "index": JSON},
            ),
            max_size=2,
        ),
        "usage": JSON,
        "id": JSON,
        "model": JSON,
        "created": JSON,
    },
)


@settings(deadline=None, max_examples=150)
@given(st.lists(SHAPED, max_size=5), st.integers(1, 2))
def test_frames_of_the_right_shape_with_any_values_raise_nothing(payloads, choices):
    batch = decode(*map(frame, payloads), choices=choices)

    assert (batch.finishes is None) != (batch.failure is None)

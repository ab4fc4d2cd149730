"""Whole bodies of the converse wire: the same answer however they are cut, and never a wrong one.

*Goal*: cuts and truncation change nothing but what has not come yet.
*Method*: a golden body with all that the wire has, decoded whole, cut at every byte, byte by byte
and cut off at every byte; and bodies of random frames.
"""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.actors.provider.test_chat_bodies import JSON, joined
from tidegate.actors.provider.dialects.converse import ConverseDecoder
from tidegate.actors.provider.dialects.converse_document import decode_document
from tidegate.lab import converse
from tidegate.protocol.answers import Usage
from tidegate.protocol.deltas import ENVELOPE, Block, Reasoning, Text, Tool
from tidegate.protocol.failures import FailureKind


LIMIT = 1 << 16
METADATA = {
    "usage": {
        "inputTokens": 30,
        "outputTokens": 12,
        "totalTokens": 42,
        "cacheReadInputTokens": 20,
        "cacheWriteInputTokens": 5,
    },
    "metrics": {"latencyMs": 812},
}
BODY = [
    converse.message_start(),
    converse.reasoning("Hm, "),
    converse.reasoning("tides."),
    converse.signature("c2ln"),
    converse.block_stop(),
    converse.text("Grüße, ", block=1),
    converse.text("Welt 🌊", block=1),
    converse.block_stop(block=1),
    converse.tool("read", id="t1", block=2),
    converse.arguments('{"path":', block=2),
    converse.arguments('"é"}', block=2),
    converse.block_stop(block=2),
    converse.tool("list", id="t2", block=3),
    converse.block_stop(block=3),
    converse.message_stop("tool_use"),
    converse.event("metadata", METADATA),
]
DELTAS = [
    Block(0),
    Reasoning("Hm, "),
    Reasoning("tides."),
    Block(0, b'{"signature":["c2ln"]}'),
    Block(1),
    Text("Grüße, "),
    Text("Welt 🌊"),
    Block(2),
    Tool(0, "t1", "read"),
    Tool(0, arguments='{"path":'),
    Tool(0, arguments='"é"}'),
    Block(3),
    Tool(1, "t2", "list"),
    Block(ENVELOPE, b'{"stopReason":"tool_use"}'),
]
USAGE = Usage(input_tokens=30, output_tokens=12, cached_input_tokens=20)


def body_of(*steps):
    return b"".join(step.data for step in steps)


def decode(*pieces, limit=LIMIT):
    decoder = ConverseDecoder(event_bytes_max=limit)
    return joined([*[decoder.feed(piece) for piece in pieces], decoder.eof()])


def test_golden_body_gives_its_answer():
    decoder = ConverseDecoder(event_bytes_max=LIMIT)
    batch = decoder.feed(body_of(*BODY))

    assert batch.deltas == DELTAS
    assert (batch.finishes, batch.usage, batch.done) == (("tool_calls",), USAGE, True)
    assert json.loads(batch.details) == METADATA
    assert batch.events == len(BODY)
    assert decoder.eof().failure is None


def test_golden_body_cut_anywhere_gives_the_same():
    body = body_of(*BODY)
    whole = decode(body)

    assert decode(*[bytes([byte]) for byte in body]) == whole
    for at in range(1, len(body)):
        assert decode(body[:at], body[at:]) == whole, f"cut at {at}"


def test_golden_body_cut_off_anywhere_is_truncated_empty_or_right():
    body = body_of(*BODY)
    for at in range(len(body)):
        batch = decode(body[:at])

        assert batch.deltas == DELTAS[: len(batch.deltas)]
        if batch.finishes is None:
            assert batch.failure.kind in (FailureKind.TRUNCATED, FailureKind.EMPTY)
            assert (batch.failure.kind is FailureKind.TRUNCATED) or not batch.deltas
            assert batch.failure.retryable
        else:
            assert (batch.deltas, batch.finishes, batch.failure) == (DELTAS, ("tool_calls",), None)
            assert batch.usage in (None, USAGE)


def test_body_that_ends_within_a_frame_is_truncated_and_between_frames_of_life_empty():
    start = converse.message_start().data

    assert decode(start).failure.kind is FailureKind.EMPTY
    assert decode(start[:-1]).failure.kind is FailureKind.TRUNCATED
    assert decode().failure.kind is FailureKind.EMPTY


def test_frame_over_the_limit_is_malformed_behind_the_deltas_before_it():
    body = body_of(converse.text("a"), converse.text("b" * 5000))
    for pieces in ([body], [body[at : at + 9] for at in range(0, len(body), 9)]):
        batch = decode(*pieces, limit=1000)

        assert batch.deltas == [Block(0), Text("a")]
        assert batch.failure.kind is FailureKind.MALFORMED
        assert batch.failure.detail == "frame over 1000 bytes"
        assert not batch.failure.retryable


def test_damaged_frame_is_malformed_and_worth_another_try():
    damaged = bytearray(converse.text("b").data)
    damaged[-1] ^= 1
    batch = decode(converse.text("a").data + bytes(damaged))

    assert batch.deltas == [Block(0), Text("a")]
    assert (batch.failure.kind, batch.failure.reason) == (FailureKind.MALFORMED, "checksum")
    assert batch.failure.retryable


@pytest.mark.parametrize(
    "noise",
    [
        b"\x00garbage in the place of a frame",
        converse.exception("throttlingException", "slow down").data,
        converse.text("late").data,
        converse.message_stop("max_tokens").data,
        converse.event("contentBlockDelta", {"delta": 1}).data,
    ],
)
def test_nothing_after_the_evidence_changes_it(noise):
    body = body_of(converse.text("a"), converse.message_stop())
    whole = decode(body)

    assert decode(body + noise) == decode(body, noise)
    for batch in (decode(body + noise), decode(body, noise)):
        assert (batch.deltas, batch.finishes, batch.failure) == (whole.deltas, ("stop",), None)


@pytest.mark.parametrize("size", [1, 3, 7, 64, 1000])
def test_arguments_are_the_same_for_every_fragmentation(size):
    arguments = json.dumps({"path": "/tmp/ü", "lines": ["a\nb"] * 20}, ensure_ascii=False)
    pieces = [arguments[at : at + size] for at in range(0, len(arguments), size)]
    batch = decode(
        converse.tool("write", id="a").data,
        body_of(*map(converse.arguments, pieces)),
        converse.message_stop("tool_use").data,
    )
    calls = [delta for delta in batch.deltas if isinstance(delta, Tool)]

    assert "".join(delta.arguments for delta in calls) == arguments
    assert len(calls) == 1 + len(pieces)


def test_document_gives_the_same_answer_as_the_stream():
    document = (
        converse.completion(
            {"reasoningContent": {"reasoningText": {"text": "Hm, tides.", "signature": "c2ln"}}},
            {"text": "Grüße, Welt 🌊"},
            {"toolUse": {"toolUseId": "t1", "name": "read", "input": {"path": "é"}}},
            reason="tool_use",
        )
        | METADATA
    )
    batch = decode_document(json.dumps(document, ensure_ascii=False).encode())

    assert [delta for delta in batch.deltas if not isinstance(delta, Block)] == [
        Reasoning("Hm, tides."),
        Text("Grüße, Welt 🌊"),
        Tool(0, "t1", "read"),
        Tool(0, arguments='{"path": "é"}'),
    ]
    assert (batch.finishes, batch.usage, batch.done) == (("tool_calls",), USAGE, True)


def test_document_cut_off_anywhere_is_truncated_or_empty():
    body = json.dumps(converse.completion({"text": "Grüße"})).encode()
    for at in range(len(body)):
        batch = decode_document(body[:at])

        assert batch.finishes is None
        assert batch.failure.kind is (FailureKind.TRUNCATED if at else FailureKind.EMPTY)


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b"[]", FailureKind.MALFORMED),
        (b"nonsense", FailureKind.MALFORMED),
        (b'{"output":{"message":{"content":"text"}}}', FailureKind.MALFORMED),
        (b'{"output":{"message":{"content":[{"text":1}]}}}', FailureKind.MALFORMED),
        (b'{"message":"slow down","__type":"a#ThrottlingException"}', FailureKind.RATE_LIMITED),
        (b'{"message":"no idea"}', FailureKind.SERVER_ERROR),
    ],
)
def test_document_that_is_no_answer_is_a_failure(body, kind):
    batch = decode_document(body)

    assert batch.failure.kind is kind
    assert batch.deltas == []


KINDS = st.sampled_from(
    [
        *("messageStart", "contentBlockStart", "contentBlockDelta", "contentBlockStop"),
        *("messageStop", "metadata", "somethingNew"),
    ]
)
KEYS = st.sampled_from(
    [
        *("contentBlockIndex", "delta", "start", "text", "toolUse", "input", "toolUseId", "name"),
        *("type", "reasoningContent", "signature", "redactedContent", "citation", "toolResult"),
        *("image", "source", "bytes", "stopReason", "usage", "inputTokens", "outputTokens"),
    ]
)
SHAPED = st.recursive(
    st.none() | st.integers() | st.text(max_size=5) | st.just("server_tool_use"),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)
FITTING = st.fixed_dictionaries(
    {},
    optional={
        "contentBlockIndex": st.integers(-1, 2) | st.just(1 << 70),
        "delta": st.fixed_dictionaries(
            {},
            optional={
                "text": st.text(max_size=3),
                "toolUse": st.fixed_dictionaries({"input": st.text(max_size=3)}),
                "reasoningContent": st.dictionaries(KEYS, st.text(max_size=3), max_size=2),
                "citation": st.dictionaries(KEYS, JSON, max_size=2),
                "toolResult": st.lists(JSON, max_size=2),
                "image": st.dictionaries(KEYS, SHAPED, max_size=2),
            },
        ),
        "start": st.fixed_dictionaries(
            {}, optional={"toolUse": st.dictionaries(KEYS, st.text(max_size=3), max_size=3)}
        ),
        "stopReason": st.text(max_size=3),
        "usage": SHAPED,
    },
)


def frame_of(kind, value):
    return converse.encode(
        {":event-type": kind, ":message-type": "event"}, json.dumps(value).encode()
    )


FRAMES = (
    st.builds(frame_of, KINDS, JSON | SHAPED | FITTING)
    | st.builds(
        lambda kind, payload: converse.encode({":event-type": kind}, payload),
        KINDS,
        st.binary(max_size=9),
    )
    | st.builds(
        lambda kind, payload: converse.encode({":message-type": kind}, payload),
        st.sampled_from(["exception", "error", "?"]),
        st.binary(max_size=9),
    )
    | st.binary(max_size=9)
)


@settings(deadline=None, max_examples=300)
@given(st.lists(FRAMES, max_size=6))
def test_any_frames_end_in_evidence_or_a_failure(frames):
    body = b"".join(frames)
    batch = decode(body)

    assert (batch.finishes is None) != (batch.failure is None)
    assert decode(*[bytes([byte]) for byte in body]) == batch


@settings(deadline=None, max_examples=150)
@given(
    st.builds(lambda value: json.dumps(value).encode(), JSON | SHAPED)
    | st.builds(
        lambda content: json.dumps({"output": {"message": {"content": content}}}).encode(),
        st.lists(SHAPED, max_size=3),
    )
    | st.binary(max_size=9)
)
def test_any_document_ends_in_evidence_or_a_failure(body):
    batch = decode_document(body)

    assert (batch.finishes is None) != (batch.failure is None)

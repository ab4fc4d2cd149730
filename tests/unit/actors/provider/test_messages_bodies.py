"""Whole Messages bodies: the same answer however they are cut, and never a wrong one.

*Goal*: cuts, line ends and truncation change nothing but what has not come yet.
*Method*: golden bodies, decoded whole, cut at every byte, byte by byte and cut off at every byte.
"""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.actors.provider.dialects.batch import Batch
from tidegate.actors.provider.dialects.messages import MessagesDecoder, decode_json
from tidegate.actors.sink.assembly import Assembly
from tidegate.lab import messages as lab
from tidegate.protocol.answers import Usage
from tidegate.protocol.deltas import ENVELOPE, Block, Reasoning, Text, Tool
from tidegate.protocol.failures import FailureKind


LIMIT = 1 << 16
CITATION = {"type": "char_location", "cited_text": "six", "document_index": 0}

BODIES = {
    "text": [
        lab.start(tokens=(12, 1), cache_read_input_tokens=4),
        lab.text_start(),
        lab.ping(),
        lab.text("Grüße, "),
        lab.text("Welt 🌊"),
        lab.block_stop(0),
        lab.stop_reason("end_turn", 7),
        lab.stop(),
    ],
    "all there is": [
        lab.start(),
        lab.thinking_start(0),
        lab.thinking("hm", 0),
        lab.thinking("m", 0),
        lab.signature("c2ln", 0),
        lab.block_stop(0),
        lab.block_start(1, "redacted_thinking", data="b3BhcXVl"),
        lab.block_stop(1),
        lab.tool_start(2, "srv_1", "web_search", "server_tool_use"),
        lab.tool_input('{"query":', 2),
        lab.tool_input('"tides"}', 2),
        lab.block_stop(2),
        lab.block_start(3, "web_search_tool_result", tool_use_id="srv_1", content=[]),
        lab.block_stop(3),
        lab.text_start(4),
        lab.text("High at ", 4),
        lab.text("six.", 4),
        lab.block_delta(4, "citations_delta", citation=CITATION),
        lab.block_stop(4),
        *lab.call(5, "toolu_1", "read", "", '{"path":"é', '"}'),
        *lab.call(6, "toolu_2", "list"),
        lab.stop_reason("tool_use", 31, output_tokens_details={"thinking_tokens": 9}),
        lab.stop(),
    ],
    "no message_stop": [lab.start(), *lab.words("four"), lab.stop_reason("max_tokens", 2)],
}
WORDS = {
    "text": [Text("Grüße, "), Text("Welt 🌊")],
    "all there is": [
        Reasoning("hm"),
        Reasoning("m"),
        Text("High at "),
        Text("six."),
        Tool(0, "toolu_1", "read"),
        Tool(0, arguments='{"path":"é'),
        Tool(0, arguments='"}'),
        Tool(1, "toolu_2", "list"),
    ],
    "no message_stop": [Text("four")],
}
ENDS = {
    "text": ("stop", Usage(input_tokens=12, output_tokens=7, cached_input_tokens=4)),
    "all there is": (
        "tool_calls",
        Usage(input_tokens=10, output_tokens=31, reasoning_tokens=9),
    ),
    "no message_stop": ("length", Usage(input_tokens=10, output_tokens=2)),
}
CALLS = {"all there is": [("toolu_1", '{"path":"é"}'), ("toolu_2", "{}")]}


def bytes_of(steps):
    return b"".join(step.data for step in steps)


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


def decode(*pieces, limit=LIMIT):
    decoder = MessagesDecoder(event_bytes_max=limit)
    return joined([*[decoder.feed(piece) for piece in pieces], decoder.eof()])


def assembled(batch):
    assembly = Assembly(token=1)
    assembly.add(batch.deltas)
    assembly.finishes = batch.finishes or ()
    return assembly


def words_in(batch):
    return [delta for delta in batch.deltas if not isinstance(delta, Block)]


def calls_in(batch):
    [choice] = assembled(batch).choices()
    return [(call.id, call.arguments) for call in choice.tool_calls]


@pytest.fixture(params=BODIES)
def name(request):
    return request.param


@pytest.fixture(params=["\n", "\r", "\r\n"], ids=["LF", "CR", "CRLF"])
def body(request, name):
    return bytes_of(BODIES[name]).replace(b"\n", request.param.encode())


def test_golden_body_gives_its_answer(name, body):
    batch = decode(body)

    assert words_in(batch) == WORDS[name]
    assert (batch.finishes, batch.usage) == ((ENDS[name][0],), ENDS[name][1])
    assert calls_in(batch) == CALLS.get(name, [])
    assert batch.described == ("msg_lab", "lab", 0)
    assert batch.failure is None
    assert batch.done == (b"message_stop" in body)


def test_golden_body_has_all_that_is_no_words():
    parts = assembled(decode(bytes_of(BODIES["all there is"]))).parts()

    envelope, *blocks = parts
    assert envelope.index == ENVELOPE
    assert envelope.data == {
        "id": "msg_lab",
        "type": "message",
        "role": "assistant",
        "model": "lab",
        "stop_reason": "tool_use",
        "stop_sequence": None,
        "usage": {
            "input_tokens": 10,
            "output_tokens": 31,
            "output_tokens_details": {"thinking_tokens": 9},
        },
    }
    assert [block.data for block in blocks] == [
        {"type": "thinking", "signature": "c2ln"},
        {"type": "redacted_thinking", "data": "b3BhcXVl"},
        {
            "type": "server_tool_use",
            "id": "srv_1",
            "name": "web_search",
            "input": {},
            "partial_json": ['{"query":', '"tides"}'],
        },
        {"type": "web_search_tool_result", "tool_use_id": "srv_1", "content": []},
        {"type": "text", "citations": [CITATION]},
        {"type": "tool_use"},
        {"type": "tool_use"},
    ]
    assert [block.calls for block in blocks[-2:]] == [("toolu_1",), ("toolu_2",)]


def test_golden_body_cut_anywhere_gives_the_same(body):
    whole = decode(body)

    assert decode(*[bytes([byte]) for byte in body]) == whole
    for at in range(1, len(body)):
        assert decode(body[:at], body[at:]) == whole, f"cut at {at}"


def test_golden_body_cut_off_anywhere_is_truncated_empty_or_right(name, body):
    whole = decode(body)
    for at in range(len(body)):
        batch = decode(body[:at])

        assert batch.deltas == whole.deltas[: len(batch.deltas)]
        if batch.finishes is None:
            expected = FailureKind.TRUNCATED if batch.deltas else FailureKind.EMPTY
            assert batch.failure.kind is expected
            assert batch.failure.retryable
            assert calls_in(batch) == []
        else:
            assert (batch.deltas, batch.finishes) == (whole.deltas, whole.finishes)
            assert (batch.failure, batch.usage) == (None, whole.usage)


def test_document_is_the_same_answer_as_the_stream():
    content = [
        {"type": "thinking", "thinking": "hmm", "signature": "c2ln"},
        {"type": "redacted_thinking", "data": "b3BhcXVl"},
        {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {"query": "x"}},
        {"type": "text", "text": "High at six.", "citations": [CITATION]},
        {"type": "tool_use", "id": "toolu_1", "name": "read", "input": {"path": "é"}},
        {"type": "tool_use", "id": "toolu_2", "name": "list", "input": {}},
    ]
    body = json.dumps(lab.message(content, reason="tool_use")).encode()
    batch = decode_json(body)
    parts = assembled(batch).parts()

    assert (batch.finishes, batch.done, batch.failure) == (("tool_calls",), True, None)
    assert words_in(batch)[:2] == [Reasoning("hmm"), Text("High at six.")]
    assert calls_in(batch) == CALLS["all there is"]
    assert batch.usage == Usage(input_tokens=10, output_tokens=5)
    assert parts[0].data["stop_reason"] == "tool_use"
    assert parts[3].data == content[2]
    assert parts[4].data == {"type": "text", "citations": [CITATION]}


def test_document_cut_off_anywhere_is_truncated_or_empty():
    document = json.dumps(lab.message("Grüße 🌊", reason="end_turn")).encode()
    for at in range(len(document)):
        failure = decode_json(document[:at]).failure

        assert failure.kind is (FailureKind.TRUNCATED if at else FailureKind.EMPTY)


def test_input_is_the_same_for_every_fragmentation():
    arguments = json.dumps({"path": "/tmp/ü", "lines": ["a\nb"] * 20}, ensure_ascii=False)
    for size in (1, 3, 7, 64, 1000):
        pieces = [arguments[at : at + size] for at in range(0, len(arguments), size)]
        steps = [lab.start(), *lab.call(0, "a", "write", *pieces), lab.stop_reason("tool_use")]
        batch = decode(bytes_of(steps))

        assert calls_in(batch) == [("a", arguments)]
        assert len(words_in(batch)) == 1 + len(pieces)


def test_event_over_the_limit_is_malformed_behind_the_deltas_before_it():
    body = bytes_of([lab.start(), lab.text_start(), lab.text("a"), lab.text("b" * 5000)])
    for pieces in ([body], [body[at : at + 9] for at in range(0, len(body), 9)]):
        batch = decode(*pieces, limit=1000)

        assert words_in(batch) == [Text("a")]
        assert batch.failure.kind is FailureKind.MALFORMED
        assert not batch.failure.retryable


KINDS = st.sampled_from(
    [
        *("message_start", "content_block_start", "content_block_delta", "content_block_stop"),
        *("message_delta", "message_stop", "ping", "error", "text_delta", "thinking_delta"),
        *("input_json_delta", "signature_delta", "citations_delta", "text", "thinking"),
        *("tool_use", "server_tool_use", "end_turn", "max_tokens", "later_kind"),
    ]
)
KEYS = st.sampled_from(
    [
        *("type", "index", "delta", "message", "content_block", "usage", "error", "text", "id"),
        *("thinking", "partial_json", "signature", "citation", "stop_reason", "name", "input"),
        *("content", "input_tokens", "output_tokens", "model"),
    ]
)
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(max_size=5)
    | KINDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)
INDEX = st.integers(-2, 2) | st.none()
SHAPED = st.fixed_dictionaries(
    {"type": KINDS},
    optional={
        "index": INDEX | JSON,
        "delta": st.fixed_dictionaries(
            {"type": KINDS},
            optional={key: st.text(max_size=5) | JSON for key in ("text", "partial_json")}
            | {"stop_reason": KINDS | st.none(), "thinking": JSON, "citation": JSON},
        )
        | JSON,
        "content_block": st.fixed_dictionaries(
            {"type": KINDS},
            optional={"id": JSON, "name": JSON, "input": JSON, "text": JSON, "citations": JSON},
        )
        | JSON,
        "message": JSON,
        "usage": JSON,
        "error": JSON,
    },
)
ODD = [
    b"data: \xff\xfe\n\n",
    b"event: error\ndata: oops\n\n",
    b"data: [DONE]\n\n",
    b'data: {"type":"content_block_delta","delta":{"type":"text_delta","text":"\\ud800"}}\n\n',
    b'event: content_block_stop\ndata: {"index":0}\n\n',
    b"\r\r\n",
]


def frame(payload):
    return b"data: " + json.dumps(payload).encode() + b"\n\n"


@settings(deadline=None, max_examples=200)
@given(
    st.lists(
        st.builds(frame, SHAPED | JSON) | st.sampled_from(ODD) | st.binary(max_size=9), max_size=9
    )
)
def test_any_frames_end_in_evidence_or_a_failure(frames):
    body = b"".join(frames)
    batch = decode(body)

    assert (batch.finishes is None) != (batch.failure is None)
    assert decode(*[bytes([byte]) for byte in body]) == batch
    for call in assembled(batch).choices()[0].tool_calls:
        assert isinstance(json.loads(call.arguments), dict)
    assembled(batch).parts()


@settings(deadline=None, max_examples=200)
@given(st.builds(lambda value: json.dumps(value).encode(), JSON | SHAPED) | st.binary(max_size=9))
def test_any_document_ends_in_evidence_or_a_failure(body):
    batch = decode_json(body)

    assert (batch.finishes is None) != (batch.failure is None)

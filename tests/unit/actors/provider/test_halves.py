"""A character that a server has cut in two is one again, on every wire; a lone half is U+FFFD."""

import json
from collections.abc import Callable
from itertools import chain
from typing import NamedTuple

import pytest

from tidegate.actors.provider.dialects.chat import ChatDecoder
from tidegate.actors.provider.dialects.converse import ConverseDecoder
from tidegate.actors.provider.dialects.messages import MessagesDecoder
from tidegate.actors.provider.dialects.responses import ResponsesDecoder
from tidegate.lab import converse
from tidegate.protocol.deltas import Block, Reasoning, Text, Tool


LIMIT = 1 << 16
FIRST, SECOND, WHOLE, LOST = "\ud83c", "\udf0a", "\U0001f30a", "\ufffd"


def sse(value):
    """A frame in ASCII, as ``msgspec`` would not write it: halves are escaped."""
    return f"data: {json.dumps(value)}\n\n".encode()


def amazon(kind, value):
    headers = {":message-type": "event", ":event-type": kind}
    return converse.encode(headers, json.dumps(value).encode())


class Wire(NamedTuple):
    """How a wire brings words of each kind, and how it ends."""

    decoder: Callable
    text: Callable
    reasoning: Callable
    arguments: Callable
    end: bytes


def chat(**fields):
    return sse({"choices": [{"index": 0, "delta": fields}]})


def messages(kind, **fields):
    return sse({"type": "content_block_delta", "index": 0, "delta": {"type": kind, **fields}})


def responses(kind, delta, **fields):
    named = {"item_id": "i", "output_index": 0, **fields}
    return sse({"type": f"response.{kind}.delta", **named, "delta": delta})


def bedrock(delta):
    return amazon("contentBlockDelta", {"contentBlockIndex": 0, "delta": delta})


CHAT = Wire(
    lambda: ChatDecoder(event_bytes_max=LIMIT),
    lambda piece: chat(content=piece),
    lambda piece: chat(reasoning_content=piece),
    lambda piece: chat(tool_calls=[{"index": 0, "function": {"arguments": piece}}]),
    sse({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}),
)
BEDROCK = Wire(
    lambda: ConverseDecoder(event_bytes_max=LIMIT),
    lambda piece: bedrock({"text": piece}),
    lambda piece: bedrock({"reasoningContent": {"text": piece}}),
    lambda piece: bedrock({"toolUse": {"input": piece}}),
    amazon("messageStop", {"stopReason": "end_turn"}),
)
WIRES = [
    pytest.param(CHAT, id="chat"),
    pytest.param(
        Wire(
            lambda: ResponsesDecoder(event_bytes_max=LIMIT),
            lambda piece: responses("output_text", piece, content_index=0),
            lambda piece: responses("reasoning_summary_text", piece, summary_index=0),
            lambda piece: responses("function_call_arguments", piece),
            sse({"type": "response.completed", "response": {}}),
        ),
        id="responses",
    ),
    pytest.param(
        Wire(
            lambda: MessagesDecoder(event_bytes_max=LIMIT),
            lambda piece: messages("text_delta", text=piece),
            lambda piece: messages("thinking_delta", thinking=piece),
            lambda piece: messages("input_json_delta", partial_json=piece),
            sse({"type": "message_delta", "delta": {"stop_reason": "max_tokens"}})
            + sse({"type": "message_stop"}),
        ),
        id="messages",
    ),
    pytest.param(BEDROCK, id="converse"),
]
ON_ALL_WIRES = pytest.mark.parametrize("wire", WIRES)


def reads(wire, *pieces):
    """Return the words of each read, and of the end of the body."""
    decoder = wire.decoder()
    batches = [*map(decoder.feed, pieces), decoder.eof()]
    assert batches[-1].failure is None
    return [[delta for delta in batch.deltas if not isinstance(delta, Block)] for batch in batches]


def joined(wire, *pieces):
    return [*chain(*reads(wire, *pieces, wire.end))]


@ON_ALL_WIRES
class TestWires:
    @pytest.mark.parametrize(
        ("kind", "make"),
        [
            ("text", Text),
            ("reasoning", Reasoning),
            ("arguments", lambda piece: Tool(0, arguments=piece)),
        ],
    )
    def test_two_halves_are_one_character(self, wire, kind, make):
        piece = getattr(wire, kind)

        for first, second in [(f"a{FIRST}", SECOND), (FIRST, f"{SECOND}b"), (FIRST, SECOND)]:
            words = joined(wire, piece(first), piece(second), piece("c"))
            pieces = [first.removesuffix(FIRST), WHOLE + second.removeprefix(SECOND), "c"]
            if kind == "arguments":
                words = [each for each in words if each.arguments]
            assert words == [make(each) for each in pieces if each]

    def test_character_is_taken_as_soon_as_it_is_whole(self, wire):
        pieces = map(wire.text, (f"a{FIRST}", SECOND, "b"))

        words = reads(wire, *pieces, wire.end)

        assert words == [[Text("a")], [Text(WHOLE)], [Text("b")], [], []]

    def test_body_cut_anywhere_gives_the_same(self, wire):
        pieces = [f"a{FIRST}", f"{SECOND}{FIRST}", SECOND, FIRST, "b", SECOND, FIRST]
        body = b"".join(map(wire.text, pieces)) + wire.end
        whole = joined(wire, body)

        assert "".join(each.text for each in whole) == f"a{WHOLE}{WHOLE}{LOST}b{LOST}{LOST}"
        for cut in range(1, len(body)):
            assert [*chain(*reads(wire, body[:cut], body[cut:]))] == whole

    @pytest.mark.parametrize("after", ["b", FIRST, WHOLE, f"{LOST}b", ""])
    def test_first_half_with_anything_else_behind_it_is_lost(self, wire, after):
        words = joined(wire, wire.text(f"a{FIRST}"), wire.text(after))

        assert "".join(each.text for each in words) == f"a{LOST}{after}".replace(FIRST, LOST)

    def test_second_half_without_a_first_is_lost(self, wire):
        assert joined(wire, wire.text("a"), wire.text(SECOND)) == [Text("a"), Text(LOST)]

    def test_half_at_the_end_of_all_is_lost(self, wire):
        assert reads(wire, wire.text(f"a{FIRST}"), wire.end)[1] == [Text(LOST)]

    def test_half_before_a_body_that_is_cut_is_lost(self, wire):
        decoder = wire.decoder()
        decoder.feed(wire.text(FIRST))
        end = decoder.eof()

        assert (end.deltas, end.failure.kind) == ([Text(LOST)], "truncated")

    def test_half_before_a_frame_that_cannot_be_read_is_lost(self, wire):
        decoder = wire.decoder()
        decoder.feed(wire.text(FIRST))
        frame = (
            amazon("contentBlockDelta", 5) if wire is BEDROCK else sse("half").replace(b'"', b"")
        )
        broken = decoder.feed(frame)

        assert (broken.deltas, broken.failure.kind) == ([Text(LOST)], "malformed")

    def test_escaped_backslash_before_it_makes_it_no_half(self, wire):
        words = joined(wire, wire.text("\\ud83c"), wire.text("\\udf0a"), wire.text(FIRST))

        assert words == [Text("\\ud83c"), Text("\\udf0a"), Text(LOST)]


def test_half_is_not_taken_into_the_next_block():
    decoder = MessagesDecoder(event_bytes_max=LIMIT)
    start = {"type": "content_block_start", "index": 1, "content_block": {"type": "text"}}
    more = {**json.loads(messages("text_delta", text=SECOND)[6:]), "index": 1}
    frames = [messages("text_delta", text=f"a{FIRST}"), sse(start), sse(more)]
    deltas = [delta for frame in frames for delta in decoder.feed(frame).deltas]

    assert [getattr(delta, "text", "block") for delta in deltas] == [
        *("block", "a"),
        LOST,
        *("block", LOST),
    ]


def test_words_of_another_kind_in_between_do_not_part_those_of_chat():
    pieces = [chat(content=FIRST), chat(reasoning="hm"), chat(content=SECOND)]

    assert joined(CHAT, *pieces) == [Reasoning("hm"), Text(WHOLE)]


def test_choices_are_joined_each_for_itself():
    decoder = ChatDecoder(choices=2, event_bytes_max=LIMIT)

    def piece(choice, text):
        return sse({"choices": [{"index": choice, "delta": {"content": text}}]})

    frames = [piece(0, FIRST), piece(1, FIRST), piece(0, SECOND), piece(1, SECOND)]
    words = [decoder.feed(frame).deltas for frame in frames]

    assert words == [[], [], [Text(WHOLE)], [Text(WHOLE, 1)]]


def test_words_that_a_server_sends_twice_are_joined_once():
    twice = [chat(reasoning=half, reasoning_content=half) for half in (FIRST, SECOND)]

    assert joined(CHAT, *twice) == [Reasoning(WHOLE)]


def test_what_is_said_beside_the_words_does_not_part_them():
    decoder = ChatDecoder(event_bytes_max=LIMIT)
    pieces = [
        sse({"choices": [{"delta": {"content": half}, "logprobs": {"content": [1]}}]})
        for half in (FIRST, SECOND)
    ]
    deltas = [delta for piece in pieces for delta in decoder.feed(piece).deltas]

    assert [delta for delta in deltas if isinstance(delta, Text)] == [Text(WHOLE)]
    assert len(deltas) == 3


def test_arguments_that_are_told_whole_take_the_place_of_a_half():
    done = {"type": "response.function_call_arguments.done", "item_id": "i", "output_index": 0}
    whole = json.dumps({"a": WHOLE})
    decoder = ResponsesDecoder(event_bytes_max=LIMIT)
    decoder.feed(responses("function_call_arguments", f'{{"a": "{FIRST}'))

    [delta] = decoder.feed(sse({**done, "arguments": whole})).deltas

    assert delta == Tool(0, arguments=whole, whole=True)

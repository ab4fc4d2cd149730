"""What single frames of the messages wire mean, the odd ones above all."""

import pytest

from tidegate.actors.provider.dialects.faults import failure_from_error_body
from tidegate.actors.provider.dialects.messages import MessagesDecoder, decode_json
from tidegate.actors.sink.assembly import Assembly
from tidegate.lab import frame, raw
from tidegate.lab import messages as lab
from tidegate.protocol.answers import Usage
from tidegate.protocol.deltas import Block, Reasoning, Text, Tool
from tidegate.protocol.failures import FailureKind


def decode(*steps):
    decoder = MessagesDecoder(event_bytes_max=1 << 16)
    batch = decoder.feed(b"".join(step.data for step in steps))
    end = decoder.eof()
    batch.deltas += end.deltas
    batch.finishes = batch.finishes or end.finishes
    batch.failure = batch.failure or end.failure
    batch.contentless = end.contentless
    return batch


def words_in(batch):
    return [delta for delta in batch.deltas if not isinstance(delta, Block)]


def parts_in(batch):
    assembly = Assembly(token=1)
    assembly.add(batch.deltas)
    return assembly.parts()


def data(text):
    return raw(b"data: " + text.encode() + b"\n\n")


@pytest.mark.parametrize(
    ("reason", "finish"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("pause_turn", "stop"),
        ("something_new", "stop"),
        ("tool_use", "tool_calls"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("refusal", "content_filter"),
    ],
)
def test_stop_reason_is_a_finish(reason, finish):
    assert decode(lab.start(), *lab.words("a"), lab.stop_reason(reason)).finishes == (finish,)


class TestEvidence:
    def test_stop_reason_waits_for_blocks_that_are_open(self):
        begun = (lab.start(), lab.text_start(), lab.text("a"), lab.stop_reason())

        assert decode(*begun).failure.kind is FailureKind.TRUNCATED
        assert decode(*begun, lab.block_stop(0)).finishes == ("stop",)
        assert decode(*begun, lab.stop()).finishes == ("stop",)

    def test_message_stop_alone_proves_text(self):
        batch = decode(lab.start(), *lab.words("a"), lab.stop())

        assert (batch.finishes, batch.failure) == (("stop",), None)

    def test_message_stop_alone_proves_no_call(self):
        """Nobody must run a tool whose end was never told."""
        batch = decode(lab.start(), *lab.call(0, "a", "f", "{}"), lab.stop())

        assert batch.finishes is None
        assert batch.failure.kind is FailureKind.TRUNCATED
        assert batch.failure.retryable

    def test_message_stop_alone_proves_nothing_of_nothing(self):
        assert decode(lab.start(), lab.stop()).failure.kind is FailureKind.EMPTY

    def test_answer_without_content_is_whole_with_a_stop_reason(self):
        batch = decode(lab.start(), lab.stop_reason("end_turn", 0), lab.stop())

        assert (batch.finishes, batch.failure, words_in(batch)) == (("stop",), None, [])
        assert parts_in(batch)[0].data["stop_reason"] == "end_turn"

    def test_delta_of_the_message_without_a_stop_reason_proves_nothing(self):
        batch = decode(lab.start(), *lab.words("a"), lab.stop_reason(None, 3))

        assert batch.failure.kind is FailureKind.TRUNCATED
        assert batch.usage.output_tokens == 3

    @pytest.mark.parametrize(
        "noise",
        [
            lab.error("overloaded_error", "Overloaded"),
            data("{oops"),
            data("5"),
            lab.text("more"),
            lab.text_start(7),
            lab.block_start(7, "tool_use", id=[], name=1),
            lab.stop_reason("max_tokens", 9),
            data('{"type":"message_delta","delta":7}'),
        ],
    )
    def test_nothing_changes_an_answer_that_is_whole(self, noise):
        whole = (lab.start(), *lab.words("a"), lab.stop_reason())
        batch = decode(*whole, noise, lab.stop())

        assert (batch.finishes, batch.failure) == (("stop",), None)
        assert batch.deltas == decode(*whole).deltas

    def test_usage_still_counts(self):
        batch = decode(
            lab.start(), *lab.words("a"), lab.stop_reason(), lab.stop_reason("end_turn", 9)
        )

        assert batch.usage == Usage(input_tokens=10, output_tokens=9)


class TestProgress:
    def test_beginnings_and_pings_are_none(self):
        batch = decode(lab.start(), lab.ping(), lab.text_start(), lab.text(""), lab.ping())

        assert (batch.deltas, batch.events) == ([], 5)
        assert batch.failure.kind is FailureKind.EMPTY

    def test_block_of_words_without_words_is_told_at_its_end(self):
        batch = decode(lab.start(), lab.thinking_start(), lab.block_stop(0))

        assert [type(delta) for delta in batch.deltas] == [Block, Block]
        assert parts_in(batch)[1].data == {"type": "thinking", "signature": ""}

    def test_call_is_known_as_soon_as_it_begins(self):
        assert words_in(decode(lab.start(), lab.tool_start(0, "a", "f"))) == [Tool(0, "a", "f")]

    def test_frames_without_content_alone_are_contentless(self):
        assert decode(raw(b"data:\n\nevent: ping\n\n")).contentless
        assert not decode(lab.ping()).contentless


class TestBlocks:
    def test_interleaved_blocks_keep_their_words(self):
        batch = decode(
            lab.start(),
            *(lab.text_start(0), lab.thinking_start(1)),
            *(lab.text("a", 0), lab.thinking("x", 1), lab.text("b", 0), lab.thinking("y", 1)),
            *(lab.block_stop(1), lab.block_stop(0)),
            lab.stop_reason(),
        )

        assert words_in(batch) == [Text("a"), Reasoning("x"), Text("b"), Reasoning("y")]
        _, text, thinking = parts_in(batch)
        assert (text.text, thinking.reasoning) == (((0, 1), (1, 2)), ((0, 1), (1, 2)))

    def test_block_that_was_not_announced_is_one(self):
        batch = decode(lab.text("a", 3), lab.stop_reason(), lab.stop())

        assert words_in(batch) == [Text("a")]
        assert parts_in(batch)[1].data == {"type": "text"}
        assert batch.finishes == ("stop",)

    def test_index_that_is_used_again_is_a_new_block(self):
        batch = decode(
            lab.start(),
            *(lab.tool_start(0, "a", "f"), lab.tool_input('{"x":1}', 0)),
            *lab.call(0, "b", "g", '{"y":2}'),
            lab.stop_reason("tool_use"),
        )

        assert [delta.index for delta in words_in(batch)] == [0, 0, 1, 1]
        assert [part.calls for part in parts_in(batch)[1:]] == [("a",), ("b",)]

    def test_input_that_was_not_announced_is_a_call_without_a_name(self):
        pieces = (lab.tool_input('{"x"', 0), lab.tool_input(":1}", 0), lab.block_stop(0))
        batch = decode(lab.start(), *pieces, lab.stop_reason("tool_use"))
        assembly = Assembly(token=1)
        assembly.add(batch.deltas)
        assembly.finishes = batch.finishes
        [choice] = assembly.choices()

        assert [(call.name, call.arguments) for call in choice.tool_calls] == [("", '{"x":1}')]

    def test_input_behind_the_end_of_its_block_is_nobodys(self):
        call = lab.call(0, "a", "f", '{"x":1}')
        batch = decode(lab.start(), *call, lab.tool_input("}", 0), lab.stop_reason("tool_use"))

        assert words_in(batch) == words_in(decode(lab.start(), *call, lab.stop_reason("tool_use")))

    def test_input_may_come_with_the_beginning(self):
        begun = lab.block_start(0, "tool_use", id="a", name="f", input={"x": 1})
        batch = decode(lab.start(), begun, lab.block_stop(0), lab.stop_reason("tool_use"))

        assert words_in(batch) == [Tool(0, "a", "f"), Tool(0, arguments='{"x":1}')]

    def test_text_may_come_with_the_beginning(self):
        begun = lab.block_start(0, "text", text="a")
        batch = decode(lab.start(), begun, lab.text("b"), lab.block_stop(0), lab.stop_reason())

        assert words_in(batch) == [Text("a"), Text("b")]

    def test_what_came_up_later_is_skipped(self):
        batch = decode(
            lab.start(),
            lab.event("message_flagged", level=3),
            *(lab.block_start(0, "hologram", shape=[1]), lab.block_delta(0, "shape_delta", by=2)),
            lab.block_delta(9, "signature_delta", signature="of nobody"),
            *(lab.block_stop(9), lab.block_stop(0)),
            *lab.words("a", index=1),
            lab.stop_reason(),
        )

        assert (words_in(batch), batch.finishes) == ([Text("a")], ("stop",))
        assert parts_in(batch)[1].data == {"type": "hologram", "shape": [1]}

    def test_lone_surrogate_becomes_a_replacement_character(self):
        odd = data(
            '{"type":"content_block_delta","index":0,'
            '"delta":{"type":"text_delta","text":"a\\ud83cb"}}'
        )

        assert words_in(decode(lab.start(), lab.text_start(), odd)) == [Text("a\ufffdb")]

    def test_type_may_be_in_the_event_line_alone(self):
        start = frame({"message": {"id": "m"}}, event="message_start")
        stop = frame({"delta": {"stop_reason": "end_turn"}}, event="message_delta")
        batch = decode(start, *lab.words("a"), stop)

        assert (batch.described, batch.finishes) == (("m", "", 0), ("stop",))


class TestUsage:
    def test_each_figure_replaces_its_own(self):
        batch = decode(
            lab.start(tokens=(31, 1), cache_read_input_tokens=7),
            *lab.words("a"),
            lab.stop_reason("end_turn", 19, input_tokens=None),
        )

        assert batch.usage == Usage(input_tokens=31, output_tokens=19, cached_input_tokens=7)
        assert parts_in(batch)[0].data["usage"] == {
            "input_tokens": 31,
            "output_tokens": 19,
            "cache_read_input_tokens": 7,
        }

    def test_figures_of_another_type_are_left_out(self):
        start = lab.start(tokens=("many", 1), cache_read_input_tokens=float("1e3"))

        assert decode(start).usage == Usage(output_tokens=1, cached_input_tokens=1000)


class TestErrors:
    @pytest.mark.parametrize(
        ("kind", "status", "retryable"),
        [
            ("invalid_request_error", 400, False),
            ("authentication_error", 401, False),
            ("billing_error", 402, False),
            ("permission_error", 403, False),
            ("not_found_error", 404, False),
            ("request_too_large", 413, False),
            ("rate_limit_error", 429, True),
            ("api_error", 500, True),
            ("timeout_error", 504, True),
            ("overloaded_error", 529, True),
        ],
    )
    def test_error_in_the_stream_is_the_error_before_it(self, kind, status, retryable):
        body = {"type": "error", "error": {"type": kind, "message": "no"}}
        failure = decode(lab.start(), *lab.words("a"), lab.error(kind, "no")).failure

        assert failure == failure_from_error_body(status, body, {}, now_s=0.0)
        assert (failure.status, failure.code, failure.retryable) == (status, kind, retryable)

    def test_error_of_an_unknown_type_is_the_servers(self):
        failure = decode(lab.error("strange_error", "hm")).failure

        assert (failure.kind, failure.status) == (FailureKind.SERVER_ERROR, None)

    @pytest.mark.parametrize(
        "step",
        [
            raw(b"event: error\ndata: upstream connect error\n\n"),
            frame({"error": {"message": "upstream connect error"}}),
        ],
    )
    def test_error_may_have_another_form(self, step):
        failure = decode(lab.start(), step).failure

        assert (failure.kind, failure.detail) == (FailureKind.TRUNCATED, "upstream connect error")

    def test_document_may_be_an_error(self):
        failure = decode_json(lab.error("overloaded_error", "busy").data.partition(b"data: ")[2])

        assert failure.failure.kind is FailureKind.OVERLOADED


UNREADABLE = ["{oops", "5", '["a"]', '{"type":"content_block_delta","index":"x"}']


class TestUnreadable:
    @pytest.mark.parametrize("text", UNREADABLE)
    def test_frame_is_worth_another_attempt(self, text):
        failure = decode(lab.start(), lab.text_start(), lab.text("a"), data(text)).failure

        assert (failure.kind, failure.retryable) == (FailureKind.MALFORMED, True)
        assert failure.raw_text == text

    @pytest.mark.parametrize("text", UNREADABLE)
    def test_frame_inside_an_input_is_a_call_gone_wrong(self, text):
        begun = (lab.start(), lab.tool_start(0, "a", "f"), lab.tool_input('{"x"', 0))
        failure = decode(*begun, data(text)).failure

        assert (failure.kind, failure.retryable) == (FailureKind.MALFORMED_TOOL_CALL, True)

    def test_frame_behind_an_input_is_no_call_gone_wrong(self):
        failure = decode(lab.start(), *lab.call(0, "a", "f", "{}"), data("{oops")).failure

        assert failure.kind is FailureKind.MALFORMED

    @pytest.mark.parametrize("text", ["null", " "])
    def test_frame_without_anything_is_skipped(self, text):
        batch = decode(lab.start(), data(text), *lab.words("a"), lab.stop_reason())

        assert batch.finishes == ("stop",)

    @pytest.mark.parametrize("pieces", [('{"x": ',), ('{"x": 1}', "}"), ("[1]",), ("7",)])
    def test_input_that_is_no_object_is_a_call_gone_wrong(self, pieces):
        batch = decode(lab.start(), *lab.call(0, "a", "f", *pieces), lab.stop_reason("tool_use"))

        assert batch.finishes is None
        assert batch.failure.kind is FailureKind.MALFORMED_TOOL_CALL
        assert batch.failure.raw_text == "".join(pieces)

    def test_input_that_was_cut_by_the_limit_is_no_mistake(self):
        batch = decode(lab.start(), *lab.call(0, "a", "f", '{"x'), lab.stop_reason("max_tokens"))

        assert (batch.finishes, batch.failure) == (("length",), None)

    @pytest.mark.parametrize("content", [None, "text", [7], [{"text": "no type"}]])
    def test_document_of_another_shape_is_malformed(self, content):
        body = frame(lab.message("a") | {"content": content}).data.partition(b"data: ")[2]

        assert decode_json(body).failure.kind is FailureKind.MALFORMED

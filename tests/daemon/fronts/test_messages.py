"""The rules of the messages front, one by one."""

import pytest

import tidegate as tg
from tests.daemon.fronts import sdks
from tests.daemon.fronts.playing import Events, block, data_of, frames_of, new_front, render
from tidegate.protocol.answers import Answer, Part, Usage
from tidegate.protocol.deltas import ENVELOPE


TEXT = {"type": "text", "text": ""}


@pytest.fixture
def events():
    return Events()


def kinds(body):
    return [each["type"] for each in data_of(body)]


def content(body):
    """Return (index, what happens) for each event of a block."""
    found = []
    for each in data_of(body):
        if each["type"].startswith("content_block"):
            delta = each.get("delta") or each.get("content_block") or {"type": "stop"}
            found.append((each["index"], delta["type"]))
    return found


class TestMessage:
    def test_words_without_structure_are_a_block(self, events):
        body = render("messages", [events.text("Hel"), events.text("lo"), events.completed()])

        assert kinds(body) == [
            "message_start",
            "content_block_start",
            *["content_block_delta"] * 2,
            "content_block_stop",
            "message_delta",
            "message_stop",
        ]
        sdks.judge("messages", body)

    def test_start_has_what_is_known_by_then(self, events):
        head = {"id": "msg_9", "model": "m1", "usage": {"input_tokens": 3, "output_tokens": 1}}
        items = [
            block(ENVELOPE, **head, role="assistant", stop_reason="end_turn", container=None),
            block(ENVELOPE, usage={"cache_read_input_tokens": 2}),
            block(0, type="text"),
            events.text("a"),
        ]
        answer = Answer(response_id="msg_9", model="m1")

        first, *_ = data_of(render("messages", items, answer))

        assert first["message"] == {
            "id": "msg_9",
            "type": "message",
            "role": "assistant",
            "model": "m1",
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "container": None,
            "usage": {"input_tokens": 3, "output_tokens": 1, "cache_read_input_tokens": 2},
        }

    def test_what_the_provider_does_not_say_is_the_requests(self, events):
        first, *_ = data_of(render("messages", [events.text("a"), events.completed()]))

        message = first["message"]
        assert (message["id"], message["model"]) == ("msg_turn_1", "asked")
        assert message["usage"] == {"input_tokens": 0, "output_tokens": 0}

    def test_end_has_the_reason_and_all_figures(self, events):
        around = {
            "stop_reason": "stop_sequence",
            "stop_sequence": "x",
            "usage": {"output_tokens": 7},
        }
        answer = Answer(
            finish="stop",
            usage=Usage(input_tokens=3, output_tokens=7, cached_input_tokens=2),
            parts=(Part(index=ENVELOPE, data=around),),
        )

        items = [events.text("a"), events.other(tg.TurnCompleted, answer=answer)]
        *_, delta, _ = data_of(render("messages", items))

        assert delta["delta"] == {"stop_reason": "stop_sequence", "stop_sequence": "x"}
        figures = {"input_tokens": 3, "output_tokens": 7, "cache_read_input_tokens": 2}
        assert delta["usage"] == figures

    def test_attempt_that_failed_unseen_leaves_nothing(self, events):
        items = [
            events.started(),
            block(ENVELOPE, usage={"input_tokens": 99}),
            events.started(2),
            block(ENVELOPE, usage={"output_tokens": 1}),
            events.text("a"),
        ]

        first, *_ = data_of(render("messages", items, Answer()))

        assert first["message"]["usage"] == {"input_tokens": 0, "output_tokens": 1}


class TestBlocks:
    def test_each_block_is_closed_before_the_next_one_opens(self, events):
        items = [
            block(0, type="thinking"),
            events.reasoning("hm"),
            block(0, signature="c2ln"),
            block(1, type="redacted_thinking", data="b3Bh"),
            block(2, type="text"),
            events.text("a"),
            block(3, type="tool_use"),
            events.tool(0, "t", "read"),
            events.tool(0, arguments="{}"),
            events.completed(),
        ]

        assert content(render("messages", items)) == [
            (0, "thinking"),
            *((0, "thinking_delta"), (0, "signature_delta"), (0, "stop")),
            (1, "redacted_thinking"),
            (1, "stop"),
            *((2, "text"), (2, "text_delta"), (2, "stop")),
            *((3, "tool_use"), (3, "input_json_delta"), (3, "stop")),
        ]

    def test_signature_that_came_first_goes_to_the_end(self, events):
        items = [block(0, type="thinking", signature="c2ln"), events.reasoning("hm")]

        body = render("messages", [*items, events.completed()])

        start = data_of(body)[1]["content_block"]
        assert start == {"type": "thinking", "thinking": "", "signature": ""}
        assert content(body)[2] == (0, "signature_delta")

    def test_call_is_announced_with_its_name(self, events):
        items = [block(0, type="tool_use", caller={"type": "direct"})]
        items += [events.tool(0, "t", "read"), events.completed()]

        start = data_of(render("messages", items))[1]["content_block"]

        named = {"id": "t", "name": "read", "input": {}, "caller": {"type": "direct"}}
        assert start == {"type": "tool_use", **named}

    def test_call_without_an_id_gets_the_one_of_the_answer(self, events):
        items = [events.started(token=9), block(0, type="tool_use"), events.tool(0, None, "read")]

        start = data_of(render("messages", [*items, events.completed()]))[1]["content_block"]

        assert start["id"] == "call_9_0_0"

    def test_call_of_which_a_part_is_to_come_stays_open(self, events):
        items = [
            block(0, type="tool_use"),
            events.tool(0, "a", "read"),
            events.tool(0, arguments='{"x":'),
            block(1, type="tool_use"),
            events.tool(1, "b", "read"),
            events.tool(1, arguments="{}"),
            block(0),
            events.tool(0, arguments="1}"),
            block(2, type="text"),
            events.text("done"),
            events.completed(),
        ]

        body = render("messages", items)

        assert content(body) == [
            *((0, "tool_use"), (0, "input_json_delta")),
            *((1, "tool_use"), (1, "input_json_delta"), (0, "input_json_delta")),
            *((0, "stop"), (1, "stop")),
            *((2, "text"), (2, "text_delta"), (2, "stop")),
        ]
        assert sdks.joined("messages", body)["content"][0]["input"] == {"x": 1}

    def test_input_behind_the_end_of_a_call_ends_the_stream(self, events):
        items = [events.tool(0, "a", "read"), block(1, type="text"), events.text("b")]
        items += [events.tool(0, arguments="{}"), events.completed()]

        *_, last = data_of(render("messages", items))

        assert last["error"]["tidegate"]["kind"] == "malformed_tool_call"

    def test_words_that_go_on_later_are_a_block_of_their_own(self, events):
        items = [block(0, type="text"), events.text("a"), block(1, type="text"), events.text("b")]
        items += [block(0), events.text("c"), events.completed()]

        body = render("messages", items)

        assert [each["text"] for each in sdks.joined("messages", body)["content"]] == [*"abc"]

    def test_refusal_is_text(self, events):
        body = render("messages", [events.refusal("No."), events.completed()])

        assert sdks.joined("messages", body)["content"] == [{"type": "text", "text": "No."}]

    def test_input_of_a_tool_of_the_provider_comes_in_pieces(self, events):
        asked = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}
        items = [block(0, **asked), block(0, partial_json=['{"q":']), block(0, partial_json=["1}"])]

        body = render("messages", [*items, events.completed()])

        assert sdks.joined("messages", body)["content"][0]["input"] == {"q": 1}


class TestEnds:
    def test_failure_has_an_error_and_no_end_mark(self, events):
        body = render("messages", [events.text("a"), events.failed()])

        name, error = frames_of(body)[-1]
        assert (name, error["type"]) == ("error", "error")
        assert error["error"]["type"] == "api_error"
        assert not {"message_delta", "message_stop", "content_block_stop"} & {*kinds(body)}
        got, raised = sdks.heard("messages", body)
        assert [each["type"] for each in got] == kinds(body)[:-1]
        assert "it broke off" in str(raised)

    def test_call_that_was_cut_never_looks_whole(self, events):
        notice = events.notice("tool_call_lost", "Lost: read.")
        for arguments in ("", '{"x":'):
            items = [block(0, type="tool_use"), events.tool(0, "a", "read")]
            items += [events.tool(0, arguments=arguments), notice, events.failed()]

            body = render("messages", items)

            assert (0, "stop") not in content(body)
            assert content(body)[-3:] == [(1, "text"), (1, "text_delta"), (1, "stop")]
            assert kinds(body)[-1] == "error"

    def test_lost_call_of_a_complete_message_is_told_in_text(self, events):
        items = [block(0, type="tool_use"), events.tool(0, "a", "read", '{"x":')]
        items += [events.notice("tool_call_lost", "Lost: read."), events.completed(finish="length")]

        body = render("messages", items)

        assert content(body)[2:] == [(0, "stop"), (1, "text"), (1, "text_delta"), (1, "stop")]
        assert kinds(body)[-1] == "message_stop"

    def test_second_attempt_is_never_glued_to_the_first(self, events):
        items = [events.started(), events.text("a"), events.started(2)]
        items += [events.other(tg.AttemptSuperseded, retracts=1), events.text("b")]

        body = render("messages", [*items, events.completed()])

        assert kinds(body)[-1] == "error"
        assert b'"b"' not in body

    def test_heartbeat_goes_unnoticed_anywhere(self, events):
        front = new_front("messages")
        items = [events.text("a"), events.text("b"), events.completed()]

        body = b"".join(front.heartbeat + front.frames(item, Answer) for item in items)

        assert kinds(body).count("ping") == 3
        assert sdks.joined("messages", body)["content"] == [{"type": "text", "text": "ab"}]

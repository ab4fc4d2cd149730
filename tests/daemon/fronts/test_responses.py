"""The rules of the responses front, one by one."""

import pytest
from openai.types.responses import Response

import tidegate as tg
from tests.daemon.fronts import sdks
from tests.daemon.fronts.playing import Events, block, data_of, new_front, render
from tidegate.protocol.answers import Answer, Part, ToolCall
from tidegate.protocol.deltas import ENVELOPE
from tidegate.protocol.failures import FailureKind


SAID = ["content", 0, "output_text", "text"]
THOUGHT = ["summary", 0, "summary_text", "reasoning"]


@pytest.fixture
def events():
    return Events()


def kinds(body):
    return [each["type"].removeprefix("response.") for each in data_of(body)]


def message(place=0, item_id="m", *rows):
    return block(place, item={"id": item_id, "type": "message"}, words=list(rows) or [SAID])


def call(place=0, item_id="fc", kind="function_call"):
    return block(place, item={"id": item_id, "type": kind})


def done(place, **item):
    return block(place, item={"status": "completed", **item})


def last(body):
    return data_of(body)[-1]["response"]


class TestResponse:
    def test_words_without_structure_are_a_message(self, events):
        body = render("responses", [events.text("Hel"), events.text("lo"), events.completed()])

        assert kinds(body) == [
            *("created", "in_progress", "output_item.added", "content_part.added"),
            *("output_text.delta", "output_text.delta", "output_text.done"),
            *("content_part.done", "output_item.done", "completed"),
        ]
        sdks.judge("responses", body)

    def test_beginning_repeats_what_was_asked(self, events):
        tool = {"type": "function", "name": "read"}
        asked = {
            "instructions": "Be brief.",
            "tools": [tool],
            "tool_choice": {"type": "function", "name": "read"},
            "parallel_tool_calls": False,
            "temperature": 0.5,
            "metadata": {"a": "b"},
        }
        front = new_front("responses", **asked)

        begun = data_of(front.frames(events.text("a"), Answer))[0]["response"]

        strict = {**asked, "tools": [{**tool, "parameters": None, "strict": None}]}
        assert begun == begun | strict
        assert (begun["status"], begun["output"], begun["usage"]) == ("in_progress", [], None)
        Response.model_validate(begun, strict=True)

    def test_name_does_not_change(self, events):
        answer = Answer(response_id="other", model="m2", created=9, finish="stop")
        items = [events.text("a"), events.other(tg.TurnCompleted, answer=answer)]

        body = render("responses", items, Answer(response_id="resp_9"))

        begun = data_of(body)[0]["response"]
        assert (begun["id"], begun["model"], begun["created_at"]) == ("resp_9", "asked", 7)
        assert last(body)["id"] == "resp_9"

    def test_figures_are_there_even_if_nobody_counted(self, events):
        body = render("responses", [events.text("a"), events.completed()])

        assert last(body)["usage"]["total_tokens"] == 0

    def test_incomplete_is_what_the_wire_says(self, events):
        around = {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
        end = events.completed(finish="length", parts=(Part(index=ENVELOPE, data=around),))

        body = render("responses", [events.text("a"), end])

        assert kinds(body)[-1] == "incomplete"
        assert last(body)["incomplete_details"] == {"reason": "max_output_tokens"}


class TestItems:
    def test_parts_and_items_are_closed_in_order(self, events):
        items = [
            block(0, item={"id": "rs", "type": "reasoning"}, words=[THOUGHT]),
            events.reasoning("a"),
            block(0, words=[["summary", 1, "summary_text", "reasoning"]]),
            events.reasoning("b"),
            done(0, summary=[{"type": "summary_text"}] * 2, encrypted_content="x"),
            message(1),
            events.text("c"),
            done(1, content=[{"type": "output_text", "annotations": []}]),
            events.completed(),
        ]

        body = render("responses", items)

        assert kinds(body)[2:] == [
            *("output_item.added", "reasoning_summary_part.added", "reasoning_summary_text.delta"),
            *("reasoning_summary_text.done", "reasoning_summary_part.done"),
            *("reasoning_summary_part.added", "reasoning_summary_text.delta"),
            *("reasoning_summary_text.done", "reasoning_summary_part.done", "output_item.done"),
            *("output_item.added", "content_part.added", "output_text.delta"),
            *("output_text.done", "content_part.done", "output_item.done", "completed"),
        ]
        thought = next(each for each in data_of(body) if each["type"].endswith("item.done"))["item"]
        assert [each["text"] for each in thought["summary"]] == ["a", "b"]
        assert thought["encrypted_content"] == "x"
        sdks.judge("responses", body)

    def test_blank_line_between_thoughts_is_nobodys(self, events):
        items = [
            block(0, item={"id": "rs", "type": "reasoning"}, words=[THOUGHT]),
            events.reasoning("a"),
            block(ENVELOPE),
            events.reasoning("\n\n"),
            block(0, words=[["summary", 1, "summary_text", "reasoning"]]),
            events.reasoning("b"),
        ]

        body = render("responses", items, Answer())

        deltas = [each["delta"] for each in data_of(body) if "delta" in each]
        assert deltas == ["a", "b"]

    def test_commentary_is_text_of_its_item(self, events):
        aside = block(
            0,
            item={"id": "c", "type": "message", "phase": "commentary"},
            words=[["content", 0, "output_text", "reasoning"]],
        )
        items = [
            aside,
            events.reasoning("Let "),
            events.reasoning("me."),
            message(1),
            events.text("a"),
        ]

        body = render("responses", items, Answer())

        said = [each for each in data_of(body) if each["type"].endswith("output_text.delta")]
        assert [(each["item_id"], each["delta"]) for each in said] == [
            *(("c", "Let "), ("c", "me."), ("m", "a"))
        ]
        assert data_of(body)[2]["item"]["phase"] == "commentary"

    def test_refusal_and_text_are_parts_of_one_message(self, events):
        items = [
            message(),
            events.text("a"),
            block(0, words=[["content", 1, "refusal", "refusal"]]),
        ]
        items += [events.refusal("No."), events.completed()]

        body = render("responses", items)

        item = data_of(body)[-2]["item"]
        assert [part["type"] for part in item["content"]] == ["output_text", "refusal"]
        sdks.judge("responses", body)

    def test_same_id_is_given_to_one_item_only(self, events):
        items = [message(0, "same"), events.text("a"), message(1, "same"), events.text("b")]

        body = render("responses", [*items, events.completed()])

        added = [
            each["item"]["id"] for each in data_of(body) if each["type"].endswith("item.added")
        ]
        assert len({*added}) == 2
        sdks.joined("responses", body)

    def test_words_behind_the_end_of_an_item_are_not_lost(self, events):
        items = [message(), events.text("a"), done(0), block(0, words=[SAID]), events.text("b")]

        body = render("responses", [*items, events.completed()])

        added = [each for each in data_of(body) if each["type"].endswith("item.added")]
        assert [each["output_index"] for each in added] == [0, 1]
        sdks.judge("responses", body)

    def test_item_of_another_kind_comes_whole(self, events):
        items = [block(0, item={"id": "ws", "type": "web_search_call"})]
        items += [done(0, action={"type": "search", "query": "tides"}), events.text("a")]

        body = render("responses", [*items, events.completed()])

        assert kinds(body)[2:4] == ["output_item.added", "output_item.done"]
        sdks.judge("responses", body)


class TestCalls:
    def test_call_is_announced_once_it_has_a_name(self, events):
        front = new_front("responses")
        assert front.frames(call(), Answer) == b""
        assert front.frames(events.tool(0, None, "read"), Answer) == b""
        assert not front.content_sent

        body = front.frames(events.tool(0, "call_1"), Answer)

        added = data_of(body)[-1]["item"]
        assert (added["call_id"], added["name"], added["arguments"]) == ("call_1", "read", "")

    def test_custom_call_gets_plain_text(self, events):
        items = [call(kind="custom_tool_call"), events.tool(0, "call_1", "shell")]
        pieces = ['"echo ', '\\"', "é\\\\", '"']
        items += [events.tool(0, arguments=piece) for piece in pieces]
        settled = ToolCall(id="call_1", name="shell", arguments="".join(pieces))
        items.append(events.completed(tool_calls=(settled,), finish="tool_calls"))

        body = render("responses", items)

        assert [each["delta"] for each in data_of(body) if "delta" in each] == ["echo ", '"', "é\\"]
        assert data_of(body)[-2]["item"]["input"] == 'echo "é\\'

    def test_call_that_cannot_be_trusted_is_incomplete(self, events):
        items = [call(), events.tool(0, "call_1", "read"), events.tool(0, arguments='{"x')]

        body = render("responses", [*items, events.completed(finish="length")])

        item = data_of(body)[-2]["item"]
        assert (item["status"], item["arguments"]) == ("incomplete", '{"x')
        assert "function_call_arguments.done" not in kinds(body)
        assert last(body)["output"] == []
        sdks.joined("responses", body)

    def test_calls_may_come_at_a_time(self, events):
        items = [call(0, "fc_0"), events.tool(0, "a", "read"), call(1, "fc_1")]
        items += [events.tool(1, "b", "read"), block(0), events.tool(0, arguments="{}"), block(1)]
        items += [events.tool(1, arguments="[]"), events.completed()]

        body = render("responses", items)

        pieces = [(each["item_id"], each["delta"]) for each in data_of(body) if "delta" in each]
        assert pieces == [("fc_0", "{}"), ("fc_1", "[]")]

    def test_attempt_that_failed_unseen_leaves_nothing(self, events):
        items = [events.started(), call(), events.tool(0, None, "read"), events.started(2)]
        items += [message(), events.text("a"), events.completed()]

        body = render("responses", items)

        assert [each["item"]["id"] for each in data_of(body) if "item" in each] == ["m", "m"]


class TestEnds:
    def test_failure_is_told_twice_and_nothing_is_completed(self, events):
        body = render("responses", [message(), events.text("a"), events.failed()])

        *_, error, failed = data_of(body)
        assert kinds(body)[-2:] == ["error", "failed"]
        assert not {"completed", "incomplete", "output_item.done"} & {*kinds(body)}
        assert error["message"] == error["error"]["message"] == "it broke off"
        assert failed["response"]["error"] == {"code": "server_error", "message": "it broke off"}
        sdks.judge("responses", body)
        got, raised = sdks.heard("responses", body)
        assert len(got) == len(data_of(body)) - 2
        assert "it broke off" in str(raised)

    @pytest.mark.parametrize("kind", FailureKind)
    def test_every_failure_has_a_code_that_the_api_knows(self, events, kind):
        body = render("responses", [events.failed(kind)])

        assert kinds(body) == ["error", "failed"]
        sdks.judge("responses", body)

    def test_lost_call_is_told_in_text(self, events):
        notice = events.notice("tool_call_lost", "Lost: read.")
        begun = [call(), events.tool(0, "a", "read", '{"x')]

        for end in (events.failed(), events.completed(finish="length")):
            body = render("responses", [*begun, notice, end])

            said = [each for each in data_of(body) if each["type"].endswith("output_text.done")]
            assert [each["text"] for each in said] == ["Lost: read."]
            sdks.judge("responses", body)
        assert last(body)["output"][-1]["content"][0]["text"] == "Lost: read."

    def test_call_that_was_cut_is_never_done(self, events):
        items = [call(), events.tool(0, "a", "read", '{"x":1}')]
        items += [events.notice("tool_call_lost", "Lost: read."), events.failed()]

        body = render("responses", items)

        done_items = [each for each in data_of(body) if each["type"].endswith("output_item.done")]
        assert [each["item"]["type"] for each in done_items] == ["message"]
        assert "function_call_arguments.done" not in kinds(body)

    def test_second_attempt_is_never_glued_to_the_first(self, events):
        items = [events.started(), events.text("a"), events.started(2)]
        items += [events.other(tg.AttemptSuperseded, retracts=1), events.text("b")]

        body = render("responses", [*items, events.completed()])

        assert kinds(body)[-1] == "failed"
        assert b'"b"' not in body


def test_heartbeat_goes_unnoticed_anywhere(events):
    front = new_front("responses")
    items = [events.text("a"), events.text("b"), events.completed()]

    body = b"".join(front.heartbeat + front.frames(item, Answer) for item in items)

    got, error = sdks.heard("responses", body)
    assert error is None
    assert [each["sequence_number"] for each in got] == list(range(len(got)))


def test_judge_is_strict():
    with pytest.raises(AssertionError):
        sdks.judge("responses", b'data: {"type":"response.output_text.delta","delta":"a"}\n\n')

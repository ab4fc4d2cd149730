"""The rules of the chat front, one by one."""

import pytest

import tidegate as tg
from tests.daemon.fronts import sdks
from tests.daemon.fronts.playing import Events, Looks, block, data_of, frames_of, new_front, render
from tidegate.protocol.answers import Answer, Choice, Part, ToolCall, Usage
from tidegate.protocol.failures import Failure, FailureKind


@pytest.fixture
def events():
    return Events()


def deltas(body):
    return [each["choices"][0]["delta"] for each in data_of(body) if each != "[DONE]"]


def calls(body):
    return [call for delta in deltas(body) for call in delta.get("tool_calls", ())]


class TestChunks:
    def test_answer_begins_with_its_role_and_ends_with_done(self, events):
        items = [events.started(), events.text("Hel"), events.text("lo"), events.completed()]

        body = render("chat", items)

        assert deltas(body) == [
            {"role": "assistant", "content": "", "refusal": None},
            {"content": "Hel"},
            {"content": "lo"},
            {},
        ]
        assert body.endswith(b"data: [DONE]\n\n")
        *_, last, _ = data_of(body)
        assert last["choices"][0]["finish_reason"] == "stop"

    def test_each_chunk_says_whose_it_is(self, events):
        around = Part(index=-1, data={"system_fingerprint": "fp"})
        answer = Answer(response_id="c1", model="m1", created=5, finish="stop", parts=(around,))

        body = render("chat", [events.text("a"), events.text("b"), events.completed()], answer)

        for chunk in data_of(body)[:-1]:
            assert (chunk["id"], chunk["object"]) == ("c1", "chat.completion.chunk")
            assert (chunk["created"], chunk["model"]) == (5, "m1")
            assert chunk["system_fingerprint"] == "fp"

    def test_what_the_provider_does_not_say_is_the_requests(self, events):
        chunk, *_ = data_of(render("chat", [events.text("a"), events.completed()]))

        assert (chunk["id"], chunk["created"], chunk["model"]) == ("chatcmpl-turn_1", 7, "asked")

    def test_nothing_is_sent_before_there_is_content(self, events):
        front, looks = new_front("chat"), Looks()
        usage = events.other(tg.UsageReported, usage=Usage(input_tokens=1))
        cause = Failure(kind=FailureKind.STALLED)
        retry = events.other(tg.RetryScheduled, cause=cause, delay_s=0.1)
        before = [events.started(), usage, block(-1, system_fingerprint="fp"), retry]
        before += [events.notice("stall_warning", "silent"), events.started(2)]

        assert b"".join(front.frames(item, looks) for item in before) == b""
        assert (front.content_sent, looks.count) == (False, 0)

        front.frames(events.text("a"), looks)
        front.frames(events.text("b"), looks)

        assert (front.content_sent, looks.count) == (True, 1)

    def test_reasoning_and_refusal_have_fields_of_their_own(self, events):
        items = [
            events.reasoning("h"),
            events.reasoning("m"),
            events.refusal("No."),
            events.text("x"),
        ]

        body = render("chat", [*items, events.completed()])

        assert deltas(body)[0]["content"] is None
        assert deltas(body)[1:5] == [
            {"reasoning_content": "h"},
            {"reasoning_content": "m"},
            {"refusal": "No."},
            {"content": "x"},
        ]

    def test_choices_begin_in_order_and_each_one_ends(self, events):
        answer = {"choices": (Choice(index=0, finish="stop"), Choice(index=1, finish="length"))}

        body = render("chat", [events.text("b", 1), events.text("a"), events.completed(**answer)])

        choices = [chunk["choices"][0] for chunk in data_of(body)[:-1]]
        assert [each["index"] for each in choices] == [0, 1, 1, 0, 0, 1]
        assert [each["finish_reason"] for each in choices[-2:]] == ["stop", "length"]
        assert sum("role" in each["delta"] for each in choices) == 2

    def test_no_character_could_be_taken_for_the_end_of_a_line(self, events):
        said = 'a\u2028b\u2029c\u0085d\r\n\x0b\x1e"\\\0 é'

        body = render("chat", [events.text(said), events.text(said), events.completed()])

        lines = body.decode().splitlines()
        assert {line[:5] for line in lines} == {"data:", ""}
        assert [each["content"] for each in deltas(body)[1:3]] == [said, said]


class TestUsage:
    USAGE = Usage(input_tokens=3, output_tokens=2)

    def test_figures_come_last_and_alone_if_asked_for(self, events):
        items = [events.text("a"), events.completed(usage=self.USAGE)]

        *chunks, last, _ = data_of(render("chat", items, stream_options={"include_usage": True}))

        assert last["choices"] == []
        assert last["usage"]["total_tokens"] == 5
        assert all(each["usage"] is None for each in chunks)

    @pytest.mark.parametrize("options", [None, {}, {"include_usage": False}, "odd"])
    def test_no_figures_unless_asked_for(self, events, options):
        items = [events.text("a"), events.completed(usage=self.USAGE)]

        body = render("chat", items, stream_options=options)

        assert b"usage" not in body


class TestCalls:
    def test_id_type_and_name_are_told_once(self, events):
        items = [
            events.tool(0, "a", "read"),
            events.tool(0, arguments='{"x"'),
            events.tool(0, arguments=": 1}"),
            events.completed(),
        ]

        body = render("chat", items)

        first, second = calls(body)
        function = {"name": "read", "arguments": '{"x"'}
        assert first == {"index": 0, "id": "a", "type": "function", "function": function}
        assert second == {"index": 0, "function": {"arguments": ": 1}"}}

    def test_call_waits_until_its_name_is_settled(self, events):
        front, look = new_front("chat"), Answer
        pieces = [events.tool(0, "a", "read"), events.tool(0, name="read_file")]

        assert [front.frames(piece, look) for piece in pieces] == [b"", b""]
        assert not front.content_sent

        (call,) = calls(front.frames(events.tool(0, arguments="{"), look))
        assert call["function"] == {"name": "read_file", "arguments": "{"}
        assert front.content_sent

    @pytest.mark.parametrize("following", ["text", "reasoning", "tool", "completed"])
    def test_call_that_waits_comes_before_what_follows(self, events, following):
        then = {
            "text": lambda: events.text("b"),
            "reasoning": lambda: events.reasoning("b"),
            "tool": lambda: events.tool(1, "b", "write", "{}"),
            "completed": events.completed,
        }
        front = new_front("chat")
        front.frames(events.text("so"), Answer)
        front.frames(events.tool(0, "a", "read", "{}"), Answer)

        body = front.frames(then[following](), Answer)

        assert calls(body)[0]["id"] == "a"

    def test_call_without_an_id_gets_the_one_of_the_answer(self, events):
        items = [events.started(token=9), events.tool(0, None, "read", "{}"), events.completed()]

        (call,) = calls(render("chat", items))

        assert call["id"] == "call_9_0_0"

    def test_call_without_arguments_gets_those_of_the_answer(self, events):
        call = ToolCall(id="a", name="list", arguments="{}")
        choice = Choice(tool_calls=(call,), finish="tool_calls")

        body = render("chat", [events.tool(0, "a", "list"), events.completed(choices=(choice,))])

        assert "".join(each["function"]["arguments"] for each in calls(body)) == "{}"

    def test_arguments_that_grew_are_told_by_the_difference(self, events):
        items = [events.tool(0, "a", "read"), events.tool(0, arguments='{"x":')]
        items += [events.tool(0, arguments='{"x":1}', whole=True), events.completed()]

        assert [each["function"]["arguments"] for each in calls(render("chat", items))] == [
            *('{"x":', "1}")
        ]

    def test_arguments_that_were_taken_back_end_the_stream(self, events):
        items = [events.tool(0, "a", "read"), events.tool(0, arguments='{"x":')]
        items += [events.tool(0, arguments='{"y":1}', whole=True), events.completed()]

        *_, last = data_of(body := render("chat", items))

        assert last["error"]["tidegate"]["kind"] == "malformed_tool_call"
        assert b"DONE" not in body

    def test_call_of_an_attempt_that_failed_unseen_is_forgotten(self, events):
        items = [events.started(), events.tool(0, "a", "read", "{}"), events.started(2)]
        items += [events.other(tg.AttemptSuperseded, retracts=0), events.text("b")]

        body = render("chat", [*items, events.completed()])

        assert calls(body) == []
        assert deltas(body)[1] == {"content": "b"}


class TestEnds:
    def test_failure_has_an_error_and_no_end_mark(self, events):
        body = render("chat", [events.text("a"), events.failed()])

        *chunks, last = data_of(body)
        assert last["error"]["message"] == "it broke off"
        assert all(each["choices"][0]["finish_reason"] is None for each in chunks)
        assert b"DONE" not in body
        events_heard, error = sdks.heard("chat", body)
        assert len(events_heard) == 2
        assert "it broke off" in str(error)

    def test_interrupt_is_an_error_too(self, events):
        *_, last = data_of(render("chat", [events.text("a"), events.interrupted("enough")]))

        assert (last["error"]["message"], last["error"]["code"]) == ("enough", "interrupted")

    def test_second_attempt_is_never_glued_to_the_first(self, events):
        items = [events.started(), events.text("a"), events.started(2)]
        items += [events.other(tg.AttemptSuperseded, retracts=1), events.text("b")]

        body = render("chat", [*items, events.completed()])

        assert [name for each in data_of(body) for name in each if name == "error"] == ["error"]
        assert b'"b"' not in body

    def test_nothing_follows_an_end(self, events):
        front = new_front("chat")
        failure = Failure(kind=FailureKind.STALLED)
        assert front.failed(failure)

        assert front.failed(failure) == b""
        assert front.frames(events.text("a"), Answer) == b""

    def test_lost_call_is_told_in_text(self, events):
        notice = events.notice("tool_call_lost", "Lost: read.")

        told = deltas(render("chat", [events.text("a"), notice, events.completed()]))
        *chunks, error = data_of(render("chat", [events.text("a"), notice, events.failed()]))

        assert told[-2] == {"content": "\n\nLost: read."}
        assert chunks[-1]["choices"][0]["delta"] == {"content": "\n\nLost: read."}
        assert "error" in error

    def test_lost_call_of_a_stream_without_words_is_told_too(self, events):
        items = [events.notice("tool_call_lost", "Lost: read."), events.failed()]

        role, told, error = data_of(render("chat", items))

        assert role["choices"][0]["delta"]["role"] == "assistant"
        assert told["choices"][0]["delta"] == {"content": "Lost: read."}
        assert "error" in error

    def test_notices_can_be_switched_off(self, events):
        items = [events.text("a"), events.notice("tool_call_lost", "Lost: read.")]
        items += [events.notice("fallback", "elsewhere"), events.failed()]

        body = render("chat", items, notices=False)

        assert b"Lost" not in body
        assert b"elsewhere" not in body

    def test_other_notices_are_comments(self, events):
        front = new_front("chat")
        front.frames(events.text("a"), Answer)

        frame = front.frames(events.notice("stall_warning", "silent\n\nfor 5 s"), Answer)

        assert frames_of(frame) == [("", ": stall_warning: silent for 5 s")]

    def test_what_is_nested_too_deep_is_an_error(self, events):
        deep = block(-1)
        deep = type(deep)(-1, b'{"choices":' + b"[" * 100_000 + b"]" * 100_000 + b"}")
        front = new_front("chat")
        front.frames(events.text("a"), Answer)

        (error,) = data_of(front.frames(deep, Answer))

        assert error["error"]["tidegate"]["kind"] == "internal"


def test_heartbeat_goes_unnoticed_anywhere(events):
    front = new_front("chat")
    frames = [front.frames(each, Answer) for each in (events.text("a"), events.completed())]

    body = b"".join(front.heartbeat + frame for frame in frames)

    got, error = sdks.heard("chat", body)
    assert error is None
    assert [each["choices"][0]["delta"].get("content") for each in got] == ["", "a", None]

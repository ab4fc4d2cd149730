"""The messages wire as a caller sees it: blocks, calls, errors, retries, partial answers."""

import pytest
from anthropic.types import Message

import tidegate as tg
from tests.e2e.scripts import LEFT, in_order, streamed
from tidegate.lab import Answer, End, Lab, gate, messages, raw, send
from tidegate.testing.eventually import eventually
from tidegate.testing.reading import Reading


PROMPT = {"model": "m", "max_tokens": 99, "messages": [{"role": "user", "content": "Hello"}]}
TOOLS = [{"name": "clock", "input_schema": {"type": "object"}}]
START = messages.start()
BROKEN = send("event: content_block_delta\ndata: {oops\n\n")


@pytest.fixture(scope="module")
def runtime():
    with tg.Runtime(workers=1, settings=tg.Settings(preload=("messages",))) as runtime:
        yield runtime


@pytest.fixture
def endpoint_at(own):
    return lambda lab: tg.Endpoint.messages(lab.base, "test-key", **own)


@pytest.fixture
def prompt():
    return PROMPT


def native(answer):
    return Message.model_validate(answer.native(), strict=True)


class TestStreams:
    def test_all_kinds_of_blocks(self, runtime, ask):
        citation = {"type": "char_location", "cited_text": "six", "document_index": 0}
        citation |= {"document_title": None, "start_char_index": 0, "end_char_index": 3}
        steps = [
            messages.start(tokens=(12, 1), cache_read_input_tokens=4),
            messages.ping(),
            messages.thinking_start(0),
            messages.thinking("hm", 0),
            messages.signature("c2ln", 0),
            messages.block_stop(0),
            messages.block_start(1, "redacted_thinking", data="b3BhcXVl"),
            messages.block_stop(1),
            messages.tool_start(2, "srv_1", "web_search", "server_tool_use"),
            messages.tool_input('{"query": "tides"}', 2),
            messages.block_stop(2),
            messages.block_start(3, "web_search_tool_result", tool_use_id="srv_1", content=[]),
            messages.block_stop(3),
            messages.text_start(4),
            messages.text("High at six.", 4),
            messages.block_delta(4, "citations_delta", citation=citation),
            messages.block_stop(4),
            *messages.call(5, "toolu_1", "clock", '{"zone"', ': "UTC"}'),
            *messages.call(6, "toolu_2", "list_all", ""),
            messages.stop_reason("tool_use", 31),
            messages.stop(),
        ]
        with Lab([streamed(*steps)]) as lab:
            answer = runtime.run(ask(lab))

            assert (answer.text, answer.reasoning) == ("High at six.", "hm")
            assert (answer.finish, answer.response_id) == ("tool_calls", "msg_lab")
            assert [(call.id, call.parsed()) for call in answer.tool_calls] == [
                ("toolu_1", {"zone": "UTC"}),
                ("toolu_2", {}),
            ]
            assert answer.usage == tg.Usage(
                input_tokens=12, output_tokens=31, cached_input_tokens=4
            )
            message = native(answer)
            assert [block.type for block in message.content] == [
                *("thinking", "redacted_thinking", "server_tool_use", "web_search_tool_result"),
                *("text", "tool_use", "tool_use"),
            ]
            assert message.content[0].signature == "c2ln"
            assert message.content[2].input == {"query": "tides"}
            assert message.content[4].citations[0].cited_text == "six"
            assert message.stop_reason == "tool_use"

    def test_one_delta_is_one_event_and_blocks_are_none(self, runtime, ask):
        with Lab([messages.answer("Hel", "lo")]) as lab:
            reading = Reading(runtime.start(ask(lab)))
            reading.to_end()

            assert [kind for kind in reading.kinds if kind != "UsageReported"] == [
                *("AttemptStarted", "TextDelta", "TextDelta", "TurnCompleted")
            ]
            assert reading.all(tg.UsageReported)[-1].usage.output_tokens == 5

    def test_answer_is_whole_without_the_last_event(self, runtime, ask):
        last = send('event: message_stop\ndata: {"type":"m')
        steps = [START, *messages.words("All of it."), messages.stop_reason(), last]
        with Lab([streamed(*steps, end=End.CUT)]) as lab:
            answer = runtime.run(ask(lab))

            assert (answer.text, answer.finish, len(lab.requests)) == ("All of it.", "stop", 1)

    def test_text_may_come_byte_by_byte(self, runtime, ask):
        body = b"".join(step.data for step in messages.answer("grün, 緑, 🌊").steps[:-1])
        with Lab([streamed(raw(body, piece=1))]) as lab:
            assert runtime.run(ask(lab)).text == "grün, 緑, 🌊"

    def test_call_cut_by_the_limit_is_lost_and_said_so(self, runtime, ask):
        steps = [*messages.words("Look: "), *messages.call(1, "t", "clock", '{"zo')]
        with Lab(
            [streamed(START, *steps, messages.stop_reason("max_tokens"), messages.stop())]
        ) as lab:
            answer = runtime.run(ask(lab))

            assert (answer.finish, answer.tool_calls) == ("length", ())
            assert answer.lost_tools == ("clock",)
            assert [block.type for block in native(answer).content] == ["text"]


class TestPlain:
    def test_document_is_the_same_events(self, runtime, ask):
        content = [
            {"type": "text", "text": "Hello"},
            {"type": "tool_use", "id": "t", "name": "clock", "input": {"zone": "UTC"}},
        ]
        document = messages.message(content, reason="tool_use", tokens=(3, 2))
        with Lab([Answer.json(document)]) as lab:
            answer = runtime.run(ask(lab, stream=False))

            assert "stream" not in lab.requests[0].json()
            assert (answer.text, answer.finish) == ("Hello", "tool_calls")
            assert answer.usage == tg.Usage(input_tokens=3, output_tokens=2)
            assert native(answer).model_dump(exclude_none=True) == (
                Message.model_validate(document).model_dump(exclude_none=True)
            )

    def test_refused_stream_is_asked_for_plainly_in_the_same_turn(self, runtime, ask):
        refusal = messages.error_answer(
            400, "invalid_request_error", "streaming is not supported for this model"
        )
        plain = Answer.json(messages.message("whole"))
        with Lab([refusal, plain, plain]) as lab:
            answer = runtime.run(ask(lab, retries=0))
            again = runtime.run(ask(lab, retries=0))

            assert (answer.text, again.text) == ("whole", "whole")
            assert [each.free for each in answer.attempts] == [False, True]
            asked = [each.json().get("stream", False) for each in lab.requests]
            assert asked == [True, False, False]


TRANSIENT = {
    "nothing at all": (streamed(), tg.EmptyStream),
    "only life": (streamed(START, messages.ping()), tg.EmptyStream),
    "a cut": (streamed(START, messages.text_start(), end=End.CUT), tg.StreamTruncated),
    "a reset": (streamed(START, end=End.RESET), tg.StreamTruncated),
    "overload": (
        messages.error_answer(529, "overloaded_error", "busy"),
        tg.Overloaded,
    ),
    "overload in the stream": (
        streamed(START, messages.error("overloaded_error", "busy")),
        tg.Overloaded,
    ),
    "rate limit": (
        messages.error_answer(429, "rate_limit_error", "slow", {"retry-after": "0"}),
        tg.RateLimited,
    ),
    "rate limit in the stream": (
        streamed(START, messages.error("rate_limit_error", "slow")),
        tg.RateLimited,
    ),
    "fault in the stream": (streamed(START, messages.error("api_error", "oops")), tg.ServerFault),
    "a frame that is no JSON": (streamed(START, BROKEN), tg.MalformedStream),
    "a call without a stop reason": (
        streamed(START, *messages.call(0, "t", "clock", "{}"), messages.stop()),
        tg.StreamTruncated,
    ),
}
FINAL = {
    "bad request": ("invalid_request_error", 400, tg.BadRequest),
    "wrong key": ("authentication_error", 401, tg.AuthRejected),
    "no credit": ("billing_error", 402, tg.QuotaExhausted),
    "too large": ("request_too_large", 413, tg.BadRequest),
}


class TestRetries:
    @pytest.mark.parametrize("name", TRANSIENT)
    def test_transient_failure_is_followed_by_an_answer(self, runtime, ask, name):
        failing, error = TRANSIENT[name]
        with Lab([failing, messages.answer("Hello")]) as lab:
            answer = runtime.run(ask(lab))

            assert (answer.text, len(lab.requests)) == ("Hello", 2)
            with pytest.raises(error):
                runtime.run(ask_once(lab, failing, ask))

    @pytest.mark.parametrize("name", FINAL)
    @pytest.mark.parametrize("within", [False, True], ids=["before", "in the stream"])
    def test_final_failure_is_raised_at_once(self, runtime, ask, name, within):
        kind, status, error = FINAL[name]
        answer = streamed(START, messages.error(kind, "no"))
        if not within:
            answer = messages.error_answer(status, kind, "no")
        with Lab(in_order(answer)) as lab:
            with pytest.raises(error, match="no") as raised:
                runtime.run(ask(lab))

            assert (raised.value.failure.status, len(lab.requests)) == (status, 1)

    def test_stream_without_events_is_tried_three_times(self, runtime, ask):
        with Lab(in_order(streamed(START))) as lab:
            with pytest.raises(tg.EmptyStream):
                runtime.run(ask(lab))

            assert len(lab.requests) == 3

    def test_overload_keeps_what_was_shown(self, runtime, ask):
        steps = [START, messages.text_start(), messages.text("Half a"), gate("taken")]
        with Lab([streamed(*steps, messages.error("overloaded_error", "busy"))]) as lab:
            turn = runtime.start(ask(lab))
            reading = Reading(turn)
            reading.until(tg.TextDelta)
            lab.open("taken")
            reading.to_end()
            answer = turn.result()

            assert (answer.text, answer.partial, answer.finish) == ("Half a", True, "incomplete")
            assert answer.failure.kind is tg.FailureKind.OVERLOADED
            assert (answer.failure.status, answer.failure.retryable) == (529, True)
            assert answer.usage == tg.Usage(input_tokens=10, output_tokens=1, origin="estimated")
            assert native(answer).stop_reason is None
            assert [block.text for block in native(answer).content] == ["Half a"]


def ask_once(lab, failing, ask):
    lab.add(failing)
    return ask(lab, retries=0)


BROKEN_INPUTS = {
    "a frame": [messages.tool_start(1, "t1", "clock"), messages.tool_input('{"z', 1), BROKEN],
    "the input": [
        *messages.call(1, "t1", "clock", '{"zone": UTC}'),
        messages.stop_reason("tool_use"),
        messages.stop(),
    ],
}


class TestBrokenInputs:
    @pytest.mark.parametrize("name", BROKEN_INPUTS)
    def test_call_is_asked_for_again_with_care_even_behind_text(self, runtime, ask, name):
        begun = [START, *messages.words("I will"), gate("taken")]
        whole = messages.call(1, "t2", "clock", '{"zone": "UTC"}')
        again = [START, *messages.words("I will"), *whole, messages.stop_reason("tool_use")]
        with Lab([streamed(*begun, *BROKEN_INPUTS[name]), streamed(*again)]) as lab:
            turn = runtime.start(ask(lab, {**PROMPT, "tools": TOOLS}))
            reading = Reading(turn)
            reading.until(tg.TextDelta)
            lab.open("taken")
            reading.to_end()
            answer = turn.result()

            first, second = (each.json()["tools"] for each in lab.requests)
            assert (first, second) == (TOOLS, [TOOLS[0] | {"eager_input_streaming": False}])
            assert [(call.id, call.parsed()) for call in answer.tool_calls] == [
                ("t2", {"zone": "UTC"})
            ]
            assert (answer.text, answer.lost_tools) == ("I will", ())
            assert [each.kind for each in reading.all(tg.Notice)] == ["reconnecting"]
            failure = answer.attempts[0].failure
            assert failure.kind is tg.FailureKind.MALFORMED_TOOL_CALL

    def test_counts_against_the_retries(self, runtime, ask):
        with Lab(in_order(streamed(START, *BROKEN_INPUTS["the input"]))) as lab:
            with pytest.raises(tg.MalformedToolCall) as raised:
                runtime.run(ask(lab, {**PROMPT, "tools": TOOLS}))

            assert len(lab.requests) == 3
            assert raised.value.answer.tool_calls == ()
            assert raised.value.answer.lost_tools == ("clock",)

    def test_old_call_is_forgotten_by_the_next_attempt(self, runtime, ask):
        """The second attempt breaks off in text: its answer knows nothing of the first's call."""
        first = [START, messages.tool_start(0, "t1", "write_file"), gate("begun"), BROKEN]
        second = [START, messages.text_start(), messages.text("Half"), gate("taken"), End.CUT]
        with Lab([streamed(*first), Answer(second)]) as lab:
            turn = runtime.start(ask(lab))
            reading = Reading(turn)
            reading.until(tg.ToolCallDelta)
            lab.open("begun")
            reading.until(tg.TextDelta)
            lab.open("taken")
            reading.to_end()
            answer = turn.result()

            assert (answer.text, answer.partial, answer.lost_tools) == ("Half", True, ())
            assert "write_file" not in str(answer.native())
            assert len(lab.requests) == 2


class TestEnds:
    def test_silence_is_stale_and_pings_are_no_progress(self, runtime, ask):
        steps = [START, messages.text_start(), messages.text("so far"), gate("taken")]
        with Lab([Answer([*steps, messages.ping(), End.HOLD])]) as lab:
            turn = runtime.start(ask(lab, retries=0, stale_after_s=0.3))
            reading = Reading(turn)
            reading.until(tg.TextDelta)
            lab.open("taken")
            reading.to_end()
            answer = turn.result()

            assert (answer.text, answer.partial) == ("so far", True)
            assert answer.failure.kind is tg.FailureKind.STALLED

    def test_interrupt_closes_the_socket(self, runtime, ask):
        steps = [START, messages.thinking_start(), messages.thinking("hm"), End.HOLD]
        with Lab([Answer(steps)]) as lab:
            turn = runtime.start(ask(lab))
            reading = Reading(turn)
            reading.until(tg.ReasoningDelta)

            assert turn.interrupt("enough")
            with pytest.raises(tg.Interrupted) as raised:
                turn.result()
            assert eventually(lambda: lab.requests[0].closed).how in LEFT
            assert raised.value.answer.reasoning == "hm"
            assert native(raised.value.answer).content[0].thinking == "hm"

"""What a stream of chat completions becomes: an answer, events, another attempt, or an error."""

import json

import pytest

import tidegate as tg
from tidegate.lab import Answer, End, Lab, chat, frame, gate, send
from tidegate.testing.reading import Reading


LEFT = ("eof", "reset")
"""How the lab sees a connection end that the client closes."""

WRITE = (
    chat.text("Let me write the audit: "),
    chat.tool(id="call_1", name="write_file"),
    chat.tool(arguments='{"path": "/tmp/x", '),
)
"""Text, and a call that stops in the middle of its arguments."""


def as_completed(*steps):
    return Answer([*steps, chat.done(), End.KEEPALIVE])


@pytest.fixture
def play(runtime, asking):
    """Run a turn against these answers: its answer, what the callback heard, the requests."""

    def run(*answers, **policy):
        heard = []
        with Lab(answers) as lab:
            answer = runtime.run(asking(lab, **policy), heard.append)
            return answer, heard, lab.requests

    return run


def texts_of(events):
    return [event.text for event in events if isinstance(event, tg.TextDelta)]


class TestStreamingAccumulator:
    def test_text_only_response(self, play):
        answer, _, _ = play(
            as_completed(
                chat.text("Hello"),
                chat.text(" world"),
                chat.chunk(
                    [{"index": 0, "delta": {"content": "!"}, "finish_reason": "stop"}],
                    model="the-model",
                ),
                chat.usage(10, 3),
            )
        )

        assert answer.text == "Hello world!"
        assert answer.tool_calls == ()
        assert answer.finish == "stop"
        assert answer.usage == tg.Usage(input_tokens=10, output_tokens=3)
        assert not answer.partial

    def test_sparse_delta_allows_missing_optional_fields(self, play):
        answer, _, _ = play(
            as_completed(
                frame({"choices": [{"delta": {}}]}),
                frame({"choices": [{}]}),
                frame({"choices": [{"delta": {"content": "done"}, "finish_reason": "stop"}]}),
            )
        )

        assert answer.text == "done"
        assert answer.tool_calls == ()

    def test_sparse_tool_delta_allows_missing_nested_fields(self, play):
        piece = {"index": 0, "function": {"arguments": '{"city":"Paris"}'}}
        answer, _, _ = play(
            as_completed(
                frame({"choices": [{"delta": {"tool_calls": [piece]}}]}), chat.finish("tool_calls")
            )
        )

        (call,) = answer.tool_calls
        assert (call.name, call.arguments) == ("", '{"city":"Paris"}')
        assert answer.finish == "tool_calls"

    def test_chat_stream_closes_original_provider_resource(self, runtime, asking):
        endless = Answer([chat.text("Hello"), chat.finish(), chat.done(), End.HOLD])
        with Lab([endless]) as lab:
            answer = runtime.run(asking(lab))

            assert answer.text == "Hello"
            assert lab.wait_closed(0).how in LEFT

    def test_native_gemini_endpoint_omits_stream_options(self, runtime):
        with Lab([chat.answer("Paris")]) as lab:
            endpoint = tg.Endpoint.chat(
                "http://generativelanguage.googleapis.com/v1beta", "test-key", proxy=lab.base
            )
            payload = {"model": "gemini", "messages": [{"role": "user", "content": "Capital?"}]}
            answer = runtime.run(tg.Request(endpoint, payload))

            (request,) = lab.requests
            assert answer.text == "Paris"
            assert request.target == (
                "http://generativelanguage.googleapis.com/v1beta/chat/completions"
            )
            assert request.json()["stream"] is True
            assert "stream_options" not in request.json()

    def test_endpoint_rejecting_stream_options_is_retried_without_it(self, runtime, asking):
        extra = {
            "type": "extra_forbidden",
            "loc": ["body", "stream_options", "include_usage"],
            "msg": "Extra inputs are not permitted",
        }
        refusal = Answer.json({"detail": [extra]}, 422)
        with Lab([refusal, chat.answer("ok"), chat.answer("again")]) as lab:
            answer = runtime.run(asking(lab, retries=0))
            later = runtime.run(asking(lab, retries=0))

            assert (answer.text, later.text) == ("ok", "again")
            bodies = [request.json() for request in lab.requests]
            assert ["stream_options" in body for body in bodies] == [True, False, False]
            assert [body["stream"] for body in bodies] == [True, True, True]
            assert [each.free for each in answer.attempts] == [False, True]
            assert answer.attempts[0].token < answer.attempts[1].token

    def test_tool_call_response(self, play):
        answer, _, _ = play(
            as_completed(
                chat.tool(id="call_123", name="terminal"),
                chat.tool(arguments='{"command":'),
                chat.tool(arguments=' "ls"}'),
                chat.finish("tool_calls"),
            )
        )

        assert answer.tool_calls == (
            tg.ToolCall(id="call_123", name="terminal", arguments='{"command": "ls"}'),
        )

    def test_tool_argument_assembly_is_chunk_boundary_invariant(self, play):
        content = "naïve Straße 東京 🌊 " * 50
        arguments = json.dumps({"path": "notes.txt", "content": content}, ensure_ascii=False)
        for size in (len(arguments), 64, 7, 3, 1):
            pieces = [arguments[at : at + size] for at in range(0, len(arguments), size)]
            answer, _, _ = play(
                as_completed(
                    chat.tool(id="call_123", name="write_file"),
                    *(chat.tool(arguments=piece) for piece in pieces),
                    chat.finish("tool_calls"),
                )
            )

            (call,) = answer.tool_calls
            assert call.arguments.encode() == arguments.encode()


@pytest.mark.parametrize(
    ("deltas", "text", "finish", "refusal"),
    [
        pytest.param(
            [chat.refusal("I can't"), chat.refusal(" help with that.")],
            "",
            "content_filter",
            "I can't help with that.",
            id="refusal-only",
        ),
        pytest.param(
            [chat.text("Partial answer."), chat.refusal("But I won't do the rest.")],
            "Partial answer.",
            "stop",
            "But I won't do the rest.",
            id="refusal-alongside-content",
        ),
    ],
)
def test_streamed_refusal_accumulated(play, deltas, text, finish, refusal):
    answer, heard, _ = play(as_completed(*deltas, chat.finish("stop")))

    assert (answer.text, answer.finish, answer.refusal) == (text, finish, refusal)
    spoken = [event.text for event in heard if isinstance(event, tg.RefusalDelta)]
    assert "".join(spoken) == refusal


class TestStreamingCallbacks:
    def test_deltas_fire_in_order(self, play):
        _, heard, _ = play(chat.answer("a", "b", "c"))

        assert texts_of(heard) == ["a", "b", "c"]

    def test_list_content_after_tool_call_is_normalized(self, play):
        answer, heard, _ = play(
            as_completed(
                chat.delta({"content": [{"type": "text", "text": "before tool; "}]}),
                chat.tool(id="call_1", name="read_file"),
                chat.delta({"content": [{"type": "text", "text": "after tool"}]}),
                chat.finish("tool_calls"),
            )
        )

        assert texts_of(heard) == ["before tool; ", "after tool"]
        assert answer.text == "before tool; after tool"


class TestStreamingFallback:
    def test_stream_not_supported_sets_flag_and_raises(self, runtime, asking):
        """Nothing is raised: the same turn asks again without a stream, and later ones begin so."""
        refusal = chat.error_answer(400, "Streaming is not supported for this model")
        plain = Answer.json(chat.completion("whole"))
        with Lab([refusal, plain, plain]) as lab:
            heard = []
            answer = runtime.run(asking(lab, retries=0), heard.append)
            later = runtime.run(asking(lab, retries=0))

            assert (answer.text, later.text) == ("whole", "whole")
            asked = [request.json().get("stream", False) for request in lab.requests]
            assert asked == [True, False, False]
            notices = [event.kind for event in heard if isinstance(event, tg.Notice)]
            assert notices == ["streaming_disabled"]
            assert "Streaming is not supported" in answer.attempts[0].failure.detail
            assert [each.free for each in answer.attempts] == [False, True]

    def test_response_object_disables_streaming_and_returns_final_response(self, runtime, asking):
        plain = Answer.json(chat.completion("Hello from ACP", tokens=(1, 1)))
        with Lab([plain, plain]) as lab:
            heard = []
            answer = runtime.run(asking(lab), heard.append)
            runtime.run(asking(lab))

            assert texts_of(heard) == ["Hello from ACP"]
            assert (answer.text, answer.finish) == ("Hello from ACP", "stop")
            assert answer.usage == tg.Usage(input_tokens=1, output_tokens=1)
            asked = [request.json().get("stream", False) for request in lab.requests]
            assert asked == [True, False]

    def test_non_json_sse_frame_stays_a_fatal_provider_error(self, runtime, asking):
        opaque = "the upstream sent plain words"
        broken = Answer([send(f"data: {opaque}\n\n"), End.KEEPALIVE])
        with Lab([broken, chat.answer("still streamed")]) as lab:
            turn = runtime.start(asking(lab))
            reading = Reading(turn)
            reading.to_end()
            with pytest.raises(tg.MalformedStream) as raised:
                turn.result()
            runtime.run(asking(lab))

            assert raised.value.failure.code == "provider_stream_non_json_data"
            assert raised.value.raw_text == opaque
            assert reading.all(tg.Notice) == []
            assert [request.json()["stream"] for request in lab.requests] == [True, True]

    def test_sse_connection_lost_retried_as_transient(self, runtime, asking):
        lost = Answer([chat.error("Network connection lost."), End.HOLD], repeat=True)
        with Lab([lost]) as lab:
            with pytest.raises(tg.StreamTruncated, match=r"Network connection lost\."):
                runtime.run(asking(lab))

            assert len(lab.requests) == 3
            assert {lab.wait_closed(index).how for index in range(3)} <= set(LEFT)


class TestReasoningStreaming:
    def test_reasoning_callback_fires(self, play):
        answer, heard, _ = play(
            as_completed(
                chat.reasoning("Let me think"),
                chat.reasoning(" about this"),
                chat.text("The answer is 42"),
                chat.finish(),
            )
        )

        thoughts = [event.text for event in heard if isinstance(event, tg.ReasoningDelta)]
        assert thoughts == ["Let me think", " about this"]
        assert texts_of(heard) == ["The answer is 42"]
        assert answer.reasoning == "Let me think about this"
        assert answer.text == "The answer is 42"


class TestPartialToolCallWarning:
    @pytest.mark.parametrize(
        ("end", "retries"),
        [
            pytest.param([End.CUT], 0, id="no retries"),
            pytest.param([chat.error("bad", code="invalid_request_error")], 2, id="not transient"),
        ],
    )
    def test_partial_tool_call_surfaces_warning(self, runtime, asking, end, retries):
        with Lab([Answer([*WRITE, gate("taken"), *end])]) as lab:
            turn = runtime.start(asking(lab, retries=retries))
            reading = Reading(turn)
            reading.until(tg.ToolCallDelta, 2)
            lab.open("taken")
            reading.to_end()
            answer = turn.result()

            assert answer.text == "Let me write the audit: "
            assert answer.display_text.startswith(answer.text)
            assert "Stream stalled mid tool-call" in answer.display_text
            assert "write_file" in answer.display_text
            assert answer.tool_calls == ()
            assert answer.lost_tools == ("write_file",)
            assert (answer.partial, answer.finish) == (True, "incomplete")
            (notice,) = reading.all(tg.Notice)
            assert notice.kind == "tool_call_lost"
            assert "Stream stalled mid tool-call" in notice.text
            assert len(lab.requests) == 1

    def test_zero_char_partial_stream_retries_instead_of_empty_stub(self, runtime, asking):
        blank = Answer([chat.text(" \n"), gate("taken"), End.CUT])
        with Lab([blank, chat.answer("Recovered answer.")]) as lab:
            turn = runtime.start(asking(lab, retries=1))
            reading = Reading(turn)
            reading.until(tg.TextDelta)
            lab.open("taken")
            reading.to_end()
            answer = turn.result()

            assert len(lab.requests) == 2
            assert (answer.text, answer.finish) == ("Recovered answer.", "stop")
            assert not answer.partial

    def test_zero_char_partial_stream_exhausted_raises_to_main_loop(self, runtime, asking):
        with Lab([Answer([chat.text(" \n"), gate("taken"), End.CUT], repeat=True)]) as lab:
            turn = runtime.start(asking(lab, retries=0))
            reading = Reading(turn)
            reading.until(tg.TextDelta)
            lab.open("taken")

            with pytest.raises(tg.StreamTruncated) as raised:
                turn.result()

            assert len(lab.requests) == 1
            assert not raised.value.answer.display_text.strip()
            assert not raised.value.answer.partial


class TestSilentRetryMidToolCall:
    def test_silent_retry_recovers_tool_call(self, runtime, asking):
        whole = as_completed(
            *WRITE, chat.tool(arguments='"content": "hi"}'), chat.finish("tool_calls")
        )
        with Lab([Answer([*WRITE, gate("taken"), End.CUT]), whole]) as lab:
            turn = runtime.start(asking(lab, retries=2))
            reading = Reading(turn)
            reading.until(tg.ToolCallDelta, 2)
            lab.open("taken")
            reading.to_end()
            answer = turn.result()

            assert len(lab.requests) == 2
            (call,) = answer.tool_calls
            assert call.name == "write_file"
            assert call.parsed() == {"path": "/tmp/x", "content": "hi"}
            notices = reading.all(tg.Notice)
            assert [notice.kind for notice in notices] == ["reconnecting"]
            assert "reconnecting" in notices[0].text.lower()
            assert "Stream stalled" not in answer.display_text
            assert answer.display_text == answer.text == "Let me write the audit: "

    def test_silent_retry_exhausted_falls_back_to_stub(self, runtime, asking):
        begun = WRITE[:2]
        answers = [Answer([*begun, gate(f"taken {number}"), End.CUT]) for number in (1, 2)]
        with Lab(answers) as lab:
            turn = runtime.start(asking(lab, retries=1))
            reading = Reading(turn)
            for number in (1, 2):
                reading.until(tg.ToolCallDelta)
                lab.open(f"taken {number}")
            reading.to_end()
            answer = turn.result()

            assert len(lab.requests) == 2
            assert "Stream stalled mid tool-call" in answer.display_text
            assert answer.tool_calls == ()
            assert answer.lost_tools == ("write_file",)
            assert answer.text == "Let me write the audit: "

    def test_no_silent_retry_for_text_only_stall(self, runtime, asking):
        with Lab([Answer([chat.text("Here is my answer so far"), gate("taken"), End.CUT])]) as lab:
            turn = runtime.start(asking(lab, retries=2))
            reading = Reading(turn)
            reading.until(tg.TextDelta)
            lab.open("taken")
            reading.to_end()
            answer = turn.result()

            assert len(lab.requests) == 1
            assert answer.display_text == answer.text == "Here is my answer so far"
            assert answer.partial
            assert reading.all(tg.Notice) == []

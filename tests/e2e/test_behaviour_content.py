"""What providers write and what becomes of it: text as it is, tool calls, names, odd frames."""

import pytest

import tidegate as tg
from tidegate.lab import Answer, End, Lab, chat, frame, gate, keepalive, pace, raw, send, zipped
from tidegate.testing.reading import Reading
from tidegate.testing.warm import warm


@pytest.fixture(scope="module")
def runtime():
    with tg.Runtime(workers=1) as runtime:
        warm(runtime, 1)
        yield runtime


@pytest.fixture
def answer_to(runtime, ask):
    """Run a turn against one answer of these steps, closed by ``[DONE]``."""

    def run(*steps, payload=None, **policy):
        with Lab([Answer([*steps, chat.done()])]) as lab:
            request = ask(lab, payload, **policy) if payload else ask(lab, **policy)
            return runtime.run(request)

    return run


class TestText:
    @pytest.mark.parametrize(
        "text",
        [
            pytest.param("\n\n  leading lines", id="leading lines"),
            pytest.param("<think>aloud</think> and speak", id="think tags"),
            pytest.param(': comment\ndata: {"x": 1}\n\nevent: error\n', id="looks like events"),
            pytest.param("data: [DONE]", id="looks like the end"),
            pytest.param("\u2028 \x85 \x0b e\u0301 \U0001f30a", id="odd characters"),
        ],
    )
    def test_is_the_models_own(self, answer_to, text):
        assert answer_to(chat.text(text), chat.finish()).text == text

    def test_may_be_written_in_escapes(self, answer_to):
        halves = rb'data: {"choices":[{"delta":{"content":"\u0048\ud83c\udf0a"}}]}' + b"\n\n"

        assert answer_to(raw(halves), chat.finish()).text == "H\U0001f30a"

    def test_may_come_byte_by_byte(self, answer_to):
        data = chat.text("grün, 緑, 🌊").data + chat.finish().data

        assert answer_to(raw(data, piece=1)).text == "grün, 緑, 🌊"

    def test_may_be_compressed(self, runtime, ask):
        head = {"content-type": "text/event-stream", "content-encoding": "gzip"}
        words = [zipped(chat.text(word).data) for word in ("Hel", "lo")]
        with Lab([Answer([*words, zipped(chat.finish().data)], headers=head)]) as lab:
            assert runtime.run(ask(lab)).text == "Hello"

    def test_of_several_blocks_is_joined(self, answer_to):
        blocks = [{"type": "text", "text": "Hel"}, {"type": "text", "text": "lo"}]

        assert answer_to(chat.delta({"content": blocks}), chat.finish()).text == "Hello"

    @pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
    def test_reasoning_has_more_than_one_name(self, answer_to, field):
        answer = answer_to(chat.reasoning("Hm", field=field), chat.text("Yes"), chat.finish())

        assert (answer.reasoning, answer.text) == ("Hm", "Yes")


class TestEnvelope:
    def test_last_model_and_usage_and_first_id_stand(self, answer_to):
        answer = answer_to(
            chat.chunk(id="first", model="asked-for"),
            chat.text("Hello"),
            chat.chunk([{"index": 0, "delta": {}, "finish_reason": "stop"}], model="served-by"),
            chat.chunk(id="second", model="served-by", usage={"prompt_tokens": 1}),
            chat.chunk(
                model="served-by",
                usage={
                    "prompt_tokens": 9,
                    "completion_tokens": 4,
                    "prompt_tokens_details": {"cached_tokens": 5},
                    "completion_tokens_details": {"reasoning_tokens": 3},
                },
            ),
        )

        assert (answer.response_id, answer.model, answer.finish) == ("first", "served-by", "stop")
        assert answer.usage == tg.Usage(
            input_tokens=9, output_tokens=4, cached_input_tokens=5, reasoning_tokens=3
        )

    def test_usage_is_asked_for_and_what_the_caller_wants_is_kept(self, runtime, ask):
        payload = {"messages": [], "stream_options": {"include_obfuscation": False}}
        with Lab([chat.answer("Hello")]) as lab:
            runtime.run(ask(lab, payload))

            assert lab.requests[0].json()["stream_options"] == {
                "include_usage": True,
                "include_obfuscation": False,
            }

    @pytest.mark.parametrize("reason", ["stop", "length", "content_filter", "tool_calls"])
    def test_finish_is_what_the_wire_said(self, answer_to, reason):
        assert answer_to(chat.text("Hello"), chat.finish(reason)).finish == reason

    def test_error_beside_empty_choices_is_an_error(self, answer_to):
        with pytest.raises(tg.Overloaded, match="too many") as raised:
            answer_to(
                frame({"choices": [], "error": {"code": 529, "message": "too many"}}), retries=0
            )

        assert raised.value.failure.status == 529


class TestTools:
    def test_parallel_calls_may_all_have_index_0(self, answer_to):
        answer = answer_to(
            chat.tool(0, id="call_1", name="clock", arguments='{"zone": "UTC"}'),
            chat.tool(0, id="call_2", name="alarm", arguments='{"at": 7}'),
            chat.finish("tool_calls"),
        )

        assert [(call.id, call.name) for call in answer.tool_calls] == [
            ("call_1", "clock"),
            ("call_2", "alarm"),
        ]
        assert [call.parsed() for call in answer.tool_calls] == [{"zone": "UTC"}, {"at": 7}]

    def test_name_that_is_repeated_counts_once_and_a_number_may_be_an_id(self, answer_to):
        pieces = [
            {"index": 0, "id": 7, "function": {"name": "clock", "arguments": part}}
            for part in ('{"zone":', ' "UTC"}')
        ]
        answer = answer_to(
            *(chat.delta({"tool_calls": [piece]}) for piece in pieces), chat.finish("tool_calls")
        )

        assert answer.tool_calls == (
            tg.ToolCall(id="7", name="clock", arguments='{"zone": "UTC"}'),
        )

    def test_name_may_come_in_pieces(self, answer_to):
        answer = answer_to(
            chat.tool(id="call_1", name="cl"),
            chat.tool(name="ock"),
            chat.tool(arguments="{}"),
            chat.finish("tool_calls"),
        )

        assert [call.name for call in answer.tool_calls] == ["clock"]

    def test_call_cut_by_the_length_limit_is_lost_and_said_so(self, runtime, ask):
        steps = [
            chat.text("Look: "),
            chat.tool(id="call_1", name="clock", arguments='{"zo'),
            chat.finish("length"),
        ]
        with Lab([Answer(steps)]) as lab:
            heard = []
            answer = runtime.run(ask(lab), heard.append)

            assert (answer.finish, answer.text) == ("length", "Look: ")
            assert answer.tool_calls == ()
            assert [call.arguments for call in answer.incomplete_tool_calls] == ['{"zo']
            assert answer.lost_tools == ("clock",)
            assert [each.kind for each in heard if isinstance(each, tg.Notice)] == [
                "tool_call_lost"
            ]
            assert "clock" in answer.display_text

    def test_notice_names_three_lost_tools_and_counts_the_others(self, runtime, ask):
        names = ["clock", "alarm", "radio", "lamp", "oven"]
        begun = [chat.tool(i, id=f"call_{i}", name=name) for i, name in enumerate(names)]
        with Lab([Answer([chat.text("All: "), *begun, gate("taken"), End.CUT])]) as lab:
            turn = runtime.start(ask(lab, retries=0))
            reading = Reading(turn)
            reading.until(tg.ToolCallDelta, len(names))
            lab.open("taken")
            reading.to_end()

            (notice,) = reading.all(tg.Notice)
            assert "clock, alarm, radio and 2 more" in notice.text
            assert "lamp" not in notice.text
            assert turn.result().lost_tools == tuple(names)

    def test_tool_of_an_attempt_that_died_is_not_blamed_on_the_next(self, runtime, ask):
        first = Answer([chat.tool(id="call_1", name="old_tool"), gate("first"), End.CUT])
        second = Answer([chat.text("Plain answer."), gate("second"), End.CUT])
        with Lab([first, second]) as lab:
            turn = runtime.start(ask(lab, retries=5))
            reading = Reading(turn)
            reading.until(tg.ToolCallDelta)
            lab.open("first")
            reading.until(tg.TextDelta)
            lab.open("second")
            reading.to_end()
            answer = turn.result()

            assert len(lab.requests) == 2
            assert (answer.text, answer.partial, answer.lost_tools) == ("Plain answer.", True, ())
            assert answer.display_text == "Plain answer."
            assert [notice.kind for notice in reading.all(tg.Notice)] == ["reconnecting"]


class TestLife:
    """It keeps a connection alive and is no progress."""

    @pytest.mark.parametrize(
        "life",
        [
            pytest.param(pace([chat.delta({"content": ""})], 0.05, times=10_000), id="empty text"),
            pytest.param(pace([chat.delta({})], 0.05, times=10_000), id="empty delta"),
            pytest.param(pace([send("data:\n\n")], 0.05, times=10_000), id="empty frame"),
            pytest.param(keepalive(0.05, 10_000), id="comments"),
        ],
    )
    def test_stream_of_it_goes_stale(self, runtime, ask, life):
        with Lab([Answer([chat.text("Hel"), life])]) as lab:
            patience = {"first_event_timeout_s": 30, "alive_timeout_s": 30}
            turn = runtime.start(ask(lab, stale_after_s=0.5, **patience, stale_giveup=0))
            reading = Reading(turn)
            reading.to_end()
            answer = turn.result()

            assert (answer.text, answer.partial) == ("Hel", True)
            assert answer.failure.kind is tg.FailureKind.STALLED
            assert answer.failure.reason == "no_progress"

    def test_silence_is_told_apart(self, runtime, ask):
        with Lab([Answer([chat.text("Hel"), End.HOLD])]) as lab:
            turn = runtime.start(
                ask(lab, stale_after_s=0.3, first_event_timeout_s=30, stale_giveup=0)
            )
            Reading(turn).to_end()

            assert turn.result().failure.reason == "idle"

    def test_reasoning_is_progress(self, runtime, ask):
        thinking = pace([chat.reasoning("Hm ")], 0.05, times=30)
        with Lab([Answer([thinking, chat.text("Yes"), chat.finish()])]) as lab:
            answer = runtime.run(ask(lab, stale_after_s=1, first_event_timeout_s=30, retries=0))

            assert (answer.text, answer.reasoning) == ("Yes", "Hm " * 30)


class TestEnvironment:
    """Its variables are read when a turn starts, and a policy's own fields beat them."""

    def test_retries(self, runtime, ask, monkeypatch):
        with Lab(
            [chat.error_answer(500, "no"), chat.error_answer(500, "no"), chat.answer("ok")]
        ) as lab:
            monkeypatch.setenv("TIDEGATE_STREAM_RETRIES", "0")
            with pytest.raises(tg.ServerFault):
                runtime.run(ask(lab))
            assert len(lab.requests) == 1

            assert runtime.run(ask(lab, retries=1)).text == "ok"

    def test_nonsense_is_refused_by_name(self, runtime, ask, monkeypatch):
        monkeypatch.setenv("TIDEGATE_STREAM_RETRIES", "many")
        with Lab() as lab, pytest.raises(tg.ConfigurationError, match="TIDEGATE_STREAM_RETRIES"):
            runtime.start(ask(lab))

"""What an answer is: whole or a part, of one choice or several, with a report on each attempt."""

import pytest

import tidegate as tg
from tests.e2e.scripts import LEFT, refusal, streamed
from tidegate.lab import Answer, End, Lab, chat, gate, send
from tidegate.testing.eventually import eventually
from tidegate.testing.reading import Reading
from tidegate.testing.warm import warm


@pytest.fixture(scope="module")
def runtime():
    with tg.Runtime(workers=2) as runtime:
        warm(runtime, 2)
        yield runtime


class TestPart:
    """An answer that is known not to be whole."""

    @pytest.mark.parametrize("read", [True, False])
    def test_text_that_nobody_took_counts_if_a_reader_is_there(self, runtime, ask, read):
        with Lab([Answer([chat.text("Hel"), gate("accepted"), End.CUT])]) as lab:
            turn = runtime.start(ask(lab, retries=0))
            reading = Reading(turn) if read else None
            eventually(lambda: turn.snapshot().text)
            lab.open("accepted")

            if reading is None:
                with pytest.raises(tg.StreamTruncated) as raised:
                    turn.result()
                assert raised.value.answer.text == "Hel"
                assert not raised.value.answer.partial
            else:
                answer = turn.result()
                reading.to_end()
                assert (answer.text, answer.partial) == ("Hel", True)
                assert reading.kinds == ["AttemptStarted", "TextDelta", "TurnFailed"]

    def test_lost_tool_alone_is_no_answer(self, runtime, ask):
        cut = streamed(chat.tool(id="call_1", name="clock", arguments='{"zone'), end=End.CUT)
        with Lab([cut]) as lab, pytest.raises(tg.StreamTruncated) as raised:
            runtime.run(ask(lab, retries=0))

        answer = raised.value.answer
        assert answer.lost_tools == ("clock",)
        assert answer.incomplete_tool_calls == (
            tg.ToolCall(id="call_1", name="clock", arguments='{"zone'),
        )
        assert answer.tool_calls == ()

    def test_call_that_is_no_json_is_never_a_tool_call(self, runtime, ask):
        good = chat.tool(0, id="call_1", name="clock", arguments='{"zone": "UTC"}')
        bad = chat.tool(1, id="call_2", name="alarm", arguments='{"at": 7')
        with Lab([streamed(good, bad, chat.finish("tool_calls"))]) as lab:
            answer = runtime.run(ask(lab))

            assert [call.name for call in answer.tool_calls] == ["clock"]
            assert [call.arguments for call in answer.incomplete_tool_calls] == ['{"at": 7']
            assert answer.lost_tools == ("alarm",)
            assert answer.finish == "tool_calls"

    def test_deadline_ends_a_turn_with_what_it_has(self, runtime, ask):
        endless = streamed(chat.text("so far"), end=End.HOLD)
        with Lab([endless]) as lab:
            turn = runtime.start(ask(lab, deadline_s=2.0))
            reading = Reading(turn)
            reading.until(tg.TextDelta)
            answer = turn.result()

            assert (answer.text, answer.partial) == ("so far", True)
            assert answer.failure.kind is tg.FailureKind.STALLED
            assert (answer.failure.reason, answer.failure.retryable) == ("deadline", False)
            assert lab.wait_closed(0).how in LEFT
            assert len(lab.requests) == 1

    def test_deadline_in_the_back_off_raises(self, runtime, ask):
        with Lab([refusal(500)]) as lab, pytest.raises(tg.StreamStalled) as raised:
            runtime.run(ask(lab, deadline_s=0.3, backoff_s=(3600,)))

        assert raised.value.failure.reason == "deadline"
        assert raised.value.answer.attempts[0].failure.kind is tg.FailureKind.SERVER_ERROR


class TestChoices:
    def test_each_has_its_own_text_and_finish(self, runtime, ask):
        body = streamed(
            chat.text("a", choice=0),
            chat.text("x", choice=1),
            chat.finish("stop", choice=1),
            chat.text("b", choice=0),
            chat.finish("length", choice=0),
            chat.done(),
        )
        with Lab([body]) as lab:
            heard = []
            answer = runtime.run(ask(lab, {"messages": [], "n": 2}), heard.append)

            assert [(each.text, each.finish) for each in answer.choices] == [
                ("ab", "length"),
                ("x", "stop"),
            ]
            assert (answer.text, answer.finish) == ("ab", "length")
            texts = [(e.choice, e.text) for e in heard if isinstance(e, tg.TextDelta)]
            assert texts == [(0, "a"), (1, "x"), (0, "b")]

    def test_evidence_for_one_of_them_is_not_enough(self, runtime, ask):
        body = streamed(chat.text("a"), chat.finish("stop"), chat.text("x", choice=1), chat.done())
        with Lab([body]) as lab, pytest.raises(tg.StreamTruncated):
            runtime.run(ask(lab, {"messages": [], "n": 2}, retries=0))


class TestEvidence:
    """Once it is there nothing changes it."""

    @pytest.mark.parametrize(
        "behind",
        [
            pytest.param([End.CUT], id="cut"),
            pytest.param([End.RESET], id="reset"),
            pytest.param([chat.error("too late"), End.KEEPALIVE], id="error"),
            pytest.param([chat.text("more"), End.KEEPALIVE], id="text"),
            pytest.param([send("data: words\n\n"), End.KEEPALIVE], id="no JSON"),
        ],
    )
    def test_what_comes_behind_it_changes_nothing(self, runtime, ask, behind):
        with Lab([Answer([chat.text("whole"), chat.finish(), *behind])]) as lab:
            answer = runtime.run(ask(lab, retries=0))

            assert (answer.text, answer.finish, answer.partial) == ("whole", "stop", False)

    def test_usage_within_the_grace_is_kept(self, runtime, ask):
        body = [chat.text("whole"), chat.finish(), gate("finished"), chat.usage(5, 1), chat.done()]
        with Lab([Answer(body)]) as lab:
            turn = runtime.start(ask(lab, finish_grace_s=30))
            eventually(lambda: turn.snapshot().finish)
            lab.open("finished")

            assert turn.result().usage == tg.Usage(input_tokens=5, output_tokens=1)

    def test_grace_is_bounded(self, runtime, ask):
        with Lab([streamed(chat.text("whole"), chat.finish(), end=End.HOLD)]) as lab:
            answer = runtime.run(ask(lab, finish_grace_s=0.05))

            assert (answer.text, answer.finish, answer.usage) == ("whole", "stop", None)
            assert lab.wait_closed(0).how in LEFT

    def test_interrupt_within_the_grace_wins(self, runtime, ask):
        with Lab([streamed(chat.text("whole"), chat.finish(), end=End.HOLD)]) as lab:
            turn = runtime.start(ask(lab, finish_grace_s=30))
            eventually(lambda: turn.snapshot().finish)

            turn.interrupt()

            with pytest.raises(tg.Interrupted) as raised:
                turn.result()
            answer = raised.value.answer
            assert (answer.text, answer.finish, answer.partial) == ("whole", "stop", False)


class TestReports:
    def test_every_attempt_has_one(self, runtime, ask):
        failed = refusal(500, headers={"x-request-id": "req-1"})
        whole = chat.answer("whole")
        named = Answer(whole.steps, headers={**whole.headers, "x-request-id": "req-2"})
        with Lab([failed, named]) as lab:
            answer = runtime.run(ask(lab))

            first, second = answer.attempts
            assert [first.number, second.number] == [1, 2]
            assert first.token < second.token
            assert first.endpoint == second.endpoint == f"chat {lab.url}"
            assert first.failure.request_id == "req-1"
            assert second.request_id == "req-2"
            assert (first.first_progress_s, second.failure) == (None, None)
            assert second.ended_s >= second.first_progress_s >= 0

    def test_usage_of_all_attempts_is_added_up(self, runtime, ask):
        lost = streamed(chat.text("lost"), chat.usage(5, 1), end=End.CUT)
        whole = streamed(chat.text("whole"), chat.finish(), chat.usage(5, 2), chat.done())
        with Lab([lost, whole]) as lab:
            answer = runtime.run(ask(lab))

            assert answer.usage == tg.Usage(input_tokens=5, output_tokens=2)
            assert answer.usage_all_attempts == tg.Usage(
                input_tokens=10, output_tokens=3, origin="estimated"
            )

    def test_native_answer_is_what_a_server_would_have_sent(self, runtime, ask):
        document = chat.completion("Hello", tokens=(3, 2))
        with Lab([chat.answer("Hel", "lo"), Answer.json(document)]) as lab:
            streamed_one = runtime.run(ask(lab)).native()
            plain_one = runtime.run(ask(lab)).native()

            for native in (streamed_one, plain_one):
                assert native["object"] == "chat.completion"
                assert native["id"] == document["id"]
                (choice,) = native["choices"]
                assert choice["message"]["content"] == "Hello"
                assert choice["finish_reason"] == "stop"
            assert plain_one["usage"]["total_tokens"] == 5

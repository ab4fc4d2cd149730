"""What an attempt's end leads to on the chat wire: another attempt, part of an answer, an error."""

import pytest

import tidegate as tg
from tests.e2e.scripts import LEFT, in_order, refusal, streamed
from tidegate.lab import Answer, End, Lab, chat, gate, send
from tidegate.testing.reading import Reading
from tidegate.testing.warm import warm


@pytest.fixture(scope="module")
def runtime():
    with tg.Runtime(workers=2) as runtime:
        warm(runtime, 2)
        yield runtime


TRANSIENT = {
    "reset before the headers": (
        Answer([End.RESET], headers_with_first_frame=True),
        tg.ConnectionLost,
    ),
    "nothing in the body": (streamed(), tg.EmptyStream),
    "only life in the body": (streamed(chat.role()), tg.EmptyStream),
    "body cut before anything": (streamed(end=End.CUT), tg.StreamTruncated),
    "body reset": (streamed(chat.role(), end=End.RESET), tg.StreamTruncated),
    "text without a finish": (streamed(chat.text("lost")), tg.StreamTruncated),
    "done without a finish": (streamed(chat.text("lost"), chat.done()), tg.StreamTruncated),
    "usage without a finish": (
        streamed(chat.text("lost"), chat.usage(1, 2), chat.done()),
        tg.StreamTruncated,
    ),
    "a call that is cut": (
        streamed(chat.tool(id="call_1", name="clock"), end=End.CUT),
        tg.StreamTruncated,
    ),
    "an error in the stream": (streamed(chat.error("our fault")), tg.ServerFault),
    "overload in the stream": (
        streamed(chat.error("too much", type="overloaded_error")),
        tg.Overloaded,
    ),
    "a finish that says error": (streamed(chat.finish("error")), tg.ServerFault),
    "429": (refusal(429, headers={"retry-after-ms": "5"}), tg.RateLimited),
    "529": (refusal(529), tg.Overloaded),
} | {
    str(status): (refusal(status), tg.ServerFault)
    for status in (408, 409, 500, 502, 503, 504, 520, 524)
}

FINAL = {
    "400": (refusal(400), tg.BadRequest),
    "401": (refusal(401), tg.AuthRejected),
    "402": (refusal(402), tg.QuotaExhausted),
    "403": (refusal(403), tg.AuthRejected),
    "404": (refusal(404, code="model_not_found"), tg.BadRequest),
    "422": (refusal(422), tg.BadRequest),
    "429 of an empty account": (refusal(429, code="insufficient_quota"), tg.QuotaExhausted),
    "429 of too long a wait": (refusal(429, headers={"retry-after": "61"}), tg.RateLimited),
    "501": (refusal(501), tg.ServerFault),
    "context": (refusal(400, code="context_length_exceeded"), tg.ContextOverflow),
    "content": (refusal(400, code="content_filter"), tg.ContentRefused),
    "a page": (Answer.whole(b"<html>sign in</html>", "text/html"), tg.MalformedStream),
    "words": (streamed(send("data: sorry\n\n")), tg.MalformedStream),
}


class TestTable:
    """One row of the decision table each, in the order of its rows."""

    def test_interrupt_in_the_back_off_lets_no_attempt_follow(self, runtime, ask):
        with Lab([refusal(500), chat.answer("from another turn")]) as lab:
            turn = runtime.start(ask(lab, backoff_s=(3600,)))
            Reading(turn).until(tg.RetryScheduled)

            assert turn.interrupt("no more")

            with pytest.raises(tg.Interrupted, match="interrupted: no more"):
                turn.result()
            assert runtime.run(ask(lab)).text == "from another turn"
            assert len(lab.requests) == 2

    def test_failure_by_our_own_hand_is_told_as_the_interrupt_it_is(self, runtime, ask):
        with Lab([streamed(chat.text("so far"), end=End.HOLD)]) as lab:
            turn = runtime.start(ask(lab))
            reading = Reading(turn)
            reading.until(tg.TextDelta)

            turn.interrupt()

            terminal = reading.to_end()
            assert lab.wait_closed(0).how in LEFT
            assert isinstance(terminal, tg.TurnInterrupted)
            assert terminal.answer.failure.kind is tg.FailureKind.INTERRUPTED
            assert (terminal.answer.text, terminal.answer.partial) == ("so far", True)
            assert terminal.answer.attempts[0].outcome == "interrupted"

    @pytest.mark.parametrize(
        "body",
        [
            {"error": {"message": "Unknown parameter: 'stream_options'."}},
            {"error": "stream_options is not supported"},
            {"message": "unexpected field stream_options"},
        ],
    )
    def test_stream_options_refused_are_left_out(self, runtime, ask, own, body):
        with Lab([Answer.json(body, 400), chat.answer("ok")]) as lab:
            answer = runtime.run(ask(lab, retries=0, options=own))

            assert answer.text == "ok"
            assert ["stream_options" in each.json() for each in lab.requests] == [True, False]

    def test_failure_before_anything_was_taken_is_retried_unseen(self, runtime, ask):
        lost = streamed(chat.text("lost"), chat.reasoning("lost too"), end=End.CUT)
        with Lab([lost, chat.answer("whole")]) as lab:
            turn = runtime.start(ask(lab))
            answer = turn.result()
            reading = Reading(turn)
            reading.to_end()

            assert answer.text == "whole"
            assert reading.kinds == [
                "AttemptStarted",
                "RetryScheduled",
                "AttemptStarted",
                "TextDelta",
                "TurnCompleted",
            ]

    @pytest.mark.parametrize(
        ("steps", "last", "times"),
        [
            pytest.param([chat.text("Hel")], tg.TextDelta, 1, id="text"),
            pytest.param([chat.text("Hel"), chat.usage(1, 1)], tg.UsageReported, 1, id="usage"),
        ],
    )
    def test_failure_behind_visible_text_ends_the_turn_with_it(
        self, runtime, ask, steps, last, times
    ):
        with Lab([Answer([*steps, gate("taken"), End.CUT])]) as lab:
            turn = runtime.start(ask(lab, retries=5))
            reading = Reading(turn)
            reading.until(last, times)
            lab.open("taken")
            terminal = reading.to_end()
            answer = turn.result()

            assert isinstance(terminal, tg.TurnFailed)
            assert terminal.error.kind is tg.FailureKind.TRUNCATED
            assert (answer.text, answer.partial, answer.finish) == ("Hel", True, "incomplete")
            assert answer.failure == terminal.error
            assert len(lab.requests) == 1

    def test_reasoning_alone_is_no_visible_text(self, runtime, ask):
        thinking = Answer([chat.reasoning("Hm"), gate("taken"), End.CUT])
        with Lab([thinking, chat.answer("whole")]) as lab:
            turn = runtime.start(ask(lab))
            reading = Reading(turn)
            reading.until(tg.ReasoningDelta)
            lab.open("taken")
            reading.to_end()

            (superseded,) = reading.all(tg.AttemptSuperseded)
            assert (superseded.attempt, superseded.retracts) == (1, 0)
            assert (turn.result().text, turn.result().reasoning) == ("whole", "")

    @pytest.mark.parametrize("fault", TRANSIENT)
    def test_transient_failure_is_retried(self, runtime, ask, fault):
        answer, _ = TRANSIENT[fault]
        with Lab([answer, answer, chat.answer("whole")]) as lab:
            whole = runtime.run(ask(lab, retries=2))

            assert whole.text == "whole"
            assert len(lab.requests) == 3
            kinds = {each.failure.kind for each in whole.attempts[:2]}
            assert len(kinds) == 1
            assert [each.outcome for each in whole.attempts] == ["failed", "failed", "completed"]

    @pytest.mark.parametrize("fault", TRANSIENT)
    def test_transient_failure_is_raised_when_the_retries_are_used_up(self, runtime, ask, fault):
        answer, error = TRANSIENT[fault]
        with Lab(in_order(answer)) as lab, pytest.raises(tg.TurnError) as raised:
            runtime.run(ask(lab, retries=1))

        assert type(raised.value) is error
        assert len(lab.requests) == 2
        assert raised.value.failure == raised.value.answer.attempts[-1].failure

    def test_silence_is_transient(self, runtime, ask, own):
        silent = streamed(end=End.HOLD)
        with Lab([silent, chat.answer("whole")]) as lab:
            patience = {"stale_after_s": 0.3, "first_event_timeout_s": 0.3}
            answer = runtime.run(ask(lab, options=own, **patience))

            assert answer.text == "whole"
            failure = answer.attempts[0].failure
            assert (failure.kind, failure.reason) == (tg.FailureKind.STALLED, "first_byte")
            assert lab.wait_closed(0).how in LEFT

    @pytest.mark.parametrize("fault", FINAL)
    def test_other_failure_is_raised_at_once(self, runtime, ask, own, fault):
        answer, error = FINAL[fault]
        with Lab(in_order(answer)) as lab, pytest.raises(tg.TurnError) as raised:
            runtime.run(ask(lab, retries=5, options=own))

        assert type(raised.value) is error
        assert len(lab.requests) == 1

    def test_wait_that_a_provider_asks_for_replaces_the_back_off(self, runtime, ask):
        busy = refusal(503, headers={"retry-after-ms": "10"})
        with Lab([busy, chat.answer("whole")]) as lab:
            turn = runtime.start(ask(lab, backoff_s=(3600,)))
            reading = Reading(turn)
            reading.to_end()

            (scheduled,) = reading.all(tg.RetryScheduled)
            assert scheduled.delay_s == 0.01
            assert scheduled.cause.retry_after_s == 0.01
            assert turn.result().text == "whole"

    def test_wait_beyond_the_cap_goes_to_the_caller(self, runtime, ask):
        with Lab([refusal(429, headers={"retry-after": "7"})]) as lab:
            with pytest.raises(tg.RateLimited) as raised:
                runtime.run(ask(lab, retry_after_cap_s=5))

            assert raised.value.retry_after_s == 7
            assert len(lab.requests) == 1

"""A stop ends a turn at once, whatever its attempts are doing, and no attempt follows it."""

import pytest

import tidegate as tg
from tidegate.lab import Answer, End, Lab, chat, gate
from tidegate.protocol.base import TurnNumber
from tidegate.protocol.supervisor import Interrupt
from tidegate.testing.eventually import eventually
from tidegate.testing.reading import Reading


MANY = 500

RESET_AT_ONCE = Answer([End.RESET], headers_with_first_frame=True)


def test_interrupt_prevents_stream_retry(runtime, asking):
    failing = Answer([gate("failing"), End.RESET], headers_with_first_frame=True)
    with Lab([failing, chat.answer("from another turn")]) as lab:
        turn = runtime.start(asking(lab, retries=5))
        lab.reached("failing")

        turn.interrupt("stop")
        lab.open("failing")

        with pytest.raises(InterruptedError, match="interrupted") as raised:
            turn.result()
        # The other turn is a mark in time: an attempt that followed the stop would lie before it.
        assert runtime.run(asking(lab)).text == "from another turn"
        assert len(lab.requests) == 2
        assert len(raised.value.answer.attempts) == 1


def test_interrupt_before_first_attempt(asking):
    endless = Answer([chat.text("unheard"), End.HOLD], repeat=True)
    with Lab([endless]) as lab, tg.Runtime(workers=2) as runtime:
        turns = {}
        for number in range(MANY):
            prompt = {"model": "test-model", "messages": [], "user": f"turn {number}"}
            turn = runtime.start(asking(lab, prompt))
            turn.interrupt()
            turns[f"turn {number}"] = turn

        unsent = set()
        for name, turn in turns.items():
            with pytest.raises(InterruptedError, match="interrupted") as raised:
                turn.result()
            if not raised.value.answer.attempts:
                unsent.add(name)
        last = runtime.start(asking(lab))
        Reading(last).until(tg.TextDelta)
        last.interrupt()
        runtime.stop()
        eventually(lambda: lab.open_connections_count == 0)

        assert unsent.isdisjoint(request.json().get("user") for request in lab.requests)


def test_interrupt_before_first_attempt_is_taken_first(asking):
    with Lab([chat.answer("for the second turn")]) as lab, tg.Runtime(workers=1) as runtime:
        first = TurnNumber(1)
        runtime._supervisor.mailbox.tell(Interrupt(first, "before the start"))

        turn = runtime.start(asking(lab))

        with pytest.raises(InterruptedError, match="interrupted") as raised:
            turn.result()
        assert raised.value.answer.attempts == ()
        assert runtime.run(asking(lab)).text == "for the second turn"
        assert len(lab.requests) == 1


def test_normal_retry_still_works_without_interrupt(runtime, asking):
    with Lab([RESET_AT_ONCE, RESET_AT_ONCE, chat.answer("ok")]) as lab:
        answer = runtime.run(asking(lab))

        assert answer.text == "ok"
        assert len(lab.requests) == 3
        lost = tg.FailureKind.CONNECTION_LOST
        assert [each.failure and each.failure.kind for each in answer.attempts] == [
            lost,
            lost,
            None,
        ]


def test_stale_stream_attempt_cannot_emit_late_chunks_after_retry(runtime, asking, worker_stopped):
    stale = Answer(
        [
            chat.text("old start "),
            chat.tool(id="call_1", name="terminal"),
            gate("retried"),
            chat.text("old late "),
            gate("late bytes are with the kernel"),
            End.HOLD,
        ]
    )
    retry = Answer([gate("old stream is closed"), *chat.answer("new final").steps])
    with Lab([stale, retry]) as lab:
        patience = {"stale_after_s": 0.5, "first_event_timeout_s": 30, "kill_grace_s": 30}
        turn = runtime.start(asking(lab, retries=1, **patience))
        reading = Reading(turn)
        reading.until(tg.ToolCallDelta)
        # A worker that stands still cannot close its socket, so the late bytes do arrive in it.
        resume = worker_stopped(runtime, turn)
        reading.until(tg.RetryScheduled)
        lab.reached("old stream is closed")

        lab.open("retried")
        lab.reached("late bytes are with the kernel")
        resume()
        closed = lab.wait_closed(0)
        lab.open("old stream is closed")
        lab.open("late bytes are with the kernel")

        reading.to_end()
        answer = turn.result()
        assert answer.text == "new final"
        assert reading.texts == ["old start ", "new final"]
        assert [each.retracts for each in reading.all(tg.AttemptSuperseded)] == [len("old start ")]
        assert closed.how in ("eof", "reset")
        assert answer.attempts[0].failure.kind is tg.FailureKind.STALLED

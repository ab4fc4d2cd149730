"""Turns as their callers have them: started, waited for, interrupted."""

import multiprocessing
import threading

import pytest

import tidegate as tg
from tests.e2e.scripts import ENDLESS, GUARD_S, HELD, LEFT, in_threads
from tidegate.lab import Answer, Lab, chat
from tidegate.testing.eventually import eventually
from tidegate.testing.reading import Reading
from tidegate.testing.warm import warm


@pytest.fixture(scope="module")
def runtime():
    with tg.Runtime(workers=1) as runtime:
        warm(runtime, 1)
        yield runtime


class TestWaiting:
    def test_time_limit_of_the_wait_is_not_the_turns(self, runtime, ask):
        with Lab([HELD]) as lab:
            turn = runtime.start(ask(lab))

            with pytest.raises(TimeoutError) as raised:
                turn.result(timeout=0.01)

            assert not isinstance(raised.value, tg.TidegateError)
            lab.open("go on")
            assert turn.result(timeout=GUARD_S).text == "Hello"

    def test_several_threads_get_the_same_answer(self, runtime, ask):
        with Lab([HELD]) as lab:
            turn = runtime.start(ask(lab))
            lab.open("go on")

            answers = in_threads(4, turn.result)

            assert answers == [turn.result()] * 4
            assert answers[0].text == "Hello"

    def test_error_carries_what_there_was(self, runtime, ask):
        with Lab([chat.error_answer(401, "wrong key", code="invalid_api_key")]) as lab:
            turn = runtime.start(ask(lab))
            with pytest.raises(tg.AuthRejected, match="wrong key") as raised:
                turn.result()

            assert raised.value.failure == raised.value.answer.failure
            assert raised.value.failure.status == 401
            assert raised.value.failure.code == "invalid_api_key"
            assert raised.value.answer == turn.snapshot()

    def test_snapshot_shows_the_answer_as_it_grows(self, runtime, ask):
        with Lab([HELD]) as lab:
            turn = runtime.start(ask(lab))
            eventually(lambda: turn.snapshot().text == "Hel")

            early = turn.snapshot()
            lab.open("go on")

            answer = turn.result()
            assert (early.finish, early.failure, early.partial) == (None, None, False)
            assert [each.outcome for each in early.attempts] == [""]
            assert turn.snapshot() == answer

    def test_text_is_only_the_text(self, runtime, ask):
        steps = [chat.reasoning("Hm"), *chat.answer("Hel", "lo").steps]
        with Lab([Answer(steps)]) as lab:
            turn = runtime.start(ask(lab))

            assert list(turn.text()) == ["Hel", "lo"]
            assert list(turn.text()) == ["Hel", "lo"]

    def test_turn_shows_how_it_stands(self, runtime, ask):
        with Lab([HELD]) as lab:
            turn = runtime.start(ask(lab))
            running = repr(turn)
            lab.open("go on")
            turn.result()

            assert turn.id in running
            assert "running" in running
            assert "TurnCompleted" in repr(turn)


class TestInterrupt:
    def test_only_the_first_one_counts(self, runtime, ask):
        with Lab([ENDLESS]) as lab:
            turn = runtime.start(ask(lab))
            reading = Reading(turn)
            reading.until(tg.TextDelta)

            said = [turn.interrupt("first"), turn.interrupt("second")]

            assert said == [True, False]
            assert reading.to_end().reason == "first"
            assert not turn.interrupt("third")
            assert lab.wait_closed(0).how in LEFT

    def test_of_an_ended_turn_changes_nothing(self, runtime, ask):
        with Lab([chat.answer("whole")]) as lab:
            turn = runtime.start(ask(lab))
            turn.result()

            assert not turn.interrupt()
            assert turn.result().text == "whole"

    def test_hits_no_other_turn(self, runtime, ask):
        with Lab([ENDLESS]) as endless, Lab([HELD]) as lab:
            request = ask(endless)
            spared, hit = runtime.start(ask(lab)), runtime.start(request)
            Reading(hit).until(tg.TextDelta)

            hit.interrupt()
            lab.open("go on")

            with pytest.raises(tg.Interrupted):
                hit.result()
            assert spared.result().text == "Hello"

    def test_releases_every_thread_that_waits(self, runtime, ask):
        with Lab([ENDLESS]) as lab:
            turn = runtime.start(ask(lab))
            Reading(turn).until(tg.TextDelta)

            def wait():
                with pytest.raises(tg.Interrupted) as raised:
                    turn.result()
                return raised.value.answer.text

            waiting = threading.Thread(target=turn.interrupt)
            waiting.start()
            assert in_threads(3, wait) == ["so far"] * 3
            waiting.join(GUARD_S)

    def test_leaving_the_with_block_is_one(self, runtime, ask):
        with Lab([ENDLESS]) as lab:
            with runtime.start(ask(lab)) as turn:
                reading = Reading(turn)
                reading.until(tg.TextDelta)

            assert isinstance(reading.to_end(), tg.TurnInterrupted)
            assert lab.wait_closed(0).how in LEFT

    def test_callback_that_raises_is_one(self, runtime, ask):
        with Lab([ENDLESS]) as lab:
            heard = []

            def stop_at_text(event):
                heard.append(event)
                if event.offset == 1:
                    raise LookupError("from the callback")

            with pytest.raises(LookupError, match="from the callback"):
                runtime.run(ask(lab), stop_at_text)

            assert heard[-1].text == "so far"
            assert lab.wait_closed(0).how in LEFT

    def test_turn_that_is_dropped_is_one_with_a_warning(self, runtime, ask):
        with Lab([ENDLESS]) as lab:
            turn = runtime.start(ask(lab))
            channel = turn._channel
            lab.wait_requests(1)

            kept = [turn]
            del turn
            with pytest.warns(ResourceWarning, match="dropped while it ran"):
                kept.clear()

            assert eventually(channel.terminal).reason == "abandoned"
            assert lab.wait_closed(0).how in LEFT

    def test_turn_that_is_only_read_is_not_dropped(self, runtime, ask):
        with Lab([chat.answer("Hel", "lo")]) as lab:
            events = list(runtime.start(ask(lab)))

            assert [type(event) for event in events] == [
                tg.AttemptStarted,
                tg.TextDelta,
                tg.TextDelta,
                tg.TurnCompleted,
            ]


class TestStart:
    def test_takes_nothing_but_requests(self, runtime):
        with pytest.raises(tg.ConfigurationError, match=r"tidegate\.Request"):
            runtime.start({"messages": []})

    def test_encodes_before_it_returns(self, runtime, ask):
        with Lab() as lab:
            with pytest.raises(tg.ConfigurationError, match="cannot be JSON"):
                runtime.start(ask(lab, {"messages": [{"role": "user", "content": object()}]}))

            assert lab.requests == []

    def test_payload_may_be_changed_afterwards(self, runtime, ask):
        with Lab([HELD]) as lab:
            payload = {"messages": [{"role": "user", "content": "Hello"}]}
            turn = runtime.start(ask(lab, payload))
            payload["messages"].clear()
            lab.open("go on")
            turn.result()

            assert lab.requests[0].json()["messages"] == [{"role": "user", "content": "Hello"}]

    def test_missing_key_fails_the_turn(self, runtime, ask, monkeypatch):
        monkeypatch.delenv("TIDEGATE_TEST_KEY", raising=False)
        with Lab() as lab:
            request = ask(lab, options={"api_key": "env:TIDEGATE_TEST_KEY"})
            with pytest.raises(tg.AuthRejected, match="TIDEGATE_TEST_KEY"):
                runtime.run(request)

            assert lab.requests == []


@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
def test_fork_of_the_process_may_not_use_the_runtime(runtime, ask):
    context = multiprocessing.get_context("fork")
    with Lab([HELD, chat.answer("again")]) as lab:
        turn = runtime.start(ask(lab))
        reading = Reading(turn)
        reading.until(tg.TextDelta)
        answers, sending = context.Pipe(duplex=False)
        calls = {
            "start": lambda: runtime.start(ask(lab)),
            "run": lambda: runtime.run(ask(lab)),
            "result": turn.result,
            "interrupt": turn.interrupt,
            "snapshot": turn.snapshot,
            "iterate": lambda: next(iter(turn)),
            "go on": lambda: reading.until(tg.TextDelta),
        }

        def try_all():
            refused = []
            for name, call in calls.items():
                with pytest.raises(tg.ForkedRuntime, match="after the fork"):
                    call()
                refused.append(name)
            runtime.stop()  # harmless: it is not the child's
            sending.send(refused)

        child = context.Process(target=try_all)
        child.start()
        sending.close()

        with answers:
            assert answers.poll(GUARD_S)
            assert answers.recv() == list(calls)
        child.join(GUARD_S)
        assert child.exitcode == 0
        lab.open("go on")
        assert turn.result().text == "Hello"
        assert runtime.run(ask(lab)).text == "again"

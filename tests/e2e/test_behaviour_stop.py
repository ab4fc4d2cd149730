"""The end of a runtime: what it interrupts, what it waits for, what is there afterwards."""

import threading

import pytest

import tidegate as tg
from tests.e2e.scripts import ENDLESS, GUARD_S, HELD, in_threads
from tidegate.lab import Lab, chat
from tidegate.testing.eventually import eventually
from tidegate.testing.reading import Reading


def test_interrupts_what_runs_and_takes_nothing_more(ask):
    with Lab([ENDLESS]) as lab, tg.Runtime(workers=2) as runtime:
        turns = [runtime.start(ask(lab)) for _ in range(5)]
        readings = [Reading(turn) for turn in turns]
        for reading in readings:
            reading.until(tg.TextDelta)

        runtime.stop()

        assert [reading.to_end().reason for reading in readings] == ["runtime stopped"] * 5
        for turn in turns:
            with pytest.raises(tg.Interrupted, match="runtime stopped"):
                turn.result()
        with pytest.raises(tg.RuntimeStopped):
            runtime.start(ask(lab))
        with pytest.raises(tg.RuntimeStopped):
            runtime.run(ask(lab))
        assert runtime.statistics().interrupted == 5
        assert runtime.statistics().running == 0


def test_lets_turns_finish_that_do_in_time(ask):
    with Lab([HELD]) as lab, tg.Runtime(workers=1) as runtime:
        turn = runtime.start(ask(lab))
        lab.reached("go on", timeout=GUARD_S)
        stopping = threading.Thread(target=runtime.stop, args=(GUARD_S,))
        stopping.start()

        eventually(lambda: runtime._state != "running")
        with pytest.raises(tg.RuntimeStopped):
            runtime.start(ask(lab))
        lab.open("go on")

        assert turn.result().text == "Hello"
        stopping.join(GUARD_S)
        assert not stopping.is_alive()


def test_is_idempotent_and_may_come_from_any_thread(ask):
    with Lab([ENDLESS]) as lab:
        runtime = tg.Runtime(workers=1)
        turn = runtime.start(ask(lab))

        assert in_threads(4, runtime.stop) == [None] * 4
        runtime.stop()

        with pytest.raises(tg.Interrupted):
            turn.result()


@pytest.mark.parametrize("drain_s", ["x", None, float("nan")])
def test_patience_that_is_no_number_is_refused_and_stops_nothing(ask, drain_s):
    with Lab([chat.answer("a")]) as lab, tg.Runtime(workers=1) as runtime:
        with pytest.raises(tg.ConfigurationError, match=r"drain_s .* is no number of seconds"):
            runtime.stop(drain_s)

        assert runtime.run(ask(lab)).text == "a"


def test_in_the_back_off(ask):
    with Lab([chat.error_answer(500, "no")]) as lab, tg.Runtime(workers=1) as runtime:
        turn = runtime.start(ask(lab, backoff_s=(3600,)))
        Reading(turn).until(tg.RetryScheduled)

        runtime.stop()

        with pytest.raises(tg.Interrupted, match="runtime stopped"):
            turn.result()
        assert len(lab.requests) == 1


def test_counts_are_there_afterwards(ask):
    with Lab([chat.answer("a", "b"), chat.error_answer(401, "no")]) as lab:
        with tg.Runtime(workers=1) as runtime:
            runtime.run(ask(lab))
            with pytest.raises(tg.AuthRejected):
                runtime.run(ask(lab))

        counts = runtime.statistics()
        assert (counts.turns, counts.completed, counts.failed) == (2, 1, 1)
        assert (counts.attempts, counts.deltas) == (2, 2)

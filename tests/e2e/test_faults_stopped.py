"""What happens when a worker or the zygote stands still, or is only busy."""

import os
import signal

import pytest

import tidegate as tg
from tidegate.testing import Answer, End, Lab, chat, gate
from tidegate.testing.eventually import eventually
from tidegate.testing.reading import Reading


pytestmark = pytest.mark.usefixtures("nothing_left")

HELLO = chat.answer("hello", " world")
HELLO_FOR_EVER = Answer(HELLO.steps, repeat=True)

PATIENT = {"kill_grace_s": 0.1, "backoff_s": (0.5,)}
"""So that a worker that has stopped is no more when the next attempt looks for one."""


@pytest.fixture
def runtime():
    with tg.Runtime(workers=1) as runtime:
        yield runtime


def test_stopped_worker_before_a_stream(runtime, ask, pids_of, runs, fates):
    """Nothing comes from it, which is a stall; it does not answer a cancel, so it is killed."""
    _, pids = pids_of(runtime, 2)
    with Lab([HELLO_FOR_EVER]) as lab:
        os.kill(pids[0], signal.SIGSTOP)

        answer = runtime.run(ask(lab, first_event_timeout_s=2, **PATIENT))

        assert (answer.text, fates(answer)) == ("hello world", ["stalled", None])
        eventually(lambda: not runs(pids[0]))
        eventually(lambda: runtime.statistics().workers_killed == 1)


def test_stopped_worker_in_a_stream(runtime, ask, kill, runs, fates):
    with Lab([Answer([chat.role(), gate("never")]), HELLO]) as lab:
        turn = runtime.start(ask(lab, stale_after_s=2, **PATIENT))
        lab.reached("never")

        pid = kill(runtime, turn, signal.SIGSTOP)

        assert fates(turn.result()) == ["stalled", None]
        eventually(lambda: not runs(pid))
        assert lab.wait_closed(0).how in ("eof", "reset")


def test_interrupt_of_a_stopped_worker(runtime, ask, kill, runs, fates):
    """The terminal event does not wait for the worker; its other turns are tried again."""
    with Lab([Answer([gate("held")]), Answer([gate("held")]), HELLO]) as lab:
        turn, sibling = (runtime.start(ask(lab, kill_grace_s=0.1)) for _ in range(2))
        lab.reached("held", times=2)
        pid = kill(runtime, turn, signal.SIGSTOP)

        assert turn.interrupt("enough")

        with pytest.raises(tg.Interrupted, match="enough"):
            turn.result()
        assert fates(sibling.result()) == ["worker_lost", None]
        eventually(lambda: not runs(pid))


def test_worker_that_is_busy_with_a_burst_is_not_taken_for_a_stuck_one(runtime, ask):
    """Nobody's request is sent twice because others were interrupted."""
    with Lab([Answer([chat.text("a"), End.HOLD], repeat=True)]) as lab:
        request = ask(lab, kill_grace_s=0.5)
        turns = [runtime.start(request) for _ in range(300)]
        for turn in turns[::10]:
            turn.interrupt()
        for number, turn in enumerate(turns):
            if number % 10:
                Reading(turn).until(tg.TextDelta)

        assert runtime.statistics().workers_lost == 0
        assert 270 <= len(lab.requests) <= 300
        runtime.stop()


def test_all_turns_of_a_worker_are_interrupted_at_once(runtime, ask):
    """It takes longer over so many cancels than over the grace of one, and is sound."""
    with Lab([Answer([chat.text("a"), End.HOLD], repeat=True)]) as lab:
        request = ask(lab, kill_grace_s=0.02)
        turns = [runtime.start(request) for _ in range(200)]
        for turn in turns:
            Reading(turn).until(tg.TextDelta)

        for turn in turns:
            turn.interrupt()

        eventually(lambda: not runtime._supervisor.supervision.turns, within_s=30)
        statistics = runtime.statistics()
        assert (statistics.interrupted, statistics.attempts) == (200, 200)
        assert (statistics.workers_killed, statistics.workers_lost) == (0, 0)


def test_stop_with_a_stopped_worker(ask, kill, runs):
    with Lab([Answer([chat.text("a"), End.HOLD])]) as lab:
        runtime = tg.Runtime(workers=1)
        turn = runtime.start(ask(lab))
        Reading(turn).until(tg.TextDelta)
        pid = kill(runtime, turn, signal.SIGSTOP)

        runtime.stop()

        assert not runs(pid)
        with pytest.raises(tg.Interrupted, match="runtime stopped"):
            turn.result()


def test_stopped_worker_behind_a_stream(runtime, ask, pids_of, runs):
    _, pids = pids_of(runtime, 2)
    with Lab([HELLO]) as lab:
        assert runtime.run(ask(lab)).text == "hello world"
        os.kill(pids[0], signal.SIGSTOP)
        runtime.stop()
        assert not any(map(runs, pids))


def test_stopped_zygote_does_not_hold_up_a_stop(runtime, pids_of, runs):
    zygote, pids = pids_of(runtime, 2)
    os.kill(zygote, signal.SIGSTOP)
    runtime.stop()
    assert not any(map(runs, (zygote, *pids)))

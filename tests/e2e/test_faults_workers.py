"""What happens when a worker or the zygote is killed, before, in and after a stream."""

import os
import signal

import pytest

import tidegate as tg
from tidegate.testing import Answer, Lab, chat, gate
from tidegate.testing.eventually import eventually
from tidegate.testing.reading import Reading


pytestmark = pytest.mark.usefixtures("nothing_left")

HELLO = chat.answer("hello", " world")
HELLO_FOR_EVER = Answer(HELLO.steps, repeat=True)


@pytest.fixture
def runtime():
    with tg.Runtime(workers=1) as runtime:
        yield runtime


def test_worker_killed_before_a_stream(runtime, ask, pids_of, fates):
    _, pids = pids_of(runtime, 2)
    with Lab([HELLO]) as lab:
        os.kill(pids[0], signal.SIGKILL)
        eventually(lambda: runtime.statistics().workers_lost == 1)

        answer = runtime.run(ask(lab))

        assert (answer.text, fates(answer)) == ("hello world", [None])
        eventually(lambda: runtime.statistics().workers == 2)


def test_worker_killed_with_nothing_taken(runtime, ask, kill, fates):
    held = Answer([gate("never")])
    with Lab([held, HELLO]) as lab:
        turn = runtime.start(ask(lab))
        lab.reached("never")

        kill(runtime, turn)

        answer = turn.result()
        assert (answer.text, fates(answer)) == ("hello world", ["worker_lost", None])
        assert lab.wait_closed(0).how in ("eof", "reset")


def test_worker_killed_with_text_taken(runtime, ask, kill):
    with Lab([Answer([chat.text("some text"), gate("never")])]) as lab:
        turn = runtime.start(ask(lab))
        reading = Reading(turn)
        reading.until(tg.TextDelta)

        kill(runtime, turn)

        terminal = reading.to_end()
        assert isinstance(terminal, tg.TurnFailed)
        answer = turn.result()
        assert (answer.text, answer.partial, answer.finish) == ("some text", True, "incomplete")
        assert answer.failure.kind == "worker_lost"


def test_worker_killed_with_a_tool_call_in_flight(runtime, ask, kill, fates):
    half = [chat.text("Let me see."), chat.tool(id="c1", name="look", arguments='{"a'), gate("x")]
    whole = [chat.tool(id="c2", name="look", arguments='{"at":1}'), chat.finish("tool_calls")]
    with Lab([Answer(half), Answer([*whole, chat.done()])]) as lab:
        turn = runtime.start(ask(lab))
        reading = Reading(turn)
        reading.until(tg.ToolCallDelta)

        kill(runtime, turn)

        reading.to_end()
        answer = turn.result()
        assert [call.parsed() for call in answer.tool_calls] == [{"at": 1}]
        assert fates(answer) == ["worker_lost", None]
        announced = [kind for kind in reading.kinds if "Delta" not in kind]
        assert announced == [
            "AttemptStarted",
            "Notice",
            "RetryScheduled",
            "AttemptStarted",
            "AttemptSuperseded",
            "TurnCompleted",
        ]


def test_worker_killed_behind_the_evidence(runtime, ask, kill):
    with Lab([Answer([chat.text("all of it"), chat.finish(), gate("never")])]) as lab:
        turn = runtime.start(ask(lab, finish_grace_s=600))
        lab.reached("never")
        eventually(lambda: turn.snapshot().finish == "stop")

        kill(runtime, turn)

        assert isinstance(Reading(turn).to_end(), tg.TurnCompleted)
        assert turn.result().text == "all of it"


def test_worker_killed_behind_a_stream(runtime, ask, pids_of):
    _, pids = pids_of(runtime, 2)
    with Lab([HELLO_FOR_EVER]) as lab:
        turn = runtime.start(ask(lab))
        first = turn.result()

        os.kill(pids[0], signal.SIGKILL)

        eventually(lambda: runtime.statistics().workers_lost == 1)
        assert turn.result() == first
        assert list(turn)[-1].answer == first
        assert runtime.run(ask(lab)).text == "hello world"


def test_all_turns_of_a_killed_worker_are_tried_again(runtime, ask, kill, fates):
    """On the standby, which is there already."""
    held = [Answer([gate("never")])] * 10
    with Lab([*held, HELLO_FOR_EVER]) as lab:
        turns = [runtime.start(ask(lab)) for _ in range(10)]
        lab.reached("never", times=10)

        kill(runtime, turns[0])

        for turn in turns:
            assert fates(turn.result()) == ["worker_lost", None]
        statistics = runtime.statistics()
        assert (statistics.completed, statistics.workers_lost) == (10, 1)


def test_standby_takes_over(runtime, ask, kill, pids_of, pid_of_worker):
    _, pids = pids_of(runtime, 2)
    with Lab([Answer([gate("never")]), Answer([gate("second"), *HELLO.steps])]) as lab:
        turn = runtime.start(ask(lab))
        lab.reached("never")
        assert kill(runtime, turn) == pids[0]
        lab.reached("second")

        assert pid_of_worker(runtime, turn) == pids[1]
        lab.open("second")
        assert turn.result().text == "hello world"


def test_other_workers_go_on(ask, kill, fates):
    with (
        Lab(
            [Answer([chat.text("a"), gate("killed"), *chat.answer("b").steps], repeat=True)]
        ) as lab,
        tg.Runtime(workers=2) as runtime,
    ):
        first, second = (runtime.start(ask(lab)) for _ in range(2))
        lab.reached("killed", times=2)

        kill(runtime, first)
        lab.open("killed")

        assert fates(first.result()) == ["worker_lost", None]
        assert fates(second.result()) == [None]


def test_workers_that_die_too_often(ask, kill, fates):
    """A clear error, no attempt without a worker, and another try once the time is over."""
    settings = tg.Settings(worker_restarts_max=2, worker_restarts_period_s=600)
    with (
        Lab([Answer([gate("never")], repeat=True)]) as lab,
        tg.Runtime(workers=1, settings=settings) as runtime,
    ):
        turn = runtime.start(ask(lab, retries=100))
        for times in range(1, 5):
            lab.reached("never", times=times)
            kill(runtime, turn)

        with pytest.raises(tg.WorkerLost, match="too often") as raised:
            turn.result()
        assert raised.value.failure.reason == "restart_intensity"
        assert fates(raised.value.answer) == ["worker_lost"] * 4
        with pytest.raises(tg.WorkerLost, match="too often") as raised:
            runtime.run(ask(lab))
        assert 0 < raised.value.failure.retry_after_s <= 600
        assert len(lab.requests) == 4


def test_workers_come_back_when_the_time_is_over(ask, pids_of):
    settings = tg.Settings(worker_restarts_max=1, worker_restarts_period_s=0.5)
    with Lab([HELLO_FOR_EVER]) as lab, tg.Runtime(workers=1, settings=settings) as runtime:
        _, pids = pids_of(runtime, 2)
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        eventually(lambda: runtime.statistics().workers_lost == 2)

        eventually(lambda: runtime.statistics().workers == 2)
        assert runtime.run(ask(lab)).text == "hello world"


def test_killed_zygote_takes_its_workers_along_and_comes_back(runtime, ask, pids_of, runs, fates):
    zygote, pids = pids_of(runtime, 2)
    with Lab([Answer([gate("never")]), HELLO_FOR_EVER]) as lab:
        turn = runtime.start(ask(lab, backoff_s=(0.0,)))
        lab.reached("never")

        os.kill(zygote, signal.SIGKILL)

        assert fates(turn.result()) == ["worker_lost", None]
        assert not any(map(runs, pids))
        assert pids_of(runtime, 2)[0] != zygote
        assert runtime.run(ask(lab)).text == "hello world"


def test_workers_without_a_zygote(ask, kill, monkeypatch, fates):
    """As on systems where a process with threads cannot be forked safely."""
    monkeypatch.setenv("TIDEGATE_START_METHOD", "exec")
    with Lab([Answer([gate("never")]), HELLO]) as lab, tg.Runtime(workers=1) as runtime:
        turn = runtime.start(ask(lab))
        lab.reached("never", timeout=30)

        kill(runtime, turn)

        assert fates(turn.result()) == ["worker_lost", None]

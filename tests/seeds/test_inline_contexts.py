"""A turn needs no thread, pool or loop of its caller's: it runs the same wherever it is started."""

import asyncio
import multiprocessing
import runpy
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import tidegate as tg
from tidegate.lab import Answer, End, Lab, chat, keepalive
from tidegate.testing.reading import Reading


CHILD = str(Path(__file__).with_name("child.py"))
GUARD_S = 30


def as_cron(job):
    """Run a job in the one thread of a scheduler."""
    with ThreadPoolExecutor(1) as scheduler:
        return scheduler.submit(job).result(GUARD_S)


def as_subagent(job):
    """Run a job in a pool in a pool, while every thread of both waits for it."""

    def delegate():
        with ThreadPoolExecutor(1) as children:
            return children.submit(job).result(GUARD_S)

    with ThreadPoolExecutor(1) as parents:
        return parents.submit(delegate).result(GUARD_S)


def in_a_running_loop(job):
    """Run a job that blocks in a coroutine."""

    async def main():
        return job()

    return asyncio.run(main())


HELLO = chat.answer("hello", " world")
HELLO_FOR_EVER = Answer(HELLO.steps, repeat=True)


@pytest.mark.parametrize(
    "run_in", [pytest.param(as_subagent, id="subagent"), pytest.param(as_cron, id="cron")]
)
def test_direct_contexts_stream_on_the_wire_and_on_the_calling_thread(runtime, asking, run_in):
    """Which thread sends the request is nobody's business; no thread of the caller's is needed."""
    with Lab([HELLO]) as lab:
        answer = run_in(lambda: runtime.run(asking(lab)))

        assert [request.json()["stream"] for request in lab.requests] == [True]
        assert (answer.text, answer.finish) == ("hello world", "stop")


def test_interactive_platform_still_uses_the_worker_thread(runtime, asking):
    with Lab([HELLO]) as lab:
        answer = runtime.run(asking(lab))

        assert [request.json()["stream"] for request in lab.requests] == [True]
        assert (answer.text, answer.finish) == ("hello world", "stop")


def test_inline_stream_stale_detector_still_fires_from_monitor_thread(runtime, asking):
    pings_only = Answer([chat.text("hello"), keepalive(0.05, 10_000), End.HOLD])
    with Lab([pings_only]) as lab:
        patience = {"first_event_timeout_s": 30, "alive_timeout_s": 30}
        request = asking(lab, stale_after_s=0.5, **patience, retries=0)

        with pytest.raises(tg.StreamStalled) as raised:
            as_subagent(lambda: runtime.run(request))

        assert raised.value.failure.reason == "no_progress"
        assert not raised.value.answer.partial
        assert lab.wait_closed(0).how in ("eof", "reset")
        assert len(lab.requests) == 1


def test_inline_stream_cross_thread_interrupt_aborts_promptly(runtime, asking):
    pings_only = Answer([chat.text("hello"), keepalive(0.05, 10_000), End.HOLD])
    with Lab([pings_only]) as lab:
        turn = runtime.start(asking(lab, stale_after_s=60, retries=0))
        caught = []

        def wait():
            with pytest.raises(InterruptedError, match="test interrupt") as raised:
                turn.result()
            caught.append(raised.value)

        waiting = threading.Thread(target=wait)
        waiting.start()
        Reading(turn).until(tg.TextDelta)

        assert turn.interrupt("test interrupt")

        waiting.join(GUARD_S)
        assert [each.answer.text for each in caught] == ["hello"]
        assert lab.wait_closed(0).how in ("eof", "reset")


@pytest.mark.parametrize(
    "run_in",
    [
        pytest.param(lambda job: job(), id="main thread"),
        pytest.param(as_cron, id="plain thread"),
        pytest.param(as_subagent, id="nested pool"),
        pytest.param(in_a_running_loop, id="running event loop"),
    ],
)
def test_should_use_direct_api_call_gate_is_unchanged(runtime, asking, run_in):
    """There is no gate: one and the same call is right in every context."""
    with Lab([HELLO_FOR_EVER]) as lab:
        answer = run_in(lambda: runtime.run(asking(lab)))

        assert (answer.text, answer.finish) == ("hello world", "stop")


@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_should_use_direct_api_call_gate_is_unchanged_in_a_child_process(runtime, method):
    """The parent has a runtime too, and goes on with it."""
    context = multiprocessing.get_context(method)
    with Lab([HELLO_FOR_EVER]) as lab:
        request = tg.Request(tg.Endpoint.chat(lab.url, "test-key"), {"messages": []})
        before = runtime.run(request)
        answers, sending = context.Pipe(duplex=False)
        given = {"url": lab.url, "answers": sending}
        child = context.Process(target=runpy.run_path, args=(CHILD, given, "asked"))

        child.start()
        sending.close()

        with answers:
            assert answers.poll(GUARD_S)
            assert answers.recv() == ("hello world", "stop")
        child.join(GUARD_S)
        assert child.exitcode == 0
        assert runtime.run(request).text == before.text == "hello world"

"""What happens when the program ends, in good or bad order, or lives in unusual ways."""

import asyncio
import os
import signal
import threading

import pytest

import tidegate as tg
from tidegate.testing import Answer, End, Lab, chat, gate
from tidegate.testing.eventually import eventually
from tidegate.testing.reading import Reading


pytestmark = pytest.mark.usefixtures("nothing_left")

ENDLESS = Answer([chat.text("on and on"), End.HOLD], repeat=True)
HELLO_FOR_EVER = Answer(chat.answer("hello").steps, repeat=True)

SCRIPT = """
import os
import sys
import tidegate as tg

url, how = sys.argv[1:]
request = tg.Request(tg.Endpoint.chat(url, "key"), {"model": "m", "messages": []})
runtime = tg.Runtime(workers=2)
turns = [runtime.start(request) for _ in range(4)]
for turn in turns:
    next(turn.text())
if how == "with a child":
    if os.fork() == 0:
        import time
        time.sleep(600)
print("ready", flush=True)
if how == "end of script":
    for turn in turns:
        turn.interrupt()
elif how == "end with turns running":
    pass
elif how == "exception":
    raise LookupError("the program's own")
elif how == "sys.exit":
    sys.exit(3)
elif how == "os._exit":
    os._exit(4)
else:
    sys.stdin.read()
"""


@pytest.mark.parametrize(
    ("how", "code"),
    [
        ("end of script", 0),
        ("end with turns running", 0),
        ("exception", 1),
        ("sys.exit", 3),
        ("os._exit", 4),
    ],
)
def test_program_that_ends_without_stop(run_host, marked, how, code):
    with Lab([ENDLESS]) as lab:
        ended, output, errors = run_host(SCRIPT, lab.url, how)

        assert (ended, output) == (code, "ready\n"), errors
        assert ("Traceback" in errors) == (how == "exception")
        eventually(lambda: not marked())
        eventually(lambda: lab.open_connections_count == 0)


def test_stop_with_many_turns_says_nothing(run_host):
    source = """
import sys
import tidegate as tg

request = tg.Request(tg.Endpoint.chat(sys.argv[1], "key"), {"model": "m", "messages": []})
with tg.Runtime(workers=1) as runtime:
    turns = [runtime.start(request) for _ in range(100)]
    for turn in turns:
        next(turn.text())
"""
    with Lab([ENDLESS]) as lab:
        assert run_host(source, lab.url) == (0, "", "")


class Left:
    """What a killed program has left: true once it is only its own children."""

    def __init__(self, processes, children):
        self.pids = list(processes)
        self._processes = processes
        self._children = children

    def __bool__(self):
        ours = [name for name in self._processes.values() if name.startswith("tidegate")]
        return not ours and len(self.pids) == self._children

    def __repr__(self):
        return repr(self._processes)


@pytest.mark.parametrize(
    ("number", "how"),
    [
        (signal.SIGKILL, "alone"),
        (signal.SIGKILL, "with a child"),
        (signal.SIGTERM, "alone"),
        (signal.SIGSEGV, "alone"),
    ],
)
def test_program_that_is_killed(start_host, marked, number, how):
    """Also if a process that it has forked lives on, with copies of whatever it had."""
    with Lab([ENDLESS]) as lab:
        host = start_host(SCRIPT, lab.url, how)
        assert host.stdout.readline() == "ready\n"
        assert lab.open_connections_count == 4

        host.send_signal(number)

        assert host.wait(20) == -number
        eventually(lambda: lab.open_connections_count == 0)
        left = eventually(lambda: Left(marked(), children=int(how != "alone"))).pids
        for pid in left:
            os.kill(pid, signal.SIGKILL)


def test_runtime_made_in_a_thread_that_ends(ask, pids_of, runs):
    """The zygote dies with the thread that starts it, so it must not be that one."""
    made = []
    maker = threading.Thread(target=lambda: made.append(tg.Runtime(workers=1)))
    maker.start()
    maker.join()
    with Lab([HELLO_FOR_EVER]) as lab, made[0] as runtime:
        assert runtime.run(ask(lab)).text == "hello"
        zygote, pids = pids_of(runtime, 2)
        assert all(map(runs, (zygote, *pids)))
        assert runtime.statistics().workers_lost == 0


def test_runtime_made_in_an_event_loop_that_is_closed(ask):
    async def make():
        return tg.Runtime(workers=1)

    with Lab([HELLO_FOR_EVER]) as lab, asyncio.run(make()) as runtime:
        assert runtime.run(ask(lab)).text == "hello"
        assert asyncio.run(runtime.arun(ask(lab))).text == "hello"


def test_two_runtimes(ask):
    with Lab([Answer([chat.text("a"), gate("stopped"), *chat.answer("b").steps])] * 2) as lab:
        one, other = tg.Runtime(workers=1), tg.Runtime(workers=1)
        turns = [each.start(ask(lab)) for each in (one, other)]
        for turn in turns:
            Reading(turn).until(tg.TextDelta)

        one.stop()
        lab.open("stopped")

        with pytest.raises(tg.Interrupted, match="runtime stopped"):
            turns[0].result()
        assert turns[1].result().text == "ab"
        assert turns[0].id != turns[1].id
        other.stop()


def test_many_runtimes_one_after_the_other(ask):
    with Lab([HELLO_FOR_EVER]) as lab:
        for _ in range(3):
            with tg.Runtime(workers=1) as runtime:
                assert runtime.run(ask(lab)).text == "hello"


def test_loop_that_is_closed_while_a_turn_is_awaited(ask):
    """Whoever waits there is woken by nobody, and nobody is hurt by that."""
    with (
        Lab([Answer([chat.text("a"), gate("closed"), *chat.answer("b").steps])]) as lab,
        tg.Runtime(workers=1) as runtime,
    ):
        turn = runtime.start(ask(lab))

        async def wait():
            return await turn

        async def iterate(events):
            async for event in turn:
                events.append(event)

        async def leave(*jobs):
            tasks = [asyncio.ensure_future(job) for job in jobs]
            await asyncio.sleep(0)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

        abandoned = asyncio.new_event_loop()
        waiting, events = [abandoned.create_task(wait()) for _ in range(2)], []
        waiting.append(abandoned.create_task(iterate(events)))
        abandoned.call_soon(abandoned.stop)
        abandoned.run_forever()
        asyncio.run(leave(wait(), iterate([])))
        for task in waiting:
            task._log_destroy_pending = False  # that is what this test is about
        abandoned.close()

        lab.open("closed")

        assert turn.result().text == "ab"
        assert asyncio.run(wait()).text == "ab"
        asyncio.run(iterate(events))
        assert isinstance(events[-1], tg.TurnCompleted)


def test_one_turn_in_several_loops_and_threads(ask):
    with (
        Lab([Answer([chat.text("a"), gate("all read"), *chat.answer("b").steps])]) as lab,
        tg.Runtime(workers=1) as runtime,
    ):
        turn = runtime.start(ask(lab))
        begun = threading.Barrier(5)
        texts = []

        async def iterate():
            text = ""
            async for piece in turn.text():
                if not text:
                    await asyncio.to_thread(begun.wait)
                text += piece
            return text

        threads = [
            threading.Thread(target=lambda: texts.append(asyncio.run(iterate()))) for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        begun.wait()
        lab.open("all read")
        for thread in threads:
            thread.join()

        assert texts == ["ab"] * 4

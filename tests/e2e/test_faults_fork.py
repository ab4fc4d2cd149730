"""What happens when a program forks that has a runtime, and how a pre-fork server has one."""

import asyncio
import os
import pickle
import signal
import socket
import traceback
import warnings
from pathlib import Path

import pytest

import tidegate as tg
from tidegate.testing import Answer, Lab, chat, gate
from tidegate.testing.eventually import eventually
from tidegate.testing.reading import Reading


pytestmark = [
    pytest.mark.usefixtures("nothing_left"),
    pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning"),
]

EMBEDDING = Path(__file__).parents[2] / "docs" / "embedding.md"
HELLO_FOR_EVER = Answer(chat.answer("hello").steps, repeat=True)


def in_child(job):
    """Run ``job`` in a fork of this process, and return what it returned."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reader)
        signal.alarm(30)  # a child that hangs ends all the same
        try:
            os.write(writer, pickle.dumps(job()))
        except BaseException:  # noqa: BLE001 - the rim of a process
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as answer:
        pickled = answer.read()
    _, status = os.waitpid(pid, 0)
    assert status == 0, "the child hung or failed"
    return pickle.loads(pickled)


def sockets():
    """Yield the sockets and pipes of this process, whatever their numbers."""
    for entry in Path("/proc/self/fd").iterdir():
        try:
            link = str(entry.readlink())
        except OSError:
            continue  # the one that was listing this folder
        if link.startswith(("socket:", "pipe:")):
            yield link


def outcome(call):
    """Return the class of what ``call`` raises, or what it returns."""
    try:
        return call()
    except tg.TidegateError as error:
        return type(error)


def test_every_call_in_a_forked_child(ask):
    with (
        Lab([Answer([chat.text("a"), gate("forked"), *chat.answer("b").steps])]) as lab,
        tg.Runtime(workers=1) as runtime,
    ):
        request = ask(lab)
        turn = runtime.start(request)
        reading = Reading(turn)
        reading.until(tg.TextDelta)
        started, textual = iter(turn), turn.text()
        next(started)

        async def awaited():
            return await turn

        async def iterated():
            return [event async for event in turn]

        async def entered():
            async with turn:
                return "entered"

        def with_block():
            with turn:
                return "entered"

        calls = {
            "start": lambda: runtime.start(request),
            "run": lambda: runtime.run(request),
            "arun": lambda: asyncio.run(runtime.arun(request)),
            "statistics": runtime.statistics,
            "result": turn.result,
            "await": lambda: asyncio.run(awaited()),
            "iterate": lambda: list(turn),
            "async for": lambda: asyncio.run(iterated()),
            "text": lambda: list(turn.text()),
            "go on iterating": lambda: list(started),
            "go on with text": lambda: list(textual),
            "interrupt": turn.interrupt,
            "snapshot": turn.snapshot,
            "with": with_block,
            "async with": lambda: asyncio.run(entered()),
        }

        found = in_child(lambda: {name: outcome(call) for name, call in calls.items()})

        assert found == dict.fromkeys(calls, tg.ForkedRuntime)
        lab.open("forked")
        assert turn.result().text == "ab"
        assert runtime.statistics().workers_lost == 0


def test_what_a_forked_child_may_do(ask):
    """Whatever cleans up: it does nothing, and does not complain."""
    with Lab([Answer([chat.text("a"), gate("forked"), *chat.answer("b").steps])]) as lab:
        runtime = tg.Runtime(workers=1)
        turns = [runtime.start(ask(lab))]
        reading = iter(turns[0])
        next(reading)

        def clean_up():
            nonlocal reading
            text = repr(turns[0])
            with warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always")
                reading = None
                turns.clear()
                runtime.stop()
                with runtime:
                    pass
            return len(said), "Turn" in text

        assert in_child(clean_up) == (0, True)
        lab.open("forked")
        assert turns[0].result().text == "ab"
        runtime.stop()


def test_child_holds_no_copy_of_a_socket(pids_of):
    """A worker sees at once that its host is gone, and the host that a worker is."""
    earlier = set(sockets())
    ends = socket.socketpair()
    before = set(sockets())
    theirs = before - earlier
    with tg.Runtime(workers=2) as runtime:
        pids_of(runtime, 3)
        own = set(sockets()) - before
        inside = in_child(lambda: set(sockets()))
    for end in ends:
        end.close()

    assert len(own) > 3
    assert own & inside == set()
    # Of all others only these: a library may renew its own at a fork, as libuv does.
    assert len(theirs) == len(ends)
    assert theirs <= inside


def test_runtime_of_its_own_in_a_forked_child(ask):
    with Lab([HELLO_FOR_EVER]) as lab, tg.Runtime(workers=1) as runtime:
        request = ask(lab)
        assert runtime.run(request).text == "hello"

        def serve():
            with tg.Runtime(workers=1) as own:
                return own.run(request).text

        assert in_child(serve) == "hello"
        assert runtime.run(request).text == "hello"


def recipes():
    """Return the two recipes for servers that fork, as modules' names."""
    page = EMBEDDING.read_text()
    blocks = [block.partition("```")[0] for block in page.split("```python\n")[1:]]
    made = []
    for word in ("post_fork", "functools.cache"):
        [code] = [block for block in blocks if word in block]
        names: dict = {}
        exec(compile(code, str(EMBEDDING), "exec"), names)
        made.append(names)
    return made


class Serving:
    """What a pre-fork server hands to its hooks."""

    tidegate: tg.Runtime


def serve_with_hooks(request):
    hooks, _ = recipes()
    worker = Serving()
    hooks["post_fork"](None, worker)
    text = worker.tidegate.run(request).text
    hooks["worker_exit"](None, worker)
    return text


def serve_on_first_use(request):
    _, names = recipes()
    texts = [names["runtime"]().run(request).text for _ in range(2)]
    assert names["runtime"]() is names["runtime"]()
    names["runtime"]().stop()
    return texts[0]


@pytest.mark.parametrize("serve", [serve_with_hooks, serve_on_first_use])
def test_pre_fork_server(ask, serve):
    """Three serving processes at once, each with a runtime that it made after the fork."""
    with Lab([HELLO_FOR_EVER]) as lab:
        request = ask(lab)
        reader, writer = os.pipe()
        pids = []
        for _ in range(3):
            pid = os.fork()
            if pid == 0:
                signal.alarm(40)
                os.write(writer, f"{serve(request)}\n".encode())
                os._exit(0)
            pids.append(pid)
        os.close(writer)
        with os.fdopen(reader) as said:
            assert said.read() == "hello\n" * 3
        assert [os.waitpid(pid, 0)[1] for pid in pids] == [0] * 3
        assert len({each.connection for each in lab.requests}) == 3


def test_serving_process_that_is_killed_takes_its_workers_along(ask, marked):
    with Lab([Answer([chat.text("a"), gate("never")])]) as lab:
        request = ask(lab)
        pid = os.fork()
        if pid == 0:
            runtime = tg.Runtime(workers=1)
            list(runtime.start(request))
            os._exit(1)
        lab.reached("never", timeout=30)
        assert len(marked()) >= 2

        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)

        assert lab.wait_closed(0).how in ("eof", "reset")
        eventually(lambda: not marked())

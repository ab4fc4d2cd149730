"""A turn whose local server dies goes on at the one that takes its place, wherever that is.

The server is the stand-in; ``tests/real`` kills a real one.
"""

import os
import signal
from pathlib import Path

import pytest

import tidegate as tg
from tidegate.testing import Lab, chat
from tidegate.testing.eventually import eventually


pytestmark = pytest.mark.usefixtures("stand_in")

PAYLOAD = {"messages": [{"role": "user", "content": "Who are you?"}]}


@pytest.fixture
def runtime():
    with tg.Runtime(workers=1) as made:
        yield made


@pytest.fixture
def start(runtime):
    """Start a turn at a model; its retry comes soon."""

    def begin(path, **policy):
        impatient = {"backoff_s": (0.05,), "retries": 3} | policy
        request = tg.Request(tg.Endpoint.local(str(path)), PAYLOAD, policy=tg.Policy(**impatient))
        return runtime.start(request)

    return begin


@pytest.fixture
def kill_server():
    """Kill the server that has a request in hand; gives its process id."""

    def kill(path, then):
        asked = path.with_suffix(".asked")
        eventually(asked.exists)
        path.write_bytes(b"GGUF " + then.encode())
        pid = int(asked.read_text())
        os.kill(pid, signal.SIGKILL)
        return pid

    return kill


@pytest.mark.parametrize(
    ("behaviour", "kind"), [("say nothing", "connection_lost"), ("begin", "truncated")]
)
def test_retry_finds_the_server_that_was_started_again(start, model, kill_server, behaviour, kind):
    path = model(behaviour)
    turn = start(path)

    killed = kill_server(path, then="serve")

    answer = turn.result()
    assert answer.finish == "stop"
    assert Path(f"/proc/{answer.text}/status").exists()
    assert int(answer.text) != killed
    assert answer.attempts[0].failure.kind == kind


def test_retry_goes_to_the_same_server_if_it_lives(start, model):
    turn = start(model("cut"))

    answer = turn.result()

    assert [attempt.outcome for attempt in answer.attempts] == ["failed", "completed"]
    assert start(model("serve")).result().text == answer.text


def test_server_that_does_not_come_back_ends_the_turn_in_its_words(start, model, kill_server):
    path = model("begin")
    turn = start(path)
    kill_server(path, then="refuse")

    with pytest.raises(tg.ConnectionLost, match="cannot read this tensor") as raised:
        turn.result()

    assert raised.value.failure.reason == "local_server"
    assert len(raised.value.answer.attempts) == 1


def test_others_go_on_while_the_server_starts(runtime, start, model, kill_server):
    path = model("begin")
    turn = start(path)
    kill_server(path, then="hang")
    eventually(path.with_suffix(".loading").exists)

    with Lab([chat.answer("hello")]) as lab:
        answer = runtime.run(tg.Request(tg.Endpoint.chat(lab.url), {"model": "m", **PAYLOAD}))

    assert answer.text == "hello"
    assert turn.interrupt("enough")
    with pytest.raises(tg.Interrupted, match="enough"):
        turn.result()


def test_stop_ends_a_server_that_is_being_started_for_a_retry(
    runtime, start, model, kill_server, running
):
    path = model("begin")
    turn = start(path)
    kill_server(path, then="hang")
    loading = path.with_suffix(".loading")
    pid = eventually(lambda: loading.exists() and loading.read_text())

    runtime.stop()

    assert not running(pid)
    with pytest.raises(tg.Interrupted):
        turn.result()


def test_turn_that_starts_after_the_stop_brings_no_server(runtime, start, model):
    runtime.stop()

    with pytest.raises(tg.RuntimeStopped):
        start(model())
    address = runtime._locals.address(tg.Endpoint.local(str(model())))
    with pytest.raises(tg.RuntimeStopped):
        address.result(20)

"""One runtime for each file, and requests of which nothing is known from other tests."""

import os
import signal

import pytest

import tidegate as tg
from tidegate.testing.eventually import eventually
from tidegate.testing.warm import warm


PROMPT = {"model": "test-model", "messages": [{"role": "user", "content": "Hello"}]}


@pytest.fixture(scope="module")
def runtime():
    with tg.Runtime(workers=2) as runtime:
        warm(runtime, 2)
        yield runtime


@pytest.fixture
def asking(request):
    """Make a request to a lab; keywords are fields of its policy."""
    # What is learned of an endpoint stays with the runtime: a header makes it the test's own.
    own = {"x-test": request.node.name}

    def ask(lab, payload=PROMPT, **policy):
        endpoint = tg.Endpoint.chat(lab.url, "test-key", headers=own)
        patience = tg.Policy(**{"backoff_s": (0.01,), "backoff_jitter": 0.0} | policy)
        return tg.Request(endpoint, payload, policy=patience)

    return ask


@pytest.fixture
def worker_stopped():
    """Stop the worker that runs a turn's attempt, as a paused machine would; gives ``resume``."""
    stopped = []

    def stop(runtime, turn):
        number = int(turn.id.rpartition("_")[2])
        generation = runtime._supervisor.supervision.turns[number].live[-1].generation
        link = runtime._io._workers._links[generation]
        pid = eventually(lambda: link.process).pid
        os.kill(pid, signal.SIGSTOP)
        stopped.append(pid)
        return lambda: os.kill(stopped.pop(), signal.SIGCONT)

    yield stop
    for pid in stopped:
        os.kill(pid, signal.SIGCONT)

"""No worker outlives its host, however the host dies and whatever the worker does.

Method: a host of its own, in a process that this test kills.
"""

import os
import signal

import pytest

from tidegate.testing.eventually import eventually


HOST = """
import ctypes, os, sys, threading, time
from tidegate.actors.supervisor.io import WorkerIo
from tidegate.protocol.attempts import Opened, WorkerReady
from tidegate.testing.workers import PUPPETS, start

method, hangs, fork = sys.argv[1], sys.argv[2] == "hangs", sys.argv[3]
said = []
came = threading.Semaphore(0)

def deliver(messages):
    for each in messages:
        said.append(each)
        came.release()

io = WorkerIo(deliver=deliver, crashed=print, providers=PUPPETS, start_method=method)
io.start()
pids = []
for generation in (1, 2):
    io.spawn(generation)
    came.acquire()
    pids.append(said[-1].pid)
    if hangs:
        io.send(generation, start(generation, "hang"))
        came.acquire()
# One by Python, which closes its copies of our sockets, and one that keeps them.
pid = os.fork() if fork == "fork" else ctypes.CDLL(None).fork() if fork == "raw fork" else 1
if not pid:
    while os.getppid() == int(os.environ["KILLER"]) or not os.path.exists("end"):
        time.sleep(0.01)
    os._exit(0)
zygote = io.zygote.pid if io.zygote else 0
print(zygote, *pids, flush=True)
while True:
    time.sleep(1)
"""


@pytest.fixture
def kill_host(run_host, tmp_path, gone):
    """Start a host with two workers, kill what is said, and wait for the end of all."""

    def kill(*victims, method="zygote", state="sleeps", fork=""):
        environment = os.environ | {"KILLER": "0"}
        arguments = ("script.py", method, state, fork)
        host = run_host(HOST, *arguments, env=environment)
        zygote, *workers = map(int, host.stdout.readline().split())
        assert not gone(*workers)
        numbers = {"host": host.pid, "zygote": zygote, "worker": workers[0]}
        for victim in victims:
            os.kill(numbers[victim], signal.SIGKILL)

        eventually(lambda: gone(*workers))
        if zygote:
            eventually(lambda: gone(zygote))
        (tmp_path / "end").touch()

    return kill


@pytest.mark.parametrize("fork", ["", "fork", "raw fork"])
@pytest.mark.parametrize("state", ["sleeps", "hangs"])
def test_workers_die_with_their_host(kill_host, state, fork):
    kill_host("host", state=state, fork=fork)


@pytest.mark.parametrize("fork", ["", "raw fork"])
@pytest.mark.parametrize("state", ["sleeps", "hangs"])
def test_workers_that_were_execed_die_with_their_host(kill_host, state, fork):
    kill_host("host", method="exec", state=state, fork=fork)


@pytest.mark.parametrize("state", ["sleeps", "hangs"])
def test_workers_die_with_their_zygote(kill_host, state):
    kill_host("zygote", state=state)


@pytest.mark.parametrize("state", ["sleeps", "hangs"])
@pytest.mark.parametrize("first", ["host", "zygote"])
def test_workers_die_with_host_and_zygote_though_a_fork_holds_copies(kill_host, first, state):
    second = {"host": "zygote", "zygote": "host"}[first]
    kill_host(first, second, state=state, fork="raw fork")

"""A process that the user forks has no part in the parent's workers.

Method: a host of its own, for a fork of the test's own process would be one with many threads.
"""

import pytest


SETUP = """
import os, sys, threading
from tidegate.actors.supervisor.io import WorkerIo
from tidegate.errors import ForkedRuntime
from tidegate.protocol.attempts import Ping
from tidegate.testing.workers import PUPPETS, start

said = []
came = threading.Semaphore(0)

def deliver(messages):
    for each in messages:
        said.append(each)
        came.release()

def pipes():
    # What could hide an end; a descriptor of a process or of a poll hides nothing.
    names = []
    for name in os.listdir("/proc/self/fd"):
        try:
            names.append(os.readlink("/proc/self/fd/" + name))
        except FileNotFoundError:
            continue
    return sum(name.startswith(("socket:", "pipe:")) for name in names)

before = pipes()
io = WorkerIo(deliver=deliver, crashed=print, providers=PUPPETS, start_method=sys.argv[1])
io.start()
for generation in (1, 2):
    io.spawn(generation)
    came.acquire()
"""

LETS_GO = """
if not os.fork():
    assert io.forked
    assert pipes() == before
    for refused in (lambda: io.send(1, Ping(1)), lambda: io.spawn(3)):
        try:
            refused()
        except ForkedRuntime:
            print("refused", flush=True)
    io.stop()
    io.join()
    sys.exit()
_, status = os.wait()
assert status == 0, status
assert not io.forked
io.send(1, Ping(7))
came.acquire()
print(said[-1].number, flush=True)
io.stop()
io.join()
"""

LIVES_ON = """
reader, writer = os.pipe()
pid = os.fork()
if not pid:
    os.read(reader, 1)  # holds on until the parent is done
    os._exit(0)
io.send(1, start(5, "die", b"3"))
came.acquire()
print(said[-1].exitcode, flush=True)
io.stop()
io.join()
os.write(writer, b"x")
os.waitpid(pid, 0)
"""

OWN = """
pid = os.fork()
if not pid:
    io = WorkerIo(deliver=deliver, crashed=print, providers=PUPPETS, start_method=sys.argv[1])
    io.start()
    io.spawn(1)
    came.acquire()
    io.send(1, Ping(8))
    came.acquire()
    print(said[-1].number, flush=True)
    io.stop()
    io.join()
    sys.exit()
os.waitpid(pid, 0)
io.stop()
io.join()
"""

WHILE_IT_WORKS = """
stop = threading.Event()

def spawn():
    generation = 2
    while not stop.is_set():
        generation += 1
        io.spawn(generation)
        io.kill(generation)
        came.acquire()

thread = threading.Thread(target=spawn, daemon=True)
thread.start()
for _ in range(50):
    pid = os.fork()
    if not pid:
        os._exit(pipes() - before)
    assert os.waitpid(pid, 0)[1] == 0
stop.set()
thread.join()
io.stop()
io.join()
print("done", flush=True)
"""


@pytest.mark.parametrize(
    ("act", "words"),
    [
        (LETS_GO, ["refused", "refused", "7"]),
        (LIVES_ON, ["3"]),
        (OWN, ["8"]),
        (WHILE_IT_WORKS, ["done"]),
    ],
    ids=["lets go of all", "does not hide an end", "may have its own", "at any moment"],
)
def test_forked_process(run_host, start_method, act, words):
    # That the host has threads is the point, and Python 3.12 and later warn of it.
    quiet = ("-W", "ignore::DeprecationWarning")
    host = run_host(SETUP + act, *quiet, "script.py", start_method)

    out, error = host.communicate(timeout=50)
    assert error == ""
    assert out.split() == words
    assert host.returncode == 0

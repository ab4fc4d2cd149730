"""Requests that are impatient, hosts in processes of their own, and a look at what is left."""

import gc
import os
import secrets
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import tidegate as tg
from tidegate.testing.eventually import eventually


PROC = Path("/proc")
MARK = "TIDEGATE_TEST_MARK"
PROMPT = {"model": "test-model", "messages": [{"role": "user", "content": "Hello"}]}


@pytest.fixture
def endpoint_at():
    """Make an endpoint at a lab or a base URL; files about other wires have their own."""

    def make(place, **options):
        url = place if isinstance(place, str) else place.url
        return tg.Endpoint.chat(url, **({"api_key": "test-key"} | options))

    return make


@pytest.fixture
def prompt():
    """What is asked where a test does not say."""
    return PROMPT


@pytest.fixture
def ask(endpoint_at, prompt):
    """Make a request to a lab or a base URL; keywords are fields of its policy."""

    def make(place, payload=None, *, options=None, stream=True, **policy):
        endpoint = endpoint_at(place, **(options or {}))
        impatient = tg.Policy(**({"backoff_s": (0.01,), "backoff_jitter": 0.0} | policy))
        asked = prompt if payload is None else payload
        return tg.Request(endpoint, asked, policy=impatient, stream=stream)

    return make


@pytest.fixture
def own(request):
    """Options of an endpoint that no other test knows: what is learned of it stays."""
    return {"headers": {"x-test": request.node.name}}


@pytest.fixture
def marked(monkeypatch):
    """Find by a mark in their environment all processes that a test has brought about.

    The mark is inherited whoever is the parent, so an orphan is found as well as a child.
    """
    mark = f"{MARK}={secrets.token_hex(8)}"
    monkeypatch.setenv(*mark.split("="))

    def find():
        return {
            int(folder.name): _read(folder / "comm").strip()
            for folder in _processes()
            if mark in _read(folder / "environ")
        }

    return find


@pytest.fixture
def nothing_left(marked):
    """Compare what there is after the test with what there was before: all of it must go."""
    threads, descriptors, children = set(threading.enumerate()), _descriptors(), _children()
    yield
    seen = {}

    def gone():
        now = _descriptors()
        seen["processes"] = {
            pid: name for pid, name in (marked() | _children()).items() if pid not in children
        }
        seen["threads"] = [each.name for each in set(threading.enumerate()) - threads]
        seen["descriptors"] = {
            number: now[number] for number in now if descriptors.get(number) != now[number]
        }
        if any(seen.values()):
            gc.collect()
            return False
        return True

    try:
        eventually(gone)
    except AssertionError:
        for pid in seen["processes"]:
            os.kill(pid, signal.SIGKILL)
        raise AssertionError(f"left behind: {seen}") from None


@pytest.fixture
def start_host(tmp_path, marked):
    """Run a script as a host of its own; whatever it leaves is killed when the test is over."""
    hosts = []

    def start(source, *arguments, command=None, **options):
        script = tmp_path / "script.py"
        script.write_text(source)
        host = subprocess.Popen(
            [sys.executable, *(command or (str(script),)), *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=tmp_path,
            **options,
        )
        hosts.append(host)
        return host

    yield start
    for host in hosts:
        host.kill()
        host.communicate()


@pytest.fixture
def run_host(start_host):
    """Run a script to its end, with an input; returns exit code, output and errors."""

    def run(source, *arguments, given=None, **options):
        host = start_host(source, *arguments, **options)
        output, errors = host.communicate(given, timeout=40)
        return host.returncode, output, errors

    return run


@pytest.fixture
def pid_of_worker():
    """Return the process that runs a turn's attempt."""

    def find(runtime, turn):
        generation = runtime._supervisor.supervision.turns[turn.number].live[-1].generation
        return eventually(lambda: runtime._io._workers._links[generation].process).pid

    return find


@pytest.fixture
def pids_of():
    """Return the zygote's process and those of the workers, once all are there and ready."""

    def find(runtime, count):
        supervision, links = runtime._supervisor.supervision, runtime._io._workers._links

        def workers():
            ready = {worker.generation for worker in supervision.pool.workers if worker.ready}
            # That it is ready comes by its own socket, and its process by the zygote's.
            processes = [link.process for link in links.values()]
            return len(ready) >= count and ready == {*links} and all(processes) and processes

        pids = [process.pid for process in eventually(workers, within_s=30)]
        return runtime._io.zygote.pid, pids

    return find


@pytest.fixture
def kill(pid_of_worker):
    """Kill the worker that runs a turn's attempt, and return which it was."""

    def do(runtime, turn, number=signal.SIGKILL):
        pid = pid_of_worker(runtime, turn)
        os.kill(pid, number)
        return pid

    return do


@pytest.fixture
def fates():
    """Say how each attempt of an answer failed, None for one that did not."""
    return lambda answer: [each.failure and each.failure.kind for each in answer.attempts]


@pytest.fixture
def runs():
    """Say whether a process runs; a corpse does not."""

    def look(pid):
        state = _read(PROC / str(pid) / "stat").rpartition(") ")[2][:1]
        return state not in ("", "Z", "X")

    return look


def _processes():
    pids = [folder for folder in PROC.iterdir() if folder.name.isdecimal()]
    return [folder for folder in pids if int(folder.name) != os.getpid()]


def _read(path):
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""  # it has ended


def _children():
    children = {}
    for folder in _processes():
        name, _, rest = _read(folder / "stat").rpartition(") ")
        if rest and int(rest.split()[1]) == os.getpid():
            children[int(folder.name)] = name.partition("(")[2]
    return children


def _descriptors():
    descriptors = {}
    for entry in PROC.glob("self/fd/*"):
        try:
            descriptors[int(entry.name)] = str(entry.readlink())
        except OSError:
            continue  # the one that was listing this folder
    return descriptors

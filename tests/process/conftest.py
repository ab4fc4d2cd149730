"""Real workers, and a record of all that the I/O thread says."""

import os
import subprocess
import sys
import threading
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tidegate.actors.supervisor.io import WorkerIo
from tidegate.protocol.attempts import WorkerReady
from tidegate.protocol.workers import WorkerLost
from tidegate.testing.eventually import eventually
from tidegate.testing.workers import PUPPETS


class Probe:
    """An I/O thread, with what it said in order and a way to hold it up."""

    def __init__(self, **options):
        self.said = []
        self.deliveries = []
        self.crashes = []
        self.held = threading.Event()
        self._go = threading.Event()
        self._go.set()
        self._hold_at = None
        options = {
            "deliver": self._deliver,
            "providers": PUPPETS,
            "preload": ("tidegate.testing.workers",),
        } | options
        self.io = WorkerIo(crashed=self.crashes.append, **options)

    def _deliver(self, messages):
        self.said += messages
        self.deliveries.append(messages)
        if self._hold_at and any(isinstance(each, self._hold_at) for each in messages):
            self._hold_at = None
            self.held.set()
            self._go.wait(30)

    def hold_at(self, kind):
        """Let the I/O thread wait in the first delivery of that kind until ``let_go``."""
        self._go.clear()
        self._hold_at = kind

    def let_go(self):
        self._go.set()

    def all(self, kind, **fields):
        return [
            each
            for each in list(self.said)
            if isinstance(each, kind)
            and all(getattr(each, name) == value for name, value in fields.items())
        ]

    def wait_for(self, kind, **fields):
        return eventually(lambda: self.all(kind, **fields))[0]

    def ready(self, generation=1, **options):
        """Spawn a worker and return its process id once it serves."""
        self.io.spawn(generation, **options)
        return self.wait_for(WorkerReady, generation=generation).pid

    def lost(self, generation=1):
        return self.wait_for(WorkerLost, generation=generation)

    def settle(self):
        """Wait until all that was asked of the I/O thread before this is done."""
        mark = object()
        self.io.ask(-1, mark)
        eventually(lambda: mark in self.said)
        self.said.remove(mark)

    def end(self):
        self.let_go()
        self.io.stop()
        if self.io.ident is not None:
            self.io.join(20)
        assert not self.io.is_alive()


@pytest.fixture
def make_probe():
    """Make probes that are stopped when the test is over."""
    probes = []

    def make(*, started=True, **options):
        probe = Probe(**options)
        probes.append(probe)
        if started:
            probe.io.start()
        return probe

    yield make
    for probe in probes:
        probe.end()


@pytest.fixture(params=["zygote", "exec"])
def start_method(request):
    return request.param


@pytest.fixture
def probe(make_probe, start_method):
    return make_probe(start_method=start_method)


@pytest.fixture
def forking(make_probe):
    """A probe with a zygote that is ready."""
    probe = make_probe(start_method="zygote")
    eventually(lambda: probe.io.zygote)
    return probe


@pytest.fixture
def starved():
    """Keep the processor from a process, within a ``with``: others want all of it."""

    @contextmanager
    def starve(pid):
        cpu = min(os.sched_getaffinity(0))
        os.sched_setaffinity(pid, {cpu})
        os.sched_setscheduler(pid, os.SCHED_IDLE, os.sched_param(0))
        autogroup = Path(f"/proc/{pid}/autogroup")
        if autogroup.exists():  # then it is sessions that share the processor
            autogroup.write_text("19")
        work = f"import os; os.sched_setaffinity(0, {{{cpu}}}); print(flush=True)\nwhile True: pass"
        command = [sys.executable, "-c", work]
        with ExitStack() as hogs:
            for _ in range(4):
                hog = subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True)
                hogs.callback(hog.communicate)
                hogs.callback(hog.kill)
                hog.stdout.readline()
            yield

    return starve


@pytest.fixture
def children():
    """The children of this process, those that are dead and not reaped included."""

    def find():
        tasks = Path(f"/proc/{os.getpid()}/task").iterdir()
        return {int(child) for task in tasks for child in (task / "children").read_text().split()}

    return find


class Clock:
    """Stands still, until somebody moves it."""

    now_s = 1_000.0

    def __call__(self):
        return self.now_s


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def gone():
    """Whether processes are no more; a corpse that nobody has reaped yet is no process."""

    def all_gone(*pids):
        return not [pid for pid in pids if _runs(pid)]

    return all_gone


def _runs(pid):
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rpartition(") ")[2][0] not in "ZX"


@pytest.fixture
def run_host(tmp_path):
    """Start a script of ours as a host of its own; it is killed when the test is over."""
    hosts = []

    def run(source, *command, **options):
        script = tmp_path / "script.py"
        script.write_text(source)
        host = subprocess.Popen(
            [sys.executable, *(command or (script,))],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=tmp_path,
            **options,
        )
        hosts.append(host)
        return host

    yield run
    for host in hosts:
        host.kill()
        host.communicate()

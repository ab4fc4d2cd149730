"""A worker's process as the host holds it: something to signal, and to be told the end of."""

from __future__ import annotations

import contextlib
import os
import select
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Collection
from functools import partial
from pathlib import Path
from typing import Protocol, TypeAlias

from tidegate.actors.supervisor.timers import Timers
from tidegate.settings import environment


POLL_S = 0.05
"""How often to look for the end of a child, where a system does not tell it."""

DEATH_S = 1.5
"""How long to wait for who was sent SIGKILL, when the runtime ends.

It takes longer than a moment only on a machine where nobody else gets a processor either.
"""

# A long prompt is sent and freed, but what is allocated behind it lives as long as the stream does:
# without these glibc would keep the hole in between.
_RETURN_MEMORY = {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "131072"}


class Process(Protocol):
    """Something that can be killed."""

    def kill(self) -> None:
        """Send SIGKILL, unless it is reaped."""

    def wait(self, timeout: float, /) -> object:
        """Wait for its end, and reap it if it is the host's own child.

        Raises:
            subprocess.TimeoutExpired: it has not ended in time.
        """


class Child(Process, Protocol):
    """A process that the host has to reap."""

    @property
    def pid(self) -> int:
        """Its number."""

    def poll(self) -> int | None:
        """Reap it if it has ended, and return its exit code."""


def end_all(processes: Collection[Process]) -> None:
    """Kill processes and wait until they have ended; what was still to be said of them is not."""
    for process in processes:
        process.kill()
    until_s = time.monotonic() + DEATH_S
    for process in processes:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(max(0.0, until_s - time.monotonic()))


class ForkedWorker:
    """A worker whose parent is the zygote, which reaps it and kills what it has started."""

    def __init__(self, pid: int, pidfd: int) -> None:
        self.pid = pid
        self._pidfd = pidfd

    def signal(self, number: signal.Signals) -> None:
        """Send a signal; a process that is gone gets none, and neither does its successor."""
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._pidfd, number)

    def kill(self) -> None:
        """Send SIGKILL; the zygote does the same to its group."""
        self.signal(signal.SIGKILL)

    def wait(self, timeout: float, /) -> None:
        """Wait for its end; another process reaps it.

        Raises:
            subprocess.TimeoutExpired: it has not ended in time.
        """
        end = select.poll()
        end.register(self._pidfd, select.POLLIN)
        if not end.poll(timeout * 1000):
            raise subprocess.TimeoutExpired(f"worker {self.pid}", timeout)

    def close(self) -> None:
        """Let go of the descriptor."""
        os.close(self._pidfd)

    def after_fork_in_child(self) -> None:
        """Close the copy."""
        self.close()


class ExecedWorker:
    """A worker whose parent is the host."""

    def __init__(self, popen: subprocess.Popen[bytes]) -> None:
        self.pid = popen.pid
        self.popen = popen

    def signal(self, number: signal.Signals) -> None:
        """Send a signal, unless it is reaped."""
        self.popen.send_signal(number)

    def poll(self) -> int | None:
        """Reap it if it has ended, with what it has started, and return its exit code."""
        if hasattr(os, "waitid"):
            with contextlib.suppress(ChildProcessError):
                if os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
                    self.kill()
        return self.popen.poll()

    def kill(self) -> None:
        """Send SIGKILL to its group, unless it is reaped."""
        if self.popen.returncode is None:
            # It leads a group of its own, whose number is taken until it is reaped.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)

    def wait(self, timeout: float, /) -> int:
        """Wait for its end, reap it and return its exit code.

        Raises:
            subprocess.TimeoutExpired: it has not ended in time.
        """
        return self.popen.wait(timeout)

    def close(self) -> None:
        """Let go; it is the reaper that sees its end."""

    def after_fork_in_child(self) -> None:
        """Forget a child that is the parent's."""
        if self.popen.returncode is None:
            self.popen.returncode = 0


WorkerProcess: TypeAlias = ForkedWorker | ExecedWorker


class Reaper:
    """Sees the ends of the host's own children, without waiting for any until the last moment.

    Args:
        selector, timers, clock: the I/O thread's.
    """

    def __init__(
        self,
        selector: selectors.BaseSelector,
        timers: Timers,
        clock: Callable[[], float],
    ) -> None:
        self._selector = selector
        self._timers = timers
        self._clock = clock
        self._children: dict[int, Child] = {}
        self._pidfds: dict[int, int] = {}

    def watch(self, child: Child, ended: Callable[[int], None]) -> None:
        """Tell the exit code of a child once there is one."""
        pid = child.pid
        self._children[pid] = child
        if (exitcode := child.poll()) is not None:
            del self._children[pid]
            ended(exitcode)
        elif (pidfd := _pidfd_of(pid)) is not None:
            self._pidfds[pid] = pidfd
            look = partial(self._look, child, ended)
            self._selector.register(pidfd, selectors.EVENT_READ, look)
        else:
            again = partial(self.watch, child, ended)
            self._timers.start(("reap", pid), self._clock() + POLL_S, again)

    def end(self) -> None:
        """Kill and reap whoever is left: nobody would do it later."""
        end_all(self._children.values())
        self.close()

    def close(self) -> None:
        """Watch nobody any more."""
        for pidfd in self._pidfds.values():
            os.close(pidfd)  # which takes it out of the selector, for there is no copy of it
        self._pidfds.clear()
        self._children.clear()

    def _look(self, child: Child, ended: Callable[[int], None], _mask: int) -> None:
        pidfd = self._pidfds.pop(child.pid)
        self._selector.unregister(pidfd)
        os.close(pidfd)
        self.watch(child, ended)


def _pidfd_of(pid: int) -> int | None:
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return None  # not on this system, none left, or reaped by somebody else


def worker_environment() -> dict[str, str]:
    """Return the environment for a process that runs provider actors, or forks who does.

    glibc reads its thresholds when a program is started, so they cannot be set in the worker. The
    user's own hold, in either of their two forms.
    """
    given = environment()
    if "glibc.malloc." in given.get("GLIBC_TUNABLES", ""):
        return dict(given)
    return {**_RETURN_MEMORY, **given}


def python_command(module: str, function: str, *arguments: object) -> list[str]:
    """Return the command that calls ``function`` of ``module`` in a new interpreter.

    The search path goes along, so that what only a run-time edit of ``sys.path`` made
    importable is importable there; the main module stays out of it.

    Raises:
        FileNotFoundError: there is no interpreter to start, as in a frozen application.
    """
    if not sys.executable or getattr(sys, "frozen", False):
        raise FileNotFoundError("workers need a Python interpreter, and sys.executable is none")
    paths = [entry or _working_folder() for entry in sys.path if isinstance(entry, str)]
    code = (
        f"import sys; sys.path[:] = {paths!r}; from {module} import {function}; "
        f"{function}(*{arguments!r})"
    )
    return [sys.executable, "-c", code]


def _working_folder() -> str:
    try:
        return str(Path.cwd())
    except FileNotFoundError:
        return ""  # it was removed; nothing can be imported from there anyway

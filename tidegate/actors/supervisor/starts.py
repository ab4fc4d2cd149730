"""How workers come into being: forked by a zygote, or exec'd where that is not to be had."""

from __future__ import annotations

import contextlib
import logging
import os
import selectors
import subprocess
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Protocol

from tidegate.actors.supervisor import forks
from tidegate.actors.supervisor.process import (
    ExecedWorker,
    ForkedWorker,
    Reaper,
    WorkerProcess,
    python_command,
    worker_environment,
)
from tidegate.actors.supervisor.timers import Timers
from tidegate.actors.supervisor.zygote_link import Launch, ZygoteLink
from tidegate.protocol.base import Generation
from tidegate.protocol.workers import Exited, Forked, FromZygote, ZygoteReady


ZYGOTE_DEATHS_MAX = 3
ZYGOTE_DEATHS_PERIOD_S = 60.0
PRELOAD_S = 60.0
IN_FLIGHT_MAX = 16

_log = logging.getLogger("tidegate.worker")


class Listener(Protocol):
    """Who hears of workers' processes; called in the I/O thread."""

    def started(self, generation: Generation, process: WorkerProcess) -> None:
        """The process exists."""

    def exited(self, generation: Generation, exitcode: int | None, detail: str) -> None:
        """The process is reaped, or there will be none."""

    def orphaned(self, unborn: frozenset[Generation]) -> None:
        """The zygote is gone, its workers with it, and those that it was asked for."""


class Starts:
    """Starts workers, and keeps a zygote for it.

    Args:
        zygote: whether to begin with one; after too many of its deaths workers are exec'd.
        preload: what the zygote imports.
        selector, timers, clock: the I/O thread's.
        listener: hears what becomes of the processes.
    """

    def __init__(  # noqa: PLR0913 - each thing from outside comes in by its name
        self,
        *,
        zygote: bool,
        preload: tuple[str, ...],
        selector: selectors.BaseSelector,
        timers: Timers,
        clock: Callable[[], float],
        listener: Listener,
    ) -> None:
        self.facts: ZygoteReady | None = None
        self._forking = zygote
        self._preload = preload
        self._selector = selector
        self._timers = timers
        self._clock = clock
        self._listener = listener
        self._reaper = Reaper(selector, timers, clock)
        self._zygote: ZygoteLink | None = None
        self._deaths_at_s: deque[float] = deque(maxlen=ZYGOTE_DEATHS_MAX)
        self._waiting: deque[Launch] = deque()
        self._in_flight: set[Generation] = set()

    def warm(self) -> None:
        """Start the zygote, before anybody needs a worker."""
        while self._forking and self._zygote is None:
            try:
                self._zygote = ZygoteLink(self._preload)
            except OSError as error:
                self._count_death(f"cannot be started: {error}")
                continue
            self._selector.register(self._zygote.control, selectors.EVENT_READ, self._ready)
            self._timers.start("preload", self._clock() + PRELOAD_S, self._zygote.popen.kill)

    def add(self, launch: Launch) -> None:
        """Take a worker to start; ``advance`` does it."""
        self._waiting.append(launch)

    def advance(self) -> None:
        """Start what waits, as far as the zygote is ready."""
        self.warm()
        while self._waiting:
            if not self._forking:
                self._exec(self._waiting[0])
            elif self.facts is None or len(self._in_flight) >= IN_FLIGHT_MAX:
                return  # fewer at a time than the socket holds, so that no send has to wait
            else:
                self._fork()

    def withdraw(self, generation: Generation) -> bool:
        """Take back a launch; False if it is under way."""
        for launch in self._waiting:
            if launch.generation == generation:
                self._done_with(launch)
                return True
        return False

    def close(self) -> None:
        """End the zygote and all workers; returns when every child of the host is reaped."""
        while self._waiting:
            self._done_with(self._waiting[0])
        zygote = self._zygote
        if zygote is None:
            self._reaper.end()
            return
        self._zygote = None
        self._selector.unregister(zygote.control)
        if self.facts is not None:  # else it is importing, hears nothing and has no workers
            zygote.end()
        self._reaper.watch(zygote.popen, lambda _: None)
        self._reaper.end()  # the workers of a zygote that is killed die with it
        with contextlib.suppress(EOFError):
            while received := zygote.receive():  # what it has forked without our knowing yet
                self._take(*received)
        zygote.control.close()

    def after_fork_in_child(self) -> None:
        """Close the copies of what the workers do not have yet, and of the zygote's socket."""
        while self._waiting:
            self._waiting.popleft().close()
        if self._zygote is not None:
            self._zygote.after_fork_in_child()
        self._reaper.close()

    def _fork(self) -> None:
        assert self._zygote is not None
        launch = self._waiting[0]
        try:
            self._zygote.fork(launch)
        except OSError as error:
            self._lose_zygote(f"takes no orders: {error}")
            return
        self._in_flight.add(launch.generation)
        self._done_with(launch)

    def _exec(self, launch: Launch) -> None:
        descriptors = (launch.sock.fileno(), launch.words_fd)
        arguments = (*descriptors, launch.generation, launch.providers, os.getpid())
        try:
            with forks.gate:
                popen = subprocess.Popen(
                    python_command("tidegate.actors.provider.worker", "exec_main", *arguments),
                    stdin=subprocess.DEVNULL,
                    env=worker_environment(),
                    pass_fds=descriptors,
                    start_new_session=True,
                )
        except OSError as error:
            self._listener.exited(launch.generation, None, f"cannot be started: {error}")
        else:
            worker = ExecedWorker(popen)
            self._listener.started(launch.generation, worker)
            ended = partial(self._execed_ended, launch.generation)
            self._reaper.watch(worker, ended)
        finally:
            self._done_with(launch)

    def _done_with(self, launch: Launch) -> None:
        with forks.gate:
            self._waiting.remove(launch)
            launch.close()

    def _execed_ended(self, generation: Generation, exitcode: int) -> None:
        self._listener.exited(generation, exitcode, "")

    def _ready(self, _mask: int) -> None:
        assert self._zygote is not None
        try:
            while received := self._zygote.receive():
                self._take(*received)
        except EOFError:
            self._lose_zygote("died")
        self.advance()

    def _take(self, message: FromZygote, pidfd: int | None) -> None:
        match message:
            case ZygoteReady():
                self._take_facts(message)
            case Forked():
                self._in_flight.discard(message.generation)
                if pidfd is not None:
                    process = ForkedWorker(message.pid, pidfd)
                    self._listener.started(message.generation, process)
                else:  # the worker ends when its socket is closed, and is reported by that
                    detail = "the host is out of descriptors"
                    self._listener.exited(message.generation, None, detail)
            case Exited():
                self._in_flight.discard(message.generation)
                self._listener.exited(message.generation, message.exitcode, message.detail)

    def _take_facts(self, ready: ZygoteReady) -> None:
        self._timers.cancel("preload")
        for complaint in ready.complaints:
            _log.warning("zygote %d: %s", ready.pid, complaint)
        if ready.threads == 1:
            self.facts = ready
        else:
            _log.warning("zygote %d has %d threads and cannot fork", ready.pid, ready.threads)
            self._forking = False

    def _lose_zygote(self, how: str) -> None:
        zygote = self._zygote
        assert zygote is not None
        self._zygote = None
        self.facts = None
        unborn = frozenset(self._in_flight)
        self._in_flight.clear()
        self._timers.cancel("preload")
        self._selector.unregister(zygote.control)
        zygote.control.close()
        zygote.popen.kill()
        self._reaper.watch(zygote.popen, lambda _: None)
        self._listener.orphaned(unborn)
        if self._forking:
            self._count_death(how)

    def _count_death(self, how: str) -> None:
        now_s = self._clock()
        self._deaths_at_s.append(now_s)
        often = len(self._deaths_at_s) == ZYGOTE_DEATHS_MAX
        if often and now_s - self._deaths_at_s[0] <= ZYGOTE_DEATHS_PERIOD_S:
            self._forking = False
            how += f", {ZYGOTE_DEATHS_MAX} times in a minute: workers are exec'd from here on"
        _log.warning("the zygote %s", how)

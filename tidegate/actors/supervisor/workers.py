"""All workers of a runtime as the I/O thread has them: what goes to each, and what becomes of it.

Everything here runs in the I/O thread. What it says goes through ``deliver``, in order; the loss
of a worker is said once, behind its last frame.

Path: ``supervisor/link.py`` -> this -> ``sink/actor.py``.
"""

from __future__ import annotations

import logging
import selectors
import signal
from collections.abc import Callable, Hashable
from functools import partial

from tidegate.actors.supervisor import forks
from tidegate.actors.supervisor.leaving import Leaving
from tidegate.actors.supervisor.link import READ_BYTES, WorkerLink, end_from, innermost_frame
from tidegate.actors.supervisor.pair import make_pair
from tidegate.actors.supervisor.process import ForkedWorker, WorkerProcess
from tidegate.actors.supervisor.starts import Starts
from tidegate.actors.supervisor.timers import Timers
from tidegate.protocol.attempts import Ended
from tidegate.protocol.base import Generation, Token, TurnNumber
from tidegate.protocol.workers import WorkerLost


DUMP_S = 0.005
EXIT_REPORT_S = 0.2
"""How long a loss waits for the exit code, which comes by another road; mostly within 1 ms."""
HELD_OPEN_S = 0.25
"""How long a dead worker's socket may stay open: a process of its own has a copy."""
READS_MAX = 4
"""Reads at a time from one worker, which may write as fast as we read."""

Deliver = Callable[[list[object]], None]

_log = logging.getLogger("tidegate.worker")


class Workers:
    """The live workers, and the processes that are on their way out.

    Args:
        zygote: whether workers are forked from one.
        preload: what it imports.
        selector, timers, clock: the I/O thread's.
        deliver: takes what is said, in the I/O thread.
    """

    def __init__(  # noqa: PLR0913 - each thing from outside comes in by its name
        self,
        *,
        zygote: bool,
        preload: tuple[str, ...],
        selector: selectors.BaseSelector,
        timers: Timers,
        clock: Callable[[], float],
        deliver: Deliver,
    ) -> None:
        self.deliver = deliver
        self._selector = selector
        self._timers = timers
        self._clock = clock
        self._links: dict[Generation, WorkerLink] = {}
        self._written_to: set[WorkerLink] = set()
        self._space = memoryview(bytearray(READ_BYTES))
        self.starts = Starts(
            zygote=zygote,
            preload=preload,
            selector=selector,
            timers=timers,
            clock=clock,
            listener=self,
        )
        self.leaving = Leaving()

    def spawn(self, generation: Generation, providers: str) -> None:
        """Start a worker; its socket takes messages from here on."""
        try:
            with forks.gate:
                link, launch = make_pair(generation, providers)
                self._links[generation] = link
                self.starts.add(launch)
        except OSError as error:
            self.deliver([WorkerLost(generation, f"it could not be started: {error}")])
            return
        self._watch(link, selectors.EVENT_READ)
        self.starts.advance()

    def send(self, generation: Generation, frame: bytes, name: Hashable) -> None:
        """Queue a frame, unless the worker is gone: its loss answers for that."""
        link = self._links.get(generation)
        if link is not None:
            link.unsent.put(frame, name)
            self._written_to.add(link)

    def cancel(self, generation: Generation, turn: TurnNumber, token: Token, frame: bytes) -> None:
        """Send ``frame`` ahead of others, or end the attempt here if it has not left yet."""
        link = self._links.get(generation)
        if link is None:
            return
        link.unsent.drop(("credit", token))
        if link.unsent.drop(("start", token)):
            self.deliver([Ended(turn, token, cancelled=True)])
            return
        link.unsent.put_first(frame)
        self._written_to.add(link)

    def flush(self) -> None:
        """Send what was queued since the last time."""
        while self._written_to:
            self._write(self._written_to.pop())

    def ask(self, generation: Generation, question: object) -> None:
        """Deliver ``question`` behind all that the worker's socket holds."""
        link = self._links.get(generation)
        if link is not None:
            self._read_all(link)
            if link.ended:
                self._lose(link)
        self.deliver([question])

    def kill(self, generation: Generation, *, dump: bool) -> None:
        """Kill the worker, after a stack dump of it if ``dump``; waits for nothing."""
        link = self._links.get(generation)
        if link is None:
            return
        if dump and link.process is not None:
            link.process.signal(signal.SIGUSR1)
            finish = partial(self._finish_kill, link)
            self._timers.start(("dump", generation), self._clock() + DUMP_S, finish)
        else:
            self._give_up(link, "it was killed")

    def signs(self, generation: Generation) -> Callable[[], tuple[bool, bool]]:
        """Return what says later whether the worker was heard, and if not, whether starved."""
        link = self._links.get(generation)
        if link is None:
            return lambda: (False, False)
        self._read_all(link)  # what it had sent by now is no sign of life
        return link.signs()

    def started(self, generation: Generation, process: WorkerProcess) -> None:
        """Note the process, or kill it if its worker was given up meanwhile."""
        link = self._links.get(generation)
        if link is None:
            self.leaving.started(generation, process)
        else:
            link.process = process

    def exited(self, generation: Generation, exitcode: int | None, detail: str) -> None:
        """Note the end of a process; what its socket holds comes before the loss all the same."""
        self.leaving.exited(generation)
        link = self._links.get(generation)
        if link is None:
            return
        link.exited = (exitcode, detail)
        if exitcode is None:
            self._give_up(link, detail)
        elif link.ended:
            self._lose(link)
        else:
            self._give_up_in(HELD_OPEN_S, link, "its socket stays open behind it")

    def orphaned(self, unborn: frozenset[Generation]) -> None:
        """Lose the workers of a zygote that is gone, all before anybody hears of one.

        Or an attempt that the first has lost would be tried again on the next.
        """
        self.leaving.orphaned()
        lost: list[WorkerLink] = []
        for link in self._links.values():
            if isinstance(link.process, ForkedWorker) or link.generation in unborn:
                self._kill(link)
                lost.append(link)
        for link in lost:
            self._read_all(link)
            link.exited = (None, "its zygote died")  # nobody is left to report it
        self.deliver([self._bury(link) for link in lost if link.generation in self._links])

    def leave(self) -> None:
        """Close every worker's socket, which tells it to end."""
        for link in list(self._links.values()):
            self._lose(link)

    def kill_all(self) -> None:
        """Kill every worker, and those that were told to end and have not."""
        self.leave()
        self.leaving.kill()

    def after_fork_in_child(self) -> None:
        """Close the copies."""
        for link in self._links.values():
            link.after_fork_in_child()
        self.leaving.after_fork_in_child()
        self.starts.after_fork_in_child()

    def _ready(self, link: WorkerLink, mask: int) -> None:
        if mask & selectors.EVENT_READ and link.watched:
            self._read(link)
        if mask & selectors.EVENT_WRITE and link.watched:
            self._write(link)

    def _read(self, link: WorkerLink) -> bool:
        messages = link.read(self._space)
        if messages:
            self.deliver(messages)
        if link.ended:
            self._end(link)
        return bool(messages)

    def _read_all(self, link: WorkerLink) -> None:
        # Until there is nothing, but not for ever: the worker may write as fast as this reads.
        for _ in range(READS_MAX):
            if link.ended or not self._read(link):
                return

    def _write(self, link: WorkerLink) -> None:
        link.write()
        if link.watched:
            waits = selectors.EVENT_WRITE if link.unsent else 0
            self._watch(link, selectors.EVENT_READ | waits)

    def _watch(self, link: WorkerLink, mask: int) -> None:
        if mask == link.watched:
            return
        if not link.watched:
            self._selector.register(link.sock, mask, partial(self._ready, link))
        elif mask:
            self._selector.modify(link.sock, mask, partial(self._ready, link))
        else:
            self._selector.unregister(link.sock)
        link.watched = mask

    def _end(self, link: WorkerLink) -> None:
        self._watch(link, 0)
        if link.garbage or link.exited is not None:
            self._kill(link)
            self._lose(link)
            return
        self._give_up_in(EXIT_REPORT_S, link, link.ended)

    def _finish_kill(self, link: WorkerLink) -> None:
        dump = link.last_words()
        _log.warning(
            "worker %d is killed; %s", link.generation, dump or "it left no stack dump in time"
        )
        frame = innermost_frame(dump)
        self._give_up(link, f"it was killed in {frame}" if frame else "it was killed")

    def _give_up_in(self, delay_s: float, link: WorkerLink, why: str) -> None:
        at_s = self._clock() + delay_s
        self._timers.start(("loss", link.generation), at_s, partial(self._give_up, link, why))

    def _give_up(self, link: WorkerLink, why: str) -> None:
        ended = link.ended or why  # the end of its socket, met below, is our own doing
        self._kill(link)
        self._read_all(link)
        link.ended = ended
        self._lose(link)

    def _kill(self, link: WorkerLink) -> None:
        if link.process is not None:
            link.process.kill()

    def _lose(self, link: WorkerLink) -> None:
        if link.generation in self._links:
            self.deliver([self._bury(link)])

    def _bury(self, link: WorkerLink) -> WorkerLost:
        generation = link.generation
        self._watch(link, 0)
        self._written_to.discard(link)
        self._timers.cancel(("dump", generation))
        self._timers.cancel(("loss", generation))
        words = link.last_words()
        with forks.gate:
            del self._links[generation]
            link.close()
        exitcode, detail = link.exited or (None, "")
        detail = detail or (link.ended if exitcode is None else end_from(exitcode))
        if words:
            _log.warning("worker %d: %s; %s", generation, detail, words)
            detail = f"{detail}: {innermost_frame(words) or words.splitlines()[-1]}"
        if link.exited is None:
            if link.process is not None or not self.starts.withdraw(generation):
                self.leaving.add(generation, link.process)
        elif link.process is not None:
            link.process.close()
        return WorkerLost(generation, detail, exitcode)

"""Where the stream of one inline turn is read: by whoever waits for the turn.

Whoever does *attends* the desk and reads there, one thread at a time. A thread whose event loop
runs never reads itself; a thread of the desk's own then does.

Path: ``turn.py`` -> this -> ``provider/stream_run.py``
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from tidegate.actors.provider.stream_run import StreamRun
from tidegate.actors.sink.channel import TurnChannel
from tidegate.protocol.attempts import Credit, Ended, StartAttempt, WorkerReady
from tidegate.protocol.base import Generation, Token


if TYPE_CHECKING:
    from tidegate.inline import InlineStreams

Found = TypeVar("Found")


class Desk:
    """Where the stream of one turn is read.

    Attributes:
        attended_since_s: since when somebody has waited there; None while nobody does.
    """

    def __init__(self, streams: InlineStreams, channel: TurnChannel) -> None:
        self.attended_since_s: float | None = None
        self._streams = streams
        self._channel = channel
        self._starts: list[StartAttempt] = []
        self._run: StreamRun | None = None
        self._reading = threading.Lock()
        self._lock = threading.Lock()
        self._bells: list[Callable[[], None]] = []
        self._beside = False
        self._marked = 0
        self._reached = 0

    def place(self, start: StartAttempt) -> None:
        """Take an attempt that is to be begun by whoever attends."""
        with self._lock:
            self._starts = [start]
        self._ring()

    def credit(self, credit: Credit) -> None:
        """Pass on that more may be read; an attempt that has not begun gets it with its start."""
        with self._lock:
            run = self._run_of(credit.token)
        if run is not None:
            run.credit(credit.limit_bytes)

    def cancel(self, token: Token) -> bool:
        """End an attempt; False if it has not begun, and will not."""
        with self._lock:
            if any(start.token == token for start in self._starts):
                self._starts.clear()
                return False
            run = self._run_of(token)
        if run is None:
            return False
        run.cancel()
        # Whoever read it may not come back; what is closed late is closed all the same.
        threading.Thread(target=self._finish, args=(run,), name="tidegate-end", daemon=True).start()
        return True

    def attend(
        self,
        look: Callable[[], Found],
        come: threading.Semaphore,
        *,
        each: bool = False,
        until_s: float | None = None,
    ) -> Found | None:
        """Read in this thread until ``look`` returns something, and return that.

        Args:
            look: may leave ``come.release`` with whoever brings what is looked for.
            come: released when it is worth looking again.
            each: whether to look as soon as the sink has handled what was read.
            until_s: the instant at which to return None; noticed between two reads.
        """
        reads = not _in_running_loop()
        if not reads:
            self.read_beside()
        self._enter(come.release)
        try:
            while True:
                while come.acquire(blocking=False):
                    pass
                # Asked before the look: what comes between the two must not wait for a read.
                may_read = reads and (not each or self._settled())
                if (found := look()) is not None:
                    return found
                left_s = None if until_s is None else until_s - time.monotonic()
                if left_s is not None and left_s <= 0:
                    return None
                if may_read and self._read():
                    if not each:
                        continue
                    self._mark()
                come.acquire(timeout=left_s)
        finally:
            self._mark()
            self._leave(come.release)

    def read_beside(self) -> None:
        """Have a thread of the desk's own read until the turn has ended."""
        with self._lock:
            if self._beside:
                return
            self._beside = True
        threading.Thread(target=self._attend_beside, name="tidegate-inline", daemon=True).start()

    def _attend_beside(self) -> None:
        come = threading.Semaphore(0)
        self._channel.await_terminal(come.release)
        try:
            self.attend(self._channel.terminal, come)
        finally:
            self._streams.leave_home()

    def _read(self) -> bool:
        """Read one piece; False if there is no attempt, or another thread reads it."""
        if not self._reading.acquire(blocking=False):
            return False
        try:
            run = self._begun()
            if run is None:
                return False
            run.step()
        finally:
            self._reading.release()
        return True

    def _begun(self) -> StreamRun | None:
        """Return the attempt to read, which begins here if it has not."""
        if self._run is not None and not self._run.over:
            return self._run
        if not self._starts:
            return None
        home = self._streams.home()  # without the lock, for it may have to close others
        with self._lock:
            if not self._starts:
                return None  # cancelled
            start = self._starts.pop()
            self._run = StreamRun(start, home, self._say)
        self._streams.tell(WorkerReady(start.generation, os.getpid()))
        return self._run

    def _say(self, message: object) -> None:
        self._streams.tell(message)
        if isinstance(message, Ended):
            self._streams.call(lambda: self._streams.forget(Generation(-message.token)))

    def _finish(self, run: StreamRun) -> None:
        """Take the last step of a cancelled attempt, unless the one who reads it has."""
        with self._reading:
            run.step()

    def _mark(self) -> None:
        """Note when the sink has handled all that was read so far."""
        with self._lock:
            self._marked += 1
            marked = self._marked
        self._streams.call(lambda: self._reach(marked))

    def _reach(self, marked: int) -> None:
        self._reached = marked
        self._ring()

    def _settled(self) -> bool:
        """Say whether all that was read before has become what can be looked for."""
        return self._reached == self._marked

    def _run_of(self, token: Token) -> StreamRun | None:
        return self._run if self._run is not None and self._run.token == token else None

    def _enter(self, bell: Callable[[], None]) -> None:
        with self._lock:
            self._bells.append(bell)
            if self.attended_since_s is None:
                self.attended_since_s = time.monotonic()

    def _leave(self, bell: Callable[[], None]) -> None:
        with self._lock:
            self._bells.remove(bell)
            if not self._bells:
                self.attended_since_s = None
        self._ring()  # one of the others reads on

    def _ring(self) -> None:
        with self._lock:
            bells = [*self._bells]
        for bell in bells:
            bell()


def _in_running_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True

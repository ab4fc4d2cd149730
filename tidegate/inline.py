"""Custom streams that are read in the threads of those who wait for their turns.

An inline attempt is placed like any other, at a generation below zero, and what is read of it goes
into the sink's mailbox as from a worker: so token, seq and every rule behind them hold here too.

Nobody can end a thread. A stream that stands still when it is cancelled is closed from another
thread; if even that does not make the read return, the attempt is given up. The turn has ended all
the same for everybody but the one in the read.

Path: ``supervisor/actor.py`` -> this -> ``desk.py``
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from tidegate.actors.sink.channel import TurnChannel
from tidegate.actors.supervisor.io import WorkerIo
from tidegate.protocol.attempts import Credit, Ended, StartAttempt, ToWorker
from tidegate.protocol.base import Generation, Token, TurnNumber
from tidegate.protocol.sink import FenceIfIdle, NotIdle
from tidegate.protocol.workers import WorkerLost


if TYPE_CHECKING:
    from tidegate.actors.provider.readings import Home
    from tidegate.desk import Desk

CLOSE_S = 1.0


class InlineStreams:
    """The inline attempts of one runtime; ``send`` to ``kill`` run in the I/O thread.

    Args:
        tell: tells the sink.
        call: does something in the I/O thread, behind all that was told before.
    """

    def __init__(
        self, tell: Callable[[object], None], call: Callable[[Callable[[], None]], None]
    ) -> None:
        self.tell = tell
        self.call = call
        self._desks: WeakValueDictionary[TurnNumber, Desk] = WeakValueDictionary()
        self._live: dict[Generation, Desk] = {}
        self._homes: dict[threading.Thread, Home] = {}
        self._lock = threading.Lock()

    def desk(self, channel: TurnChannel) -> Desk:
        """Return the desk of a turn, to be kept by the turn."""
        from tidegate.desk import Desk  # noqa: PLC0415 - only who uses it pays

        desk = self._desks[channel.turn] = Desk(self, channel)
        return desk

    def send(self, generation: Generation, message: ToWorker) -> None:
        """Place an attempt, or give it credit."""
        if isinstance(message, StartAttempt):
            # Without a desk nobody will ever read: the turn was dropped, and a cancel follows.
            if (desk := self._desks.get(message.turn)) is not None:
                self._live[generation] = desk
                desk.place(message)
        elif isinstance(message, Credit) and (desk := self._live.get(generation)) is not None:
            desk.credit(message)

    def cancel(self, generation: Generation, turn: TurnNumber, token: Token) -> None:
        """End an attempt, or report its end if it never began."""
        desk = self._live.get(generation)
        if desk is None or not desk.cancel(token):
            self.forget(generation)
            self.tell(Ended(turn, token, cancelled=True))

    def ask(self, generation: Generation, question: object) -> None:
        """Pass a stale question on, unless nobody has waited for the stream for so long."""
        desk = self._live.get(generation)
        if desk is not None and isinstance(question, FenceIfIdle):
            attended_s = desk.attended_since_s or time.monotonic()
            if attended_s > question.idle_since_s:
                answer = NotIdle(question.turn, question.token, question.limit, attended_s)
                self.tell(answer)
                return
        self.tell(question)

    def kill(self, generation: Generation) -> None:
        """Give an attempt up: the thread in its stream does not come back."""
        self.forget(generation)
        self.tell(WorkerLost(generation, "its thread did not come back from the stream"))

    def forget(self, generation: Generation) -> None:
        """Let go of an attempt that has ended."""
        self._live.pop(generation, None)

    def home(self) -> Home:
        """Return what this thread's streams share, and close what ended threads have left."""
        from tidegate.actors.provider.readings import Home  # noqa: PLC0415 - likewise

        thread = threading.current_thread()
        with self._lock:
            ended = [each for each in self._homes if not each.is_alive()]
            left = [self._homes.pop(each) for each in ended]
            home = self._homes.setdefault(thread, Home())
        for each in left:
            each.close()
        return home

    def leave_home(self) -> None:
        """Close what this thread's streams share, because the thread ends."""
        with self._lock:
            home = self._homes.pop(threading.current_thread(), None)
        if home is not None:
            home.close()

    def close(self) -> None:
        """Close what all threads' streams share, except where one is stuck in a stream."""
        with self._lock:
            homes = [*self._homes.values()]
            self._homes.clear()
        if not homes:
            return

        def close_all() -> None:
            for home in homes:
                home.close()

        # In a thread of its own: this one's event loop may run, and none may wait for ever.
        closing = threading.Thread(target=close_all, name="tidegate-close", daemon=True)
        closing.start()
        closing.join(CLOSE_S)


class Places:
    """Workers and inline streams in one, for the supervisor: its ``Workers``.

    Args:
        io: the I/O thread, with the workers and the timers.
        inline: what is read in callers' threads.
    """

    def __init__(self, io: WorkerIo, inline: InlineStreams) -> None:
        self._io = io
        self._inline = inline
        self.spawn = io.spawn
        self.start_timer = io.start_timer
        self.start_kill_timer = io.start_kill_timer
        self.cancel_timer = io.cancel_timer

    def send(self, generation: Generation, message: ToWorker) -> None:
        """Send a message to where the attempt is."""
        (self._inline if generation < 0 else self._io).send(generation, message)

    def cancel(self, generation: Generation, turn: TurnNumber, token: Token, ping: int) -> None:
        """Cancel an attempt; a caller's thread answers no ping."""
        if generation < 0:
            self._inline.cancel(generation, turn, token)
        else:
            self._io.cancel(generation, turn, token, ping)

    def ask(self, generation: Generation, question: object) -> None:
        """Put a question behind what was read there."""
        (self._inline if generation < 0 else self._io).ask(generation, question)

    def kill(self, generation: Generation, *, dump: bool) -> None:
        """Kill a worker, or give an inline attempt up."""
        if generation < 0:
            self._inline.kill(generation)
        else:
            self._io.kill(generation, dump=dump)

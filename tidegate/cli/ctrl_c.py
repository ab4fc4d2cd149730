"""What Ctrl-C does to a turn: the first one interrupts it, the second one ends the program."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from queue import SimpleQueue
from threading import Thread
from types import FrameType
from typing import NoReturn

from tidegate.turn import Turn


KILLED = 130
REASON = "Ctrl-C"


@contextmanager
def ctrl_c() -> Iterator[CtrlC]:
    """Take over Ctrl-C; only in the main thread."""
    presses = CtrlC()
    before = signal.signal(signal.SIGINT, presses.note)
    try:
        yield presses
    finally:
        signal.signal(signal.SIGINT, before)


class CtrlC:
    """Counts the presses, those before there is a turn included."""

    def __init__(self) -> None:
        self._first = True
        # Its put may run inside any other operation, itself included, as a signal can come.
        self._wishes: SimpleQueue[bool] = SimpleQueue()

    def note(self, _number: int, _frame: FrameType | None) -> None:
        """Take one press: a signal handler."""
        if not self._first:
            _kill()
        self._first = False
        self._wishes.put(True)

    @contextmanager
    def interrupts(self, turn: Turn) -> Iterator[None]:
        """Let the first press interrupt ``turn``."""
        # Not in the signal handler: the main thread may hold the turn's lock just then.
        thread = Thread(target=self._wait, args=(turn,), name="ctrl-c", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._wishes.put(False)
            thread.join()

    def _wait(self, turn: Turn) -> None:
        if self._wishes.get():
            turn.interrupt(REASON)


def _kill() -> NoReturn:
    # Nothing is waited for, and what tidegate has started dies with this process.
    os._exit(KILLED)

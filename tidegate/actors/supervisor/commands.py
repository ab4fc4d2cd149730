"""What other threads want the I/O thread to do, and the nudge that wakes it."""

from __future__ import annotations

import contextlib
import socket
from collections import deque
from collections.abc import Callable

from tidegate.actors.supervisor import forks


class Commands:
    """A queue that anybody fills and the I/O thread takes from.

    Attributes:
        reader: is readable when the thread was asleep and shall look at the queue.
    """

    def __init__(self) -> None:
        self._queue: deque[Callable[[], None]] = deque()
        self._asleep = False
        with forks.gate:
            self.reader, self._writer = socket.socketpair()
        self.reader.setblocking(False)
        self._writer.setblocking(False)

    def put(self, command: Callable[[], None]) -> None:
        """Queue ``command``, from any thread; a system call only if the I/O thread sleeps."""
        self._queue.append(command)
        if self._asleep:
            self._asleep = False
            # Closed if the thread has ended, full if it has enough to wake up by.
            with contextlib.suppress(OSError):
                self._writer.send(b"\0")

    def lie_down(self) -> bool:
        """Say that the thread is about to sleep; False if there is something to do first."""
        # Said before the look at the queue: what comes behind the look sends a nudge.
        self._asleep = True
        return not self._queue

    def get_up(self) -> None:
        """Say that the thread is awake, and needs no nudge."""
        self._asleep = False

    def run(self) -> None:
        """Do what is queued, and what that brings about; then the sockets have their turn."""
        for _ in range(2):
            for _ in range(len(self._queue)):
                self._queue.popleft()()

    def read_nudges(self, _mask: int) -> None:
        """Empty the reader."""
        with contextlib.suppress(BlockingIOError):
            self.reader.recv(4096)

    def close(self) -> None:
        """Close the descriptors; what is still queued is not done."""
        self.reader.close()
        self._writer.close()

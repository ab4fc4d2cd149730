"""What waits to be written, in the order in which it came.

Path: ``journal/journal.py`` -> this -> ``journal/writer.py``
"""

from __future__ import annotations

import threading
from queue import Empty, SimpleQueue
from typing import Generic, TypeVar


T = TypeVar("T")


class Inbox(Generic[T]):
    """A queue with many writers and one reader, and a last item."""

    def __init__(self) -> None:
        self._door = threading.Lock()
        self._queue: SimpleQueue[T] = SimpleQueue()
        self._held: list[T] = []
        self._closed = threading.Event()

    def put(self, item: T, *, soon: bool) -> bool:
        """Queue an item; says whether it was not too late for that.

        Args:
            item: the next one.
            soon: whether to wake the reader for it; otherwise it goes with whatever comes next.
        """
        with self._door:
            if self._closed.is_set():
                return False
            self._held.append(item)
            if soon:
                self._flush()
            return True

    def flush(self) -> None:
        """Wake the reader for all that has come."""
        if self._held:
            with self._door:
                self._flush()

    def close(self, last: T) -> bool:
        """Let ``last`` be the last item; says whether it was not closed before."""
        with self._door:
            if self._closed.is_set():
                return False
            self._closed.set()
            self._held.append(last)
            self._flush()
            return True

    @property
    def closed(self) -> bool:
        """Whether nothing can be put into it any more."""
        return self._closed.is_set()

    def wait_closed(self, timeout_s: float) -> None:
        """Wait until it is closed, for so long at most."""
        self._closed.wait(timeout_s)

    def get(self, timeout_s: float) -> T | None:
        """Return the next item, or None if there was none for so long."""
        try:
            return self._queue.get(timeout=timeout_s)
        except Empty:
            return None

    def get_now(self) -> T | None:
        """Return the next item, or None if there is none."""
        try:
            return self._queue.get_nowait()
        except Empty:
            return None

    def __len__(self) -> int:
        return self._queue.qsize() + len(self._held)

    def _flush(self) -> None:
        for item in self._held:
            self._queue.put(item)
        self._held.clear()

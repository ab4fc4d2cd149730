"""Frames that a worker's socket has not taken yet, in the order in which it will get them."""

from __future__ import annotations

from collections.abc import Hashable
from itertools import chain, islice


FRAMES_A_CALL = 64


class Unsent:
    """A queue with names, and a lane that overtakes it.

    A frame that the socket has taken in part is in no lane any more: nothing overtakes or
    drops it, or the worker could not tell where frames begin.
    """

    def __init__(self) -> None:
        self._head: memoryview | None = None
        self._first: dict[Hashable, bytes] = {}
        self._rest: dict[Hashable, bytes] = {}
        self._serial = 0

    def put(self, frame: bytes, name: Hashable = None) -> None:
        """Queue ``frame``; one of the same name that still waits gives it its place."""
        self._rest[name if name is not None else self._next()] = frame

    def put_first(self, frame: bytes) -> None:
        """Queue ``frame`` before all but those that were put here."""
        self._first[self._next()] = frame

    def drop(self, name: Hashable) -> bool:
        """Take out the frame of that name; False if it is not there, wholly unsent."""
        return self._rest.pop(name, None) is not None

    def clear(self) -> None:
        """Drop everything."""
        self._head = None
        self._first.clear()
        self._rest.clear()

    def buffers(self) -> list[bytes | memoryview]:
        """Return what to send next, the first of it first."""
        head: list[bytes | memoryview] = [] if self._head is None else [self._head]
        return head + list(islice(chain(self._first.values(), self._rest.values()), FRAMES_A_CALL))

    def sent(self, count_bytes: int) -> None:
        """Take out the first ``count_bytes`` of what ``buffers`` returned."""
        if self._head is not None:
            if count_bytes < len(self._head):
                self._head = self._head[count_bytes:]
                return
            count_bytes -= len(self._head)
            self._head = None
        while count_bytes:
            lane = self._first or self._rest
            name = next(iter(lane))
            frame = lane.pop(name)
            if count_bytes < len(frame):
                self._head = memoryview(frame)[count_bytes:]
                return
            count_bytes -= len(frame)

    def __bool__(self) -> bool:
        return self._head is not None or bool(self._first) or bool(self._rest)

    def _next(self) -> int:
        self._serial += 1
        return self._serial

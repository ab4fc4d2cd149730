"""Many streams read at once, a thread each, and what was read of them so far."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from typing import TypeAlias


OpenStream: TypeAlias = Callable[[str], Iterable[str]]
"""Begins the stream of a base URL and returns an iterator of its texts."""


class Readers:
    """Reads ``count`` streams of ``url``, a thread each."""

    def __init__(self, open_stream: OpenStream, url: str, count: int) -> None:
        self._url = url
        self._open_stream = open_stream
        self._deltas = [0] * count
        self._chars = [0] * count
        self._threads = [
            threading.Thread(target=self._read, args=(place,), daemon=True)
            for place in range(count)
        ]

    def start(self) -> dict[str, float]:
        """Begin all, and return when each has shown something."""
        for thread in self._threads:
            thread.start()
        while not all(self._deltas):
            time.sleep(0.005)
        return self.count()

    def count(self) -> dict[str, float]:
        """Return how many deltas there were so far."""
        return {"deltas": sum(self._deltas), "chars": sum(self._chars)}

    def finish(self) -> dict[str, float]:
        """Return the count when all streams have ended."""
        for thread in self._threads:
            thread.join()
        return self.count()

    def _read(self, place: int) -> None:
        deltas, chars = self._deltas, self._chars
        for text in self._open_stream(self._url):
            deltas[place] += 1
            chars[place] += len(text)


def read_one(open_stream: OpenStream, url: str) -> dict[str, float]:
    """Read one stream in this thread, and say how long it took, and how much of a processor."""
    began_s, began_cpu_s = time.perf_counter(), time.process_time()
    deltas = chars = 0
    for text in open_stream(url):
        deltas += 1
        chars += len(text)
    return {
        "deltas": deltas,
        "chars": chars,
        "took_s": time.perf_counter() - began_s,
        "cpu_s": time.process_time() - began_cpu_s,
    }

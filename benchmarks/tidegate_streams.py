"""Streams read by one event loop, and how late what they bring is."""

from __future__ import annotations

import asyncio
import gc
import threading
import time
from array import array
from concurrent.futures import Future
from typing import Any

import tidegate as tg


class Streams:
    """Reads ``count`` stamped streams in one event loop, in a thread of its own."""

    def __init__(self, runtime: tg.Runtime, request: tg.Request, count: int) -> None:
        self._runtime = runtime
        self._request = request
        self._count = count
        self._deltas = 0
        self._begun = 0
        self._late_s = array("d")
        self._ended: Future[int] = Future()
        self._all_begun = threading.Event()

    def start(self) -> dict[str, Any]:
        """Begin all, and return when each has shown something."""
        threading.Thread(target=lambda: asyncio.run(self._read_all()), daemon=True).start()
        self._all_begun.wait()
        gc.collect()  # what was needed for the opening is no part of what a stream costs
        return self.count()

    def count(self) -> dict[str, Any]:
        """Return how many deltas there were so far, and forget their latenesses."""
        late_s, self._late_s = self._late_s, array("d")
        return {"deltas": self._deltas, "late_s": list(late_s)}

    def finish(self) -> dict[str, Any]:
        """Return when all streams have ended, with how many were completed."""
        return {"completed": self._ended.result(), **self.count()}

    async def _read_all(self) -> None:
        try:
            reads = [asyncio.create_task(self._read()) for _ in range(self._count)]
            self._ended.set_result(sum(await asyncio.gather(*reads)))
        except BaseException as error:
            self._all_begun.set()
            self._ended.set_exception(error)
            raise

    async def _read(self) -> bool:
        fresh = True
        event: tg.AnyEvent | None = None
        async for event in self._runtime.start(self._request):
            if isinstance(event, tg.TextDelta):
                self._late_s.append(time.monotonic() - float(event.text))
                self._deltas += 1
                if fresh:
                    fresh = False
                    self._note_begun()
        return isinstance(event, tg.TurnCompleted)

    def _note_begun(self) -> None:
        self._begun += 1
        if self._begun == self._count:
            self._all_begun.set()


def first_deltas(runtime: tg.Runtime, request: tg.Request, times: int) -> list[float]:
    """Return how long it took from the start of a turn until its first text was taken."""
    took_s: list[float] = []
    for number in range(1, times + 1):
        began_s = time.perf_counter()
        for event in runtime.start(request):
            if isinstance(event, tg.TextDelta) and len(took_s) < number:
                took_s.append(time.perf_counter() - began_s)
    return took_s

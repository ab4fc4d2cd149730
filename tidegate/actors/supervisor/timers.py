"""Named timers: what is due, in the order of the instants; asks no clock and starts no thread."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Hashable
from math import inf


class Timers:
    """Actions to take at instants; one for each name.

    Attributes:
        first_s: the instant of the first timer, infinity if there is none.
    """

    def __init__(self) -> None:
        self.first_s = inf
        self._live: dict[Hashable, tuple[int, Callable[[], None]]] = {}
        # Replaced and cancelled timers stay in the heap until they come up or are too many.
        self._heap: list[tuple[float, int, Hashable]] = []
        self._serial = 0

    def start(self, name: Hashable, at_s: float, action: Callable[[], None]) -> None:
        """Take ``action`` at ``at_s``; replaces the timer of that name."""
        self._serial += 1
        self._live[name] = (self._serial, action)
        heapq.heappush(self._heap, (at_s, self._serial, name))
        if len(self._heap) > 64 + 2 * len(self._live):
            self._heap = [entry for entry in self._heap if self._holds(entry)]
            heapq.heapify(self._heap)
        self._settle()

    def cancel(self, name: Hashable) -> None:
        """Forget the timer of that name, if there is one."""
        if self._live.pop(name, None) is not None:
            self._settle()

    def pop_due(self, now_s: float) -> Callable[[], None] | None:
        """Take out the first timer whose instant has come, and return its action."""
        if self.first_s > now_s:
            return None
        _, _, name = heapq.heappop(self._heap)
        _, action = self._live.pop(name)
        self._settle()
        return action

    def _settle(self) -> None:
        while self._heap and not self._holds(self._heap[0]):
            heapq.heappop(self._heap)
        self.first_s = self._heap[0][0] if self._heap else inf

    def _holds(self, entry: tuple[float, int, Hashable]) -> bool:
        _, serial, name = entry
        live = self._live.get(name)
        return live is not None and live[0] == serial

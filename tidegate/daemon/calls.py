"""Calls into the event loop from other threads: as many as are due by one wake-up.

Each ``call_soon_threadsafe`` writes to a socket; a commit that wakes a thousand readers would write
a thousand times.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable


_log = logging.getLogger("tidegate.daemon")


class LoopCalls:
    """Hands calls from any thread to one event loop, in order.

    Args:
        loop: where they are made.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._due: deque[Callable[[], None]] = deque()
        self._armed = False

    def call(self, function: Callable[[], None]) -> None:
        """Call ``function`` in the loop, soon; from any thread, never blocks."""
        self._due.append(function)
        # Two threads at once may both arm it, which costs a wake-up and loses nothing: it is
        # disarmed before what is due is taken.
        if not self._armed:
            self._armed = True
            try:
                self._loop.call_soon_threadsafe(self._run)
            except RuntimeError:
                if not self._loop.is_closed():
                    raise

    def _run(self) -> None:
        self._armed = False
        while self._due:
            function = self._due.popleft()
            try:
                function()
            except Exception:  # noqa: BLE001 - the others are not to blame
                _log.exception("a call into the event loop failed")

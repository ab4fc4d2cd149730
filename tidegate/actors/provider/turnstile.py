"""Spreads the starts of a burst over turns of the loop, so that a cancel is read between two."""

from __future__ import annotations

import asyncio
from collections import deque


class Turnstile:
    """Lets one task through in each turn of the loop, in the order in which they came.

    Building a request takes a millisecond or more. A hundred of them in one turn of the loop would
    leave a cancel unread for so long that the host takes the worker for stuck.
    """

    def __init__(self) -> None:
        self._taken = False
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def pass_through(self) -> None:
        """Return at once if nobody went before in this turn of the loop, else in a later one."""
        loop = asyncio.get_running_loop()
        if self._taken:
            place: asyncio.Future[None] = loop.create_future()
            self._waiting.append(place)
            await place
        else:
            self._taken = True
            loop.call_soon(self._next, loop)

    def _next(self, loop: asyncio.AbstractEventLoop) -> None:
        while self._waiting:
            place = self._waiting.popleft()
            if not place.done():  # not cancelled
                place.set_result(None)
                loop.call_soon(self._next, loop)
                return
        self._taken = False

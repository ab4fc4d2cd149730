"""Readers of a turn: its events and its text, for ``for`` and for ``async for``.

Path: ``sink/channel.py`` -> this -> the consumer.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from typing import TYPE_CHECKING, Self

from tidegate.actors.sink.channel import TurnChannel
from tidegate.protocol.events import AnyEvent, TextDelta


if TYPE_CHECKING:
    from tidegate.desk import Desk


class EventReader(Iterator[AnyEvent], AsyncIterator[AnyEvent]):
    """One reader of a turn's events, synchronous and asynchronous; closing it detaches it.

    It may be closed from any thread or task: one that waits in it comes to the end of the events.

    Args:
        turn: kept, so that it is not dropped while it is read.
        channel: what the turn shares with the sink.
        check_process: raises in a fork of the process that runs the turn.
        desk: where the turn's stream is read, if that is inline.
    """

    def __init__(
        self,
        turn: object,
        channel: TurnChannel,
        check_process: Callable[[], None],
        desk: Desk | None = None,
    ) -> None:
        check_process()
        self._turn: object | None = turn
        self._check = check_process
        self._channel = channel
        self._desk = desk
        self._reader = channel.attach()
        self._ended = False

    def __iter__(self) -> Self:
        return self

    def __aiter__(self) -> Self:
        return self

    def __next__(self) -> AnyEvent:
        if self._ended:
            raise StopIteration
        channel, reader = self._channel, self._reader
        event = channel.take(reader)
        if event is None and self._desk is not None:
            event = self._read_here(self._desk)
        while event is None:
            self._check()
            come = threading.Lock()
            come.acquire()
            event = channel.take(reader, come.release)
            if event is None:
                if channel.drained(reader):
                    self.close()
                    raise StopIteration
                come.acquire()
                event = channel.take(reader)
        return event

    async def __anext__(self) -> AnyEvent:
        if self._ended:
            raise StopAsyncIteration
        channel, reader = self._channel, self._reader
        event = channel.take(reader)
        while event is None:
            self._check()
            if self._desk is not None:
                self._desk.read_beside()
            loop = asyncio.get_running_loop()
            come: asyncio.Future[None] = loop.create_future()
            event = channel.take(reader, loop_waker(loop, come))
            if event is None:
                if channel.drained(reader):
                    self.close()
                    raise StopAsyncIteration
                await come
                event = channel.take(reader)
        return event

    def close(self) -> None:
        """Detach: what this reader has not taken holds up nobody any more."""
        if not self._ended:
            self._ended = True
            self._turn = None
            self._channel.detach(self._reader)

    async def aclose(self) -> None:
        """Detach, like ``close``."""
        self.close()

    def _read_here(self, desk: Desk) -> AnyEvent | None:
        """Read in this thread until there is an event; None behind the last one."""
        self._check()
        channel, reader = self._channel, self._reader
        come = threading.Semaphore(0)

        def look() -> list[AnyEvent] | None:
            event = channel.take(reader, come.release)
            if event is not None:
                return [event]
            return [] if channel.drained(reader) else None

        found = desk.attend(look, come, each=True)
        return found[0] if found else None

    def __del__(self) -> None:
        # A constructor that failed has attached nobody.
        if not getattr(self, "_ended", True):
            self._channel.drop(self._reader)


class TextReader(Iterator[str], AsyncIterator[str]):
    """The text pieces of choice 0 among a reader's events."""

    def __init__(self, events: EventReader) -> None:
        self._events = events

    def __iter__(self) -> Self:
        return self

    def __aiter__(self) -> Self:
        return self

    def __next__(self) -> str:
        while True:
            event = next(self._events)
            if isinstance(event, TextDelta) and event.choice == 0:
                return event.text

    async def __anext__(self) -> str:
        while True:
            event = await anext(self._events)
            if isinstance(event, TextDelta) and event.choice == 0:
                return event.text

    def close(self) -> None:
        """Detach the reader."""
        self._events.close()

    async def aclose(self) -> None:
        """Detach the reader."""
        self._events.close()


def loop_waker(loop: asyncio.AbstractEventLoop, future: asyncio.Future[None]) -> Callable[[], None]:
    """Return what settles ``future`` from any thread, however late."""

    def settle() -> None:
        if not future.done():
            future.set_result(None)

    def wake() -> None:
        try:
            loop.call_soon_threadsafe(settle)
        except RuntimeError:
            # The loop was closed with its waiter still registered: nobody waits there any more.
            if not loop.is_closed():
                raise

    return wake

"""A turn's items in batches, for a host that passes them on to many clients.

Path: ``sink/channel.py`` -> this -> the daemon.
"""

from __future__ import annotations

from collections.abc import Callable

from tidegate.actors.sink.channel import TurnChannel
from tidegate.actors.sink.outbox import Item


class Feed:
    """One reader of a turn that takes all that is there, and is told when there is more.

    Args:
        turn: kept, so that it is not dropped while it is read.
        channel: what the turn shares with the sink.
        offset: of the first event that it gets.
    """

    __slots__ = ("_channel", "_reader", "_turn")

    def __init__(self, turn: object, channel: TurnChannel, offset: int) -> None:
        self._turn: object | None = turn
        self._channel = channel
        self._reader = channel.attach(offset)

    def take(self, waker: Callable[[], None]) -> list[Item]:
        """Take all that is there; if there is nothing, leave ``waker``, unless nothing will come.

        Args:
            waker: called once from any thread when there is more; it may be called early.
        """
        return self._channel.take_all(self._reader, waker)

    def wait(self, waker: Callable[[], None]) -> None:
        """Leave ``waker`` for whatever comes next, without taking anything."""
        self._channel.wait(waker)

    @property
    def drained(self) -> bool:
        """Whether the terminal event was taken, or the feed closed."""
        return self._channel.drained(self._reader)

    @property
    def lag_bytes(self) -> int:
        """How much of the current attempt it has not taken: text and a constant for each event."""
        return self._channel.lag_bytes(self._reader)

    def close(self) -> None:
        """Detach: what it has not taken holds up nobody any more."""
        if self._turn is not None:
            self._turn = None
            self._channel.detach(self._reader)

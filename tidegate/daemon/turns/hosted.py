"""One turn as the daemon keeps it, from the moment it is asked for, and whoever reads it.

All of this is used in the event loop's thread alone.

Path: ``turns/registry.py`` -> this -> ``stream/writer.py``
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import msgspec

from tidegate.actors.sink.outbox import Item
from tidegate.daemon.calls import LoopCalls
from tidegate.daemon.config.disconnect import OnDisconnect
from tidegate.daemon.journal.model import TurnRecord
from tidegate.feed import Feed
from tidegate.protocol.answers import Answer
from tidegate.protocol.events import Terminal
from tidegate.protocol.requests import Request
from tidegate.runtime import Runtime
from tidegate.turn import Turn


class Ask(NamedTuple):
    """What somebody wants of the daemon.

    Attributes:
        owner: short digest of the key that asks; empty without keys.
        api: ``turns``, ``chat``, ``responses`` or ``messages``.
        endpoint: its name in the configuration.
        model: the request's own word for it.
        request: what the runtime is asked.
        on_disconnect: what becomes of it when its client leaves; None if it has none that could.
        key: for asking again without doing it again; empty for none.
        digest: of what is asked, to tell whether it is the same.
        irrevocable: whether its client cannot be told that what it was sent is void.
    """

    owner: str
    api: str
    endpoint: str
    model: str
    request: Request
    on_disconnect: OnDisconnect | None
    key: str = ""
    digest: str = ""
    irrevocable: bool = False


class HostedTurn:
    """One turn of the daemon.

    Args:
        record: what the journal has of it.
        ask: what is wanted.
        calls: the way into the event loop.

    Attributes:
        turn: the runtime's, from its start on.
        ending: the terminal event of a turn that never was started.
    """

    def __init__(self, record: TurnRecord, ask: Ask, calls: LoopCalls) -> None:
        self.record = record
        self.ask = ask
        self.turn: Turn | None = None
        self.ending: Terminal | None = None
        self.subscriptions: set[Subscription] = set()
        self.settled = False
        self._calls = calls
        self._waiting: list[Callable[[], None]] = []

    @property
    def id(self) -> str:
        """The turn's name."""
        return self.record.id

    def begin(self, runtime: Runtime) -> Turn:
        """Have it taken on.

        Raises:
            TidegateError: the request makes no sense, or nothing is taken on any more.
        """
        return runtime._begin(  # noqa: SLF001 - a host's business
            self.ask.request,
            turn_id=self.id,
            prepare=self.prepare,
            irrevocable=self.ask.irrevocable,
        )

    def prepare(self, turn: Turn) -> None:
        """Take the runtime's turn before anything can happen to it."""
        self.turn = turn
        # What nobody reads is kept, so that it waits for no reader.
        turn._unbind()  # noqa: SLF001 - a host's business
        for subscription in self.subscriptions:
            subscription.start(turn)

    def change(self, **changes: object) -> None:
        """Replace fields of the record."""
        self.record = msgspec.structs.replace(self.record, **changes)

    @property
    def terminal(self) -> Terminal | None:
        """The terminal event, once readers may have it."""
        if self.turn is None:
            return self.ending if self.settled else None
        return self.turn._channel.terminal()  # noqa: SLF001

    @property
    def attempt(self) -> int:
        """The number of the latest attempt, 0 before the first."""
        events = self.turn._channel.outbox.events if self.turn is not None else ()  # noqa: SLF001
        return events[-1].attempt if events else self.record.attempt

    @property
    def offset(self) -> int:
        """How many events readers may have."""
        if self.turn is None:
            return 1 if self.terminal else 0
        outbox = self.turn._channel.outbox  # noqa: SLF001
        return min(outbox.offered, len(outbox.events))

    def snapshot(self) -> Answer:
        """Return the answer so far."""
        if self.turn is not None:
            return self.turn.snapshot()
        return self.ending.answer if self.ending is not None else Answer()

    def await_end(self, then: Callable[[], None]) -> None:
        """Call ``then`` in the loop when the terminal event may be read."""
        if self.terminal is not None:
            self._calls.call(then)
        else:
            self._waiting.append(then)

    def settle(self) -> None:
        """The end is there for all to read."""
        self.settled = True
        waiting, self._waiting = self._waiting, []
        for then in waiting:
            then()
        for subscription in tuple(self.subscriptions):
            subscription.wake()


class Subscription:
    """One reader of a hosted turn, which may not have been started yet.

    Args:
        hosted: the turn.
        offset: of the first event that it gets.
        wake: called in the loop when there may be something to take.
        calls: the way into the event loop.
        end_only: whether it takes nothing but the terminal event, so that what comes before was
            shown to nobody.
    """

    def __init__(
        self,
        hosted: HostedTurn,
        offset: int,
        wake: Callable[[], None],
        calls: LoopCalls,
        *,
        end_only: bool = False,
    ) -> None:
        self._hosted = hosted
        self._offset = offset
        self._feed: Feed | None = None
        self._calls = calls
        self._ended = False
        self._end_only = end_only
        self.wake = wake
        hosted.subscriptions.add(self)
        if hosted.turn is not None:
            self.start(hosted.turn)

    def start(self, turn: Turn) -> None:
        """Read what the runtime takes on."""
        if not self._end_only:
            self._feed = turn._feed(self._offset)  # noqa: SLF001
            self.watch()

    def take(self) -> list[Item]:
        """Take all that is there; if there is nothing, ``wake`` comes when there is."""
        if self._feed is not None:
            return self._feed.take(self._rouse)
        terminal = self._hosted.terminal
        if terminal is None or self._ended:
            return []
        self._ended = True
        return [terminal] if self._offset == 0 else []

    def watch(self) -> None:
        """Have ``wake`` called at whatever comes next, without taking anything."""
        if self._feed is not None:
            self._feed.wait(self._rouse)

    @property
    def lag_bytes(self) -> int:
        """How much there is to take."""
        return self._feed.lag_bytes if self._feed is not None else 0

    def close(self) -> None:
        """Read no more."""
        self._ended = True
        if self._feed is not None:
            self._feed.close()
        self._hosted.subscriptions.discard(self)

    def _rouse(self) -> None:
        self._calls.call(self.wake)

"""The daemon's runtime: each event is in the journal before anybody can take it."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from tidegate.actors.sink.outbox import Unrecorded
from tidegate.daemon.config.model import DaemonConfig
from tidegate.daemon.journal.journal import Journal
from tidegate.daemon.journal.model import Entry
from tidegate.engine import Engine, Recording
from tidegate.protocol.events import (
    TERMINAL,
    AnyEvent,
    ReasoningDelta,
    RefusalDelta,
    TextDelta,
    ToolCallDelta,
)
from tidegate.runtime import Runtime


EPOCH_BITS = 32
"""Tokens of one run of the daemon; the run before it had smaller ones."""


TURN_BYTES_MAX = 64 << 20
"""How much of one turn is taken from providers: it is in memory, and they may never end."""

_EVENT_BYTES = 64  # what an event takes besides its words, roughly


class Sizes:
    """How much there is of each turn that runs, whatever of it was withdrawn.

    Used by one thread at a time for each turn.

    Args:
        most: characters of words, and so much for each event, that a turn may have.
    """

    def __init__(self, most: int = TURN_BYTES_MAX) -> None:
        self._most = most
        self._sizes: dict[str, int] = {}

    def exceeds(self, turn_id: str, events: Iterable[AnyEvent]) -> bool:
        """Count events, and say whether it is by them that the turn has become too large."""
        before = size = self._sizes.get(turn_id, 0)
        for event in events:
            size += _EVENT_BYTES
            if isinstance(event, TextDelta | ReasoningDelta | RefusalDelta):
                size += len(event.text)
            elif isinstance(event, ToolCallDelta):
                size += len(event.arguments)
            elif isinstance(event, TERMINAL):
                self._sizes.pop(turn_id, None)
                return False
        self._sizes[turn_id] = size
        return before <= self._most < size


class HostedRuntime(Runtime):
    """A runtime whose turns are kept.

    Args:
        config: of the daemon.
        journal: keeps them.
        too_large: called once for a turn of which there is more than can be kept in memory, in
            whatever thread; it may not wait.
    """

    def __init__(
        self, config: DaemonConfig, journal: Journal, too_large: Callable[[str], None]
    ) -> None:
        sizes = Sizes()

        def record(turn_id: str, new: Unrecorded, done: Callable[[], None]) -> None:
            journal.write(Entry(turn_id, new.first, new.events, done), soon=False)
            if sizes.exceeds(turn_id, new.events):
                too_large(turn_id)

        recording = Recording(record, journal.wake, journal.epoch << EPOCH_BITS)
        settings = config.settings
        Engine.__init__(self, settings.workers, settings, (), None, recording=recording)

    @property
    def is_running(self) -> bool:
        """Whether it takes on turns."""
        return self._state == "running"

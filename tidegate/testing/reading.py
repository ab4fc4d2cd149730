"""A reader of a turn that stops where a test wants it to, and keeps what it has taken."""

from __future__ import annotations

from typing import TypeVar

from tidegate.protocol.events import AnyEvent, Event, TextDelta
from tidegate.turn import Turn


EventT = TypeVar("EventT", bound=Event)


class Reading:
    """Takes events from a turn step by step.

    What ``until`` has returned was taken: a test may then open a gate of its lab, and whatever the
    script does behind that gate comes after the taking.

    Args:
        turn: the turn to read, from its first event on.

    Attributes:
        events: what was taken so far.
    """

    def __init__(self, turn: Turn) -> None:
        self.events: list[AnyEvent] = []
        self._iterator = iter(turn)

    @property
    def kinds(self) -> list[str]:
        """The classes of the events taken, by name."""
        return [type(event).__name__ for event in self.events]

    @property
    def texts(self) -> list[str]:
        """The pieces of text taken, those included that were voided later."""
        return [event.text for event in self.events if isinstance(event, TextDelta)]

    def all(self, kind: type[EventT]) -> list[EventT]:
        """Return the events of one class among those taken."""
        return [event for event in self.events if isinstance(event, kind)]

    def until(self, kind: type[EventT], times: int = 1) -> EventT:
        """Take events up to the next one of a class, or the next but so many.

        Args:
            kind: the class.
            times: how many of them to take.

        Raises:
            AssertionError: the turn ended before that.
        """
        for event in self._iterator:
            self.events.append(event)
            if isinstance(event, kind):
                times -= 1
                if not times:
                    return event
        raise AssertionError(f"no further {kind.__name__} in {self.kinds}")

    def to_end(self) -> AnyEvent:
        """Take all that is left, and return the terminal event."""
        self.events.extend(self._iterator)
        return self.events[-1]

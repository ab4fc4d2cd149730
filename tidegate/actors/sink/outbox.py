"""The events of one turn: what was taken stays, what was not can be withdrawn.

Theory of operation
-------------------
``events`` is the turn as its readers see it; an event's place in it is its offset. Each reader has
a cursor; ``taken`` is the largest that any of them ever had. A fence *freezes*: deltas and usage
that lie beyond ``taken`` leave ``events``, so nobody can take them, and their offsets are given
again. What is frozen is either *released* (put back at the end, when no successor came) or
*dropped* (when a successor made progress). Announcements are never frozen.

A window is measured per attempt: each append leaves a mark of its end and of the bytes up to
there, and a reader has taken all marks that its cursor has passed.

With a *recorder* nothing can be taken before it is written: what is new is handed out once to be
written, and ``offer`` lets readers have it. Withdrawing something that was handed out begins a new
*era*: what is still being written of an older one is not offered by it any more, and where the
withdrawal begins is handed out like something new, so that it is written too.

``follow_blocks`` keeps a turn's blocks in their places between its events, for readers who write
the answer down in its wire's own form. They have no offset, and come with the event behind them.

Pure: the lock that makes ``take`` and ``freeze`` one step each is the shell's.

Path: ``sink/writer.py`` -> this -> ``sink/channel.py``.
"""

from __future__ import annotations

import sys
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable
from typing import NamedTuple, TypeAlias

import msgspec

from tidegate.actors.sink.events import event_from
from tidegate.protocol.deltas import Block, Delta, size_bytes
from tidegate.protocol.events import (
    AnyEvent,
    AttemptSuperseded,
    ReasoningDelta,
    RefusalDelta,
    TextDelta,
    ToolCallDelta,
    UsageReported,
)


_WITHDRAWABLE = (TextDelta, ReasoningDelta, RefusalDelta, ToolCallDelta, UsageReported)
_NEVER = -1

Item: TypeAlias = AnyEvent | Block
"""What a reader gets who follows the blocks too."""


class Unrecorded(NamedTuple):
    """What is to be written next: ``events`` in place of all from offset ``first`` on."""

    first: int
    events: list[AnyEvent]
    era: int


class Outbox:
    """The events of one turn and who has taken which.

    Attributes:
        offered: events that readers may take, from the first one on.
    """

    __slots__ = (
        "_blocks",
        "_ends",
        "_era",
        "_newest",
        "_recorded",
        "_reviewed",
        "_sums",
        "_withdrawn",
        "closed",
        "cursors",
        "events",
        "frozen",
        "offered",
        "review_at",
        "taken",
        "turn_id",
    )

    def __init__(
        self, turn_id: str, *, recorded: bool = False, follow_blocks: bool = False
    ) -> None:
        self.turn_id = turn_id
        self.events: list[AnyEvent] = []
        self.frozen: list[Item] = []
        self.offered = 0 if recorded else sys.maxsize
        self._blocks: list[tuple[int, Block]] | None = [] if follow_blocks else None
        self._era = 0
        self._recorded = 0
        self._withdrawn = False
        self.cursors: dict[int, int] = {}
        self._newest = 0
        self.taken = 0
        self.closed = False
        self.review_at = _NEVER
        self._reviewed = 0
        self._ends: list[int] = []
        self._sums: list[int] = []

    @property
    def ended(self) -> bool:
        """Whether the terminal event is there and may be taken."""
        return self.closed and self.offered >= len(self.events)

    def attach(self, offset: int = 0) -> int:
        """Add a reader at ``offset`` and return its number, which no other has ever had."""
        self._newest += 1
        self.cursors[self._newest] = offset
        return self._newest

    def detach(self, reader: int) -> None:
        """Forget a reader; what it took stays taken."""
        self.cursors.pop(reader, None)

    def take(self, reader: int) -> AnyEvent | None:
        """Hand the next event to ``reader``, or None if there is none yet, or no such reader."""
        cursor = self.cursors.get(reader)
        if cursor is None or cursor >= len(self.events) or cursor >= self.offered:
            return None
        event = self.events[cursor]
        cursor += 1
        # In this order: after a Ctrl-C between the two the event is kept, and handed out again.
        self.taken = max(self.taken, cursor)
        self.cursors[reader] = cursor
        return event

    def take_all(self, reader: int) -> list[Item]:
        """Hand all that is there to ``reader``, with the blocks in their places."""
        cursor = self.cursors.get(reader)
        until = min(len(self.events), self.offered)
        if cursor is None or cursor >= until:
            return []
        items: list[Item] = list(self.events[cursor:until])
        if self._blocks:
            first = bisect_left(self._blocks, cursor, key=_place)
            last = bisect_left(self._blocks, until, key=_place)
            for place, block in reversed(self._blocks[first:last]):
                items.insert(place - cursor, block)
        self.taken = max(self.taken, until)
        self.cursors[reader] = until
        return items

    def lag_bytes(self, reader: int) -> int:
        """Return how much of the current attempt ``reader`` has not taken, as ``size_bytes``."""
        passed = bisect_right(self._ends, self.cursors.get(reader, sys.maxsize))
        total = self._sums[-1] if self._sums else 0
        return total - (self._sums[passed - 1] if passed else 0)

    def unrecorded(self) -> Unrecorded | None:
        """Return what is to be written next, once; None if there is nothing."""
        first = self._recorded
        if first == len(self.events) and not self._withdrawn:
            return None
        self._recorded, self._withdrawn = len(self.events), False
        return Unrecorded(first, self.events[first:], self._era)

    def offer(self, written: Unrecorded) -> None:
        """Let readers take what has been written, unless it was withdrawn meanwhile."""
        if written.era == self._era:
            self.offered = written.first + len(written.events)

    def publish(self, make: Callable[[str, int], AnyEvent]) -> None:
        """Append ``make(turn_id, offset)``."""
        self.events.append(make(self.turn_id, len(self.events)))

    def append(self, attempt: int, at_s: float, deltas: Iterable[Delta], window_bytes: int) -> None:
        """Append accepted deltas, and see to it that their being taken leads to credit."""
        events, turn_id = self.events, self.turn_id
        offset, size = len(events), 0
        for delta in deltas:
            if isinstance(delta, Block):
                if self._blocks is not None:
                    self._blocks.append((offset, delta))
                continue
            size += size_bytes(delta)
            events.append(event_from(delta, turn_id, attempt, offset, at_s))
            offset += 1
        total = size + (self._sums[-1] if self._sums else 0)
        self._ends.append(offset)
        self._sums.append(total)
        if self.review_at == _NEVER and total - self._reviewed >= _step_bytes(window_bytes):
            self.review_at = offset

    def begin_window(self) -> None:
        """Measure from here: a new attempt has a full window."""
        self._ends.clear()
        self._sums.clear()
        self._reviewed = 0
        self.review_at = _NEVER

    def review(self, window_bytes: int) -> int:
        """Return what the slowest attached reader has taken of the current attempt, in bytes.

        The next review is due when a reader passes ``review_at``, a quarter of the window further.
        """
        slowest = min(self.cursors.values(), default=0)
        passed = bisect_right(self._ends, slowest)
        self._reviewed = self._sums[passed - 1] if passed else 0
        due = bisect_left(self._sums, self._reviewed + _step_bytes(window_bytes))
        self.review_at = self._ends[due] if due < len(self._ends) else _NEVER
        return self._reviewed

    def freeze(self) -> None:
        """Withdraw all deltas and usage that nobody has taken."""
        rest = self._cut()
        if self._recorded > self.taken:
            self._recorded, self._withdrawn = self.taken, True
            self.offered = min(self.offered, self.taken)
            self._era += 1
        for item in rest:
            if isinstance(item, (*_WITHDRAWABLE, Block)):
                self.frozen.append(item)
            else:
                self._put_back(item)

    def release(self, at_s: float) -> None:
        """Let what is frozen be taken after all."""
        for item in self.frozen:
            if isinstance(item, Block):
                if self._blocks is not None:
                    self._blocks.append((len(self.events), item))
            else:
                self._put_back(msgspec.structs.replace(item, at_s=at_s))
        self.frozen.clear()

    def drop_frozen(self) -> None:
        """Withdraw for good what is frozen."""
        self.frozen.clear()

    def supersede(self, attempt: int, at_s: float) -> None:
        """Void ``attempt``, and say so if anything of it was taken."""
        taken = self.taken_of(attempt)
        if taken:
            retracts = sum(len(e.text) for e in taken if isinstance(e, TextDelta) and e.choice == 0)
            self.publish(
                lambda turn_id, offset: AttemptSuperseded(
                    turn_id, attempt, offset, at_s, retracts=retracts
                )
            )

    def visible(self, attempt: int, *, pending: bool = False) -> bool:
        """Say whether text of ``attempt`` that is not only white space was taken.

        Args:
            attempt: its number.
            pending: whether to count what can still be taken, too.
        """
        events = self.events if pending else self.events[: self.taken]
        return any(
            isinstance(event, TextDelta)
            and event.attempt == attempt
            and not event.text.isspace()
            and event.text
            for event in events
        )

    def taken_of(self, attempt: int) -> list[AnyEvent]:
        """Return the deltas and usages of ``attempt`` that were taken."""
        return [
            event
            for event in self.events[: self.taken]
            if event.attempt == attempt and isinstance(event, _WITHDRAWABLE)
        ]

    def _cut(self) -> list[Item]:
        """Take away what nobody has taken, and return it with the blocks in their places."""
        rest: list[Item] = list(self.events[self.taken :])
        del self.events[self.taken :]
        if self._blocks:
            first = bisect_left(self._blocks, self.taken, key=_place)
            for place, block in reversed(self._blocks[first:]):
                rest.insert(place - self.taken, block)
            del self._blocks[first:]
        return rest

    def _put_back(self, event: AnyEvent) -> None:
        self.events.append(msgspec.structs.replace(event, offset=len(self.events)))


def _place(block: tuple[int, Block]) -> int:
    return block[0]


def _step_bytes(window_bytes: int) -> int:
    # Never 0: a review that is due at what was taken already would never come.
    return max(1, window_bytes // 4)

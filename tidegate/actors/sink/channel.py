"""One turn's outbox, shared by the sink and the turn's readers: the one place with a lock.

Taking an event, and each of the sink's steps, is atomic under ``lock``. Readers that find nothing
leave a waker; the sink calls the wakers after its step, outside the lock.

Path: ``sink/outbox.py`` -> this -> ``turn.py``.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

import msgspec

from tidegate.actors.causes import log_fault
from tidegate.actors.sink.outbox import Item, Outbox, Unrecorded
from tidegate.protocol.answers import Answer
from tidegate.protocol.base import TurnNumber
from tidegate.protocol.events import AnyEvent, Terminal, TurnFailed
from tidegate.protocol.failures import Failure, FailureKind
from tidegate.protocol.supervisor import Interrupt


_log = logging.getLogger("tidegate.sink")

Waker: TypeAlias = Callable[[], None]
Record: TypeAlias = Callable[[str, Unrecorded, Callable[[], None]], None]
"""Writes a turn's events, given its id, and then calls back from any thread; never blocks."""


class TurnChannel:
    """What the readers of one turn share with the sink.

    Args:
        turn: its number.
        turn_id: the name by which readers know it.
        review: tells the sink that the turn's credit is due for a review.
        record: writes each event before a reader can take it; None offers them at once.
        follow_blocks: whether ``take_all`` gives blocks too.
    """

    __slots__ = (
        "__weakref__",
        "_answered",
        "_claims",
        "_dropped",
        "_record",
        "_review",
        "_wakers",
        "lock",
        "look",
        "outbox",
        "turn",
        "waiting",
    )

    def __init__(
        self,
        turn: TurnNumber,
        turn_id: str,
        review: Callable[[TurnNumber], None],
        *,
        record: Record | None = None,
        follow_blocks: bool = False,
    ) -> None:
        self.turn = turn
        self.lock = threading.Lock()
        self.outbox = Outbox(turn_id, recorded=record is not None, follow_blocks=follow_blocks)
        self._record = record
        self.waiting = 0
        self.look: Callable[[], Answer] = Answer
        self._review = review
        self._wakers: list[Waker] = []
        self._answered: list[Waker] = []
        self._dropped: deque[int] = deque()
        self._claims = [True]

    def attach(self, offset: int = 0) -> int:
        """Add a reader at an offset."""
        with self.lock:
            return self.outbox.attach(offset)

    def detach(self, reader: int) -> None:
        """Forget a reader; others may then get credit that it held up.

        Whoever waits as this reader, in another thread or task, is woken and finds it drained.
        """
        with self.lock:
            self.outbox.detach(reader)
            due = not self.outbox.closed
        self._wake()
        if due:
            self._review(self.turn)

    def drop(self, reader: int) -> None:
        """Detach without a lock: a finalizer may run where this thread holds it already."""
        self._dropped.append(reader)
        self._review(self.turn)

    def settle_dropped(self) -> None:
        """Forget the readers that were dropped; the caller holds the lock."""
        while self._dropped:
            self.outbox.detach(self._dropped.popleft())

    def take(self, reader: int, waker: Waker | None = None) -> AnyEvent | None:
        """Take the next event, or leave ``waker`` and return None.

        None also after the last one and for a reader that was detached, without a waker.
        """
        outbox = self.outbox
        with self.lock:
            event = outbox.take(reader)
            if event is None:
                if waker is not None and not outbox.ended and reader in outbox.cursors:
                    self._wakers.append(waker)
                return None
            due = outbox.cursors[reader] == outbox.review_at
        if due:
            self._review(self.turn)
        return event

    def take_all(self, reader: int, waker: Waker) -> list[Item]:
        """Take all that is there, with the blocks if they are followed, or leave ``waker``."""
        outbox = self.outbox
        with self.lock:
            if not (items := outbox.take_all(reader)):
                if not outbox.ended and reader in outbox.cursors:
                    self._leave(waker)
                return items
            due = 0 <= outbox.review_at <= outbox.cursors[reader]
        if due:
            self._review(self.turn)
        return items

    def wait(self, waker: Waker) -> None:
        """Leave ``waker`` for what comes next, whatever can be taken now."""
        with self.lock:
            self._leave(waker)

    def lag_bytes(self, reader: int) -> int:
        """Return how much of the current attempt ``reader`` has not taken."""
        with self.lock:
            return self.outbox.lag_bytes(reader)

    def drained(self, reader: int) -> bool:
        """Say whether ``reader`` gets nothing any more: all is taken, or it was detached."""
        with self.lock:
            cursor = self.outbox.cursors.get(reader)
            return cursor is None or (self.outbox.ended and cursor >= len(self.outbox.events))

    def terminal(self) -> Terminal | None:
        """Return the terminal event, if the turn has ended."""
        with self.lock:
            return self._terminal()

    def await_terminal(self, waker: Waker) -> Terminal | None:
        """Return the terminal event, or leave ``waker`` for it and return None."""
        with self.lock:
            if not self.outbox.ended:
                self._answered.append(waker)
            return self._terminal()

    def begin_wait(self) -> None:
        """Somebody waits for the answer: the window is not enforced."""
        self._wait(1)

    def end_wait(self, waker: Waker) -> None:
        """One who waited for the answer has ceased, and takes its waker back."""
        self._wait(-1)
        with self.lock:
            if waker in self._answered:
                self._answered.remove(waker)

    @property
    def interruptible(self) -> bool:
        """Whether the turn has neither ended nor been interrupted.

        Without the lock, like ``claim_interrupt``: a signal handler or a finalizer may run where
        this thread holds it.
        """
        return bool(self._claims) and not self.outbox.closed

    def claim_interrupt(self) -> bool:
        """Say whether this is the first interrupt."""
        try:
            self._claims.pop()  # one step, whoever comes at the same time
        except IndexError:
            return False
        return True

    def snapshot(self) -> Answer:
        """Return the answer as it stands."""
        with self.lock:
            return self.look()

    def wake(self) -> None:
        """Wake whoever waits for what is there; called after a step, outside the lock."""
        if self._record is not None:
            self._hand_over(self._record)
            return
        self._wake()

    def _hand_over(self, record: Record) -> None:
        """Have what is new written; whoever waits is woken when it is."""
        with self.lock:
            new = self.outbox.unrecorded()
            if new is not None:
                # Under the lock, so that what is handed over first is written first.
                record(self.outbox.turn_id, new, lambda: self._offer(new))

    def _offer(self, written: Unrecorded) -> None:
        with self.lock:
            self.outbox.offer(written)
        self._wake()

    def _leave(self, waker: Waker) -> None:  # once: two would each leave two more
        if waker not in self._wakers:
            self._wakers.append(waker)

    def _wake(self) -> None:
        if not (self._wakers or (self._answered and self.outbox.ended)):
            return
        with self.lock:
            wakers, self._wakers = self._wakers, []
            if self.outbox.ended:
                wakers += self._answered
                self._answered = []
        for waker in wakers:
            waker()

    def fail(self, failure: Failure, at_s: float) -> None:
        """End the turn in the sink's stead, because the sink is no more."""
        with self.lock:
            if self.outbox.closed:
                return
            answer = msgspec.structs.replace(self._look(), failure=failure)
            self.outbox.release(at_s)
            self.outbox.publish(
                lambda turn_id, offset: TurnFailed(
                    turn_id, len(answer.attempts), offset, at_s, error=failure, answer=answer
                )
            )
            self.outbox.closed = True
        self.wake()

    def _look(self) -> Answer:
        try:
            return self.look()
        except Exception as fault:  # noqa: BLE001 - it may be what is broken, and the turn must end
            log_fault(_log, f"turn {self.turn}: what there is of its answer is lost", fault)
            return Answer()

    def _terminal(self) -> Terminal | None:
        return self.outbox.events[-1] if self.outbox.ended else None  # type: ignore[return-value]

    def _wait(self, step: int) -> None:
        with self.lock:
            self.waiting += step
            due = not self.outbox.closed
        if due:
            self._review(self.turn)


def await_all(channels: Iterable[TurnChannel], until_s: float) -> None:
    """Wait for the end of each turn, until an instant of the monotonic clock at most."""
    for channel in channels:
        ended = threading.Lock()
        ended.acquire()
        if channel.await_terminal(ended.release) is None:
            left_s = max(0.0, until_s - time.monotonic())
            ended.acquire(timeout=min(left_s, threading.TIMEOUT_MAX))


def end_all(
    channels: Mapping[TurnNumber, TurnChannel],
    until_s: float,
    tell: Callable[[Interrupt], None],
    patience_s: float,
) -> None:
    """Interrupt the turns that have not ended by ``until_s``, and wait for all terminal events."""
    running = list(channels.values())
    await_all(running, until_s)
    for channel in running:
        if channel.terminal() is None:
            # Also if somebody has interrupted it: a Ctrl-C may have come before it was told.
            tell(Interrupt(channel.turn, "runtime stopped", single=False))
            channel.claim_interrupt()
    await_all(running, time.monotonic() + patience_s)


def fail_all(channels: Mapping[TurnNumber, TurnChannel], detail: str, epoch_s: float) -> None:
    """End the turns that have not ended in the stead of a sink that is no more."""
    failure = Failure(kind=FailureKind.INTERNAL, detail=detail)
    for channel in list(channels.values()):
        channel.fail(failure, time.monotonic() + epoch_s)

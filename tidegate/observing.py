"""Observers: they see each attempt from beside the path of its deltas.

Each has a thread and a bounded queue of its own. What does not fit is dropped and counted, so that
an observer that is slow, fails or never returns changes nothing in a turn.

Path: ``sink/watch.py`` -> this -> the user's own observers
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import msgspec

from tidegate.actors.causes import log_fault
from tidegate.actors.sink.watch import Piece, Response
from tidegate.errors import ConfigurationError
from tidegate.protocol.answers import AttemptReport, Usage
from tidegate.protocol.base import Token
from tidegate.protocol.deltas import (
    EVENT_OVERHEAD_BYTES,
    Block,
    Reasoning,
    Refusal,
    Text,
    Tool,
    size_bytes,
)
from tidegate.protocol.failures import Failure, FailureKind


QUEUE_BYTES_MAX = 8 << 20
"""What may wait for one observer: text in UTF-8, and a fixed overhead for each chunk."""

DRAIN_S = 1.0
"""How long a runtime that stops waits for its observers to see what waits for them."""

_log = logging.getLogger("tidegate.observer")


class Observer:
    """Looks on at every attempt of a runtime; give instances to ``Runtime(observers=[...])``.

    Override what is of interest. The methods are called in a thread of the observer's own, one
    after the other: for each attempt ``started``, a ``chunk`` for each piece, and ``ended``. They
    may be slow, block or raise; the turn does not notice. If an observer does not keep up, chunks
    are left out, or a whole attempt, and ``Statistics`` counts them.
    """

    def started(self, turn_id: str, attempt: AttemptReport) -> None:
        """See that an attempt has begun."""

    def chunk(self, turn_id: str, attempt: int, chunk: dict[str, Any]) -> None:
        """See a piece that was accepted of an attempt, whoever will have read it.

        Args:
            turn_id: as ``Turn.id``.
            attempt: its number.
            chunk: plain JSON, with the ``type`` and the fields of the event that it becomes, such
                as ``{"type": "text.delta", "text": "Hel", "choice": 0}``. Beside those of events
                there is ``block``: a part of the wire's own structure.
        """

    def ended(self, turn_id: str, attempt: AttemptReport, response: dict[str, Any] | None) -> None:
        """See that an attempt is over, whatever ended it.

        Args:
            turn_id: as ``Turn.id``.
            attempt: what became of it; ``outcome`` says whether it is complete.
            response: all that came of it, in the wire's own JSON as if it had not been streamed.
                None if nothing came, the wire has no such form, or too much waited already.
        """


class _Follower:
    """One observer, its queue and its thread.

    Everything but ``_run`` and what it calls belongs to the one thread that tells.
    """

    def __init__(self, observer: Observer) -> None:
        self.dropped = 0
        self.errors = 0
        self._observer = observer
        self._calls: deque[tuple[int, Callable[[], None]]] = deque()
        self._put_bytes = 0  # each of the two has one writer, so neither needs a lock
        self._done_bytes = 0
        self._told: dict[int, tuple[str, AttemptReport, int]] = {}
        self._bell = threading.Event()
        self._closing = False
        self._given_up = False
        name = f"tidegate-observer-{type(observer).__name__}"
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def started(self, turn_id: str, report: AttemptReport) -> None:
        # Room for its end as well, for whoever saw an attempt begin must see it end.
        if not self._put(2 * EVENT_OVERHEAD_BYTES, self._observer.started, turn_id, report):
            self.dropped += 1
            return
        self._told[report.token] = turn_id, report, 0

    def accepted(self, token: Token, pieces: Sequence[Piece], size: int) -> None:
        if (told := self._told.get(token)) is None:
            self.dropped += len(pieces)
            return
        turn_id, report, before = told
        self._told[token] = turn_id, report, before + size
        if not self._put(size, self._pass_on, turn_id, report.number, pieces):
            self.dropped += len(pieces)

    def ended(self, report: AttemptReport, response: Response) -> None:
        told = self._told.pop(report.token, None)
        if told is None:
            return
        turn_id, _, size = told
        if self._put(size, self._end, turn_id, report, response):
            return
        self.dropped += 1
        self._put(0, self._observer.ended, turn_id, report, None)

    def wake(self) -> None:
        if self._calls and not self._bell.is_set():
            self._bell.set()

    def close(self) -> None:
        """Say that nothing more comes; what was told to begin is told to end."""
        lost = Failure(kind=FailureKind.INTERNAL, detail="the runtime ended before the attempt")
        for turn_id, report, _ in self._told.values():
            ended = msgspec.structs.replace(report, outcome="failed", failure=lost)
            self._put(0, self._observer.ended, turn_id, ended, None)
        self._told.clear()
        self._closing = True
        self._bell.set()

    def join(self, until_s: float) -> None:
        if self._thread is threading.current_thread():
            return
        self._thread.join(max(0.0, until_s - time.monotonic()))
        if self._thread.is_alive():
            self._given_up = True
            _log.warning("%s has not returned and is left alone", self._thread.name)

    @property
    def _waiting(self) -> int:
        return self._put_bytes - self._done_bytes

    def _put(self, size: int, call: Callable[..., None], *arguments: Any) -> bool:
        waiting = self._waiting
        # What is larger than all that may wait is for those who have nothing waiting.
        if size and waiting and waiting + size > QUEUE_BYTES_MAX:
            return False
        self._put_bytes += size
        self._calls.append((size, partial(call, *arguments)))
        return True

    def _run(self) -> None:
        while not self._given_up:
            self._bell.wait()
            self._bell.clear()
            closing = self._closing  # read first: what it closes is in the queue already
            while self._calls and not self._given_up:
                size, call = self._calls.popleft()
                self._try(call)
                self._done_bytes += size
            if closing:
                return

    def _try(self, call: Callable[[], None]) -> None:
        try:
            call()
        except BaseException as error:  # noqa: BLE001 - a user's code: it is nobody's end
            self.errors += 1
            if self.errors == 1:
                what = f"{self._thread.name} failed; further errors are counted only"
                log_fault(_log, what, error)

    def _pass_on(self, turn_id: str, attempt: int, pieces: Sequence[Piece]) -> None:
        for piece in pieces:
            if self._given_up:
                return
            self._try(partial(self._observer.chunk, turn_id, attempt, chunk_from(piece)))

    def _end(self, turn_id: str, report: AttemptReport, response: Response) -> None:
        self._observer.ended(turn_id, report, response())


class Observing:
    """All observers of one runtime, as the sink sees them; see ``Watch``.

    Args:
        observers: in no order that matters.

    Raises:
        ConfigurationError: one of them is none.
    """

    def __init__(self, observers: Iterable[Observer]) -> None:
        given = list(observers) if isinstance(observers, Iterable) else [None]
        if not all(isinstance(observer, Observer) for observer in given):
            raise ConfigurationError(
                f"observers={observers!r:.200}: give a list of instances of tidegate.Observer"
            )
        self._followers = [_Follower(observer) for observer in given]

    @property
    def any(self) -> bool:
        """Whether there is one."""
        return bool(self._followers)

    @property
    def dropped(self) -> int:
        """What observers were not told because too much waited for them."""
        return sum(follower.dropped for follower in self._followers)

    @property
    def errors(self) -> int:
        """What observers have raised."""
        return sum(follower.errors for follower in self._followers)

    def started(self, turn_id: str, report: AttemptReport) -> None:
        """Take note that an attempt was admitted."""
        for follower in self._followers:
            follower.started(turn_id, report)

    def accepted(self, token: Token, pieces: Sequence[Piece]) -> None:
        """Take note of what came of it."""
        size = sum(map(_weight, pieces))
        for follower in self._followers:
            follower.accepted(token, pieces, size)

    def ended(self, report: AttemptReport, response: Response) -> None:
        """Take note that it is over."""
        for follower in self._followers:
            follower.ended(report, response)

    def wake(self) -> None:
        """Have the observers see what was noted."""
        for follower in self._followers:
            follower.wake()

    def close(self) -> None:
        """Let the observers see what waits, for ``DRAIN_S`` at most, and end their threads."""
        until_s = time.monotonic() + DRAIN_S
        for follower in self._followers:
            follower.close()
        for follower in self._followers:
            follower.join(until_s)


def chunk_from(piece: Piece) -> dict[str, Any]:
    """Return a piece as plain JSON."""
    match piece:
        case Text(text, choice):
            return {"type": "text.delta", "text": text, "choice": choice}
        case Reasoning(text, choice):
            return {"type": "reasoning.delta", "text": text, "choice": choice}
        case Refusal(text, choice):
            return {"type": "refusal.delta", "text": text, "choice": choice}
        case Tool():
            fields = {name: getattr(piece, name) for name in piece.__struct_fields__}
            return {"type": "tool_call.delta", **fields}
        case Block(index, data):
            return {"type": "block", "index": index, "data": msgspec.json.decode(data or b"{}")}
        case Usage():
            return {"type": "usage.reported", "usage": msgspec.to_builtins(piece)}


def _weight(piece: Piece) -> int:
    if isinstance(piece, Usage):
        return EVENT_OVERHEAD_BYTES
    if isinstance(piece, Block):
        return len(piece.data) + EVENT_OVERHEAD_BYTES
    return size_bytes(piece)

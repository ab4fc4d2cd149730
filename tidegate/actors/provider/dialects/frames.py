"""What the decoders of all wires of server-sent events have in common.

A payload is JSON of a known shape; whatever else comes instead is told apart here: an empty frame,
``[DONE]``, an error, a frame that is no JSON. Evidence is sticky: no failure follows it.

Path: ``wire/sse.py`` -> this -> a wire's decoder
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Generic, TypeVar

import msgspec

from tidegate.actors.provider.dialects import faults
from tidegate.actors.provider.dialects.batch import (
    NON_JSON_CODE,
    SHAPE_CODE,
    TOO_LONG_CODE,
    Batch,
    empty,
    malformed,
    truncated,
)
from tidegate.actors.provider.dialects.chat_views import Unusable, is_cut, value_from
from tidegate.actors.provider.dialects.halves import Halves
from tidegate.protocol.failures import Failure, FailureKind
from tidegate.wire.sse import EventTooLong, SseDecoder, SseEvent


Payload = TypeVar("Payload")
_UNREADABLE = (msgspec.DecodeError, ValueError, RecursionError)
"""What is raised by parts of a payload that cannot be read; ``Unusable`` is among them."""


class FramesDecoder(ABC, Generic[Payload]):
    """Decodes one body; a wire says what a payload is and what it means.

    Args:
        payload_from: decodes a plain payload; raises ``msgspec.DecodeError`` or ``RecursionError``
            for any other.
        event_bytes_max: the largest event, in bytes.
    """

    _parted = True
    """Whether a block says that what follows are the words of another part of the answer."""

    def __init__(self, payload_from: Callable[[bytes], Payload], event_bytes_max: int) -> None:
        self._payload_from = payload_from
        self._sse = SseDecoder(event_bytes_max)
        self._events = self._blanks = 0
        self._done = False  # ``[DONE]`` was seen
        self._complete = False  # evidence was seen
        self._over = False  # nothing that comes is read any more
        self._failure: Failure | None = None
        self._halves = Halves(parted=self._parted)
        self._joined = 0  # how many deltas of this read are whole characters

    @abstractmethod
    def _take(self, payload: Payload, event: SseEvent, batch: Batch) -> None:
        """Take a payload; ``event`` has its bytes and its name.

        Raises:
            Unusable: a part of it has a shape that makes no sense.
            ValueError, RecursionError: a part of it that is read only now is no JSON.
        """

    @abstractmethod
    def _payload_from_value(self, value: Any) -> Payload:
        """Read JSON that ``payload_from`` would not; raises ``Unusable``."""

    @abstractmethod
    def _cut_short(self) -> Failure:
        """Say what a body is that ends here, without evidence."""

    def feed(self, data: bytes) -> Batch:
        """Take the next bytes of the body."""
        batch = Batch()
        if self._over:
            return batch
        try:
            events = self._sse.feed(data)
        except EventTooLong as error:
            self._take_all(error.events, batch)
            if not self._over:  # by what came before it
                self._fail(malformed(TOO_LONG_CODE, str(error)), batch)
                self._over = True
        else:
            self._take_all(events, batch)
        if self._halves.any:
            self._halves.take(batch.deltas, self._joined, last=self._over or self._complete)
        return batch

    def eof(self) -> Batch:
        """Say that the body has ended; without evidence that is a failure.

        It is ``truncated`` if anything of use or ``[DONE]`` had come, else ``empty``. A failure
        that was known before is told again.
        """
        batch = Batch()
        if not self._over:
            self._take_all(self._last_events(batch), batch)
        self._end(batch)
        if self._halves.any:
            self._halves.take(batch.deltas, self._joined, last=True)
        nothing = batch.failure is not None and batch.failure.kind is FailureKind.EMPTY
        batch.contentless = nothing and not self._events and self._sse.empties + self._blanks > 0
        return batch

    def take_document(self, body: bytes) -> Batch:
        """Take a whole body that is not a stream, in place of ``feed`` and ``eof``."""
        batch = Batch()
        if body and not is_cut(body):
            try:
                self._take_whole(body, batch)
            except _UNREADABLE as error:
                self._fail(self._malformed(*_told(error), body), batch)
        elif body:
            self._fail(truncated("the document is cut short"), batch)
        self._end(batch)
        if self._halves.any:
            self._halves.take(batch.deltas, self._joined, last=True)
        batch.done = self._complete
        return batch

    def _take_whole(self, body: bytes, batch: Batch) -> None:
        self._take_all([SseEvent(body)], batch)

    def _last_events(self, batch: Batch) -> list[SseEvent]:
        try:
            return self._sse.eof()
        except EventTooLong as error:
            self._fail(malformed(TOO_LONG_CODE, str(error)), batch)
            return []

    def _end(self, batch: Batch) -> None:
        self._over = True
        if not self._complete:
            batch.failure = self._failure = self._failure or self._cut_short()

    def _take_all(self, events: list[SseEvent], batch: Batch) -> None:
        plain = self._joined = 0
        for event in events:
            if self._over:
                break
            try:
                payload = self._payload_from(event.data)
            except (msgspec.DecodeError, RecursionError):
                self._take_odd(event, batch)
                continue
            plain += 1
            try:
                self._take(payload, event, batch)
            except _UNREADABLE as error:
                self._fail(self._malformed(*_told(error), event.data), batch)
        batch.events += plain
        self._events += batch.events

    def _take_odd(self, event: SseEvent, batch: Batch) -> None:
        """Take a payload that is no plain one."""
        data = event.data.strip()
        if not data:
            self._blanks += 1
            return
        batch.events += 1
        if data == b"[DONE]":
            self._done = batch.done = True
            self._end(batch)
            return
        if self._halves.any:
            self._halves.take(batch.deltas, self._joined, last=False)
        before = len(batch.deltas)
        self._take_value(data, event, batch)
        self._halves.take(batch.deltas, before, data, last=self._over or self._complete)
        self._joined = len(batch.deltas)

    def _take_value(self, data: bytes, event: SseEvent, batch: Batch) -> None:
        try:
            value = value_from(data)
        except (ValueError, RecursionError):
            code, what = NON_JSON_CODE, "a frame is no JSON"
        else:
            if value is None:
                return
            if faults.is_error(value):
                self._fail(self._failure_from_error(value), batch)
                return
            try:
                self._take(self._payload_from_value(value), event, batch)
            except _UNREADABLE as error:
                code, what = _told(error)
            else:
                return
        if event.name == b"error":
            self._fail(faults.failure_from_frame(data), batch)
        else:
            self._fail(self._malformed(code, what, data), batch)

    def _failure_from_error(self, value: Any) -> Failure:
        """Say what an error inside the stream means."""
        return faults.failure_from_frame(value)

    def _malformed(self, code: str, detail: str, data: bytes) -> Failure:
        """Say what a frame means that cannot be read."""
        return malformed(code, detail, data)

    def _fail(self, failure: Failure, batch: Batch) -> None:
        if not self._complete:
            self._failure = batch.failure = failure
            self._over = True


def _told(error: Exception) -> tuple[str, str]:
    """Say what a frame is whose reading raised ``error``."""
    if isinstance(error, Unusable | RecursionError):
        return SHAPE_CODE, str(error)
    return NON_JSON_CODE, "a frame is no JSON"


def tells_error(event: SseEvent) -> bool:
    """Say whether an event is an error, by its name or by its payload."""
    if event.name == b"error":
        return True
    try:
        return faults.is_error(value_from(event.data))
    except (ValueError, RecursionError):
        return False  # the faulty part is in a field that nobody uses


def cut_short(*, begun: bool, wanted: str) -> Failure:
    """Return the failure of a body that ended without ``wanted``, its wire's evidence."""
    return truncated(f"the body ended without {wanted}") if begun else empty()

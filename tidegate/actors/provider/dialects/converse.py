"""The converse dialect: the body of a ConverseStream to deltas, evidence and usage.

Evidence is ``messageStop``, and it is sticky: of what follows, only the figures in ``metadata``
count, which also end the stream. Text and reasoning blocks announce themselves by their first
delta; only calls and the like have a start.

Path: ``wire/eventstream.py`` -> this -> ``provider/machine.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from tidegate.actors.provider.dialects.batch import (
    NON_JSON_CODE,
    SHAPE_CODE,
    TOO_LONG_CODE,
    Batch,
    empty,
    malformed,
    truncated,
)
from tidegate.actors.provider.dialects.chat_views import value_from, values_from
from tidegate.actors.provider.dialects.converse_blocks import BlockIndexError, ContentBlocks
from tidegate.actors.provider.dialects.converse_faults import failure_from_exception
from tidegate.actors.provider.dialects.converse_views import (
    FINISHES,
    DeltaView,
    MetadataView,
    StartView,
    StopView,
    usage_from,
)
from tidegate.actors.provider.dialects.halves import Halves
from tidegate.protocol.deltas import ENVELOPE, Block, Text
from tidegate.protocol.failures import Failure
from tidegate.wire.eventstream import EventStreamDecoder, Frame, FrameError, FrameTooLong


CHECKSUM_CODE = "provider_stream_broken_frame"
_AROUND = ("usage", "metrics", "trace", "performanceConfig", "serviceTier")
"""What of a stream's ``metadata`` stands in the answer of Converse as well."""

_UNREADABLE = (msgspec.DecodeError, BlockIndexError, ValueError, RecursionError)

V = TypeVar("V")


def _reader(kind: type[V]) -> Callable[[bytes], V]:
    return msgspec.json.Decoder(kind).decode


_delta_from = _reader(DeltaView)
_start_from = _reader(StartView)
_stop_from = _reader(StopView)
_metadata_from = _reader(MetadataView)
_raw_fields_from = _reader(dict[str, msgspec.Raw])


class ConverseDecoder:
    """Decodes one streamed body.

    Args:
        event_bytes_max: the largest frame, in bytes.
    """

    def __init__(self, *, event_bytes_max: int) -> None:
        self._frames = EventStreamDecoder(event_bytes_max)
        self._blocks = ContentBlocks()
        self._halves = Halves()
        self._joined = 0  # how many deltas of this read are whole characters
        self._complete = False  # evidence was seen
        self._over = False  # nothing that comes is read any more
        self._failure: Failure | None = None

    def feed(self, data: bytes) -> Batch:
        """Take the next bytes of the body."""
        batch = Batch()
        if self._over:
            return batch
        try:
            frames = self._frames.feed(data)
        except FrameError as error:
            self._take_all(error.frames, batch)
            if not self._over:
                self._fail(_broken(error), batch)
        else:
            self._take_all(frames, batch)
        return batch

    def eof(self) -> Batch:
        """Say that the body has ended; without evidence that is a failure."""
        batch = Batch()
        self._over = True
        self._halves.take(batch.deltas, 0, last=True)
        if not self._complete:
            batch.failure = self._failure = self._failure or self._cut_short()
        return batch

    def _cut_short(self) -> Failure:
        if self._blocks.begun or self._frames.inside_frame:
            return truncated("the body ended without messageStop")
        return empty()

    def _take_all(self, frames: list[Frame], batch: Batch) -> None:
        self._joined = 0
        for frame in frames:
            if self._over:
                break
            batch.events += 1
            try:
                self._take(frame, batch)
            except _UNREADABLE as error:
                self._take_odd(frame, error, batch)
        if self._halves.any:
            self._halves.take(batch.deltas, self._joined, last=self._over or self._complete)

    def _take_odd(self, frame: Frame, error: Exception, batch: Batch) -> None:
        """Take a frame that is JSON all the same if it has half a surrogate pair."""
        halves, data = self._halves, frame.payload
        if halves.any:
            halves.take(batch.deltas, self._joined, last=False)
        before = len(batch.deltas)
        try:
            if _is_of_wrong_shape(error):
                raise error
            self._take(Frame(frame.headers, msgspec.json.encode(value_from(data))), batch)
        except _UNREADABLE as told:
            self._fail(_unusable(data, told), batch)
        halves.take(batch.deltas, before, data, last=self._over or self._complete)
        self._joined = len(batch.deltas)

    def _take(self, frame: Frame, batch: Batch) -> None:
        if frame.headers.get(":event-type") != "contentBlockDelta":
            self._take_other(frame, batch)
        elif not self._complete:
            view = _delta_from(frame.payload)
            piece = view.delta
            if piece is None:
                return
            index, blocks = view.content_block_index, self._blocks
            if piece.text and index is not None and index == blocks.current:
                # Nearly all are these.
                batch.deltas.append(Text(piece.text))
            else:
                blocks.take(piece, index, batch.deltas)

    def _take_other(self, frame: Frame, batch: Batch) -> None:
        """Take whatever is no content: its names are of the wire."""
        headers, payload = frame.headers, frame.payload
        if headers.get(":message-type", "event") != "event":
            name = headers.get(":exception-type") or headers.get(":error-code") or ""
            message = headers.get(":error-message") or ""
            self._fail(failure_from_exception(str(name), payload, str(message)), batch)
            return
        kind = headers.get(":event-type")
        if kind == "metadata":
            self._take_metadata(payload, batch)
        elif self._complete:
            return
        elif kind == "contentBlockStart":
            start = _start_from(payload)
            if start.start is not None:
                self._blocks.begin(start.start, start.content_block_index, batch.deltas)
        elif kind == "messageStop":
            self._take_stop(payload, batch)

    def _take_stop(self, payload: bytes, batch: Batch) -> None:
        stop = _stop_from(payload)
        around: dict[str, Any] = {"stopReason": stop.stop_reason or "end_turn"}
        if stop.additional_model_response_fields is not None:
            around["additionalModelResponseFields"] = stop.additional_model_response_fields
        batch.deltas.append(Block(ENVELOPE, msgspec.json.encode(around)))
        batch.finishes = (FINISHES.get(stop.stop_reason or "", "stop"),)
        self._complete = True

    def _take_metadata(self, payload: bytes, batch: Batch) -> None:
        batch.done = self._complete
        self._over = self._complete
        try:
            usage = usage_from(_metadata_from(payload).usage)
            fields = _raw_fields_from(payload)
        except (msgspec.DecodeError, ValueError, RecursionError):
            return  # figures alone make no answer wrong
        if usage is not None:
            batch.usage = usage
            kept = {name: fields[name] for name in _AROUND if name in fields}
            batch.details = msgspec.json.encode(values_from(kept))

    def _fail(self, failure: Failure, batch: Batch) -> None:
        self._over = True
        if not self._complete:
            self._failure = batch.failure = failure


def _broken(error: FrameError) -> Failure:
    if isinstance(error, FrameTooLong):
        return malformed(TOO_LONG_CODE, str(error))
    # What the checksums guard against is damage on the way.
    return malformed(CHECKSUM_CODE, str(error), reason="checksum", retryable=True)


def _is_of_wrong_shape(error: Exception) -> bool:
    return isinstance(error, msgspec.ValidationError | BlockIndexError)


def _unusable(payload: bytes, error: Exception) -> Failure:
    shape = _is_of_wrong_shape(error)
    code = SHAPE_CODE if shape else NON_JSON_CODE
    what = str(error) if shape else "the payload of a frame is no JSON"
    return malformed(code, what, payload)

"""The Messages dialect: the body of a Messages answer to deltas, evidence and usage.

Evidence is a stop reason with every block closed, or ``message_stop``; the latter proves nothing if
there is no stop reason and either nothing at all or a tool call, for nobody must run a tool of
which the end was never told. Evidence is sticky: what follows it changes nothing but usage.

A frame that cannot be read is worth another attempt on this wire. Inside a tool's input that is
another kind of failure, for then the provider can be asked to send such inputs more carefully.

Path: ``dialects/frames.py`` -> this -> ``provider/machine.py``
"""

from __future__ import annotations

from typing import Any

import msgspec

from tidegate.actors.provider.dialects import faults
from tidegate.actors.provider.dialects.batch import SHAPE_CODE, Batch, malformed
from tidegate.actors.provider.dialects.chat_views import Unusable
from tidegate.actors.provider.dialects.frames import FramesDecoder, cut_short
from tidegate.actors.provider.dialects.messages_blocks import Blocks
from tidegate.actors.provider.dialects.messages_views import (
    EventView,
    event_from,
    event_from_value,
    failure_from_event,
    finish_from,
    object_from,
    part_of,
    text_of,
    updated,
)
from tidegate.protocol.answers import Finish, Usage
from tidegate.protocol.deltas import Text
from tidegate.protocol.failures import Failure, FailureKind
from tidegate.wire.sse import SseEvent


_WORD_DELTAS = ("text_delta", "thinking_delta", "input_json_delta")
_CUTTING: tuple[Finish, ...] = ("length", "content_filter")
"""Finishes after which a tool's input may well be cut, by the provider's own word."""


class MessagesDecoder(FramesDecoder[EventView]):
    """Decodes one streamed body.

    Args:
        event_bytes_max: the largest event, in bytes.
    """

    def __init__(self, *, event_bytes_max: int) -> None:
        super().__init__(event_from, event_bytes_max)
        self._blocks = Blocks()
        self._stop = ""
        self._stopped = False  # message_stop was seen
        self._usage: Usage | None = None
        self._described = ("", "", 0)

    def _payload_from_value(self, value: Any) -> EventView:
        return event_from_value(value)

    def _failure_from_error(self, value: Any) -> Failure:
        return failure_from_event(value)

    def _malformed(self, code: str, detail: str, data: bytes) -> Failure:
        if self._blocks.in_arguments:
            return _broken_input(f"{detail}, inside a tool's input", data, code=code)
        return malformed(code, detail, data, retryable=True)

    def _cut_short(self) -> Failure:
        begun = self._blocks.begun or bool(self._stop)
        return cut_short(begun=begun, wanted="a stop reason and the end of all that had begun")

    def _take(self, view: EventView, event: SseEvent, batch: Batch) -> None:
        delta, blocks = view.delta, self._blocks
        if delta is None or self._complete or delta.type not in _WORD_DELTAS:
            self._take_event(view, event, batch)
        elif view.index == blocks.writing and delta.type == "text_delta" and delta.text:
            batch.deltas.append(Text(delta.text))
        else:
            blocks.take(view.index, delta, batch.deltas)

    def _take_whole(self, body: bytes, batch: Batch) -> None:
        batch.events += 1
        self._take_message(object_from(body), batch)

    def _take_event(self, view: EventView, event: SseEvent, batch: Batch) -> None:
        """Take an event that has no words."""
        kind = view.type or event.name.decode("ascii", "replace")
        if kind == "ping":
            return
        value = object_from(event.data)
        match kind:
            case "message_delta":
                self._take_delta(value, batch)
            case _ if self._complete:
                if kind == "message_stop":
                    batch.done = self._over = True
            case "content_block_delta":
                self._blocks.take_rest(view.index, part_of(value, "delta"), batch.deltas)
            case "content_block_start":
                self._blocks.begin(view.index, part_of(value, "content_block"), batch.deltas)
            case "content_block_stop":
                self._blocks.end(view.index, batch.deltas)
                self._conclude(batch)
            case "message_start":
                message = part_of(value, "message")
                message.pop("content", None)
                self._take_head(message, batch)
            case "message_stop":
                self._stopped = True
                self._conclude(batch)
                batch.done = True
                self._end(batch)
            case _ if kind == "error" or faults.is_error(value):
                self._fail(failure_from_event(value), batch)
            case _:
                pass  # a kind of event that came up later

    def _take_head(self, message: dict[str, Any], batch: Batch) -> None:
        known_id, known_model, _ = self._described
        described = (
            text_of(message, "id") or known_id,
            text_of(message, "model") or known_model,
            0,
        )
        if described != self._described:
            self._described = batch.described = described
        self._blocks.envelope(message)
        self._count(message.get("usage"), batch)

    def _take_delta(self, value: dict[str, Any], batch: Batch) -> None:
        """Take what changes in the message: the stop reason, and the figures so far."""
        self._count(value.get("usage"), batch)
        if self._complete:
            return
        told = {key: item for key, item in part_of(value, "delta").items() if item is not None}
        usage = part_of(value, "usage")
        told["usage"] = {key: item for key, item in usage.items() if item is not None}
        stop = text_of(told, "stop_reason")
        self._blocks.envelope(told)
        if stop:
            self._stop = stop
            self._conclude(batch)

    def _take_message(self, message: dict[str, Any], batch: Batch) -> None:
        content = message.pop("content", None)
        if not isinstance(content, list):
            if faults.is_error(message):
                self._fail(failure_from_event(message), batch)
                return
            raise Unusable("a message without a list of content")
        self._stop = text_of(message, "stop_reason")
        self._take_head(message, batch)
        for index, block in enumerate(content):
            if not isinstance(block, dict):
                raise Unusable(f"a content block is a {type(block).__name__}")
            self._blocks.begin(index, block, batch.deltas)
            self._blocks.end(index, batch.deltas)
        self._stopped = True
        self._conclude(batch)

    def _count(self, figures: Any, batch: Batch) -> None:
        if isinstance(figures, dict):
            usage = updated(self._usage, figures)
            if usage != self._usage:
                self._usage = batch.usage = usage

    def _conclude(self, batch: Batch) -> None:
        """See whether what there is by now proves that the answer is whole."""
        blocks = self._blocks
        if self._stop:
            proven = self._stopped or blocks.all_closed
        else:
            proven = self._stopped and blocks.begun and not blocks.has_calls
        if not proven:
            return
        finish = finish_from(self._stop)
        broken = None if finish in _CUTTING else blocks.broken_arguments()
        if broken is not None:
            self._fail(_broken_input("a tool's input is no JSON object", broken.encode()), batch)
            return
        blocks.flush(batch.deltas)
        self._complete = True
        batch.finishes = (finish,)


def decode_json(body: bytes) -> Batch:
    """Decode a whole message, as it is sent where nobody asked for a stream.

    Args:
        body: the complete body of a successful answer, whatever is in it.
    """
    document = body.removeprefix(b"\xef\xbb\xbf").strip()
    return MessagesDecoder(event_bytes_max=max(1, len(document))).take_document(document)


def _broken_input(detail: str, data: bytes, *, code: str = SHAPE_CODE) -> Failure:
    failure = malformed(code, detail, data, reason="tool_input", retryable=True)
    return msgspec.structs.replace(failure, kind=FailureKind.MALFORMED_TOOL_CALL)

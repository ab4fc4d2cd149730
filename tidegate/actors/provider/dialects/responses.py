"""The Responses dialect: the body of a response to deltas, evidence and usage.

Evidence is the event that ends a response, completed or incomplete; what follows it is not read.
One that says ``failed`` is a failure. Items are taken from their own events; the output of the last
one is believed only about what no event has shown, and about what calls and the text lack.

Path: ``dialects/frames.py`` -> this -> ``provider/machine.py``
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from tidegate.actors.provider.dialects.batch import SHAPE_CODE, Batch, malformed
from tidegate.actors.provider.dialects.chat_views import (
    count_from,
    joined_text,
    usage_from,
    value_from,
)
from tidegate.actors.provider.dialects.faults import is_error
from tidegate.actors.provider.dialects.frames import FramesDecoder, cut_short, tells_error
from tidegate.actors.provider.dialects.responses_item import Part, Where
from tidegate.actors.provider.dialects.responses_items import Items
from tidegate.actors.provider.dialects.responses_views import (
    STATUSES,
    EventView,
    ResponseView,
    arguments_from,
    envelope_from,
    event_from,
    event_from_value,
    failure_from_error,
    finish_from,
    item_from,
    items_from,
    response_from,
)
from tidegate.protocol.answers import Usage
from tidegate.protocol.deltas import ENVELOPE, Block
from tidegate.protocol.failures import Failure
from tidegate.wire.sse import SseEvent


_WRONG_WIRE = "a chat completion, and no response: this server wants Endpoint.chat"


_Named: TypeAlias = tuple[str, int | None, str | None, int | None, int | None]


class ResponsesDecoder(FramesDecoder[EventView]):
    """Decodes one streamed body.

    Args:
        event_bytes_max: the largest event, in bytes.
    """

    def __init__(self, *, event_bytes_max: int) -> None:
        super().__init__(event_from, event_bytes_max)
        self._items = Items()
        self._open: _Named | None = None  # the part whose words have come last
        self._begun = False
        self._described = ("", "", 0)
        self._usage: Usage | None = None

    def _payload_from_value(self, value: Any) -> EventView:
        return event_from_value(value)

    def _cut_short(self) -> Failure:
        begun = self._begun or self._done
        return cut_short(begun=begun, wanted="an event that ends the response")

    def _take(self, view: EventView, event: SseEvent, batch: Batch) -> None:
        kind, make, text = view.type, self._items.open, view.delta
        if make and text and isinstance(text, str) and self._open == _part_named(view, kind):
            self._items.pieces.append(text)
            batch.deltas.append(make(text))
            return
        kind = kind or event.name.decode("utf-8", "replace")
        handler = _HANDLERS.get(kind)
        if handler is not None:
            handler(self, view, kind, batch)
            self._begun = self._begun or bool(batch.deltas)
        elif kind in ("error", "") or event.name == b"error":
            self._take_nameless(view, event, batch)

    def _take_nameless(self, view: EventView, event: SseEvent, batch: Batch) -> None:
        if tells_error(event):
            self._fail(failure_from_error(value_from(event.data)), batch)
        elif bytes(view.choices) != b"null":
            self._fail(malformed(SHAPE_CODE, _WRONG_WIRE, event.data), batch)

    def _take_whole(self, body: bytes, batch: Batch) -> None:
        """Take a response that was not streamed."""
        batch.events = self._events = 1
        value = value_from(body)
        response = response_from(body)
        if items_from(response.output) or response.status in STATUSES:
            self._end_response(response, body, "", batch)
        elif is_error(value):
            self._fail(failure_from_error(value), batch)
        else:
            self._fail(malformed(SHAPE_CODE, "no response with an output", body), batch)

    def _take_begin(self, view: EventView, _kind: str, batch: Batch) -> None:
        self._describe(response_from(view.response), batch)

    def _take_announced(self, view: EventView, _kind: str, batch: Batch) -> None:
        item = item_from(view.item)
        if item.type:
            self._items.announce(item, view.item, view.output_index, batch.deltas)

    def _take_item(self, view: EventView, _kind: str, batch: Batch) -> None:
        item = item_from(view.item)
        if item.type:
            self._items.finish(item, view.item, view.output_index, batch.deltas)

    def _take_words(self, view: EventView, kind: str, batch: Batch) -> None:
        if text := joined_text(view.delta):
            self._items.words(_where(view), _part_of(view, kind), text, batch.deltas)
            self._open = _part_named(view, kind)

    def _take_all_words(self, view: EventView, kind: str, batch: Batch) -> None:
        part = _part_of(view, kind)
        if text := joined_text(view.refusal if part.type == "refusal" else view.text):
            self._items.all_words(_where(view), part, text, batch.deltas)
            self._open = None

    def _take_piece(self, view: EventView, kind: str, batch: Batch) -> None:
        call = self._items.call(_where(view), _CALL_TYPES[kind], batch.deltas)
        call.add(joined_text(view.delta), batch.deltas)

    def _take_arguments(self, view: EventView, kind: str, batch: Batch) -> None:
        whole = arguments_from(view.arguments if "function" in kind else view.input)
        if whole is not None:
            call = self._items.call(_where(view), _CALL_TYPES[kind], batch.deltas)
            call.close(whole, batch.deltas)

    def _take_end(self, view: EventView, kind: str, batch: Batch) -> None:
        response = response_from(view.response)
        self._end_response(response, view.response, kind.partition(".")[2], batch)

    def _end_response(self, response: ResponseView, raw: bytes, kind: str, batch: Batch) -> None:
        self._describe(response, batch)
        usage = usage_from(response.usage)
        if usage is not None and usage != self._usage:
            self._usage = batch.usage = usage
        finish = finish_from(response, kind)
        if isinstance(finish, Failure):
            self._fail(finish, batch)
            return
        deltas, items = batch.deltas, self._items
        items.finish_output(items_from(response.output), deltas, complete=finish == "stop")
        items.settle(deltas, complete=finish == "stop")
        deltas.append(Block(ENVELOPE, envelope_from(raw)))
        if finish == "stop" and items.any_calls:
            finish = "tool_calls"
        batch.finishes = (finish,)
        batch.done = self._complete = self._over = True

    def _describe(self, response: ResponseView, batch: Batch) -> None:
        """Keep the first id and time, and the last model."""
        response_id, model, created = self._described
        if not response_id and isinstance(response.id, str | int):
            response_id = str(response.id)
        if isinstance(response.model, str) and response.model:
            model = response.model
        created = created or count_from(response.created_at) or 0
        if (now := (response_id, model, created)) != self._described:
            self._described = batch.described = now


def decode_response(body: bytes) -> Batch:
    """Decode a whole ``response``, as a server sends it that does not stream.

    Args:
        body: the complete body of a successful answer, whatever is in it.
    """
    document = body.removeprefix(b"\xef\xbb\xbf").strip()
    decoder = ResponsesDecoder(event_bytes_max=max(1, len(document)))
    return decoder.take_document(document)


def _part_named(view: EventView, kind: str) -> _Named:
    """Return all that an event says of the part whose words it brings."""
    return kind, view.output_index, view.item_id, view.content_index, view.summary_index


def _where(view: EventView) -> Where:
    return Where(view.output_index, view.item_id or "")


def _part_of(view: EventView, kind: str) -> Part:
    slot, name = _PARTS[kind.rpartition(".")[0]]
    at = view.summary_index if slot == "summary" else view.content_index
    return Part(slot, at or 0, name)


_PARTS = {
    "response.output_text": ("content", "output_text"),
    "response.refusal": ("content", "refusal"),
    "response.reasoning_text": ("content", "reasoning_text"),
    "response.reasoning_summary_text": ("summary", "summary_text"),
}
_CALL_TYPES = {
    "response.function_call_arguments.delta": "function_call",
    "response.function_call_arguments.done": "function_call",
    "response.custom_tool_call_input.delta": "custom_tool_call",
    "response.custom_tool_call_input.done": "custom_tool_call",
}
_Handler = Callable[[ResponsesDecoder, EventView, str, Batch], None]
_HANDLERS: dict[str, _Handler] = {
    **dict.fromkeys(
        ("response.created", "response.in_progress", "response.queued"),
        ResponsesDecoder._take_begin,  # noqa: SLF001 - the table is part of the class
    ),
    "response.output_item.added": ResponsesDecoder._take_announced,  # noqa: SLF001
    "response.output_item.done": ResponsesDecoder._take_item,  # noqa: SLF001
    **dict.fromkeys((f"{name}.delta" for name in _PARTS), ResponsesDecoder._take_words),  # noqa: SLF001
    **dict.fromkeys((f"{name}.done" for name in _PARTS), ResponsesDecoder._take_all_words),  # noqa: SLF001
    "response.function_call_arguments.delta": ResponsesDecoder._take_piece,  # noqa: SLF001
    "response.custom_tool_call_input.delta": ResponsesDecoder._take_piece,  # noqa: SLF001
    "response.function_call_arguments.done": ResponsesDecoder._take_arguments,  # noqa: SLF001
    "response.custom_tool_call_input.done": ResponsesDecoder._take_arguments,  # noqa: SLF001
    **dict.fromkeys(
        (
            "response.completed",
            "response.done",
            "response.incomplete",
            "response.failed",
            "response.cancelled",
        ),
        ResponsesDecoder._take_end,  # noqa: SLF001
    ),
}

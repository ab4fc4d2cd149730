"""The front of the Responses API: a response, its items and their parts, event by event.

The words between two blocks belong to the part that the first of them names. An item is done when
its provider says so, and at the end; what each is called does not change from its announcement on,
for strict clients compare.
"""

from __future__ import annotations

from typing import Any

import msgspec

from tidegate.daemon.fronts.base import Item, Look, Opening, named_frame
from tidegate.daemon.fronts.calls import Call
from tidegate.daemon.fronts.errors import error_body
from tidegate.daemon.fronts.front import WireFront, Words
from tidegate.daemon.fronts.responses_items import Place, ShownItem, ShownPart
from tidegate.daemon.fronts.responses_shape import (
    begun_response,
    failed_code,
    shown_parts,
    whole_response,
)
from tidegate.protocol.answers import Answer
from tidegate.protocol.deltas import ENVELOPE, Block
from tidegate.protocol.events import ReasoningDelta, RefusalDelta, TextDelta, ToolCallDelta
from tidegate.protocol.failures import Failure


_USUAL: dict[type, tuple[str, Place]] = {
    TextDelta: ("message", Place("content", 0, "output_text")),
    RefusalDelta: ("message", Place("content", 0, "refusal")),
    ReasoningDelta: ("reasoning", Place("summary", 0, "summary_text")),
}
"""The item and its part for words of which nobody says where they belong."""

_OF_WORDS = ("message", "reasoning")
"""Items that can be announced as soon as there is one; of any other more must be known."""

_WORDS = (TextDelta, ReasoningDelta, RefusalDelta)
_SAID: dict[str, type] = {
    "text": TextDelta,
    "reasoning": ReasoningDelta,
    "refusal": RefusalDelta,
}


class ResponsesFront(WireFront):
    """Renders one turn as the events of a response."""

    prefix = "resp_"

    def __init__(self, opening: Opening, request: dict[str, Any], *, notices: bool) -> None:
        super().__init__(opening, request, notices=notices)
        self._number = 0
        self._items: list[ShownItem] = []
        self._waiting: list[ShownItem] = []  # to be announced once more is known
        self._places: dict[int, ShownItem] = {}
        self._calls: dict[int, ShownItem] = {}
        self._item: ShownItem | None = None
        self._told: tuple[type, Place, ShownItem] | None = None  # where such words belong
        self._part: ShownPart | None = None
        self._said: type = TextDelta  # which words are the part's
        self._nobodys = False
        self._own: list[dict[str, Any]] = []  # items with what only the daemon has to say

    def frames(self, item: Item, look: Look) -> bytes:
        """Return the whole frames that ``item`` makes, maybe none."""
        part = self._part
        if part is not None and type(item) is self._said and isinstance(item, _WORDS):
            number = self._number
            self._number = number + 1
            return part.delta(item.text, number)
        return super().frames(item, look)

    def _hush(self) -> None:
        self._part = None

    def _emit(self, kind: str, **fields: Any) -> bytes:
        name = kind if kind == "error" else f"response.{kind}"
        number = self._number
        self._number += 1
        return named_frame(name, {"type": name, "sequence_number": number, **fields})

    def _restart(self) -> None:
        self._waiting.clear()
        self._places.clear()
        self._calls.clear()
        self._item = self._told = None
        self._nobodys = False

    def _open(self, _answer: Answer) -> bytes:
        response = begun_response(self._opening, self._request)
        begun = self._emit("created", response=response)
        return begun + self._emit("in_progress", response=response)

    def _take_block(self, block: Block, look: Look) -> bytes:
        self._part = self._told = None
        self._nobodys = block.index == ENVELOPE
        if self._nobodys:
            self._item = None
            return b""
        data = msgspec.json.decode(block.data, type=dict[str, Any]) if block.data else {}
        told = data.get("item") or {}
        item = self._places.get(block.index)
        frames = b""
        if item is None:
            item = self._places[block.index] = ShownItem(f"item_{block.index}", told)
            if item.kind in _OF_WORDS:
                frames = self._add(item, look)
            else:
                self._waiting.append(item)
        self._item = item
        for slot, at, kind, said in data.get("words") or ():
            self._told = (_SAID.get(said, TextDelta), Place(slot, at, kind), item)
        if item.tell(told) and item.form is None:
            frames += self._settle(item, look) + item.finish(self._emit)
        return frames

    def _add(self, item: ShownItem, look: Look) -> bytes:
        """Announce an item, by an id that no other has."""
        begin = self._begin(look)
        while any(item.id == other.id for other in self._items):
            item.id += "_"
        item.index = len(self._items)
        self._items.append(item)
        return begin + item.added(self._emit)

    def _take_words(self, event: Words, look: Look) -> bytes:
        if isinstance(event, ToolCallDelta):
            return self._take_call(event, look)
        frames, part = b"", self._part
        if part is None or type(event) is not self._said:
            if self._nobodys and isinstance(event, ReasoningDelta) and not event.text.strip():
                return b""  # what stands between two thoughts is no part of either
            frames, part = self._part_for(type(event), look)
        number = self._number
        self._number += 1
        return frames + part.delta(event.text, number)

    def _part_for(self, said: type, look: Look) -> tuple[bytes, ShownPart]:
        kind, place = _USUAL[said]
        item, frames = self._item, b""
        if self._told is not None and self._told[0] is said:
            _, place, item = self._told
            kind = item.kind
        if item is None or item.kind != kind or item.form is not None:
            self._item = item = ShownItem(f"item_own_{len(self._items)}", {"type": kind})
            frames = self._add(item, look)
        elif not item.opened:
            frames = self._settle(item, look)
        begin, part = item.part_at(place, self._emit)
        self._part, self._said, self._nobodys = part, said, False
        return frames + begin, part

    def _take_call(self, event: ToolCallDelta, look: Look) -> bytes:
        self._part = None
        item = self._calls.get(event.index)
        if item is None:
            item = self._item
            if item is None or not item.is_call or item.call is not None:
                item = ShownItem(f"item_own_{event.index}", {"type": "function_call"})
                self._waiting.append(item)
            self._calls[event.index] = item
            item.call = Call(event.index, self._call_id(event))
        call = item.call
        assert call is not None, "an item of a call has it"
        if not call.take(event):
            call.release()  # what was taken back is told by the end of the item
        if item.form is not None or not (item.opened or (call.id and call.name)):
            return b""
        return self._settle(item, look)

    def _settle(self, item: ShownItem, look: Look) -> bytes:
        """Announce an item, unless that was done, and tell what is known of a call."""
        if item.is_call and item.call is None:
            item.call = Call(-1, str(item.told.get("call_id") or f"call_{item.id}"))
            item.call.name = str(item.told.get("name") or "")
        frames = b""
        if not item.opened:
            self._waiting.remove(item)
            if item.call is not None:
                item.call.open()
            frames = self._add(item, look)
        return frames + item.pieces(self._emit)

    def _finish_content(self, answer: Answer) -> bytes:
        frames = [self._settle(item, lambda: answer) for item in [*self._waiting]]
        settled = {call.id: call.arguments for call in answer.tool_calls}
        for item in self._items:
            call = item.call
            if item.form is not None:
                continue
            if call is None:
                frames.append(item.finish(self._emit))
                continue
            trusted = settled.get(call.id)
            if trusted is not None and call.settle(trusted):
                frames.append(item.pieces(self._emit))
            frames.append(item.finish(self._emit, whole=trusted is not None))
        return b"".join(frames)

    def _end(self, answer: Answer) -> bytes:
        response = begun_response(self._opening, self._request)
        response |= whole_response(answer, self._opening)
        response["output"] = self._renamed(response["output"], answer)
        kind = "incomplete" if response["status"] == "incomplete" else "completed"
        return self._emit(kind, response=response)

    def _renamed(self, output: list[dict[str, Any]], answer: Answer) -> list[dict[str, Any]]:
        """Return the output of a response, each item called what the client was told."""
        parts = shown_parts(answer)
        if len(parts) != len(output):  # nobody said how it is made up
            return [item.form for item in self._items if item.form is not None]
        for part, item in zip(parts, output, strict=True):
            shown = self._places.get(part.index)
            if shown is not None and shown.opened:
                item |= {"id": shown.id, **shown.named}
        return output + self._own

    def _say(self, text: str) -> bytes:
        item = ShownItem(f"item_own_{len(self._items)}", {"type": "message"})
        frames = [self._add(item, Answer)]
        begin, part = item.part_at(_USUAL[TextDelta][1], self._emit)
        number = self._number
        self._number += 1
        frames += [begin, part.delta(text, number), item.finish(self._emit)]
        self._own.append(item.form or {})
        return b"".join(frames)

    def _error(self, failure: Failure) -> bytes:
        error = error_body("responses", failure)["error"]
        flat = {name: error[name] for name in ("code", "message", "param")}
        told = self._emit("error", **flat, error=error)
        response = begun_response(self._opening, self._request)
        response["status"] = "failed"
        response["error"] = {"code": failed_code(failure.kind), "message": error["message"]}
        return told + self._emit("failed", response=response)

"""One item of a response on its way to a client: its events, from *added* to *done*.

Path: ``fronts/responses.py`` -> this
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec

from tidegate.daemon.fronts.base import encoded
from tidegate.daemon.fronts.calls import Call
from tidegate.daemon.fronts.responses_shape import (
    CALLS,
    empty_item,
    empty_part,
    filled,
    word_field,
)


Emit = Callable[..., bytes]
"""Makes an event: its name behind ``response.``, and its fields."""

_JUST_BEGUN = {"id", "type", "phase"}
"""All that is told of an item when it begins; anything else is told when it is done."""


class Place(NamedTuple):
    """A part of an item, as the wire names it: the field that lists it, its place, its type."""

    slot: str
    at: int
    type: str


class ShownPart:
    """A part of an item, and its words so far.

    Attributes:
        place: as its provider names it.
        index: its place in the client's item.
        words: the pieces.
        closed: whether the client was told that it is done.
        head: what stands before the next words, up to them.
        tail: what stands behind them, up to the sequence number.
    """

    __slots__ = ("closed", "head", "index", "place", "tail", "words")

    def __init__(self, place: Place, index: int, item: ShownItem) -> None:
        self.place = place
        self.index = index
        self.words: list[str] = []
        self.closed = False
        kind = f"response.{stem_of(place.type)}.delta"
        about = {"type": kind, "item_id": item.id, "output_index": item.index}
        about[f"{place.slot}_index"] = index
        self.head = b"event: %b\ndata: %b" % (kind.encode(), encoded(about)[:-1] + b',"delta":')
        self.tail = b',"logprobs":[]' if place.type == "output_text" else b""

    def delta(self, words: str, number: int) -> bytes:
        """Return the event of the next words."""
        self.words.append(words)
        return b'%b%b%b,"sequence_number":%d}\n\n' % (self.head, encoded(words), self.tail, number)


def stem_of(part_type: str) -> str:
    """Return what the events about the words of a part are called."""
    return "reasoning_summary_text" if part_type == "summary_text" else part_type


class ShownItem:
    """One item.

    Args:
        item_id: its id, if its provider says none.
        told: what is known of it.

    Attributes:
        id: under which it is announced.
        index: its place in the client's output, once it is announced.
        kind: its type.
        told: all that its provider has said of it, without its words.
        call: its call, if it is one.
        opened: whether the client knows of it.
        form: all of it, once the client was told that it is done.
    """

    def __init__(self, item_id: str, told: dict[str, Any]) -> None:
        self.id = str(told.get("id") or item_id)
        self.index = -1
        self.kind = str(told.get("type") or "message")
        self.told = told
        self.call: Call | None = None
        self.opened = False
        self.form: dict[str, Any] | None = None
        self.parts: list[ShownPart] = []

    @property
    def is_call(self) -> bool:
        """Whether it is a call that the client has to run."""
        return self.kind in CALLS

    def tell(self, told: dict[str, Any]) -> bool:
        """Take what its provider says of it; say whether that means that it is done."""
        self.told |= told
        return not (told.keys() <= _JUST_BEGUN or told.get("status") == "in_progress")

    def added(self, emit: Emit) -> bytes:
        """Announce it."""
        self.opened = True
        item = {"id": self.id, "type": self.kind, **empty_item(self.kind)}
        if self.kind in ("message", "reasoning"):
            item |= {name: self.told[name] for name in ("phase",) if name in self.told}
        elif not self.is_call:
            item |= self.told | {"id": self.id}
            item |= {"status": "in_progress"} if "status" in item else {}
        return emit("output_item.added", output_index=self.index, item=item | self.named)

    @property
    def named(self) -> dict[str, Any]:
        """What its call is called; nothing if it is none."""
        return {"call_id": self.call.id, "name": self.call.name} if self.call else {}

    def part_at(self, place: Place, emit: Emit) -> tuple[bytes, ShownPart]:
        """Return a part, which is announced if it is new, and what announces it."""
        for known in self.parts:
            if known.place == place and not known.closed:
                return b"", known
        frames = b"".join(self._close_part(part, emit) for part in self.parts if not part.closed)
        slot = [part for part in self.parts if part.place.slot == place.slot]
        part = ShownPart(place, len(slot), self)
        self.parts.append(part)
        return frames + self._part_event("added", part, empty_part(place.type), emit), part

    def _part_event(self, what: str, part: ShownPart, form: dict[str, Any], emit: Emit) -> bytes:
        name = "reasoning_summary_part" if part.place.slot == "summary" else "content_part"
        return emit(f"{name}.{what}", **self._where(part), part=form)

    def _where(self, part: ShownPart) -> dict[str, Any]:
        return {
            "item_id": self.id,
            "output_index": self.index,
            f"{part.place.slot}_index": part.index,
        }

    def _close_part(self, part: ShownPart, emit: Emit) -> bytes:
        part.closed = True
        form = self._form(part)
        field = word_field(part.place.type)
        words: dict[str, Any] = {field: form[field]}
        if part.place.type == "output_text":
            words["logprobs"] = form.get("logprobs") or []
        name = stem_of(part.place.type)
        frames = self._annotations(part, form, emit)  # each event takes the next number
        frames += emit(f"{name}.done", **self._where(part), **words)
        return frames + self._part_event("done", part, form, emit)

    def _annotations(self, part: ShownPart, form: dict[str, Any], emit: Emit) -> bytes:
        where = self._where(part)
        return b"".join(
            emit("output_text.annotation.added", **where, annotation_index=at, annotation=each)
            for at, each in enumerate(form.get("annotations") or ())
        )

    def finish(self, emit: Emit, *, whole: bool = True) -> bytes:
        """Close what is open of it, and tell all of it.

        Args:
            emit: makes the events.
            whole: whether nothing of it is missing.
        """
        frames = [self._close_part(part, emit) for part in self.parts if not part.closed]
        if self.call is not None and whole:
            frames.append(self._call_done(self.call, emit))
        item = {"type": self.kind, **empty_item(self.kind), **self.told, "id": self.id}
        if item.get("status") == "in_progress" or not whole:
            item["status"] = "completed" if whole else "incomplete"
        for slot in ("content", "summary"):
            if listed := self._listed(slot):
                item[slot] = listed
        if self.call is not None:
            field = "input" if self.kind == "custom_tool_call" else "arguments"
            item |= {**self.named, field: self._given(self.call)}
        self.form = item
        return b"".join((*frames, emit("output_item.done", output_index=self.index, item=item)))

    def _listed(self, slot: str) -> list[Any]:
        """Return the parts in one of its fields: those that were told, and those that were not."""
        told = self.told.get(slot)
        listed = [filled(each) for each in told] if isinstance(told, list) else []
        left = set(range(len(listed)))
        for part in self.parts:
            if part.place.slot != slot:
                continue
            if part.place.at in left and self._told_part(part) is not None:
                left.discard(part.place.at)
                listed[part.place.at] = self._form(part)
            else:
                listed.append(self._form(part))
        return listed

    def _told_part(self, part: ShownPart) -> dict[str, Any] | None:
        told = self.told.get(part.place.slot)
        at = part.place.at
        known = told[at] if isinstance(told, list) and 0 <= at < len(told) else None
        same = isinstance(known, dict) and known.get("type") == part.place.type
        return known if same else None

    def _form(self, part: ShownPart) -> dict[str, Any]:
        """Return a part as it is now."""
        known = self._told_part(part) or empty_part(part.place.type)
        return {**known, word_field(part.place.type): "".join(part.words)}

    def _given(self, call: Call) -> str:
        return _unquoted(call.arguments) if self.kind == "custom_tool_call" else call.arguments

    def _call_done(self, call: Call, emit: Emit) -> bytes:
        place = {"item_id": self.id, "output_index": self.index}
        if self.kind == "custom_tool_call":
            return emit("custom_tool_call_input.done", **place, input=self._given(call))
        arguments = self._given(call)
        return emit("function_call_arguments.done", **place, name=call.name, arguments=arguments)

    def pieces(self, emit: Emit) -> bytes:
        """Return what has come of a call's arguments and was not told."""
        if self.call is None:
            return b""
        piece = self.call.release()
        name = "function_call_arguments"
        if self.kind == "custom_tool_call":
            piece, name = _plain(piece), "custom_tool_call_input"
        if not piece:
            return b""
        return emit(f"{name}.delta", item_id=self.id, output_index=self.index, delta=piece)


def _plain(piece: str) -> str:
    """Return a piece of a text that comes as a JSON string; its pieces are whole by themselves."""
    piece = piece.removeprefix('"')
    stripped = piece.removesuffix('"')
    backslashes = len(stripped) - len(stripped.rstrip("\\"))
    # One that is escaped belongs to the text.
    return _unquoted(f'"{piece if backslashes % 2 else stripped}"')


def _unquoted(text: str) -> str:
    try:
        return msgspec.json.decode(text, type=str) if text else ""
    except msgspec.DecodeError:
        return text

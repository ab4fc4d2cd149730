"""The items of one response: whose words come, and what the items have beside them.

An item is known by its id, or else by its place in the output, because some servers change the ids
from event to event, and others announce nothing. It becomes a block by its first words, or when it
is done: its number is that of its appearance, and its data ``output_index``; ``item``, which is the
item without its words; and ``words``, a row for each stretch of them: slot, place in the slot, type
of the part, kind of delta.

What is not the answer itself, a message's commentary, is reasoning here. Between two stretches of
reasoning that belong to different parts there is a blank line.

Path: ``dialects/responses.py`` -> this -> ``protocol/deltas.py``
"""

from __future__ import annotations

from typing import Any

import msgspec

from tidegate.actors.provider.dialects.responses_calls import Call
from tidegate.actors.provider.dialects.responses_item import Item, Part, Where, words_in
from tidegate.actors.provider.dialects.responses_said import Said, rests_of
from tidegate.actors.provider.dialects.responses_views import (
    ItemView,
    arguments_from,
    item_from,
    skeleton_from,
)
from tidegate.protocol.deltas import ENVELOPE, Block, Delta, Reasoning, Refusal, Text


_CALLS = ("function_call", "custom_tool_call")
_ASIDE = ("commentary", "analysis")
"""Phases of a message that is not the answer."""
_BLANK_LINE = "\n\n"


class Items:
    """All items so far.

    Attributes:
        open: makes the deltas of the part whose words have come last, as long as more of them may
            follow with nothing said before them.
        pieces: where what they bring is noted.
    """

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self._said = Said()
        self.open: type[Text | Reasoning | Refusal] | None = None
        self._all: list[Item] = []
        self._by_index: dict[int, Item] = {}
        self._by_id: dict[str, Item] = {}
        self._calls = 0
        self._turn: tuple[int, str, int] | None = None
        self._reasoned = False

    @property
    def kinds(self) -> set[str]:
        """The types of all items of which something came."""
        return {item.kind for item in self._all if item.shown or item.done}

    @property
    def any_calls(self) -> bool:
        """Whether there is any tool call."""
        return self._calls > 0

    def announce(self, view: ItemView, raw: bytes, index: int | None, deltas: list[Delta]) -> None:
        """Take an item that is announced; unless it is a call, nothing of it has come yet."""
        where = Where(index, view.id or "")
        item = self._find(where, view.type)
        if item is not None and item.is_other(view, closed=bool(item.announced or item.done)):
            item = None
        item = item or self._open(where, view.type)
        item.announced = bytes(raw)
        item.phase = view.phase if isinstance(view.phase, str) else ""
        self.open = self._turn = None
        if view.type in _CALLS:
            call = self._call_of(item, deltas)
            call.name(view.call_id or "", view.name or "", deltas)
            call.add(_whole(view, item) or "", deltas)

    def finish(self, view: ItemView, raw: bytes, index: int | None, deltas: list[Delta]) -> None:
        """Take an item that is whole, and of its words those that had not come."""
        where = Where(index, view.id or "")
        item = self._find(where, view.type)
        if item is not None and item.is_other(view, closed=item.done):
            item = None
        self._finish(item or self._open(where, view.type), view, raw, deltas)

    def finish_output(
        self, output: list[msgspec.Raw], deltas: list[Delta], *, complete: bool
    ) -> None:
        """Take the items with which a response ends, and of them what had not come.

        Ids may have changed since they came, so that an item counts only if none of its type had
        come. Calls are told apart all the same, for none may be lost or run without its arguments;
        but those of a response that is not complete may be cut.
        """
        known, views = self.kinds, [item_from(each) for each in output]
        ids = {view.call_id for view in views if view.call_id}
        calls = [item for item in self._all if complete and item.call is not None]
        for index, (view, raw) in enumerate(zip(views, output, strict=True)):
            item = next((each for each in calls if each.is_meant(view, ids)), None)
            if item is not None:
                calls.remove(item)
                self._finish(item, view, raw, deltas)
            elif view.type and (view.type not in known or (complete and view.type in _CALLS)):
                self.finish(view, raw, index, deltas)
        self._finish_text(views, deltas)

    def _finish_text(self, views: list[ItemView], deltas: list[Delta]) -> None:
        """Say the end of the text, if all that was said is its beginning, whoever's it was."""
        found = [
            (Where(index, view.id or ""), part, text)
            for index, view in enumerate(views)
            if view.type == "message" and self._phase_of(view) not in _ASIDE
            for part, text in words_in("content", view.content)
            if part.type == "output_text"
        ]
        rests = rests_of([text for _, _, text in found], self._said.text) or []
        for (where, part, text), rest in zip(found, rests, strict=False):
            last = self._said.last(Text)
            if rest == text:
                self.words(where, part, rest, deltas)
            elif rest and last is not None:
                self._words(self._all[last.item], part._replace(at=last.at), rest, deltas)

    def _phase_of(self, view: ItemView) -> str:
        item = self._by_id.get(view.id or "")
        return view.phase if isinstance(view.phase, str) else item.phase if item else ""

    def _say_rests(self, item: Item, found: list[tuple[Part, str]], deltas: list[Delta]) -> None:
        """Say what of an item's words has not come, of parts that others have begun nothing."""
        said = self._said.of(item.place, found[0][0].slot) if found else ""
        rests = rests_of([text for _, text in found], said)
        for place, (part, text) in enumerate(found):
            if part[:2] not in item.begun:
                rest = text if rests is None else rests[place]
                if rest:
                    self._words(item, part, rest, deltas)
            elif rests is not None:
                self._say_rest(item, part, rests[place], deltas)

    def _say_rest(self, item: Item, part: Part, rest: str, deltas: list[Delta]) -> None:
        """Say the end of a part, unless it would stand behind such words of another."""
        last = self._said.last(_delta_of(item, part))
        if rest and last is not None and last[:3] == (item.place, *part[:2]):
            self._words(item, part, rest, deltas)

    def _finish(self, item: Item, view: ItemView, raw: bytes, deltas: list[Delta]) -> None:
        if item.done:
            return
        item.phase = item.phase or (view.phase if isinstance(view.phase, str) else "")
        if view.type in _CALLS:
            call = self._call_of(item, deltas)
            call.name(view.call_id or call.id or view.id or "", view.name or "", deltas)
            if (whole := _whole(view, item)) is not None:
                call.close(whole, deltas)
        for slot, parts in (("summary", view.summary), ("content", view.content)):
            self._say_rests(item, words_in(slot, parts), deltas)
        self._tell(item, skeleton_from(raw), deltas)
        item.done = True

    def words(self, where: Where, part: Part, text: str, deltas: list[Delta]) -> None:
        """Take the next words of a part."""
        item = self._find(where, part.item_type) or self._open(where, part.item_type)
        self._words(item, part, text, deltas)

    def all_words(self, where: Where, part: Part, text: str, deltas: list[Delta]) -> None:
        """Take all the words of a part, of which those count that have not come."""
        item = self._find(where, part.item_type)
        if item is None or part[:2] not in item.begun:
            self.words(where, part, text, deltas)
        elif rests := rests_of([text], self._said.of(item.place, *part[:2])):
            self._say_rest(item, part, rests[0], deltas)

    def call(self, where: Where, kind: str, deltas: list[Delta]) -> Call:
        """Return the call that an event about arguments means."""
        return self._call_of(self._find(where, kind) or self._open(where, kind), deltas)

    def settle(self, deltas: list[Delta], *, complete: bool) -> None:
        """Close what is open, at the evidence."""
        for item in self._all:
            if complete and item.call is not None:
                item.call.settle(deltas)
            if item.shown and not item.done and item.announced:
                self._tell(item, skeleton_from(item.announced), deltas)

    def _find(self, where: Where, kind: str) -> Item | None:
        index, item_id = where
        item = self._by_id.get(item_id)
        if item is not None and index is not None and item.output_index not in (index, None):
            item = None
        if item is None and index is not None:
            item = self._by_index.get(index)
        if item is None and index is None and not item_id:
            item = next((each for each in reversed(self._all) if each.kind == kind), None)
        if item is None or item.kind != kind:
            return None
        self._place(item, where)
        return item

    def _open(self, where: Where, kind: str) -> Item:
        item = Item(len(self._all), kind)
        self._all.append(item)
        if where.output_index is not None:
            self._by_index.pop(where.output_index, None)
        self._by_id.pop(where.id, None)
        self._place(item, where)
        return item

    def _place(self, item: Item, where: Where) -> None:
        if where.output_index is not None and item.output_index is None:
            item.output_index = where.output_index
            self._by_index.setdefault(where.output_index, item)
        if where.id:
            item.id = item.id or where.id
            self._by_id.setdefault(where.id, item)

    def _call_of(self, item: Item, deltas: list[Delta]) -> Call:
        if item.call is None:
            item.call = Call(self._calls, custom=item.kind == "custom_tool_call")
            self._calls += 1
            self._tell(item, {}, deltas)
        return item.call

    def _words(self, item: Item, part: Part, text: str, deltas: list[Delta]) -> None:
        make, key = _delta_of(item, part), part[:2]
        if (turn := (item.place, *key)) != self._turn:
            if make is Reasoning and self._reasoned and key not in item.begun:
                # It is nobody's on the wire.
                deltas += [Block(ENVELOPE), Reasoning(_BLANK_LINE)]
            self._tell(item, {}, deltas, [*part, make.__name__.lower()])
            item.begun.add(key)
            self._turn = turn
            self.open = make
            self.pieces = self._said.begin(*turn, make)
        self._reasoned = self._reasoned or make is Reasoning
        self.pieces.append(text)
        deltas.append(make(text))

    def _tell(
        self,
        item: Item,
        skeleton: dict[str, Any],
        deltas: list[Delta],
        row: list[Any] | None = None,
    ) -> None:
        """Make what follows the item's own, and say what is known of it."""
        if not item.shown:
            known = {"id": item.id, "type": item.kind, "phase": item.phase}
            skeleton = {name: value for name, value in known.items() if value} | skeleton
            item.shown = True
        data = {
            "words": row and [row],
            "output_index": item.output_index,
            "item": skeleton or None,
        }
        data = {name: value for name, value in data.items() if value is not None}
        deltas.append(Block(item.place, msgspec.json.encode(data)))
        self.open = self._turn = None


def _whole(view: ItemView, item: Item) -> str | None:
    return arguments_from(view.input if item.kind == "custom_tool_call" else view.arguments)


def _delta_of(item: Item, part: Part) -> type[Text | Reasoning | Refusal]:
    if part.type == "refusal":
        return Refusal
    return Text if part.type == "output_text" and item.phase not in _ASIDE else Reasoning

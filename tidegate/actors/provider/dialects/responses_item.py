"""One item of a response, and how events and outputs name it and its parts.

Path: ``dialects/responses_views.py`` -> this -> ``dialects/responses_items.py``
"""

from __future__ import annotations

from typing import Any, NamedTuple

from tidegate.actors.provider.dialects.responses_calls import Call
from tidegate.actors.provider.dialects.responses_views import ItemView, words_of


class Where(NamedTuple):
    """How an event names its item, as far as it does."""

    output_index: int | None = None
    id: str = ""


class Part(NamedTuple):
    """A part of an item.

    Attributes:
        slot: the item's field that lists it: ``content`` or ``summary``.
        at: its place there.
        type: as the wire has it.
    """

    slot: str
    at: int
    type: str

    @property
    def item_type(self) -> str:
        """The type of an item that has such parts."""
        return "message" if self.type in ("output_text", "refusal") else "reasoning"


class Item:
    """One item of the output."""

    def __init__(self, place: int, kind: str) -> None:
        self.place = place
        self.kind = kind
        self.id = ""
        self.output_index: int | None = None
        self.phase = ""
        self.announced = b""
        self.done = False
        self.shown = False  # whether it is a block yet
        self.begun: set[tuple[str, int]] = set()
        self.call: Call | None = None

    def is_other(self, view: ItemView, *, closed: bool) -> bool:
        """Say whether what a view describes cannot be this item.

        Args:
            view: at the same place in the output.
            closed: whether another id is another item, and not this one by another id.
        """
        if self.call is not None and self.call.id and view.call_id:
            return self.call.id != view.call_id
        return closed and bool(self.id and view.id and self.id != view.id)

    def is_meant(self, view: ItemView, ids: set[str]) -> bool:
        """Say whether a call in the output of the whole response is this one.

        It goes by the call's id or, where a server has changed that, by the name.

        Args:
            view: the call there.
            ids: of all the calls there.
        """
        call = self.call
        if call is None or self.kind != view.type:
            return False
        if view.call_id and call.id == view.call_id:
            return True
        return call.id not in ids and call.called in ("", view.name)


def words_in(slot: str, parts: Any) -> list[tuple[Part, str]]:
    """Return the parts in a slot that have words, and these."""
    found = [words_of(each) for each in parts] if isinstance(parts, list) else []
    return [(Part(slot, at, kind), text) for at, (kind, text) in enumerate(found) if text]

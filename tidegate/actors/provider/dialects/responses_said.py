"""What a response has said so far, to tell what is new in words that come once more and whole.

Path: ``dialects/responses_items.py`` -> this
"""

from __future__ import annotations

from typing import NamedTuple

from tidegate.protocol.deltas import Reasoning, Refusal, Text


class Stretch(NamedTuple):
    """Words of one part of an item with no others in between.

    Attributes:
        item: its place among all items.
        slot, at: where the part is in the item.
        make: what makes the deltas.
        pieces: grows as they come.
    """

    item: int
    slot: str
    at: int
    make: type[Text | Reasoning | Refusal]
    pieces: list[str]


class Said:
    """All stretches, in the order in which they have come."""

    def __init__(self) -> None:
        self._stretches: list[Stretch] = []

    @property
    def text(self) -> str:
        """All words of the answer itself."""
        return _joined([each for each in self._stretches if each.make is Text])

    def last(self, make: type[Text | Reasoning | Refusal]) -> Stretch | None:
        """Return the latest one of a kind."""
        return next((each for each in reversed(self._stretches) if each.make is make), None)

    def begin(
        self, item: int, slot: str, at: int, make: type[Text | Reasoning | Refusal]
    ) -> list[str]:
        """Begin a stretch, and return where its pieces are put."""
        pieces: list[str] = []
        self._stretches.append(Stretch(item, slot, at, make, pieces))
        return pieces

    def of(self, item: int, slot: str, at: int | None = None) -> str:
        """Return the words of one part of an item, or of all parts in a slot."""
        named = [each for each in self._stretches if (each.item, each.slot) == (item, slot)]
        return _joined([each for each in named if at in (None, each.at)])


def rests_of(texts: list[str], said: str) -> list[str] | None:
    """Return what of each text has not been said; None if it was something else.

    >>> rests_of(["Hello", " you"], "Hel")
    ['lo', ' you']
    >>> rests_of(["Hello"], "Hi")
    """
    if not "".join(texts).startswith(said):
        return None
    rests, known = [], len(said)
    for text in texts:
        rests.append(text[known:])
        known = max(0, known - len(text))
    return rests


def _joined(stretches: list[Stretch]) -> str:
    return "".join(["".join(each.pieces) for each in stretches])

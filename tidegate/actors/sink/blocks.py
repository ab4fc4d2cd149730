"""How an answer is made up on its wire: which words belong to which block, and what else it has.

Blocks may come in any order and be taken up again, as long as each says that it is its turn.

Path: ``sink/assembly.py`` -> this -> ``protocol/answers.py``
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from tidegate.protocol.answers import Part
from tidegate.protocol.deltas import ENVELOPE, Block


class Counts(NamedTuple):
    """How many pieces of each kind there are so far."""

    text: int
    reasoning: int
    refusal: int
    calls: int


class _Stretch(NamedTuple):
    """A block's turn: what comes from here up to the next one is its own."""

    block: int
    since: Counts


class Blocks:
    """The blocks of one choice, kept as they come and read only for an answer.

    Attributes:
        details: what stands beside the figures, a JSON object for the envelope. It replaces what
            was there before, as the figures do.
    """

    __slots__ = ("_data", "_stretches", "details")

    def __init__(self) -> None:
        self.details = b""
        self._data: dict[int, list[bytes]] = {}
        self._stretches: list[_Stretch] = []

    def add(self, block: Block, now: Counts) -> None:
        """Take a block whose words follow the first ``now`` pieces."""
        pieces = self._data.setdefault(block.index, [])
        if block.data:
            pieces.append(block.data)
        self._stretches.append(_Stretch(block.index, now))

    def parts(
        self,
        text: Sequence[str],
        reasoning: Sequence[str],
        refusal: Sequence[str],
        call_ids: Sequence[str],
    ) -> tuple[Part, ...]:
        """Return the parts by their index, the envelope first.

        Args:
            text: the pieces of text so far, which the counts of ``add`` have counted.
            reasoning: likewise.
            refusal: likewise.
            call_ids: the ids of the calls in the order in which they began.
        """
        end = Counts(len(text), len(reasoning), len(refusal), len(call_ids))
        texts, reasonings, refusals = _ends(text), _ends(reasoning), _ends(refusal)
        data = dict(self._data)
        if self.details:
            data[ENVELOPE] = [*data.get(ENVELOPE, ()), self.details]
        parts = {index: Part(index=index, data=_merged(pieces)) for index, pieces in data.items()}
        untils = [*(stretch.since for stretch in self._stretches), end][1:]
        for (index, since), until in zip(self._stretches, untils, strict=True):
            part = parts[index]
            parts[index] = msgspec.structs.replace(
                part,
                text=part.text + _range(texts, since.text, until.text),
                reasoning=part.reasoning + _range(reasonings, since.reasoning, until.reasoning),
                refusal=part.refusal + _range(refusals, since.refusal, until.refusal),
                calls=(*part.calls, *call_ids[since.calls : until.calls]),
            )
        return tuple(parts[index] for index in sorted(parts))


def _ends(pieces: Sequence[str]) -> list[int]:
    """Return how many characters the first 0, 1, 2 ... pieces have."""
    ends = [0]
    for piece in pieces:
        ends.append(ends[-1] + len(piece))
    return ends


def _range(ends: Sequence[int], since: int, until: int) -> tuple[tuple[int, int], ...]:
    start, end = ends[since], ends[until]
    return ((start, end),) if start < end else ()


def _merged(pieces: Sequence[bytes]) -> dict[str, Any]:
    whole: dict[str, Any] = {}
    for piece in pieces:
        try:
            _merge(whole, msgspec.json.decode(piece, type=dict[str, Any]))
        except RecursionError:
            continue  # it is nested too deep for this process, and no reason to lose the words
    return whole


def _merge(whole: dict[str, Any], piece: dict[str, Any]) -> None:
    for key, value in piece.items():
        old = whole.get(key)
        if isinstance(old, dict) and isinstance(value, dict):
            _merge(old, value)
        elif isinstance(old, list) and isinstance(value, list):
            old.extend(value)
        else:
            whole[key] = value

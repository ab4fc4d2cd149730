"""The blocks of one Converse answer: what their events bring, as deltas.

Words and calls become deltas of their own; what else a block has, such as a signature, goes into
its ``Block`` as lists that grow, for they may come in pieces.
"""

from __future__ import annotations

from typing import Any

import msgspec

from tidegate.actors.provider.dialects.converse_views import (
    SERVER_TOOL,
    Piece,
    ReasoningPiece,
    Start,
    ToolStart,
)
from tidegate.protocol.deltas import Block, Delta, Reasoning, Text, Tool


_INDEX_MAX = 1 << 31


class BlockIndexError(ValueError):
    """A block has no place that an answer could have."""


class ContentBlocks:
    """The blocks so far.

    Attributes:
        current: the index of the block to which the latest deltas belong; None if none do.
        begun: whether there was any delta.
    """

    def __init__(self) -> None:
        self.current: int | None = None
        self.begun = False
        self._calls: dict[int, int] = {}  # places among the calls, by block
        self._ids: dict[int, str | None] = {}  # of those calls, by block
        self._count = 0  # of calls, which may be more than their blocks
        self._at_server: set[int] = set()  # blocks of calls that the provider carries out

    def begin(self, start: Start, index: int | None, deltas: list[Delta]) -> None:
        """Take a block's start.

        Raises:
            BlockIndexError: its index is of no use.
        """
        if start.tool_use is not None:
            place = self._place(index)
            if start.tool_use.type == SERVER_TOOL:
                self._at_server.add(place)
                called = {"toolUseId": start.tool_use.tool_use_id, "name": start.tool_use.name}
                self.add(place, {"toolUse": {**called, "type": SERVER_TOOL}}, deltas)
            else:
                self._begin_call(start.tool_use, place, deltas)
        elif start.tool_result is not None:
            self.add(self._place(index), {"toolResult": start.tool_result}, deltas)
        elif start.image is not None:
            self.add(self._place(index), {"image": start.image}, deltas)

    def take(self, piece: Piece, index: int | None, deltas: list[Delta]) -> None:
        """Take a delta.

        Raises:
            BlockIndexError: the block's index is of no use.
        """
        place = self._place(index)
        if piece.text:
            self._enter(place, deltas)
            deltas.append(Text(piece.text))
        if piece.tool_use is not None and piece.tool_use.input is not None:
            self._take_input(piece.tool_use.input, place, deltas)
        if piece.reasoning_content is not None:
            self.take_reasoning(piece.reasoning_content, place, deltas)
        if piece.citation is not None:
            self.add(place, {"citations": [piece.citation]}, deltas)
        if piece.tool_result:
            self.add(place, {"toolResult": {"content": piece.tool_result}}, deltas)
        if piece.image is not None:
            self.add(place, _image_data(piece.image), deltas)

    def take_reasoning(self, piece: ReasoningPiece, place: int, deltas: list[Delta]) -> None:
        """Take words of reasoning, and what comes with them."""
        if piece.text:
            self._enter(place, deltas)
            deltas.append(Reasoning(piece.text))
        if piece.signature:
            self.add(place, {"signature": [piece.signature]}, deltas)
        if piece.redacted_content:
            self.add(place, {"redacted": [piece.redacted_content]}, deltas)

    def take_call(self, start: ToolStart, arguments: str, place: int, deltas: list[Delta]) -> None:
        """Take a whole call."""
        self._begin_call(start, place, deltas)
        if arguments:
            self._continue_call(arguments, place, deltas)

    def add(self, place: int, data: Any, deltas: list[Delta]) -> None:
        """Add to what is known of a block; ``data`` is merged into it."""
        deltas.append(Block(place, msgspec.json.encode(data)))
        self.current = place
        self.begun = True

    def _place(self, index: int | None) -> int:
        if index is None:
            return self.current or 0
        if not 0 <= index < _INDEX_MAX:
            raise BlockIndexError(f"contentBlockIndex {index} is none")
        return index

    def _enter(self, place: int, deltas: list[Delta]) -> None:
        if place != self.current:
            deltas.append(Block(place))
            self.current = place
        self.begun = True

    def _begin_call(self, start: ToolStart, place: int, deltas: list[Delta]) -> None:
        if place in self._calls and self._ids[place] == start.tool_use_id:
            return  # the same start once more
        self._enter(place, deltas)
        self._calls[place] = self._count
        self._ids[place] = start.tool_use_id
        self._count += 1
        deltas.append(Tool(self._calls[place], start.tool_use_id or None, start.name or None))

    def _take_input(
        self, given: str | dict[str, msgspec.Raw], place: int, deltas: list[Delta]
    ) -> None:
        if isinstance(given, dict):
            self._continue_call(msgspec.json.encode(given).decode(), place, deltas, whole=True)
        elif given:
            self._continue_call(given, place, deltas)

    def _continue_call(
        self, arguments: str, place: int, deltas: list[Delta], *, whole: bool = False
    ) -> None:
        if place in self._at_server:
            self.add(place, {"input": [arguments]}, deltas)
            return
        if place not in self._calls:
            self._begin_call(ToolStart(), place, deltas)
        self._enter(place, deltas)
        deltas.append(Tool(self._calls[place], arguments=arguments, whole=whole))


def _image_data(image: dict[str, Any]) -> dict[str, Any]:
    """Part an image's bytes, which may come in pieces, from the rest."""
    source = image.get("source")
    if not isinstance(source, dict) or not isinstance(source.get("bytes"), str):
        return {"image": image}
    rest = {name: value for name, value in source.items() if name != "bytes"}
    return {"image": {**image, "source": rest}, "bytes": [source["bytes"]]}

"""The content blocks of a Messages answer: their words as deltas, and the rest as structure.

A block's marker is written just before its first words, so that an answer which has only begun is
no progress. A block of another kind than words is progress as soon as it begins, for what it tells
is content: a call, what a server tool was asked or has found, reasoning that is not shown.

Path: ``dialects/messages.py`` -> this -> ``protocol/deltas.py``
"""

from __future__ import annotations

import json
from typing import Any

import msgspec

from tidegate.actors.provider.dialects.chat_views import Unusable
from tidegate.actors.provider.dialects.messages_views import DeltaView, part_of, text_of
from tidegate.protocol.deltas import ENVELOPE, Block, Delta, Reasoning, Text, Tool


_WORDS = {"text_delta": "text", "thinking_delta": "thinking"}
_NONE = -2
_NO_INDEX: Any = object()


class OpenBlock:
    """A block that has begun.

    Attributes:
        index: what the wire calls it.
        kind: its type on the wire.
        place: its place in the answer, in order of appearance.
        call: the place of its tool call; None for a block that is none.
        given: arguments that came with the beginning.
        arguments: those that came in pieces.
        marker: what has to be told of it before its next words.
    """

    __slots__ = ("arguments", "call", "given", "index", "kind", "marker", "place")

    def __init__(self, index: int | None, kind: str, place: int) -> None:
        self.index = index
        self.kind = kind
        self.place = place
        self.call: int | None = None
        self.given = ""
        self.arguments: list[str] = []
        self.marker = b""


class Blocks:
    """Reads the blocks of one answer.

    Attributes:
        begun: whether there was any delta.
        writing: the index of the block of text whose words need nothing before them now.
    """

    def __init__(self) -> None:
        self.begun = False
        self.writing: int | None = _NO_INDEX
        self._open: dict[int | None, OpenBlock] = {}
        self._ended: set[int | None] = set()
        self._calls: list[OpenBlock] = []
        self._count = 0
        self._current: int = _NONE
        self._envelope: list[bytes] = []

    @property
    def all_closed(self) -> bool:
        """Whether each block that began has ended."""
        return not self._open

    @property
    def has_calls(self) -> bool:
        """Whether a tool call has begun."""
        return bool(self._calls)

    @property
    def in_arguments(self) -> bool:
        """Whether a tool's input is on its way."""
        return any(block.call is not None for block in self._open.values())

    def envelope(self, data: dict[str, Any]) -> None:
        """Keep what is told about the answer around the blocks, until there is content."""
        if data:
            self._envelope.append(_encoded(data))

    def flush(self, deltas: list[Delta]) -> None:
        """Tell all that is known; the answer is complete."""
        self._tell_envelope(deltas)

    def begin(self, index: int | None, content: dict[str, Any], deltas: list[Delta]) -> None:
        """Take a block's beginning, which may hold all of it.

        Raises:
            Unusable: something in there has a shape that makes no sense.
        """
        self.end(index, deltas)  # one that is still open there has been forgotten by the server
        if not content:
            return  # it announces nothing; its words will say what it is
        kind = text_of(content, "type")
        if not kind:
            raise Unusable("a content block without a type")
        block = self._added(index, kind)
        data = dict(content)
        if kind in ("text", "thinking"):
            words = text_of(data, kind)
            data.pop(kind, None)
            block.marker = _encoded(data)
            if words:
                self._say(block, Text(words) if kind == "text" else Reasoning(words), deltas)
        elif kind == "tool_use":
            self._begin_call(block, data, deltas)
        else:
            block.marker = _encoded(data)
            self._say(block, None, deltas)

    def take(self, index: int | None, delta: DeltaView, deltas: list[Delta]) -> None:
        """Take the words of a block; a piece that has none is left to ``take_rest``."""
        block = self._open.get(index)
        if delta.type == "input_json_delta":
            if delta.partial_json and (block is not None or index not in self._ended):
                self._take_input(block or self._nameless(index, deltas), delta.partial_json, deltas)
            return
        words = delta.text if delta.type == "text_delta" else delta.thinking
        if not words:
            return
        if block is None:  # some servers do not announce a block
            block = self._added(index, _WORDS[delta.type])
            block.marker = _encoded({"type": block.kind})
        self._say(block, Text(words) if delta.type == "text_delta" else Reasoning(words), deltas)

    def take_rest(self, index: int | None, piece: dict[str, Any], deltas: list[Delta]) -> None:
        """Take a piece of a block that is no words of it: a signature, or a citation."""
        block = self._open.get(index)
        if block is None:
            return
        if piece.get("type") == "signature_delta":
            told: dict[str, Any] = {"signature": text_of(piece, "signature")}
        elif piece.get("type") == "citations_delta":
            told = {"citations": [part_of(piece, "citation")]}
        else:
            return
        self._say(block, None, deltas)
        deltas.append(Block(block.place, _encoded(told)))

    def end(self, index: int | None, deltas: list[Delta]) -> None:
        """Take a block's end."""
        block = self._open.pop(index, None)
        if block is None:
            return
        self._ended.add(index)
        if block.given and not block.arguments:
            self._take_input(block, block.given, deltas)
        elif block.marker:
            self._say(block, None, deltas)
        if index == self.writing:
            self.writing = _NO_INDEX

    def broken_arguments(self) -> str | None:
        """Return the first input of a tool that is no JSON object; empty is one."""
        for block in self._calls:
            arguments = "".join(block.arguments)
            if arguments.strip() and not _is_object(arguments):
                return arguments
        return None

    def _added(self, index: int | None, kind: str) -> OpenBlock:
        block = self._open[index] = OpenBlock(index, kind, self._count)
        self._count += 1
        self.writing = _NO_INDEX
        return block

    def _nameless(self, index: int | None, deltas: list[Delta]) -> OpenBlock:
        """Begin a call that was not announced: it has no name, but must not be lost silently."""
        block = self._added(index, "tool_use")
        self._begin_call(block, {"type": block.kind}, deltas)
        return block

    def _begin_call(self, block: OpenBlock, data: dict[str, Any], deltas: list[Delta]) -> None:
        call_id, name = text_of(data, "id"), text_of(data, "name")
        given = part_of(data, "input")
        for key in ("id", "name", "input"):
            data.pop(key, None)
        block.given = _encoded(given).decode() if given else ""
        block.call = len(self._calls)
        self._calls.append(block)
        block.marker = _encoded(data)
        self._say(block, Tool(block.call, call_id or None, name or None), deltas)

    def _take_input(self, block: OpenBlock, piece: str, deltas: list[Delta]) -> None:
        if block.call is None:
            # A tool that the provider runs itself: its input is no call, and is joined in the end.
            self._say(block, None, deltas)
            deltas.append(Block(block.place, _encoded({"partial_json": [piece]})))
            return
        block.arguments.append(piece)
        self._say(block, Tool(block.call, arguments=piece), deltas)

    def _say(self, block: OpenBlock, delta: Delta | None, deltas: list[Delta]) -> None:
        """Add a delta of ``block``, behind what has to stand before it."""
        if block.place != self._current or block.marker:
            self._tell_envelope(deltas)
            deltas.append(Block(block.place, block.marker))
            block.marker = b""
            self._current = block.place
            self.writing = block.index if block.kind == "text" else _NO_INDEX
        if delta is not None:
            deltas.append(delta)
        self.begun = True

    def _tell_envelope(self, deltas: list[Delta]) -> None:
        deltas.extend(Block(ENVELOPE, data) for data in self._envelope)
        self._envelope.clear()


def _encoded(value: Any) -> bytes:
    return msgspec.json.encode(value)


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False

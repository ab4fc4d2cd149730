"""The content blocks of a message on its way to a client: one after the other, each closed in time.

A block is closed when the next one begins, for its provider does not tell us that it has ended. The
exception is a tool's input of which a part is still to come: closed, it would look like all of it.
So it stays open when another block begins, be that one of a provider that writes two calls at a
time, or what tells that the call is lost.

Path: ``fronts/messages.py`` -> this
"""

from __future__ import annotations

from typing import Any

import msgspec

from tidegate.daemon.fronts.base import encoded, named_frame


class OpenBlock:
    """A block that the client knows of.

    Attributes:
        index: its place in the client's message.
        kind: its type.
        input: the pieces of its input, for a call of a tool.
        seal: the signature that came with its beginning, which goes to its end.
    """

    __slots__ = ("head", "index", "input", "kind", "seal")

    def __init__(self, index: int, kind: str) -> None:
        self.index = index
        self.kind = kind
        self.input: list[str] = []
        self.seal = ""
        named = {"text": ("text_delta", "text"), "thinking": ("thinking_delta", "thinking")}
        delta, field = named.get(kind, ("input_json_delta", "partial_json"))
        self.head = (
            b'event: content_block_delta\ndata: {"type":"content_block_delta","index":%d,'
            b'"delta":{"type":"%b","%b":' % (index, delta.encode(), field.encode())
        )
        """What stands before its words."""

    @property
    def unfinished(self) -> bool:
        """Whether a part of its input is still to come."""
        return bool(self.input) and not _is_object("".join(self.input))

    def words(self, text: str) -> bytes:
        """Return the frame of the next words of it."""
        return self.head + encoded(text) + DELTA_END


DELTA_END = b"}}\n\n"
"""What stands behind the words of any block."""


class Blocks:
    """All blocks of one message.

    Attributes:
        current: the one whose turn it is.
    """

    def __init__(self) -> None:
        self.current: OpenBlock | None = None
        self._open: list[OpenBlock] = []
        self._count = 0

    def is_open(self, block: OpenBlock) -> bool:
        """Say whether something can be added to a block."""
        return block in self._open

    def begin(self, kind: str, data: dict[str, Any], *, cut: bool = False) -> bytes:
        """Begin a block, after closing what is finished.

        Args:
            kind: its type.
            data: its fields but the type.
            cut: whether the message has broken off, so that no call is finished.
        """
        frames = [
            self.close(block)
            for block in [*self._open]
            if not (block.unfinished or (cut and block.kind == "tool_use"))
        ]
        block = OpenBlock(self._count, kind)
        self._count += 1
        fields = {"type": kind, **data}
        if kind == "thinking":
            block.seal = fields.get("signature") or ""
            fields["signature"] = ""
        self._open.append(block)
        self.current = block
        start = {"type": "content_block_start", "index": block.index, "content_block": fields}
        return b"".join((*frames, named_frame("content_block_start", start)))

    def add(self, data: dict[str, Any]) -> bytes:
        """Add what is no words to the current block: a signature, citations, a tool's input."""
        block = self.current
        if block is None:
            return b""
        deltas: list[dict[str, Any]] = []
        if signature := data.get("signature"):
            block.seal = ""
            deltas.append({"type": "signature_delta", "signature": signature})
        citations, pieces = data.get("citations") or (), data.get("partial_json") or ()
        deltas += [{"type": "citations_delta", "citation": each} for each in citations]
        deltas += [{"type": "input_json_delta", "partial_json": each} for each in pieces]
        block.input += pieces
        return b"".join(_delta(block, delta) for delta in deltas)

    def close_all(self) -> bytes:
        """Close what is open: the message is complete."""
        self.current = None
        return b"".join([self.close(block) for block in [*self._open]])

    def close(self, block: OpenBlock) -> bytes:
        """Close a block that is open."""
        self._open.remove(block)
        seal = b""
        if block.seal:
            seal = _delta(block, {"type": "signature_delta", "signature": block.seal})
        stop = {"type": "content_block_stop", "index": block.index}
        return seal + named_frame("content_block_stop", stop)


def _delta(block: OpenBlock, delta: dict[str, Any]) -> bytes:
    told = {"type": "content_block_delta", "index": block.index, "delta": delta}
    return named_frame("content_block_delta", told)


def _is_object(text: str) -> bool:
    try:
        msgspec.json.decode(text, type=dict[str, msgspec.Raw])
    except (msgspec.DecodeError, RecursionError):
        return False
    return True

"""The front of the Messages API: one message, block by block."""

from __future__ import annotations

from typing import Any

import msgspec

from tidegate.daemon.fronts.base import Item, Look, Opening, encoded, named_frame
from tidegate.daemon.fronts.errors import error_body
from tidegate.daemon.fronts.front import WireFront, Words
from tidegate.daemon.fronts.messages_blocks import DELTA_END, Blocks, OpenBlock
from tidegate.protocol.answers import Answer
from tidegate.protocol.deltas import ENVELOPE, Block
from tidegate.protocol.events import ReasoningDelta, TextDelta, ToolCallDelta
from tidegate.protocol.failures import Failure, FailureKind
from tidegate.protocol.native.messages import message_from


_PLAIN = (TextDelta, ReasoningDelta)
_SAID: dict[str, type[TextDelta | ReasoningDelta]] = {
    "text": TextDelta,
    "thinking": ReasoningDelta,
}
_WORDS: dict[str, dict[str, Any]] = {"text": {"text": ""}, "thinking": {"thinking": ""}}
"""Blocks that are words, and how they begin."""

_CHANGES = ("stop_reason", "stop_sequence", "stop_details", "container", "context_management")
"""What the end of a message may say of it."""

_COUNTS = (
    "input_tokens",
    "output_tokens",
    "cache_creation_input_tokens",
    "cache_read_input_tokens",
)
"""Figures that are told at the end, changed or not."""

_BEHIND = Failure(
    kind=FailureKind.MALFORMED_TOOL_CALL,
    retryable=True,
    detail="the provider added to a tool's input that had been whole",
)


class MessagesFront(WireFront):
    """Renders one turn as the events of a message."""

    heartbeat = b'event: ping\ndata: {"type":"ping"}\n\n'
    prefix = "msg_"

    def __init__(self, opening: Opening, request: dict[str, Any], *, notices: bool) -> None:
        super().__init__(opening, request, notices=notices)
        self._blocks = Blocks()
        self._head: dict[str, Any] = {}
        self._usage: dict[str, Any] = {}
        self._places: dict[int, OpenBlock] = {}
        self._calls: dict[int, OpenBlock] = {}
        self._announced: tuple[int, dict[str, Any]] | None = None  # a call without its name yet
        self._short: tuple[type, bytes] | None = None  # what stands before the current words

    def frames(self, item: Item, look: Look) -> bytes:
        """Return the whole frames that ``item`` makes, maybe none."""
        short = self._short
        if short is not None and isinstance(item, _PLAIN) and type(item) is short[0]:
            return short[1] + encoded(item.text) + DELTA_END
        return super().frames(item, look)

    def _hush(self) -> None:
        self._short = None

    def _restart(self) -> None:
        self._head.clear()
        self._announced = None

    def _open(self, _answer: Answer) -> bytes:
        usage = self._head.pop("usage", None)
        self._usage = {"input_tokens": 0, "output_tokens": 0}
        self._usage |= usage if isinstance(usage, dict) else {}
        opening = self._opening
        message = {
            **self._head,
            "stop_reason": None,
            "stop_sequence": None,
            "id": opening.response_id,
            "type": "message",
            "role": "assistant",
            "model": opening.model,
            "content": [],
            "usage": self._usage,
        }
        message.pop("stop_details", None)
        return named_frame("message_start", {"type": "message_start", "message": message})

    def _take_words(self, event: Words, look: Look) -> bytes:
        if isinstance(event, ToolCallDelta):
            return self._take_call(event, look)
        kind = "thinking" if isinstance(event, ReasoningDelta) else "text"
        frames = self._begin(look)
        block = self._blocks.current
        if block is None or block.kind != kind:
            frames += self._begin_block(kind, _WORDS[kind])
            block = self._blocks.current
        assert block is not None, "a block has begun"
        return frames + block.words(event.text)

    def _begin_block(self, kind: str, data: dict[str, Any], *, cut: bool = False) -> bytes:
        frames = self._blocks.begin(kind, data, cut=cut)
        block = self._blocks.current
        said = _SAID.get(kind)
        self._short = (said, block.head) if block is not None and said is not None else None
        return frames

    def _take_call(self, event: ToolCallDelta, look: Look) -> bytes:
        frames = b""
        block = self._calls.get(event.index)
        if block is None:
            place, data = self._announced or (None, {})
            self._announced = None
            call_id = event.id or self._call_id(event)
            named = {"id": call_id, "name": event.name or "", "input": {}, **data}
            frames = self._begin(look) + self._begin_block("tool_use", named)
            block = self._blocks.current
            assert block is not None, "a block has begun"
            self._calls[event.index] = block
            if place is not None:
                self._places[place] = block
        arguments = event.arguments
        if event.whole:
            sent = "".join(block.input)
            if not arguments.startswith(sent):
                return frames + self.failed(_BEHIND)
            arguments = arguments[len(sent) :]
        if not arguments:
            return frames
        if not self._blocks.is_open(block):
            return frames + self.failed(_BEHIND)
        block.input.append(arguments)
        return frames + block.words(arguments)

    def _take_block(self, block: Block, look: Look) -> bytes:
        data = msgspec.json.decode(block.data, type=dict[str, Any]) if block.data else {}
        if block.index == ENVELOPE:
            if not self.content_sent:
                self._learn(data)
            return b""
        known = self._places.get(block.index)
        if known is None:
            return self._begin_place(block.index, data, look)
        if known is self._blocks.current:
            return self._blocks.add(data)
        if known.kind in _WORDS:
            # Its words go on after another block: what follows is a block of its own here.
            frames = self._begin_block(known.kind, _WORDS[known.kind])
            assert self._blocks.current is not None, "a block has begun"
            self._places[block.index] = self._blocks.current
            return frames + self._blocks.add(data)
        if self._blocks.is_open(known):
            self._blocks.current, self._short = known, None
            return self._blocks.add(data)
        return self.failed(_BEHIND) if "partial_json" in data else b""

    def _learn(self, data: dict[str, Any]) -> None:
        usage = data.pop("usage", None)
        self._head |= data
        if isinstance(usage, dict):
            self._head["usage"] = {**(self._head.get("usage") or {}), **usage}

    def _begin_place(self, place: int, data: dict[str, Any], look: Look) -> bytes:
        kind = str(data.pop("type", "text"))
        if kind == "tool_use":
            self._announced = (place, data)
            return b""
        frames = self._begin(look) + self._begin_block(kind, {**_WORDS.get(kind, {}), **data})
        assert self._blocks.current is not None, "a block has begun"
        self._places[place] = self._blocks.current
        return frames

    def _finish_content(self, _answer: Answer) -> bytes:
        return self._blocks.close_all()

    def _end(self, answer: Answer) -> bytes:
        native = message_from(answer)
        usage = native["usage"]
        told = {name: value for name, value in usage.items() if self._usage.get(name) != value}
        counts = {name: usage[name] for name in _COUNTS if name in usage}
        delta = {name: native[name] for name in _CHANGES if name in native}
        message = {"type": "message_delta", "delta": delta, "usage": counts | told}
        return named_frame("message_delta", message) + named_frame(
            "message_stop", {"type": "message_stop"}
        )

    def _say(self, text: str) -> bytes:
        begin = self._begin_block("text", _WORDS["text"], cut=True)
        block = self._blocks.current
        assert block is not None, "a block has begun"
        frames = begin + block.words(text)
        return frames + self._blocks.close(block)

    def _error(self, failure: Failure) -> bytes:
        return named_frame("error", error_body("messages", failure))

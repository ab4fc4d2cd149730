"""Joins the accepted deltas of one attempt into an answer.

Nothing is repaired: what is not valid JSON is no tool call, and what lacks evidence is incomplete.

Path: ``sink/writer.py`` -> this -> ``protocol/answers.py``.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from tidegate.actors.sink.blocks import Blocks, Counts
from tidegate.protocol.answers import Choice, Finish, Part, ToolCall, Usage
from tidegate.protocol.attempts import Described
from tidegate.protocol.base import Token
from tidegate.protocol.deltas import Block, Delta, Reasoning, Refusal, Text, Tool


_CUT_SHORT: frozenset[Finish | None] = frozenset({None, "length", "content_filter", "error"})
"""Finishes after which a call without arguments may have lost them."""


class _Call:
    __slots__ = ("arguments", "id", "name")

    def __init__(self) -> None:
        self.id = ""
        self.name = ""
        self.arguments: list[str] = []


class _Choice:
    __slots__ = ("calls", "reasoning", "refusal", "text")

    def __init__(self) -> None:
        self.text: list[str] = []
        self.reasoning: list[str] = []
        self.refusal: list[str] = []
        self.calls: dict[int, _Call] = {}


class Assembly:
    """All that one attempt has contributed."""

    __slots__ = (
        "_blocks",
        "_choices",
        "_first",
        "created",
        "finishes",
        "model",
        "response_id",
        "token",
        "usage",
    )

    def __init__(self, token: Token) -> None:
        self.token = token
        self._first = _Choice()
        self._choices: dict[int, _Choice] = {0: self._first}
        self._blocks: Blocks | None = None
        self.finishes: tuple[Finish, ...] = ()
        self.usage: Usage | None = None
        self.response_id = ""
        self.model = ""
        self.created = 0

    def add(self, deltas: Sequence[Delta]) -> None:
        """Append accepted deltas, in order."""
        for delta in deltas:
            if isinstance(delta, Block):
                self._add_block(delta)
                continue
            choice = self._first if delta.choice == 0 else self._choice(delta.choice)
            if isinstance(delta, Text):
                choice.text.append(delta.text)
            elif isinstance(delta, Tool):
                _add_tool(choice, delta)
            elif isinstance(delta, Reasoning):
                choice.reasoning.append(delta.text)
            elif isinstance(delta, Refusal):
                choice.refusal.append(delta.text)

    def count(self, usage: Usage, details: bytes) -> None:
        """Take the newest figures, and what the wire says beside them, if anything."""
        self.usage = usage
        if details:
            self._made_blocks().details = details

    def describe(self, described: Described) -> None:
        """Take what the provider calls the response; the last non-empty value stands."""
        self.response_id = described.response_id or self.response_id
        self.model = described.model or self.model
        self.created = described.created or self.created

    @property
    def text_chars(self) -> int:
        """Characters of text, over all choices."""
        return sum(len(piece) for choice in self._choices.values() for piece in choice.text)

    @property
    def tool_names(self) -> tuple[str, ...]:
        """Names of all tool calls begun, complete or not, in order of appearance."""
        return tuple(
            call.name for choice in self._choices.values() for call in choice.calls.values()
        )

    def choices(self) -> tuple[Choice, ...]:
        """Return every choice as it stands."""
        return tuple(
            self._answer_of(index, choice) for index, choice in sorted(self._choices.items())
        )

    def parts(self) -> tuple[Part, ...]:
        """Return how the first choice is made up, if its wire told."""
        if self._blocks is None:
            return ()
        first = self._first
        call_ids = [self._call_id(0, place, call) for place, call in first.calls.items()]
        return self._blocks.parts(first.text, first.reasoning, first.refusal, call_ids)

    def _add_block(self, block: Block) -> None:
        first = self._first
        now = Counts(len(first.text), len(first.reasoning), len(first.refusal), len(first.calls))
        self._made_blocks().add(block, now)

    def _made_blocks(self) -> Blocks:
        if self._blocks is None:
            self._blocks = Blocks()
        return self._blocks

    def _call_id(self, index: int, place: int, call: _Call) -> str:
        # A reader may answer a call that its provider left without an id.
        return call.id or f"call_{self.token}_{index}_{place}"

    def _choice(self, index: int) -> _Choice:
        return self._choices.setdefault(index, _Choice())

    def _answer_of(self, index: int, choice: _Choice) -> Choice:
        wire_finish = self.finishes[index] if index < len(self.finishes) else None
        calls, incomplete = self._settle(index, choice, wire_finish)
        text, refusal = "".join(choice.text), "".join(choice.refusal)
        finish = wire_finish
        if finish == "stop" and calls:
            # Some servers say "stop" for an answer that is tool calls: the content decides.
            finish = "tool_calls"
        elif finish == "stop" and refusal and not text:
            finish = "content_filter"
        return Choice(
            index=index,
            text=text,
            reasoning="".join(choice.reasoning),
            refusal=refusal,
            tool_calls=calls,
            incomplete_tool_calls=incomplete,
            finish=finish,
            wire_finish=wire_finish,
        )

    def _settle(
        self, index: int, choice: _Choice, finish: Finish | None
    ) -> tuple[tuple[ToolCall, ...], tuple[ToolCall, ...]]:
        whole: list[ToolCall] = []
        incomplete: list[ToolCall] = []
        for place, call in sorted(choice.calls.items()):
            arguments = "".join(call.arguments)
            if not arguments.strip() and finish not in _CUT_SHORT:
                arguments = "{}"  # how several servers write a call without arguments
            call_id = self._call_id(index, place, call)
            settled = ToolCall(id=call_id, name=call.name, arguments=arguments)
            trusted = finish is not None and _is_json(arguments)
            (whole if trusted else incomplete).append(settled)
        return tuple(whole), tuple(incomplete)


def _add_tool(choice: _Choice, delta: Tool) -> None:
    call = choice.calls.get(delta.index)
    if call is None:
        call = choice.calls[delta.index] = _Call()
    if delta.id:
        call.id = delta.id
    if delta.name:
        call.name = delta.name
    if delta.whole:
        call.arguments = [delta.arguments]
    elif delta.arguments:
        call.arguments.append(delta.arguments)


def _is_json(text: str) -> bool:
    try:
        msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return False
    return True

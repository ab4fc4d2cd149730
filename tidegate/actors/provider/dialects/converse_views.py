"""The events of ConverseStream and the answer of Converse, as far as they are used."""

from __future__ import annotations

from typing import Any

import msgspec

from tidegate.actors.provider.dialects.chat_views import count_from
from tidegate.protocol.answers import Finish, Usage


class _View(msgspec.Struct, gc=False, rename="camel"):
    """Part of an event; what is not named here is skipped."""


class ToolInput(_View):
    """The next characters of a call's arguments; some servers send all of them, as an object."""

    input: str | dict[str, msgspec.Raw] | None = None


class ReasoningPiece(_View):
    """Words of reasoning, or a piece of what proves or replaces them."""

    text: str | None = None
    signature: str | None = None
    redacted_content: str | None = None


class Piece(_View):
    """What a delta brings: one of these."""

    text: str | None = None
    tool_use: ToolInput | None = None
    reasoning_content: ReasoningPiece | None = None
    citation: dict[str, Any] | None = None
    tool_result: list[Any] | None = None
    image: dict[str, Any] | None = None


class DeltaView(_View):
    """A ``contentBlockDelta``."""

    delta: Piece | None = None
    content_block_index: int | None = None


class ToolStart(_View):
    """Who is called."""

    tool_use_id: str | None = None
    name: str | None = None
    type: str | None = None


class Start(_View):
    """What a block is; text and reasoning say nothing of it."""

    tool_use: ToolStart | None = None
    tool_result: dict[str, Any] | None = None
    image: dict[str, Any] | None = None


class StartView(_View):
    """A ``contentBlockStart``."""

    start: Start | None = None
    content_block_index: int | None = None


class StopView(_View):
    """A ``messageStop``."""

    stop_reason: str | None = None
    additional_model_response_fields: Any = None


class UsageView(_View):
    """Figures, of which some models leave out some."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_input_tokens: int | None = None


class MetadataView(_View):
    """A ``metadata``."""

    usage: UsageView | None = None


class ToolBlock(ToolStart):
    """A whole call."""

    input: msgspec.Raw = msgspec.Raw(b"")


class ReasoningBlock(_View):
    """Whole reasoning, or what stands for it."""

    reasoning_text: ReasoningPiece | None = None
    redacted_content: str | None = None


class CitedText(_View):
    """A part of a text with sources."""

    text: str | None = None


class CitedBlock(_View):
    """A text with its sources."""

    content: list[CitedText] = []
    citations: list[Any] = []


class ContentView(_View):
    """A block of an answer that is not streamed: one of these, or something else."""

    text: str | None = None
    tool_use: ToolBlock | None = None
    reasoning_content: ReasoningBlock | None = None
    citations_content: CitedBlock | None = None


class MessageView(_View):
    """The message of an answer that is not streamed."""

    content: list[msgspec.Raw]


class OutputView(_View):
    """What is around it."""

    message: MessageView


class DocumentView(_View):
    """The answer of Converse."""

    output: OutputView
    stop_reason: str | None = None
    usage: UsageView | None = None


FINISHES: dict[str, Finish] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "content_filtered": "content_filter",
    "guardrail_intervened": "content_filter",
    "malformed_model_output": "error",
    "malformed_tool_use": "error",
}
"""By stop reason; one that is not here is a stop."""

SERVER_TOOL = "server_tool_use"
"""The type of a call that the provider carries out itself."""


def usage_from(view: UsageView | None) -> Usage | None:
    """Return the figures as the wire counts them, None if there are none."""
    if view is None or (view.input_tokens is None and view.output_tokens is None):
        return None
    return Usage(
        input_tokens=count_from(view.input_tokens) or 0,
        output_tokens=count_from(view.output_tokens) or 0,
        cached_input_tokens=count_from(view.cache_read_input_tokens) or 0,
    )

"""The event that a delta is for the turn's readers, and what it holds for them.

Path: ``sink/outbox.py`` -> this
"""

from __future__ import annotations

from tidegate.protocol.deltas import Reasoning, Refusal, Text, Tool
from tidegate.protocol.events import (
    AnyEvent,
    ReasoningDelta,
    RefusalDelta,
    TextDelta,
    ToolCallDelta,
)


def event_from(
    delta: Text | Tool | Reasoning | Refusal, turn_id: str, attempt: int, offset: int, at_s: float
) -> AnyEvent:
    """Return the event of a delta: one delta is one event."""
    # isinstance and not a table: the type checker follows it, and text is asked for first.
    if isinstance(delta, Text):
        return TextDelta(turn_id, attempt, offset, at_s, delta.text, delta.choice)
    if isinstance(delta, Tool):
        return ToolCallDelta(
            turn_id,
            attempt,
            offset,
            at_s,
            delta.index,
            delta.id,
            delta.name,
            delta.arguments,
            delta.choice,
            delta.whole,
        )
    if isinstance(delta, Reasoning):
        return ReasoningDelta(turn_id, attempt, offset, at_s, delta.text, delta.choice)
    return RefusalDelta(turn_id, attempt, offset, at_s, delta.text, delta.choice)


def has_words(event: AnyEvent) -> bool:
    """Say whether an event has a word of an answer: of text, reasoning, a refusal or arguments."""
    if isinstance(event, TextDelta | ReasoningDelta | RefusalDelta):
        return bool(event.text)
    return isinstance(event, ToolCallDelta) and bool(event.arguments)

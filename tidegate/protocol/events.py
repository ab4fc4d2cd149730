"""What a reader of a turn is told.

Each event has ``turn_id``, ``attempt`` (from 1; 0 before the first), ``offset`` (per turn, from 0,
without gaps) and ``at_s`` (seconds since the epoch, never falling within a turn).

Path: ``sink/outbox.py`` -> this -> the consumer.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from tidegate.protocol.answers import Answer, Usage
from tidegate.protocol.failures import Failure


class Event(msgspec.Struct, frozen=True, tag_field="type"):
    """Base of all events."""

    turn_id: str
    attempt: int
    offset: int
    at_s: float


class AttemptStarted(Event, frozen=True, tag="attempt.started"):
    """An attempt has the right to write."""

    token: int = 0


class TextDelta(Event, frozen=True, gc=False, tag="text.delta"):
    """The next words of the answer."""

    text: str
    choice: int = 0


class ReasoningDelta(Event, frozen=True, gc=False, tag="reasoning.delta"):
    """The next words of the model's reasoning."""

    text: str
    choice: int = 0


class RefusalDelta(Event, frozen=True, gc=False, tag="refusal.delta"):
    """The next words in which the model refuses."""

    text: str
    choice: int = 0


class ToolCallDelta(Event, frozen=True, gc=False, tag="tool_call.delta"):
    """The next piece of a tool call; the call is final only in the terminal answer.

    Attributes:
        index: the call's place in ``answer.tool_calls``.
        id: the whole id, as soon as it is known, else None.
        name: the whole name as known so far, if it has changed, else None.
        arguments: the next characters of the arguments.
        whole: whether ``arguments`` is all of them, in place of what came before: a provider has
            taken back what it had sent.
    """

    index: int
    id: str | None = None
    name: str | None = None
    arguments: str = ""
    choice: int = 0
    whole: bool = False


class UsageReported(Event, frozen=True, tag="usage.reported"):
    """The provider counted model tokens."""

    usage: Usage


NoticeKind: TypeAlias = Literal[
    "reconnecting", "tool_call_lost", "stall_warning", "streaming_disabled", "fallback"
]


class Notice(Event, frozen=True, tag="notice"):
    """Something that a person should read; never part of ``answer.text``."""

    kind: NoticeKind
    text: str


class RetryScheduled(Event, frozen=True, tag="retry.scheduled"):
    """The attempt failed by ``cause``, and the next one starts in ``delay_s`` seconds."""

    cause: Failure
    delay_s: float


class AttemptSuperseded(Event, frozen=True, tag="attempt.superseded"):
    """What was taken of ``attempt`` is void: the last ``retracts`` characters of its text."""

    retracts: int


class TurnCompleted(Event, frozen=True, tag="turn.completed"):
    """The answer is complete, by the provider's own evidence."""

    answer: Answer


class TurnFailed(Event, frozen=True, tag="turn.failed"):
    """The turn ended without a complete answer; ``answer`` has what there is."""

    error: Failure
    answer: Answer


class TurnInterrupted(Event, frozen=True, tag="turn.interrupted"):
    """Somebody ended the turn; ``answer`` has what there is."""

    reason: str
    answer: Answer


Terminal: TypeAlias = TurnCompleted | TurnFailed | TurnInterrupted
AnyEvent: TypeAlias = (
    AttemptStarted
    | TextDelta
    | ReasoningDelta
    | RefusalDelta
    | ToolCallDelta
    | UsageReported
    | Notice
    | RetryScheduled
    | AttemptSuperseded
    | TurnCompleted
    | TurnFailed
    | TurnInterrupted
)
TERMINAL = (TurnCompleted, TurnFailed, TurnInterrupted)

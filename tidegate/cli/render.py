"""Says in words what an event means to somebody who watches a terminal; pure.

Path: ``turn.py`` -> this -> ``cli/screen.py``.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import NamedTuple

from tidegate.protocol.answers import Answer
from tidegate.protocol.events import (
    AnyEvent,
    AttemptSuperseded,
    Notice,
    ReasoningDelta,
    RefusalDelta,
    RetryScheduled,
    TextDelta,
    TurnCompleted,
    TurnFailed,
    TurnInterrupted,
)


class Role(StrEnum):
    """Whose words a piece is, which decides where it goes."""

    ANSWER = "answer"
    """The model's, for standard output."""
    REASONING = "reasoning"
    """The model's, on the way to its answer."""
    REMARK = "remark"
    """Ours: one line about the turn."""


class Piece(NamedTuple):
    """Words and whose they are."""

    role: Role
    text: str


_FINISHES = {
    "length": "the answer ends here because the limit of output tokens is reached",
    "content_filter": "the provider filtered the answer",
}


def pieces_from(event: AnyEvent) -> Iterator[Piece]:
    """Yield what a person should see of ``event``; often nothing.

    >>> list(pieces_from(TextDelta("t", 1, 0, 0.0, "Hello")))
    [Piece(role=<Role.ANSWER: 'answer'>, text='Hello')]
    """
    match event:
        case TextDelta(text=text, choice=0) | RefusalDelta(text=text, choice=0):
            yield Piece(Role.ANSWER, text)
        case ReasoningDelta(text=text, choice=0):
            yield Piece(Role.REASONING, text)
        case Notice(text=text):
            yield Piece(Role.REMARK, text)
        case RetryScheduled(attempt=attempt, cause=cause, delay_s=delay_s):
            text = f"attempt {attempt} failed: {cause}; the next one starts in {delay_s:.1f} s"
            yield Piece(Role.REMARK, text)
        case AttemptSuperseded(retracts=retracts) if retracts:
            text = f"the last {retracts} characters are void; the answer begins anew"
            yield Piece(Role.REMARK, text)
        case TurnCompleted(answer=answer):
            for call in answer.tool_calls:
                yield Piece(Role.REMARK, f"the model calls {call.name}({call.arguments})")
            if answer.finish in _FINISHES:
                yield Piece(Role.REMARK, _FINISHES[answer.finish])
        case TurnFailed(error=error, answer=answer):
            yield Piece(Role.REMARK, f"failed: {error}{_kept(answer)}")
        case TurnInterrupted(reason=reason, answer=answer):
            why = f" ({reason})" if reason else ""
            yield Piece(Role.REMARK, f"interrupted{why}{_kept(answer)}")
        case _:
            return


def harmless(text: str) -> str:
    r"""Replace what could steer a terminal: all control characters but tab and line feed.

    >>> harmless("a\x1b[2Jb\n")
    'a\ufffd[2Jb\n'
    """
    return text.translate(_STEERING)


_STEERING = dict.fromkeys({*range(32), *range(127, 160)} - {9, 10}, "\ufffd")


def _kept(answer: Answer) -> str:
    lost = f"; lost: the call of {', '.join(answer.lost_tools)}" if answer.lost_tools else ""
    return f"{lost}; the answer is not whole" if answer.text else lost

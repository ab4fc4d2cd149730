"""What every front does with what is no content: attempts, notices, ends."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

from tidegate.daemon.fronts.base import HEARTBEAT, Item, Look, Opening, comment
from tidegate.protocol.answers import Answer
from tidegate.protocol.deltas import Block
from tidegate.protocol.events import (
    AttemptStarted,
    AttemptSuperseded,
    Notice,
    ReasoningDelta,
    RefusalDelta,
    RetryScheduled,
    TextDelta,
    ToolCallDelta,
    TurnCompleted,
    TurnFailed,
    TurnInterrupted,
    UsageReported,
)
from tidegate.protocol.failures import Failure, FailureKind


Words = TextDelta | ReasoningDelta | RefusalDelta | ToolCallDelta

_GLUED = Failure(
    kind=FailureKind.TRUNCATED,
    retryable=True,
    detail="the attempt of which a part was sent has failed, and another took its place",
)
_TOO_DEEP = Failure(
    kind=FailureKind.INTERNAL,
    detail="the answer has something that is nested deeper than this process can follow",
)


class WireFront(ABC):
    """A front of one of the wires.

    Nothing is rendered of an attempt until there is content of it, so that another attempt may
    take its place; after that none may, and the stream ends by an error.

    Args:
        opening: what is known without the answer.
        request: the client's body.
        notices: whether people are told what has been lost, in text.
    """

    heartbeat = HEARTBEAT
    prefix: ClassVar[str]
    """With which the ids of its answers begin."""

    def __init__(self, opening: Opening, request: dict[str, Any], *, notices: bool) -> None:
        self.content_sent = False
        self._opening = opening
        self._request = request
        self._notices = notices
        self._lost: list[str] = []
        self._over = False
        self._tokens: dict[int, int] = {}

    def frames(self, item: Item, look: Look) -> bytes:
        """Return the whole frames that ``item`` makes, maybe none."""
        if self._over:
            return b""
        try:
            return self._frames_of(item, look)
        except RecursionError:
            return self.failed(_TOO_DEEP)

    def failed(self, failure: Failure) -> bytes:
        """Return the frames that end a stream by ``failure``; none if it has ended."""
        if self._over:
            return b""
        lost = self._render_lost()
        self._over = True
        self._hush()
        return lost + self._error(failure)

    def _frames_of(self, item: Item, look: Look) -> bytes:
        match item:
            case TextDelta() | ReasoningDelta() | RefusalDelta() | ToolCallDelta():
                return self._take_words(item, look)
            case Block():
                return self._take_block(item, look)
            case Notice():
                return self._take_notice(item)
            case AttemptStarted(attempt=attempt, token=token):
                self._tokens[attempt] = token
                if not self.content_sent:
                    self._restart()
                return b""
            case AttemptSuperseded():
                return self.failed(_GLUED) if self.content_sent else b""
            case RetryScheduled() | UsageReported():
                return b""
            case TurnCompleted(answer=answer):
                return self._complete(answer)
            case TurnFailed(error=failure, answer=answer):
                return self._fail(failure, answer)
            case TurnInterrupted(reason=reason, answer=answer):
                return self._fail(Failure(kind=FailureKind.INTERRUPTED, detail=reason), answer)

    def _take_notice(self, notice: Notice) -> bytes:
        if not self._notices:
            return b""
        if notice.kind == "tool_call_lost":
            self._lost.append(notice.text)  # the end is next, and decides how to say it
            return b""
        return comment(f"{notice.kind}: {notice.text}") if self.content_sent else b""

    def _complete(self, answer: Answer) -> bytes:
        begin = self._begin(lambda: answer)
        rest = self._finish_content(answer)
        if self._over:
            return begin + rest
        lost = self._render_lost()
        self._over = True
        self._hush()
        return begin + rest + lost + self._end(answer)

    def _fail(self, failure: Failure, answer: Answer) -> bytes:
        begin = self._begin(lambda: answer) if self._lost else b""
        return begin + self.failed(failure)

    def _render_lost(self) -> bytes:
        """Say what was lost; only if a stream has begun, which can hold text."""
        lost, self._lost = self._lost, []
        return b"".join(map(self._say, lost)) if self.content_sent else b""

    def _begin(self, look: Look) -> bytes:
        """Return what stands before the first content, unless it was sent."""
        if self.content_sent:
            return b""
        self._opening = self._opening.told_by(answer := look())
        self.content_sent = True
        return self._open(answer)

    def _call_id(self, event: ToolCallDelta) -> str:
        """Return the id that the answer gives a call which its provider left without one."""
        return f"call_{self._tokens.get(event.attempt, 0)}_{event.choice}_{event.index}"

    @abstractmethod
    def _hush(self) -> None:
        """Let no words take a short way past ``frames`` any more."""

    @abstractmethod
    def _open(self, answer: Answer) -> bytes:
        """Return what stands before all content."""

    @abstractmethod
    def _restart(self) -> None:
        """Forget what was kept of an attempt of which nothing was sent."""

    @abstractmethod
    def _take_words(self, event: Words, look: Look) -> bytes:
        """Return the frames of content."""

    @abstractmethod
    def _take_block(self, block: Block, look: Look) -> bytes:
        """Return the frames of a part of the structure."""

    @abstractmethod
    def _finish_content(self, answer: Answer) -> bytes:
        """Return what is still to be sent of a complete answer, before its end."""

    @abstractmethod
    def _end(self, answer: Answer) -> bytes:
        """Return the end of a complete answer."""

    @abstractmethod
    def _say(self, text: str) -> bytes:
        """Return a notice as content."""

    @abstractmethod
    def _error(self, failure: Failure) -> bytes:
        """Return the frame with which a stream fails."""

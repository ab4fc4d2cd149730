"""A turn as a lane: its attempts, and what happened to it, on a line of time; pure.

There are no words of any answer in it, and none of a provider: only when something came, how much
of it, and what kind of thing went wrong.

Theory of operation
-------------------
A ``Lane`` is fed each event of its turn once. Events that were withdrawn, because nobody had taken
them, are given again with other contents; then the lane begins anew, and keeps of what it had seen
only the instants of progress: that something came is true even if it never will be read.

Path: ``turns/hosted.py`` -> this -> ``turns/recent.py``
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, TypeAlias

import msgspec

from tidegate.daemon.journal.model import state_of
from tidegate.protocol.answers import AttemptReport, Usage
from tidegate.protocol.events import (
    AnyEvent,
    AttemptStarted,
    AttemptSuperseded,
    Notice,
    ReasoningDelta,
    RefusalDelta,
    RetryScheduled,
    Terminal,
    TextDelta,
    ToolCallDelta,
    TurnCompleted,
    TurnFailed,
    TurnInterrupted,
    UsageReported,
)
from tidegate.protocol.failures import Failure


ATTEMPTS_MAX = 24
MARKS_MAX = 48
"""How many of each are kept: the latest."""

MarkKind: TypeAlias = Literal["fenced", "retry", "superseded", "notice"]


class AttemptLane(msgspec.Struct):
    """One attempt; instants are seconds since the epoch, None for what has not come.

    Attributes:
        text_chars: characters of text, refusals included.
        tools: how many tools it has begun to call.
        outcome: ``running``, ``completed``, ``failed``, ``interrupted`` or ``superseded``.
        failure: the kind of its failure.
        void: whether what was taken of it was taken back.
    """

    number: int
    token: int = 0
    started_at_s: float = 0.0
    first_progress_at_s: float | None = None
    last_progress_at_s: float | None = None
    ended_at_s: float | None = None
    deltas: int = 0
    text_chars: int = 0
    reasoning_chars: int = 0
    tools: int = 0
    outcome: str = "running"
    failure: str | None = None
    void: bool = False

    def end(self, at_s: float, outcome: str, failure: Failure | None = None) -> None:
        """End it, unless it has ended."""
        if self.ended_at_s is None:
            self.ended_at_s, self.outcome = at_s, outcome
            self.failure = failure.kind.value if failure is not None else None


class Mark(msgspec.Struct, frozen=True):
    """Something that happened at one instant.

    Attributes:
        about: the kind of a failure or of a notice.
        delay_s: of a retry, until the next attempt.
    """

    at_s: float
    kind: MarkKind
    attempt: int
    about: str = ""
    delay_s: float | None = None


class Lane:
    """What has become of one turn so far.

    Attributes:
        attempts: the latest ones, in their order.
        marks: likewise.
        events: how many events it was fed.
        left_out: how many attempts came before those that are kept.
        ended_by: the kind of failure, or the reason of the interrupt, that ended the turn.
    """

    __slots__ = (
        "_current",
        "_seen",
        "attempts",
        "ended_by",
        "events",
        "input_tokens",
        "left_out",
        "marks",
        "output_tokens",
    )

    def __init__(self) -> None:
        self._seen: dict[int, AttemptLane] = {}
        self._begin()

    def _begin(self) -> None:
        self.attempts: list[AttemptLane] = []
        self.marks: list[Mark] = []
        self.events = 0
        self.left_out = 0
        self.input_tokens: int | None = None
        self.output_tokens: int | None = None
        self.ended_by: str | None = None
        self._current: AttemptLane | None = None

    @property
    def current(self) -> AttemptLane | None:
        """The attempt that has the right to write, if one has."""
        current = self._current
        return current if current is not None and current.ended_at_s is None else None

    @property
    def quiet_since_s(self) -> float | None:
        """Since when the attempt that runs has made no progress."""
        current = self.current
        if current is None:
            return None
        return current.last_progress_at_s or current.started_at_s

    def restart(self) -> None:
        """Forget what was fed: some of it was withdrawn, and all will be fed again."""
        self._seen = {each.token: each for each in self.attempts}
        self._begin()

    def feed(self, events: Sequence[AnyEvent]) -> None:
        """Take the next events."""
        self.events += len(events)
        index = 0
        while index < len(events):
            event = events[index]
            index += 1
            if isinstance(event, TextDelta):
                index = self._words(event, events, index)
            elif isinstance(event, RefusalDelta):
                self._progress(event).text_chars += len(event.text)
            elif isinstance(event, ReasoningDelta):
                self._progress(event).reasoning_chars += len(event.text)
            elif isinstance(event, ToolCallDelta):
                attempt = self._progress(event)
                attempt.tools = max(attempt.tools, event.index + 1)
            else:
                self._announced(event)

    def report(self, reports: Iterable[AttemptReport], at_s: float) -> None:
        """Take the word of who decided about the attempts, once the turn has ended."""
        for report in tuple(reports)[-ATTEMPTS_MAX:]:
            self._reported(report, at_s)

    def count(self, usage: Usage | None) -> None:
        """Take what the provider has counted."""
        if usage is not None:
            self.input_tokens, self.output_tokens = usage.input_tokens, usage.output_tokens

    def _words(self, first: TextDelta, events: Sequence[AnyEvent], index: int) -> int:
        """Take a run of text, which most events are, and return where it ends."""
        attempt = self._progress(first)
        begin, chars, last = index, len(first.text), first
        while index < len(events):
            event = events[index]
            if not isinstance(event, TextDelta) or event.attempt != first.attempt:
                break
            chars += len(event.text)
            last = event
            index += 1
        attempt.text_chars += chars
        attempt.deltas += index - begin
        attempt.last_progress_at_s = max(attempt.last_progress_at_s or 0.0, last.at_s)
        return index

    def _progress(self, event: AnyEvent) -> AttemptLane:
        attempt = self._current
        if attempt is None or attempt.number != event.attempt:
            attempt = self._attempt(event.attempt, event.at_s)
        if attempt.first_progress_at_s is None:
            attempt.first_progress_at_s = event.at_s
        attempt.last_progress_at_s = max(attempt.last_progress_at_s or 0.0, event.at_s)
        attempt.deltas += 1
        return attempt

    def _announced(self, event: AnyEvent) -> None:
        match event:
            case AttemptStarted(attempt=number, token=token, at_s=at_s):
                self._started(number, token, at_s)
            case RetryScheduled(attempt=number, at_s=at_s, cause=cause, delay_s=delay_s):
                kind = cause.kind.value
                self._attempt(number, at_s).end(at_s, "failed", cause)
                self._mark(Mark(at_s, "fenced", number, kind))
                self._mark(Mark(at_s, "retry", number, kind, delay_s))
            case AttemptSuperseded(attempt=number, at_s=at_s):
                attempt = self._attempt(number, at_s)
                attempt.end(at_s, "superseded")
                attempt.void = True
                self._mark(Mark(at_s, "superseded", number))
            case Notice(attempt=number, at_s=at_s, kind=kind):
                self._mark(Mark(at_s, "notice", number, kind))
            case UsageReported(usage=usage):
                self.count(usage)
            case TurnCompleted() | TurnFailed() | TurnInterrupted():
                self._ended(event)
            case _:
                raise AssertionError(f"{event.__struct_config__.tag} is progress")

    def _started(self, number: int, token: int, at_s: float) -> None:
        if self._current is not None:
            self._current.end(at_s, "failed")
        attempt = self._attempt(number, at_s)
        attempt.token, attempt.started_at_s = token, at_s
        if (seen := self._seen.get(token)) is not None:
            attempt.first_progress_at_s = seen.first_progress_at_s
            attempt.last_progress_at_s = seen.last_progress_at_s

    def _ended(self, event: Terminal) -> None:
        match event:
            case TurnFailed(error=error):
                self.ended_by = error.kind.value
            case TurnInterrupted(reason=reason):
                self.ended_by = reason
            case TurnCompleted():
                pass
        self.report(event.answer.attempts, event.at_s)
        if self._current is not None:
            self._current.end(event.at_s, state_of(event))
        self.count(event.answer.usage_all_attempts or event.answer.usage)

    def _reported(self, report: AttemptReport, at_s: float) -> None:
        attempt = self._attempt(report.number, report.started_at_s)
        attempt.token, attempt.started_at_s = report.token, report.started_at_s
        if report.first_progress_s is not None:
            attempt.first_progress_at_s = report.started_at_s + report.first_progress_s
            attempt.last_progress_at_s = max(
                attempt.last_progress_at_s or 0.0, attempt.first_progress_at_s
            )
        if report.ended_s is not None:
            at_s = report.started_at_s + report.ended_s
        attempt.ended_at_s, attempt.outcome = at_s, report.outcome or attempt.outcome
        attempt.failure = report.failure.kind.value if report.failure is not None else None

    def _attempt(self, number: int, at_s: float) -> AttemptLane:
        """Return the attempt of that number; the latest one is ``_current``."""
        for attempt in reversed(self.attempts):
            if attempt.number == number:
                return attempt
        attempt = AttemptLane(number, started_at_s=at_s)
        self.attempts.append(attempt)
        if len(self.attempts) > ATTEMPTS_MAX:
            del self.attempts[0]
            self.left_out += 1
        self._current = attempt
        return attempt

    def _mark(self, mark: Mark) -> None:
        self.marks.append(mark)
        if len(self.marks) > MARKS_MAX:
            del self.marks[0]

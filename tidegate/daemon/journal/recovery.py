"""The end of a turn that outlived its daemon, from what was stored of it; pure.

The sink's own rules hold: what was withdrawn and has no successor is released in front of the
terminal event, and the last attempt that made progress is the answer. Its words are joined by the
sink's own assembly.

Path: ``journal/store.py`` -> this -> ``journal/store.py``.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from tidegate.actors.sink.assembly import Assembly
from tidegate.actors.sink.attempts import AttemptRecord
from tidegate.actors.sink.effects import Close
from tidegate.actors.sink.terminal import answer_from, lost_notice
from tidegate.protocol.answers import Answer
from tidegate.protocol.base import Generation, Token
from tidegate.protocol.deltas import Delta, Reasoning, Refusal, Text, Tool
from tidegate.protocol.events import (
    TERMINAL,
    AnyEvent,
    AttemptStarted,
    AttemptSuperseded,
    Notice,
    ReasoningDelta,
    RefusalDelta,
    RetryScheduled,
    TextDelta,
    ToolCallDelta,
    TurnFailed,
    UsageReported,
)
from tidegate.protocol.failures import Failure, FailureKind


DAEMON_LOST = Failure(
    kind=FailureKind.INTERNAL,
    reason="daemon_lost",
    retryable=True,
    detail="the daemon ended while this turn was open; what it had stored of the answer is kept",
)
CONTENT = (TextDelta, ReasoningDelta, RefusalDelta, ToolCallDelta)
WITHDRAWABLE = (*CONTENT, UsageReported)
_NO_WORKER = Generation(0)


class Fold:
    """A turn's events, one after the other, as the attempts that they tell of.

    Args:
        turn_id: the turn's name.
        wire: its wire.
        place: wire and name of its endpoint, for the reports.
        model: the model asked for.
    """

    def __init__(self, turn_id: str, wire: str, place: str = "", model: str = "") -> None:
        self._turn_id = turn_id
        self._wire = wire
        self._place = place
        self._model = model
        self._records: list[AttemptRecord] = []
        self._answer: AttemptRecord | None = None
        self.attempt = 0
        self.next_offset = 0
        self.at_s = 0.0
        self.terminal: AnyEvent | None = None

    def add(self, events: Sequence[AnyEvent]) -> None:
        """Take the next events, of which none was withdrawn."""
        for event in events:
            self.next_offset = event.offset + 1
            self.at_s = max(self.at_s, event.at_s)
            self._add(event)

    def answer(
        self, close: Close | None = None, *, partial: bool = False, notices: Sequence[str] = ()
    ) -> Answer:
        """Return the answer as it stands; ``close`` says how the turn ends, if it does."""
        return answer_from(
            self._answer, self._records, notices, wire=self._wire, close=close, partial=partial
        )

    def close(self, failure: Failure, at_s: float) -> list[AnyEvent]:
        """End the turn by ``failure``; returns the events that say so, the terminal one last."""
        at_s = max(at_s, self.at_s)
        if self._records:
            self._records[-1].end("failed", at_s, failure)
        close = Close("failed", failure)
        draft = self.answer(close)
        partial = bool(draft.text.strip())
        events: list[AnyEvent] = []
        notices: list[str] = []
        if draft.lost_tools:
            notices.append(lost_notice(draft, failure))
            events.append(
                Notice(
                    self._turn_id,
                    self.attempt,
                    self.next_offset,
                    at_s,
                    kind="tool_call_lost",
                    text=notices[0],
                )
            )
        offset = self.next_offset + len(events)
        answer = self.answer(close, partial=partial, notices=notices)
        events.append(
            TurnFailed(self._turn_id, self.attempt, offset, at_s, error=failure, answer=answer)
        )
        self.add(events)
        return events

    def _add(self, event: AnyEvent) -> None:
        if isinstance(event, CONTENT):
            record = self._record(event)
            if record.first_progress_s is None:
                record.first_progress_s = event.at_s - record.started_at_s
            self._answer = record
            record.assembly.add((_delta_from(event),))
        elif isinstance(event, UsageReported):
            self._record(event).assembly.usage = event.usage
        elif isinstance(event, AttemptStarted):
            self._start(event.attempt, event.token, event.at_s)
        elif isinstance(event, RetryScheduled):
            if self._records:
                self._records[-1].end("failed", event.at_s, event.cause)
        elif isinstance(event, AttemptSuperseded):
            # Its successor has made progress, be it by evidence alone.
            self._answer = self._records[-1] if self._records else None
        elif isinstance(event, TERMINAL):
            self.terminal = event
            self.attempt = event.attempt

    def _start(self, number: int, token: int, at_s: float) -> AttemptRecord:
        record = AttemptRecord(
            number=number,
            token=Token(token),
            endpoint=self._place,
            free=False,
            generation=_NO_WORKER,
            started_at_s=at_s,
            assembly=Assembly(Token(token)),
        )
        record.assembly.model = self._model
        self._records.append(record)
        self.attempt = number
        return record

    def _record(self, event: AnyEvent) -> AttemptRecord:
        # What is released at the end belongs to an attempt that others have followed.
        for record in reversed(self._records):
            if record.number == event.attempt:
                return record
        return self._start(event.attempt, 0, event.at_s)


def released(withdrawn: Sequence[AnyEvent], first: int, at_s: float) -> list[AnyEvent]:
    """Return withdrawn events as they are given back, from the offset ``first`` on."""
    return [
        msgspec.structs.replace(event, offset=first + place, at_s=at_s)
        for place, event in enumerate(withdrawn)
    ]


def end_lost(fold: Fold, withdrawn: Sequence[AnyEvent], now_s: float) -> list[AnyEvent]:
    """End the turn in ``fold``; returns what its readers are told still.

    Args:
        fold: everything that is stored and was not withdrawn.
        withdrawn: deltas and usage that were, and whose attempt no other has replaced.
        now_s: seconds since the epoch.
    """
    if fold.terminal is not None:
        return []
    at_s = max(now_s, fold.at_s)
    given_back = released(withdrawn, fold.next_offset, at_s)
    fold.add(given_back)
    return given_back + fold.close(DAEMON_LOST, at_s)


def voids_withdrawn(events: Sequence[AnyEvent]) -> bool:
    """Say whether ``events`` settle what was withdrawn: a successor came, or it was given back."""
    return any(isinstance(event, (*CONTENT, AttemptSuperseded, *TERMINAL)) for event in events)


def _delta_from(event: TextDelta | ReasoningDelta | RefusalDelta | ToolCallDelta) -> Delta:
    if isinstance(event, TextDelta):
        return Text(event.text, event.choice)
    if isinstance(event, ToolCallDelta):
        return Tool(event.index, event.id, event.name, event.arguments, event.choice, event.whole)
    if isinstance(event, ReasoningDelta):
        return Reasoning(event.text, event.choice)
    return Refusal(event.text, event.choice)

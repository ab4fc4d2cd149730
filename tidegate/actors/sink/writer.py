"""Writes one turn: carries out what the machine decides on outbox and assembly.

Pure like the machine: no lock, thread or clock. Each ``handle`` is one step for the readers,
because the shell holds the outbox's lock around it.

Path: ``sink/actor.py`` -> ``sink/machine.py`` -> this -> ``sink/outbox.py``, ``sink/assembly.py``.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable
from typing import Any, TypeAlias

from tidegate.actors.sink.assembly import Assembly
from tidegate.actors.sink.attempts import AttemptRecord
from tidegate.actors.sink.effects import (
    BeginAttempt,
    Close,
    Freeze,
    Grant,
    Note,
    Publish,
    Refuse,
    Report,
    Supersede,
    Write,
    WriterMessage,
)
from tidegate.actors.sink.events import has_words
from tidegate.actors.sink.machine import decide
from tidegate.actors.sink.outbox import Outbox
from tidegate.actors.sink.state import TurnState, evolve
from tidegate.actors.sink.terminal import answer_from, lost_notice, terminal_from
from tidegate.actors.sink.watch import Watch, response_of
from tidegate.protocol.answers import Answer
from tidegate.protocol.attempts import (
    Described,
    Ended,
    Finished,
    Opened,
    UsageSeen,
    Waking,
    Woken,
)
from tidegate.protocol.base import Generation, TurnNumber
from tidegate.protocol.events import AttemptStarted, Notice, RetryScheduled, UsageReported
from tidegate.protocol.failures import Failure
from tidegate.protocol.sink import (
    EvidenceTaken,
    Fenced,
    NotIdle,
    OpenTurn,
    Snapshot,
    TurnClosed,
)


ToSupervisor: TypeAlias = Ended | Fenced | NotIdle | EvidenceTaken | TurnClosed | Waking | Woken


class TurnWriter:
    """One turn as the sink sees it.

    Args:
        turn: its number.
        outbox: what its readers see; the caller makes each call one step for them.
        report: takes what the supervisor must hear.
        grant: tells a worker how far it may send; gets the attempt's generation.
        refused: counts refusals by their reason.
        epoch_s: what to add to ``now_s`` for seconds since the epoch.
        watch: looks on, if somebody does.
    """

    def __init__(  # noqa: PLR0913 - each collaborator comes in as a plain callable
        self,
        turn: TurnNumber,
        outbox: Outbox,
        *,
        report: Callable[[ToSupervisor], None],
        grant: Callable[[Generation, Grant], None],
        refused: Counter[str],
        epoch_s: float = 0.0,
        watch: Watch | None = None,
    ) -> None:
        self.turn = turn
        self.state = TurnState()
        self.outbox = outbox
        self.wire = ""
        self.records: list[AttemptRecord] = []
        self.answer: AttemptRecord | None = None
        self.notices: list[str] = []
        self._report = report
        self._grant = grant
        self._refused = refused
        self._epoch_s = epoch_s
        self._watch = watch

    def handle(self, message: WriterMessage, now_s: float) -> None:
        """Decide, apply, carry out."""
        if type(message) is OpenTurn:
            self.wire = message.wire
        decision = decide(self.state, message, now_s)
        for fact in decision.events:
            self.state = evolve(self.state, fact)
        for effect in decision.effects:
            _PERFORM[type(effect)](self, effect, now_s + self._epoch_s)

    def snapshot(self) -> Answer:
        """Return the answer as it stands; does not change anything."""
        if self.outbox.closed:
            terminal = self.outbox.events[-1]
            return terminal.answer  # type: ignore[union-attr]
        return answer_from(self.answer, self.records, self.notices, wire=self.wire)

    def _write(self, effect: Write, at_s: float) -> None:
        record = self.records[-1]
        deltas = effect.deltas.deltas
        record.assembly.add(deltas)
        if record.first_progress_s is None:
            record.first_progress_s = at_s - record.started_at_s
        self.outbox.append(record.number, at_s, deltas, self.state.window_bytes)
        if self._watch is not None:
            self._watch.accepted(record.token, deltas)

    def _begin(self, effect: BeginAttempt, at_s: float) -> None:
        admit = effect.admit
        record = AttemptRecord(
            number=admit.number,
            token=admit.token,
            endpoint=admit.endpoint,
            free=admit.free,
            generation=admit.generation,
            started_at_s=at_s,
            assembly=Assembly(admit.token),
        )
        self.records.append(record)
        if self._watch is not None:
            self._watch.started(self.outbox.turn_id, record.report())
        self.outbox.begin_window()
        self.outbox.publish(
            lambda turn_id, offset: AttemptStarted(
                turn_id, admit.number, offset, at_s, token=admit.token
            )
        )

    def _supersede(self, _effect: Supersede, at_s: float) -> None:
        self.outbox.drop_frozen()
        for record in self.records[:-1]:
            if not record.voided:
                record.voided = True
                self.outbox.supersede(record.number, at_s)
        self.answer = self.records[-1]

    def _note(self, effect: Note, at_s: float) -> None:
        record = self.records[-1]
        match effect.fact:
            case Opened(request_id=request_id):
                record.request_id = request_id
            case Described() as described:
                record.assembly.describe(described)
            case Finished(finishes=finishes):
                record.assembly.finishes = finishes
            case UsageSeen(usage=usage, details=details):
                record.assembly.count(usage, details)
                if self._watch is not None:
                    self._watch.accepted(record.token, (usage,))
                self.outbox.publish(
                    lambda turn_id, offset: UsageReported(
                        turn_id, record.number, offset, at_s, usage=usage
                    )
                )

    def _freeze(self, effect: Freeze, at_s: float) -> None:
        record = self.records[-1]
        self._end(record, "failed", at_s, effect.failure)
        self.outbox.freeze()
        taken = self.outbox.taken_of(record.number)
        snapshot = Snapshot(
            text_chars=record.assembly.text_chars,
            sent_any=self.state.next_seq > 0,
            taken_any=bool(taken),
            visible_taken=self.outbox.visible(record.number),
            words_taken=any(map(has_words, taken)),
            tools_in_flight=record.assembly.tool_names,
            life=self.state.life_s is not None,
        )
        self._report(
            Fenced(
                self.turn, effect.token, effect.failure, snapshot, effect.refused, effect.learned
            )
        )

    def _publish(self, effect: Publish, at_s: float) -> None:
        announce = effect.announce
        number = self.records[-1].number if self.records else 0
        for kind, text in announce.notices:
            self._notice(kind, text, at_s)
        self.outbox.publish(
            lambda turn_id, offset: RetryScheduled(
                turn_id, number, offset, at_s, cause=announce.cause, delay_s=announce.delay_s
            )
        )

    def _close(self, effect: Close, at_s: float) -> None:
        if self.records:
            outcome = effect.kind if self.state.finishes is None else "completed"
            self._end(self.records[-1], outcome, at_s, effect.failure)
        number = self.records[-1].number if self.records else 0
        self.outbox.release(at_s)
        partial = self._partial(effect)
        draft = answer_from(self.answer, self.records, self.notices, wire=self.wire)
        if effect.kind != "interrupted" and draft.lost_tools:
            text = lost_notice(draft, effect.failure)
            self.notices.append(text)
            self._notice("tool_call_lost", text, at_s)
        answer = answer_from(
            self.answer,
            self.records,
            self.notices,
            wire=self.wire,
            close=effect,
            partial=partial,
        )
        self.outbox.publish(
            lambda turn_id, offset: terminal_from(effect, answer, (turn_id, number, offset, at_s))
        )
        self.outbox.closed = True
        self._report(
            TurnClosed(
                self.turn,
                effect.kind,
                received=self.state.life_s is not None,
                visible=bool(answer.text.strip()),
            )
        )

    def _end(
        self, record: AttemptRecord, outcome: str, at_s: float, failure: Failure | None
    ) -> None:
        if record.end(outcome, at_s, failure) and self._watch is not None:
            # Nothing is added to what has ended, so the rest may be done at any time.
            self._watch.ended(record.report(), functools.partial(response_of, record, self.wire))

    def _partial(self, effect: Close) -> bool:
        if self.answer is None or effect.kind == "completed":
            return False
        if effect.kind == "interrupted":
            return not self.answer.assembly.finishes
        return self.outbox.visible(self.answer.number, pending=bool(self.outbox.cursors))

    def _notice(self, kind: Any, text: str, at_s: float) -> None:
        number = self.records[-1].number if self.records else 0
        self.outbox.publish(
            lambda turn_id, offset: Notice(turn_id, number, offset, at_s, kind=kind, text=text)
        )

    def _tell(self, effect: Report, _at_s: float) -> None:
        self._report(effect.message)

    def _raise_credit(self, effect: Grant, _at_s: float) -> None:
        self._grant(self.records[-1].generation, effect)

    def _count(self, effect: Refuse, _at_s: float) -> None:
        self._refused[effect.why] += 1


_PERFORM: dict[type, Callable[[TurnWriter, Any, float], None]] = {
    Write: TurnWriter._write,  # noqa: SLF001 - the table is part of the class
    BeginAttempt: TurnWriter._begin,  # noqa: SLF001
    Supersede: TurnWriter._supersede,  # noqa: SLF001
    Note: TurnWriter._note,  # noqa: SLF001
    Freeze: TurnWriter._freeze,  # noqa: SLF001
    Publish: TurnWriter._publish,  # noqa: SLF001
    Close: TurnWriter._close,  # noqa: SLF001
    Report: TurnWriter._tell,  # noqa: SLF001
    Grant: TurnWriter._raise_credit,  # noqa: SLF001
    Refuse: TurnWriter._count,  # noqa: SLF001
}

"""The sink and the readers of one turn, as a part of the model.

What a state is compared by leaves out what decides nothing: instants that only tell a reader the
time, and the causes of failures. Where a run merges its ends, an ended turn is looked at once, and
is one like any other from there on.
"""

from __future__ import annotations

from collections import Counter

import msgspec

from tests.simulation.rules import Rules, check, expect
from tests.simulation.tables import Table, copied, encode
from tidegate.actors.sink.assembly import Assembly
from tidegate.actors.sink.effects import CreditReviewed
from tidegate.actors.sink.outbox import Outbox
from tidegate.actors.sink.writer import TurnWriter
from tidegate.protocol.attempts import Credit, Ended, Pong, WorkerReady
from tidegate.protocol.deltas import Text
from tidegate.protocol.events import TERMINAL, RetryScheduled, TextDelta, UsageReported
from tidegate.protocol.sink import Admit, Fence, Fenced, FenceIfIdle, Forget, ReviewCredit, Seal
from tidegate.protocol.supervisor import TimerFired
from tidegate.protocol.workers import WorkerLost


NOT_FOR_WRITERS = (WorkerLost, WorkerReady, Pong, TimerFired)


class SinkState(msgspec.Struct):
    """One turn in the sink, what its readers have taken, and what the rules make of it."""

    writer: TurnWriter | None
    seen: tuple
    rules: Rules


class SinkPart:
    """The sink and the readers of its one turn.

    Args:
        messages: the messages' numbers.
        readers: how many readers there are from the start.
        waiting: whether somebody waits for the answer.
        merge_ends: whether all ended turns are one, once each was looked at.
        ask_alive: whether anybody asks when the provider lived last.
    """

    def __init__(self, messages, *, readers, waiting, merge_ends, ask_alive):
        self.states = Table()
        self._messages = messages
        self._waiting = waiting
        self._end = None if merge_ends else ()
        self._ask_alive = ask_alive
        self._steps = {}
        outbox = Outbox("turn")
        for _ in range(readers):
            outbox.attach()
        writer = TurnWriter(1, outbox, report=None, grant=None, refused=Counter())
        self.first = self._number(SinkState(writer, ((),) * readers, Rules()))

    def take(self, number, message, now_s):
        """Return the next state, the reports to the supervisor, and the messages to a worker."""
        key = (number, message, now_s)
        step = self._steps.get(key)
        if step is None:
            step = self._steps[key] = self._take(*key)
        return step

    def read(self, number, reader):
        """Return the next state if ``reader`` takes an event, and whether a review is due."""
        key = (number, reader)
        step = self._steps.get(key)
        if step is None:
            step = self._steps[key] = self._read(*key)
        return step

    def _read(self, number, reader):
        state = copy_of_sink(self.states.things[number])
        if state.writer is None:
            return None
        outbox = state.writer.outbox
        event = outbox.take(reader)
        if event is None:
            return None
        seen = list(state.seen)
        seen[reader - 1] += (event,)
        state.seen = tuple(seen)
        due = outbox.cursors[reader] == outbox.review_at
        return self._number(state), due

    def _take(self, number, message_number, now_s):
        message = self._messages.things[message_number]
        if isinstance(message, NOT_FOR_WRITERS):
            return number, (message_number,), ()
        state = copy_of_sink(self.states.things[number])
        reports, grants = [], []
        if isinstance(message, Forget):
            assert state.writer.outbox.closed, "forgotten while it runs"
            state.writer = None
        elif state.writer is None:
            reports += [message] if isinstance(message, Ended) else []
        elif isinstance(message, ReviewCredit):
            self._review(state, now_s, reports, grants)
        else:
            self._write(state, message, now_s, reports, grants)
        given = isinstance(message, Admit | Seal | Fence)
        assert not (given and grants), "credit must not overtake the start that it is for"
        return (
            self._number(state),
            tuple(map(self._messages.number, reports)),
            tuple((generation, self._messages.number(credit)) for generation, credit in grants),
        )

    def _write(self, state, message, now_s, reports, grants):
        writer = state.writer
        inside = writer.state
        rests = inside.sent_bytes >= inside.limit_bytes
        before = state.rules
        state.rules, expected = expect(before, message, now_s, rests=rests)
        self._handle(writer, message, now_s, reports, grants)
        names = tuple(type(report).__name__ for report in reports)
        assert names == expected, f"{message} led to {names}, and by the rules to {expected}"
        if isinstance(message, Fence | FenceIfIdle | Ended):
            self._check_snapshot(before, state, reports)
        if isinstance(message, Admit):
            self._review(state, now_s, reports, grants)

    def _review(self, state, now_s, reports, grants):
        writer, before = state.writer, state.writer.state
        taken_bytes = writer.outbox.review(before.window_bytes)
        self._handle(writer, CreditReviewed(taken_bytes, self._waiting), now_s, reports, grants)
        if grants and before.sent_bytes >= before.limit_bytes:
            state.rules = state.rules._replace(credit_s=now_s)  # the silences begin anew

    def _handle(self, writer, message, now_s, reports, grants):
        def grant(generation, order):
            grants.append((generation, Credit(order.token, order.limit_bytes)))

        writer._report, writer._grant, writer._refused = reports.append, grant, Counter()
        writer.handle(message, now_s)

    def _check_snapshot(self, rules, state, reports):
        """R4: the snapshot says what was accepted and what was shown, of this attempt alone."""
        for report in reports:
            if not isinstance(report, Fenced):
                continue
            own = [
                event
                for transcript in state.seen
                for event in transcript
                if event.attempt == rules.number and isinstance(event, TextDelta | UsageReported)
            ]
            texts = [event.text for event in own if isinstance(event, TextDelta)]
            snapshot = report.snapshot
            assert report.token == rules.token, "R4: another token was fenced"
            assert snapshot.text_chars == len("".join(rules.accepted)), "R4: text accepted"
            assert snapshot.sent_any == bool(rules.accepted), "R4: anything accepted"
            assert snapshot.taken_any == bool(own), "R4: anything taken"
            assert snapshot.visible_taken == any(text.strip() for text in texts), "R4: text taken"
            assert snapshot.words_taken == any(texts), "R4: words taken"
            assert snapshot.life == (rules.life_s is not None), "R4: anything received"

    def _number(self, state):
        if state.writer is None:
            return self.states.number(state, b"forgotten")
        number = len(self.states)
        place = self.states.number(state, key_of_sink(state, ask_alive=self._ask_alive))
        if place == number:
            check(state.rules, state.writer, state.seen)
        if self._end == () or not state.rules.closed:
            return place
        if self._end is None:
            self._end = place
        return self._end


def copy_of_sink(state):
    """Return a state that can be changed without changing ``state``."""
    if state.writer is None:
        return SinkState(None, state.seen, state.rules)
    old = state.writer
    writer = TurnWriter.__new__(TurnWriter)
    writer.__dict__.update(old.__dict__)
    writer.records = [_copy_of_record(record) for record in old.records]
    if old.answer is not None:
        writer.answer = writer.records[old.answer.number - 1]
    writer.notices = list(old.notices)
    writer.outbox = outbox = Outbox(old.outbox.turn_id)
    for name in Outbox.__slots__:
        value = getattr(old.outbox, name)
        setattr(outbox, name, copied(value))
    return SinkState(writer, state.seen, state.rules)


def _copy_of_record(record):
    old = record.assembly
    assembly = Assembly(old.token)
    for choice in old.choices():
        # Only text is played here, so that the text is the whole assembly.
        assembly.add([Text(choice.text)] if choice.text else [])
    assembly.finishes, assembly.usage = old.finishes, old.usage
    return msgspec.structs.replace(record, assembly=assembly)


def key_of_sink(state, *, ask_alive):
    """Return what tells one state of the sink from another."""
    writer, outbox = state.writer, state.writer.outbox
    inside = (
        outbox.cursors,
        outbox.taken,
        outbox.review_at,
        outbox._reviewed,
        outbox._ends,
        outbox._sums,
    )
    records = [
        (record.number, record.voided, [choice.text for choice in record.assembly.choices()])
        for record in writer.records
    ]
    answer = None if writer.answer is None else writer.answer.number
    return encode(
        (
            _timeless_state(writer.state, ask_alive=ask_alive),
            [_timeless(event) for event in outbox.events],
            [_timeless(event) for event in outbox.frozen],
            inside,
            records,
            answer,
            [len(transcript) for transcript in state.seen],
            state.rules._replace(event_s=0.0, progress_s=0.0, life_s=0.0, credit_s=0.0),
        )
    )


def _timeless_state(state, *, ask_alive):
    """Keep of the instants what a question is answered by."""
    marks = [at_s for at_s in (state.event_s, state.progress_s, state.credit_s) if at_s is not None]
    event_s = None if state.event_s is None else 0.0
    progress_s = None if state.progress_s is None else 0.0
    life_s = state.life_s if ask_alive or state.life_s is None else 0.0
    return msgspec.structs.replace(
        state, event_s=event_s, life_s=life_s, progress_s=progress_s, credit_s=max(marks)
    )


def _timeless(event):
    if isinstance(event, TERMINAL):
        return (type(event).__name__, event.offset, event.attempt, event.answer.text)
    if isinstance(event, RetryScheduled):
        return (event.offset, event.attempt)
    return msgspec.structs.replace(event, at_s=0.0)

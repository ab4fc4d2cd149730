"""The rules of the sink in a second, independent form: what must follow each message it takes.

The machine is right if it does what is said here; nothing here is taken from its state. ``expect``
is told what the sink takes and says what it must report, ``check`` looks at what a reader can see.
"""

from __future__ import annotations

from typing import NamedTuple

from tidegate.protocol.attempts import (
    START_ALLOWANCE_S,
    Deltas,
    Ended,
    Finished,
    Life,
    Waking,
    Woken,
)
from tidegate.protocol.events import (
    TERMINAL,
    AttemptSuperseded,
    TextDelta,
    TurnCompleted,
    TurnInterrupted,
    UsageReported,
)
from tidegate.protocol.sink import Admit, Conclude, Fence, FenceIfIdle, Limit, OpenTurn, Seal


WITHDRAWABLE = (TextDelta, UsageReported)


class Rules(NamedTuple):
    """What the rules know of a turn.

    Attributes:
        opened, sealed: whether ``OpenTurn`` and ``Seal`` were taken.
        token, number: the largest token admitted, and the number of its attempt.
        right: whether it may write.
        accepted: the texts of it that were accepted.
        evidence: whether it has shown evidence.
        closed: how the turn ended.
        writers: the numbers of the attempts that made progress or showed evidence, in order.
        text: what the last of them has written.
        event_s, progress_s, life_s, credit_s: since when each silence lasts.
        excused_s: before when there is none, for no request can have left.
    """

    opened: bool = False
    sealed: bool = False
    token: int = 0
    number: int = 0
    right: bool = False
    accepted: tuple[str, ...] = ()
    evidence: bool = False
    closed: str = ""
    writers: tuple[int, ...] = ()
    text: str = ""
    event_s: float | None = None
    progress_s: float | None = None
    life_s: float | None = None
    credit_s: float = 0.0
    excused_s: float = 0.0


def expect(rules, message, now_s, *, rests):
    """Return the rules after ``message``, and the names of the reports it must lead to.

    Args:
        rules: before it.
        message: what the sink takes.
        now_s: when.
        rests: whether the provider waits for credit.
    """
    match message:
        case OpenTurn():
            return _closed(rules._replace(opened=True), "interrupted", when=rules.sealed)
        case Seal():
            sealed = rules._replace(sealed=True)
            return _closed(sealed, "interrupted", when=rules.opened and not rules.closed)
        case Conclude():
            kind = "completed" if rules.right and rules.evidence else "failed"
            return _closed(rules, kind, when=not rules.closed)
        case Admit(token=token, number=number):
            if rules.closed or token <= rules.token:
                return rules, ()
            fresh = Rules(opened=True, token=token, number=number, right=True, credit_s=now_s)
            return fresh._replace(writers=rules.writers, text=rules.text), ()
        case Ended(token=token):
            ended, reports = _lose(rules, token)
            return ended, ("Ended", *reports)
        case Fence(token=token):
            return _lose(rules, token)
        case Waking() | Woken():
            name = type(message).__name__
            if not rules.right or message.token != rules.token:
                return rules, (name,)
            excused_s = now_s + START_ALLOWANCE_S * (name == "Waking")
            return rules._replace(excused_s=excused_s), (name,)
        case FenceIfIdle():
            return _expect_idle(rules, message, rests=rests)
        case Deltas() | Finished() | Life():
            return _expect_written(rules, message, now_s)
    return rules, ()


def _closed(rules, kind, *, when):
    if not when:
        return rules, ()
    return rules._replace(closed=kind, right=False), ("TurnClosed",)


def _lose(rules, token):
    """R4, R11: the current token completes the turn after evidence, and is fenced before it."""
    if not rules.right or token != rules.token:
        return rules, ()
    if rules.evidence:
        return _closed(rules, "completed", when=True)
    return rules._replace(right=False), ("Fenced",)


def _expect_idle(rules, question, *, rests):
    """R5: fenced only if what came before the question was silence."""
    if not rules.right or question.token != rules.token:
        return rules, ()
    marks = {
        Limit.FIRST_EVENT: rules.event_s,
        Limit.PROGRESS: rules.progress_s if rules.progress_s is not None else rules.event_s,
        Limit.ALIVE: rules.life_s,
    }
    mark = marks[question.limit]
    if question.limit is Limit.FIRST_EVENT:
        idle = mark is None and rules.excused_s <= question.idle_since_s
    else:
        idle = mark is not None and max(mark, rules.credit_s) <= question.idle_since_s
    if rules.evidence or rests or not idle:
        return rules, ("NotIdle",)
    return rules._replace(right=False), ("Fenced",)


def _expect_written(rules, message, now_s):
    """R1: accepted if and only if the token is current and the seq is the next."""
    if not rules.right or message.token != rules.token:
        return rules, ()
    if isinstance(message, Life):
        event_s = now_s if message.event and rules.event_s is None else rules.event_s
        return rules._replace(life_s=now_s, event_s=event_s), ()
    if rules.evidence or message.seq != len(rules.accepted):
        return rules, ()
    writers = rules.writers
    if rules.number not in writers:
        writers = (*writers, rules.number)
    if isinstance(message, Finished):
        text = "".join(rules.accepted)
        return rules._replace(evidence=True, writers=writers, text=text), ("EvidenceTaken",)
    texts = tuple(delta.text for delta in message.deltas)
    event_s = now_s if rules.event_s is None else rules.event_s
    written = rules._replace(
        accepted=rules.accepted + texts,
        writers=writers,
        text="".join(rules.accepted + texts),
        event_s=event_s,
        progress_s=now_s,
        life_s=now_s,
    )
    return written, ()


def check(rules, writer, seen):
    """Look at one state of the sink.

    Args:
        rules: what must be true.
        writer: the turn's writer.
        seen: what each reader has taken, in order.
    """
    outbox = writer.outbox
    events, taken = outbox.events, outbox.taken
    assert [event.offset for event in events] == list(range(len(events))), "offsets have gaps"
    assert outbox.closed == bool(rules.closed), f"closed is {outbox.closed}: {rules}"
    for transcript in seen:
        assert list(transcript) == events[: len(transcript)], "R8: what was taken has changed"
    terminals = [event for event in events if isinstance(event, TERMINAL)]
    assert len(terminals) == bool(rules.closed), "R9: one terminal event"
    assert not terminals or events[-1] is terminals[0], "R9: the terminal event is the last"
    _check_frozen(rules, outbox)
    _check_superseded(rules, events)
    answer = writer.snapshot()
    for transcript in (*seen, events[:taken]):
        text = shown(transcript, events)
        assert answer.text.startswith(text), "R8: what is shown is not in the answer"
    assert answer.text == rules.text, "R1: the answer is what was accepted of its last writer"
    if rules.closed:
        _check_end(rules, events, terminals[0])


def shown(transcript, events):
    """Return the text in ``transcript`` that is not superseded by now."""
    void = {event.attempt for event in events if isinstance(event, AttemptSuperseded)}
    texts = [event for event in transcript if isinstance(event, TextDelta)]
    return "".join(event.text for event in texts if event.attempt not in void)


def _check_frozen(rules, outbox):
    open_to = {rules.number} if rules.right else set()
    if rules.closed:
        assert not outbox.frozen, "R8: the end releases what is frozen"
        return
    for event in outbox.events[outbox.taken :]:
        withdrawable = isinstance(event, WITHDRAWABLE)
        assert not withdrawable or event.attempt in open_to, f"R8: {event} can be taken"


def _check_superseded(rules, events):
    """R8: an attempt that somebody has seen is voided aloud, before its successor's first word."""
    numbers = {event.attempt for event in events if isinstance(event, WITHDRAWABLE)}
    for number in numbers:
        announced = [
            event
            for event in events
            if isinstance(event, AttemptSuperseded) and event.attempt == number
        ]
        later = [writer for writer in rules.writers if writer > number]
        assert len(announced) == bool(later), f"R8: attempt {number} and its successor {later}"
        if not announced:
            continue
        [void] = announced
        own = [e for e in events if isinstance(e, WITHDRAWABLE) and e.attempt == number]
        texts = [event.text for event in own if isinstance(event, TextDelta)]
        assert void.retracts == len("".join(texts)), "R8: what is retracted is what was shown"
        after = [e.attempt for e in events[void.offset :] if isinstance(e, WITHDRAWABLE)]
        assert number not in after, "R8: a word of a voided attempt behind its end"
        before = [e.attempt for e in events[: void.offset] if isinstance(e, WITHDRAWABLE)]
        assert not set(before) & set(later), "R8: a successor's word before the end of the former"


def _check_end(rules, events, terminal):
    completed = isinstance(terminal, TurnCompleted)
    assert completed == (rules.closed == "completed"), "R9: completed if and only if evidence"
    assert isinstance(terminal, TurnInterrupted) == (rules.closed == "interrupted"), "R9"
    assert shown(events, events) == terminal.answer.text, "R8: all that is shown is the answer"
    if completed:
        assert not terminal.answer.partial, "R9: a complete answer is not partial"
    if isinstance(terminal, TurnInterrupted):
        finish = "stop" if rules.evidence else None
        if rules.writers:
            finish = finish or "incomplete"
        assert terminal.answer.finish == finish, "R9: the finish of an interrupted answer"
        assert terminal.answer.partial == (finish == "incomplete"), "R9: part of an answer"

"""A turn that outlived its daemon ends with what the sink itself would have said of it.

Real turns are cut at every point: what was readable at that instant goes into a journal, the
journal is opened anew, and the answer in it is compared with the turn's own of that instant.
"""

import sqlite3

import msgspec
import pytest

import tidegate as tg
from tidegate.daemon.journal.lines import events_from
from tidegate.daemon.journal.recovery import DAEMON_LOST, Fold
from tidegate.lab import Answer, End, Lab, chat, gate
from tidegate.testing.eventually import eventually
from tidegate.testing.reading import Reading
from tidegate.testing.warm import warm


PROMPT = {"model": "test-model", "messages": [{"role": "user", "content": "Hello"}]}
SAME = ("text", "reasoning", "refusal", "tool_calls", "incomplete_tool_calls", "lost_tools")
SCRIPTS = {
    "text": [chat.text("Hel"), chat.text("lo "), chat.text("you")],
    "blank text": [chat.text(" "), chat.text("\n")],
    "reasoning": [chat.reasoning("Well"), chat.reasoning("..."), chat.text("Yes")],
    "refusal": [chat.text("I "), chat.refusal("can"), chat.refusal("not")],
    "choices": [chat.text("a"), chat.text("b", choice=1), chat.text("c"), chat.text("d", choice=1)],
    "usage": [chat.text("a"), chat.usage(3, 1), chat.text("b"), chat.usage(3, 2)],
    "calls": [
        chat.text("Look: "),
        chat.tool(0, id="call_1", name="clock", arguments=""),
        chat.tool(0, arguments='{"zone":'),
        chat.tool(1, id="call_2", name="map", arguments="{}"),
        chat.tool(0, arguments='"utc"}'),
    ],
    "call without id": [chat.tool(0, name="clock", arguments="{}"), chat.text("after")],
}


@pytest.fixture(scope="module")
def runtime():
    with tg.Runtime(workers=1) as runtime:
        warm(runtime, 1)
        yield runtime


@pytest.fixture
def ask():
    def make(lab, **policy):
        policy = {"backoff_s": (0.01,), "backoff_jitter": 0.0} | policy
        endpoint = tg.Endpoint.chat(lab.url, "key")
        return tg.Request(endpoint, PROMPT, policy=tg.Policy(**policy))

    return make


class Instant:
    """What can be read of a turn at one instant, and its answer then."""

    def __init__(self, turn):
        channel = turn._channel
        with channel.lock:
            self.events = list(channel.outbox.events)
            self.answer = channel.look()


class Mirror:
    """Writes what a turn's readers can see into a journal, withdrawals included."""

    def __init__(self, pen, turn):
        self._pen, self._turn = pen, turn
        self._written = []
        pen.begin(turn.id, wire="chat", endpoint="main", model="test-model")

    def look(self):
        now = Instant(self._turn)
        written, events = self._written, now.events
        same = [a == b for a, b in zip(written, events, strict=False)]
        first = same.index(False) if False in same else len(same)
        if first < max(len(written), len(events)):
            self._pen.entry(self._turn.id, first, *events[first:]).wait()
        self._written = events
        return now


@pytest.fixture
def mirror(pen):
    return lambda turn: Mirror(pen, turn)


@pytest.fixture
def recovered(pen, new_pen, read):
    """Lose the daemon; returns the events of a turn as they are thereafter."""

    def look(turn):
        pen.journal.close()
        again = new_pen().journal
        (record,) = again.recovered()
        assert (record.id, record.state) == (turn.id, "failed")
        events = events_from(b"\n".join(read(again, turn.id)) + b"\n")
        again.close()
        return events

    return look


def compare(ours, theirs):
    for name in SAME:
        assert getattr(ours, name) == getattr(theirs, name), name
    assert ours.usage == theirs.usage
    assert ours.usage_all_attempts == theirs.usage_all_attempts
    assert ours.choices == theirs.choices
    assert ours.wire == theirs.wire
    assert [(each.number, each.token, each.usage) for each in ours.attempts] == [
        (each.number, each.token, each.usage) for each in theirs.attempts
    ]


def gated(steps):
    """Play one step, and the next one when its gate is opened."""
    return [each for number, step in enumerate(steps) for each in (step, gate(str(number)))]


@pytest.mark.parametrize("name", SCRIPTS)
def test_fold_is_the_turns_own_answer_at_every_instant(runtime, ask, name):
    with Lab([Answer([*gated(SCRIPTS[name]), End.HOLD])]) as lab:
        turn = runtime.start(ask(lab))
        reading = Reading(turn)
        reading.until(tg.AttemptStarted)
        for number, _ in enumerate(SCRIPTS[name]):
            lab.reached(str(number))
            reading.events.append(next(reading._iterator))
            instant = Instant(turn)
            fold = Fold(turn.id, "chat")
            fold.add(reading.events)
            assert reading.events == instant.events
            compare(fold.answer(), instant.answer)
            lab.open(str(number))
        turn.interrupt("enough")


@pytest.mark.parametrize("cut", [f"{name}:{cut}" for name in SCRIPTS for cut in (1, 2, 3)])
def test_lost_turn_ends_like_one_that_was_interrupted_there(runtime, ask, pen, recovered, cut):
    name, _, count = cut.partition(":")
    steps = SCRIPTS[name][: int(count)]
    with Lab([Answer([*steps, End.HOLD])]) as lab:
        turn = runtime.start(ask(lab))
        reading = Reading(turn)
        reading.until(tg.AttemptStarted)
        reading.events += [next(reading._iterator) for _ in steps]
        turn.interrupt("enough")
        answer = turn.snapshot()
    pen.begin(turn.id, wire="chat")
    pen.write(turn.id, *reading.events)
    *before, end = recovered(turn)

    assert before[: len(reading.events)] == reading.events
    assert isinstance(end, tg.TurnFailed)
    assert end.error == end.answer.failure == DAEMON_LOST
    assert end.offset == len(before)
    compare(end.answer, answer)
    assert end.answer.partial is bool(answer.text.strip())
    assert end.answer.attempts[-1].outcome == "failed"
    assert end.answer.attempts[-1].failure == DAEMON_LOST


def test_lost_call_is_told_to_those_who_only_see_text(runtime, ask, mirror, recovered):
    with Lab([Answer([*SCRIPTS["calls"], End.HOLD])]) as lab:
        turn = runtime.start(ask(lab))
        mirrored = mirror(turn)
        eventually(lambda: len(mirrored.look().events) == 1 + len(SCRIPTS["calls"]))
        *_, notice, end = recovered(turn)
        turn.interrupt("enough")

    assert (notice.kind, notice.offset) == ("tool_call_lost", end.offset - 1)
    assert "clock, map" in notice.text
    assert end.answer.lost_tools == ("clock", "map")
    assert end.answer.display_text == f"Look: \n\n{notice.text}"


def test_lost_in_the_back_off_has_what_was_frozen(runtime, ask, mirror, recovered):
    steps = [chat.text("taken"), gate("more"), chat.text(" and not"), gate("cut"), End.CUT]
    with Lab([Answer(steps)]) as lab:
        turn = runtime.start(ask(lab, after_visible_text="restart", backoff_s=(3600,)))
        mirrored = mirror(turn)
        Reading(turn).until(tg.TextDelta)
        mirrored.look()
        lab.open("more")
        eventually(lambda: mirrored.look().answer.text == "taken and not")
        lab.open("cut")
        eventually(lambda: any(isinstance(e, tg.RetryScheduled) for e in mirrored.look().events))
        instant = mirrored.look()
        events = recovered(turn)
        turn.interrupt("enough")
        own = list(turn)

    assert [type(event) for event in events[:-1]] == [type(event) for event in own[:-1]]
    assert "".join(e.text for e in events if isinstance(e, tg.TextDelta)) == "taken and not"
    compare(events[-1].answer, instant.answer)
    first = events[-1].answer.attempts[0]
    assert (first.outcome, first.failure.kind) == ("failed", tg.FailureKind.TRUNCATED)


def test_lost_after_a_retry_has_the_second_attempts_text(runtime, ask, mirror, recovered):
    cut = Answer([chat.text("first"), gate("taken"), End.CUT])
    held = Answer([chat.usage(5, 1), gate("no progress"), chat.text("second"), End.HOLD])
    with Lab([cut, held]) as lab:
        turn = runtime.start(ask(lab, after_visible_text="restart"))
        mirrored = mirror(turn)
        Reading(turn).until(tg.TextDelta)
        mirrored.look()
        lab.open("taken")
        lab.reached("no progress")
        eventually(lambda: any(isinstance(e, tg.UsageReported) for e in mirrored.look().events))
        compare(_folded(turn), Instant(turn).answer)
        lab.open("no progress")
        eventually(lambda: mirrored.look().answer.text == "second")
        instant = mirrored.look()
        *events, end = recovered(turn)
        turn.interrupt("enough")

    assert end.answer.text == "second"
    assert [each.outcome for each in end.answer.attempts] == ["failed", "failed"]
    assert any(isinstance(event, tg.AttemptSuperseded) for event in events)
    compare(end.answer, instant.answer)


def test_turn_that_had_not_begun_fails_at_its_first_offset(pen, new_pen, read):
    pen.begin("turn_1", wire="chat")
    pen.journal.close()
    journal = new_pen().journal
    (record,) = journal.recovered()
    (line,) = read(journal, "turn_1")
    end = msgspec.json.decode(line, type=tg.TurnFailed)

    assert (record.state, record.attempt) == ("failed", 0)
    assert (end.offset, end.attempt, end.error) == (0, 0, DAEMON_LOST)
    assert end.error.retryable
    assert end.answer == tg.Answer(failure=DAEMON_LOST, wire="chat")


def test_ended_turns_are_left_as_they_were(runtime, ask, pen, new_pen, read):
    with Lab([chat.answer("whole")]) as lab:
        turn = runtime.start(ask(lab))
        events = list(turn)
    pen.begin(turn.id, wire="chat")
    pen.write(turn.id, *events)
    before = pen.journal.turn(turn.id)
    pen.journal.close()
    journal = new_pen().journal

    assert journal.recovered() == []
    assert journal.turn(turn.id) == before
    assert events_from(b"\n".join(read(journal, turn.id))) == events


def test_terminal_event_that_is_stored_says_how_the_turn_ended(runtime, ask, pen, new_pen, path):
    with Lab([chat.answer("whole")]) as lab:
        turn = runtime.start(ask(lab))
        events = list(turn)
    pen.begin(turn.id, wire="chat")
    pen.write(turn.id, *events)
    pen.journal.close()
    with sqlite3.connect(path) as shell:
        shell.execute("UPDATE turns SET state = 'running', ended_at = NULL")
    shell.close()
    (record,) = new_pen().journal.recovered()

    assert (record.state, record.ended_at) == ("completed", events[-1].at_s)


def test_recovered_turn_is_recovered_once(pen, new_pen, started, words):
    pen.begin("turn_1")
    pen.write("turn_1", started("turn_1"), *words("turn_1", 1, "so far"))
    pen.journal.close()
    again = new_pen()
    first = again.journal.recovered()
    stored = again.journal.events("turn_1", -1, 1 << 20)
    again.journal.close()
    journal = new_pen().journal

    assert [record.id for record in first] == ["turn_1"]
    assert journal.recovered() == []
    assert journal.events("turn_1", -1, 1 << 20) == stored
    assert journal.turn("turn_1") == first[0]


def _folded(turn):
    fold = Fold(turn.id, "chat")
    fold.add(Instant(turn).events)
    return fold.answer()

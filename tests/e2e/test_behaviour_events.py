"""What the readers of a turn are told, and in which order."""

import threading

import pytest

import tidegate as tg
from tests.e2e.scripts import GUARD_S
from tidegate.lab import Answer, End, Lab, chat, gate
from tidegate.testing.eventually import eventually
from tidegate.testing.reading import Reading
from tidegate.testing.warm import warm


@pytest.fixture(scope="module")
def runtime():
    with tg.Runtime(workers=1) as runtime:
        warm(runtime, 1)
        yield runtime


def test_events_are_numbered_and_end_with_the_answer(runtime, ask):
    with Lab([Answer([*chat.answer("a", "b").steps[:-2], chat.usage(1, 2), chat.done()])]) as lab:
        turn = runtime.start(ask(lab))
        reading = Reading(turn)
        terminal = reading.to_end()

        assert reading.kinds == [
            "AttemptStarted",
            "TextDelta",
            "TextDelta",
            "UsageReported",
            "TurnCompleted",
        ]
        assert [event.offset for event in reading.events] == [0, 1, 2, 3, 4]
        assert {event.turn_id for event in reading.events} == {turn.id}
        assert {event.attempt for event in reading.events} == {1}
        instants = [event.at_s for event in reading.events]
        assert instants == sorted(instants)
        assert terminal.answer == turn.result() == turn.snapshot()


def test_retry_with_a_tool_in_flight_is_announced(runtime, ask):
    begun = [chat.text("Look: "), chat.tool(id="call_1", name="clock")]
    cut = Answer([*begun, gate("taken"), End.CUT])
    whole = Answer([*begun, chat.tool(arguments="{}"), chat.finish("tool_calls"), chat.done()])
    with Lab([cut, whole]) as lab:
        turn = runtime.start(ask(lab))
        reading = Reading(turn)
        reading.until(tg.ToolCallDelta)
        lab.open("taken")
        reading.to_end()

        assert [
            (each, event.attempt) for each, event in zip(reading.kinds, reading.events, strict=True)
        ] == [
            ("AttemptStarted", 1),
            ("TextDelta", 1),
            ("ToolCallDelta", 1),
            ("Notice", 1),
            ("RetryScheduled", 1),
            ("AttemptStarted", 2),
            ("AttemptSuperseded", 1),
            ("TextDelta", 2),
            ("ToolCallDelta", 2),
            ("ToolCallDelta", 2),
            ("TurnCompleted", 2),
        ]
        (notice,) = reading.all(tg.Notice)
        (scheduled,) = reading.all(tg.RetryScheduled)
        (superseded,) = reading.all(tg.AttemptSuperseded)
        assert notice.kind == "reconnecting"
        assert scheduled.cause.kind is tg.FailureKind.TRUNCATED
        assert scheduled.delay_s == 0.01
        assert superseded.retracts == len("Look: ")
        assert "".join(reading.texts)[superseded.retracts :] == turn.result().text


def test_what_one_reader_took_stays_for_all_and_the_rest_is_withdrawn(runtime, ask):
    cut = Answer([chat.text("taken"), gate("go on"), chat.text("not taken"), gate("cut"), End.CUT])
    with Lab([cut, chat.answer("whole")]) as lab:
        turn = runtime.start(ask(lab, after_visible_text="restart"))
        quick, slow = Reading(turn), Reading(turn)
        quick.until(tg.TextDelta)
        slow.until(tg.AttemptStarted)
        lab.open("go on")
        eventually(lambda: turn.snapshot().text == "takennot taken")
        lab.open("cut")
        eventually(lambda: turn.snapshot().attempts[0].failure)
        quick.to_end()
        slow.to_end()
        late = Reading(turn)
        late.to_end()

        assert quick.events == slow.events == late.events
        assert [event.offset for event in quick.events] == list(range(len(quick.events)))
        assert quick.kinds == [
            "AttemptStarted",
            "TextDelta",
            "Notice",
            "RetryScheduled",
            "AttemptStarted",
            "AttemptSuperseded",
            "TextDelta",
            "TurnCompleted",
        ]
        assert quick.texts == ["taken", "whole"]
        assert quick.all(tg.AttemptSuperseded)[0].retracts == len("taken")


def test_restart_that_brings_nothing_takes_nothing_away(runtime, ask):
    with Lab(
        [Answer([chat.text("Hel"), gate("taken"), End.CUT]), chat.error_answer(500, "no")]
    ) as lab:
        turn = runtime.start(ask(lab, after_visible_text="restart", retries=1))
        reading = Reading(turn)
        reading.until(tg.TextDelta)
        lab.open("taken")
        reading.to_end()
        answer = turn.result()

        assert reading.kinds == [
            "AttemptStarted",
            "TextDelta",
            "Notice",
            "RetryScheduled",
            "AttemptStarted",
            "TurnFailed",
        ]
        assert (answer.text, answer.partial) == ("Hel", True)
        assert answer.failure.kind is tg.FailureKind.SERVER_ERROR


def test_frozen_deltas_are_released_in_front_of_an_interrupt(runtime, ask):
    with Lab([Answer([chat.text("Hel"), gate("accepted"), End.CUT])]) as lab:
        turn = runtime.start(ask(lab, backoff_s=(3600,)))
        eventually(lambda: turn.snapshot().text)
        lab.open("accepted")
        eventually(lambda: turn.snapshot().attempts[0].failure)
        reading = Reading(turn)
        reading.until(tg.RetryScheduled)

        turn.interrupt()

        terminal = reading.to_end()
        assert reading.kinds == [
            "AttemptStarted",
            "RetryScheduled",
            "TextDelta",
            "TurnInterrupted",
        ]
        assert terminal.answer.text == "".join(reading.texts) == "Hel"


def test_events_that_nobody_took_stay_in_front_of_an_interrupt(runtime, ask):
    with Lab([Answer([chat.text("Hel"), End.HOLD])]) as lab:
        turn = runtime.start(ask(lab))
        eventually(lambda: turn.snapshot().text)

        turn.interrupt("enough")

        reading = Reading(turn)
        assert reading.to_end().reason == "enough"
        assert reading.kinds == ["AttemptStarted", "TextDelta", "TurnInterrupted"]


def test_tool_call_tells_its_id_and_name_once(runtime, ask):
    pieces = [
        chat.tool(id="call_1", name="clock"),
        chat.tool(arguments='{"zone":'),
        chat.tool(arguments=' "UTC"}'),
        chat.finish("tool_calls"),
    ]
    with Lab([Answer(pieces)]) as lab:
        reading = Reading(runtime.start(ask(lab)))
        reading.to_end()

        told = [(e.index, e.id, e.name, e.arguments) for e in reading.all(tg.ToolCallDelta)]
        assert told == [
            (0, "call_1", "clock", ""),
            (0, None, None, '{"zone":'),
            (0, None, None, ' "UTC"}'),
        ]


def test_several_threads_read_the_same(runtime, ask):
    words = [f"{number} " for number in range(200)]
    with Lab([chat.answer(*words)]) as lab:
        turn = runtime.start(ask(lab))
        readings = [Reading(turn) for _ in range(4)]
        threads = [threading.Thread(target=reading.to_end) for reading in readings]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(GUARD_S)

        assert [reading.texts for reading in readings] == [words] * 4
        assert len({tuple(event.offset for event in each.events) for each in readings}) == 1

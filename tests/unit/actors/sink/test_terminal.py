"""The answer and the terminal event, from what the attempts have left."""

import pytest

from tidegate.actors.sink.assembly import Assembly
from tidegate.actors.sink.attempts import AttemptRecord
from tidegate.actors.sink.effects import Close
from tidegate.actors.sink.terminal import answer_from, lost_notice, terminal_from
from tidegate.protocol.answers import Answer, Usage
from tidegate.protocol.deltas import Reasoning, Refusal, Text, Tool
from tidegate.protocol.events import TurnCompleted, TurnFailed, TurnInterrupted
from tidegate.protocol.failures import Failure, FailureKind


LOST = Failure(kind=FailureKind.CONNECTION_LOST)
PLACE = ("turn-7", 2, 5, 9.0)


def record(number=1, *deltas, finishes=(), usage=None):
    assembly = Assembly(40 + number)
    assembly.add(deltas)
    assembly.finishes, assembly.usage = finishes, usage
    return AttemptRecord(
        number=number,
        token=40 + number,
        endpoint="chat http://host",
        free=False,
        generation=1,
        started_at_s=0.0,
        assembly=assembly,
    )


def answer(*records, of=-1, notices=(), **fields):
    chosen = records[of] if records else None
    return answer_from(chosen, records, notices, wire="chat", **fields)


def used(input_tokens, **fields):
    return Usage(input_tokens=input_tokens, **fields)


def test_answer_without_an_attempt_is_empty():
    assert answer() == Answer()


def test_answer_has_the_first_choice_and_all_of_them():
    made = answer(
        record(
            1,
            Text("a"),
            Reasoning("r"),
            Refusal("n"),
            Tool(0, "i", "f", "{}"),
            Text("b", 1),
            finishes=("stop", "length"),
        )
    )

    assert (made.text, made.reasoning, made.refusal) == ("a", "r", "n")
    assert [call.name for call in made.tool_calls] == ["f"]
    assert made.finish == "tool_calls"
    assert [choice.text for choice in made.choices] == ["a", "b"]


def test_answer_is_of_the_record_it_is_told():
    assert answer(record(1, Text("old")), record(2, Text("new")), of=0).text == "old"


def test_lost_tools_are_those_of_all_choices():
    made = answer(record(1, Tool(0, "i", "f", "{"), Tool(0, "j", "g", "{", 1)))

    assert made.lost_tools == ("f", "g")
    assert [call.name for call in made.incomplete_tool_calls] == ["f"]


@pytest.mark.parametrize(
    ("text", "notices", "expected"),
    [
        ("a", (), "a"),
        ("a", ("n1", "n2"), "a\n\nn1\n\nn2"),
        ("", ("n1",), "n1"),
        ("", (), ""),
    ],
)
def test_display_text_is_the_text_and_the_notices(text, notices, expected):
    assert answer(record(1, Text(text)), notices=notices).display_text == expected


def test_partial_answer_is_incomplete():
    made = answer(record(1, Text("a")), partial=True)

    assert (made.partial, made.finish) == (True, "incomplete")


def test_figures_of_a_complete_stream_are_reported():
    assert answer(record(1, finishes=("stop",), usage=used(3))).usage.origin == "reported"


def test_figures_of_a_broken_stream_are_estimated():
    assert answer(record(1, usage=used(3))).usage.origin == "estimated"


def test_no_figures_are_none():
    made = answer(record(1, finishes=("stop",)))

    assert (made.usage, made.usage_all_attempts) == (None, None)


def test_figures_of_all_attempts_are_added():
    first = used(1, output_tokens=2, cached_input_tokens=3, reasoning_tokens=4)
    second = used(10, output_tokens=20, cached_input_tokens=30, reasoning_tokens=40)
    made = answer(record(1, usage=first), record(2), record(3, finishes=("stop",), usage=second))

    assert made.usage_all_attempts == Usage(
        input_tokens=11,
        output_tokens=22,
        cached_input_tokens=33,
        reasoning_tokens=44,
        origin="estimated",
    )


def test_figures_of_all_attempts_are_reported_if_all_of_them_are():
    made = answer(record(1), record(2, finishes=("stop",), usage=used(3)))

    assert made.usage_all_attempts.origin == "reported"


@pytest.mark.parametrize(
    ("close", "failure"),
    [
        (None, None),
        (Close("completed"), None),
        (Close("failed", LOST), LOST),
    ],
)
def test_failure_is_what_ended_the_turn(close, failure):
    assert answer(record(1), close=close).failure == failure


@pytest.mark.parametrize(
    ("reason", "text"), [("enough", "interrupted: enough"), ("", "interrupted")]
)
def test_interrupt_is_a_failure_with_its_reason(reason, text):
    made = answer(record(1), close=Close("interrupted", reason=reason))

    assert made.failure == Failure(kind=FailureKind.INTERRUPTED, detail=reason)
    assert str(made.failure) == text


def test_terminal_event_of_each_kind():
    done, failed = Answer(), Answer(failure=LOST)

    assert terminal_from(Close("completed"), done, PLACE) == TurnCompleted(*PLACE, answer=done)
    assert terminal_from(Close("failed", LOST), failed, PLACE) == TurnFailed(
        *PLACE, error=LOST, answer=failed
    )
    assert terminal_from(Close("interrupted", reason="why"), done, PLACE) == TurnInterrupted(
        *PLACE, reason="why", answer=done
    )


@pytest.mark.parametrize(
    ("names", "listed"),
    [
        (("f",), "f"),
        (("f", "", "h"), "f, an unnamed tool, h"),
        (("f", "g", "h", "i"), "f, g, h and 1 more"),
        (("f", "g", "h", "i", "j"), "f, g, h and 2 more"),
    ],
)
def test_notice_names_the_first_lost_tools_and_counts_the_rest(names, listed):
    assert f"lost: {listed}." in lost_notice(Answer(lost_tools=names), LOST)


def test_notice_of_a_complete_answer_says_why_it_ended():
    told = lost_notice(Answer(lost_tools=("f",), finish="length"), None)

    assert "length" in told
    assert "stalled" not in told


def test_first_end_of_an_attempt_stands():
    made = record(1)
    made.end("failed", 3.0, LOST)
    made.end("completed", 4.0, None)

    assert (made.outcome, made.ended_s, made.failure) == ("failed", 3.0, LOST)


def test_completed_attempt_has_no_failure():
    made = record(1)
    made.end("completed", 4.0, LOST)

    assert made.failure is None

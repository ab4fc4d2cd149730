"""What a person is told of each event."""

import pytest

from tidegate.cli.render import Piece, Role, harmless, pieces_from
from tidegate.protocol.answers import Answer, ToolCall
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
)
from tidegate.protocol.failures import Failure, FailureKind


PLACE = ("turn", 1, 0, 0.0)


def said(kind, *fields, **more):
    return list(pieces_from(kind(*PLACE, *fields, **more)))


def remarks(*said):
    return [text for role, text in said if role is Role.REMARK]


@pytest.mark.parametrize("kind", [TextDelta, RefusalDelta])
def test_words_of_the_model_are_the_answer(kind):
    assert said(kind, "Hello") == [Piece(Role.ANSWER, "Hello")]


def test_reasoning_is_not_the_answer():
    assert said(ReasoningDelta, "hm") == [Piece(Role.REASONING, "hm")]


def test_further_choices_are_not_mixed_in():
    assert said(TextDelta, "Hello", choice=1) == []


def test_what_a_person_need_not_know_is_not_said():
    assert said(AttemptStarted) == []
    assert said(ToolCallDelta, 0) == []
    assert said(AttemptSuperseded, retracts=0) == []


def test_retry_says_why_and_when():
    cause = Failure(kind=FailureKind.OVERLOADED, status=503)

    assert remarks(*said(RetryScheduled, cause=cause, delay_s=1.04)) == [
        "attempt 1 failed: overloaded HTTP 503; the next one starts in 1.0 s"
    ]


def test_notices_and_retractions_are_remarks():
    assert remarks(*said(Notice, "reconnecting", "wait")) == ["wait"]
    assert "7 characters" in remarks(*said(AttemptSuperseded, retracts=7))[0]


def test_complete_answer_names_its_tool_calls_and_an_early_end():
    call = ToolCall(id="1", name="look", arguments="{}")

    assert remarks(*said(TurnCompleted, answer=Answer(finish="stop"))) == []
    assert remarks(*said(TurnCompleted, answer=Answer(tool_calls=(call,)))) == [
        "the model calls look({})"
    ]
    assert "limit" in remarks(*said(TurnCompleted, answer=Answer(finish="length")))[0]


def test_failure_says_what_is_lost():
    failure = Failure(kind=FailureKind.TRUNCATED)
    answer = Answer(text="Half", lost_tools=("look",))

    assert remarks(*said(TurnFailed, error=failure, answer=answer)) == [
        "failed: truncated; lost: the call of look; the answer is not whole"
    ]
    assert remarks(*said(TurnInterrupted, "", answer=Answer())) == ["interrupted"]
    assert remarks(*said(TurnInterrupted, "daemon stopping", answer=answer)) == [
        "interrupted (daemon stopping); lost: the call of look; the answer is not whole"
    ]


def test_harmless_text_stays_as_it_is():
    assert harmless("a\tb\nü ✔") == "a\tb\nü ✔"
    assert harmless("\x1b\x07\x9b\r") == "\ufffd" * 4

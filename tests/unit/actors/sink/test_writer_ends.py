"""How a turn ends: what is released, whether it is partial, and what it says of its attempts."""

import pytest

from tests.unit.actors.sink.building import (
    LOST,
    OPEN,
    SEAL,
    STALLED,
    TURN,
    Desk,
    admit,
    announce,
    conclude,
    deltas,
    ended,
    fence,
    finished,
    life,
    text,
    usage,
)
from tests.unit.actors.sink.test_writer import FIGURES
from tidegate.protocol.attempts import Opened
from tidegate.protocol.deltas import Reasoning, Text, Tool
from tidegate.protocol.events import TurnInterrupted
from tidegate.protocol.failures import FailureKind
from tidegate.protocol.sink import EvidenceTaken, TurnClosed


def test_completed_turn_has_its_answer():
    desk = Desk(OPEN, admit(1), text(1, 0, "a"), finished(1, 1))
    reports = desk.tell(3.0, ended(1, None))

    assert reports[1:] == [TurnClosed(TURN, "completed", received=True, visible=True)]
    assert desk.terminal.answer.finish == "stop"
    assert not desk.terminal.answer.partial
    assert desk.outbox.closed
    assert desk.writer.snapshot() is desk.terminal.answer


def test_evidence_is_reported_before_the_end():
    assert Desk(OPEN, admit(1)).tell(finished(1, 0)) == [EvidenceTaken(TURN, 1)]


def test_grace_that_runs_out_completes_with_what_there_is():
    desk = Desk(OPEN, admit(1), text(1, 0, "a"), finished(1, 1), fence(1))

    assert desk.names()[-1] == "TurnCompleted"
    assert desk.terminal.answer.attempts[0].outcome == "completed"


def test_interrupt_releases_in_front_of_the_terminal_event():
    desk = Desk(OPEN, admit(1), text(1, 0, "a"), ended(1), admit(2), 8.0, SEAL)

    assert desk.names() == ["AttemptStarted", "AttemptStarted", "TextDelta", "TurnInterrupted"]
    assert desk.outbox.events[2].at_s == 8.0
    assert desk.terminal.answer.text == "a"


def test_interrupt_before_evidence_makes_a_part_of_an_answer():
    desk = Desk(OPEN, admit(1), text(1, 0, "a"), SEAL)

    assert desk.terminal.reason == "enough"
    assert desk.terminal.answer.partial
    assert desk.terminal.answer.finish == "incomplete"
    assert desk.terminal.answer.failure.kind is FailureKind.INTERRUPTED


def test_interrupt_after_evidence_has_the_whole_answer():
    desk = Desk(OPEN, admit(1), text(1, 0, "a"), finished(1, 1, "length"), SEAL)

    assert isinstance(desk.terminal, TurnInterrupted)
    assert not desk.terminal.answer.partial
    assert desk.terminal.answer.finish == "length"
    assert desk.terminal.answer.attempts[0].outcome == "completed"


def test_interrupt_before_any_attempt_has_an_empty_answer():
    desk = Desk(SEAL)
    [closed] = desk.tell(OPEN)

    assert closed == TurnClosed(TURN, "interrupted")
    assert desk.terminal.attempt == 0
    assert not desk.terminal.answer.partial
    assert desk.terminal.answer.attempts == ()


def test_failed_turn_is_partial_if_its_text_was_taken():
    desk = Desk(OPEN, admit(1), text(1, 0, "a"))
    desk.take()
    desk.tell(ended(1), conclude())

    assert desk.terminal.answer.partial
    assert desk.terminal.answer.failure == LOST


def test_failed_turn_is_partial_if_its_text_is_released_to_a_reader():
    assert Desk(OPEN, admit(1), text(1, 0, "a"), ended(1), conclude()).terminal.answer.partial


def test_failed_turn_that_nobody_reads_is_not_partial():
    desk = Desk(OPEN, admit(1), text(1, 0, "a"))
    desk.outbox.detach(desk.reader)
    desk.tell(ended(1), conclude())

    assert not desk.terminal.answer.partial
    assert desk.terminal.answer.text == "a"


def test_text_that_was_taken_before_the_reader_left_makes_it_partial():
    desk = Desk(OPEN, admit(1), text(1, 0, "a"))
    desk.take()
    desk.outbox.detach(desk.reader)
    desk.tell(ended(1), conclude())

    assert desk.terminal.answer.partial


def test_white_space_makes_nothing_partial():
    desk = Desk(OPEN, admit(1), text(1, 0, " "))
    desk.take()
    desk.tell(ended(1), conclude())

    assert not desk.terminal.answer.partial


def test_text_of_a_voided_attempt_makes_nothing_partial():
    desk = Desk(OPEN, admit(1), text(1, 0, "void"))
    desk.take()
    desk.tell(ended(1), admit(2), deltas(2, 0, Reasoning("hm")), ended(2), conclude())

    assert not desk.terminal.answer.partial


def test_lost_tool_call_is_named_in_a_notice_behind_what_is_released():
    desk = Desk(OPEN, admit(1), deltas(1, 0, Text("a"), Tool(0, "i", "f", "{")), ended(1))
    desk.tell(conclude())

    assert desk.names()[1:] == ["TextDelta", "ToolCallDelta", "Notice", "TurnFailed"]
    notice = desk.outbox.events[-2]
    assert notice.kind == "tool_call_lost"
    assert "lost: f" in notice.text
    assert desk.terminal.answer.lost_tools == ("f",)
    assert desk.terminal.answer.display_text == f"a\n\n{notice.text}"


def test_interrupt_does_not_speak_of_lost_tools():
    desk = Desk(OPEN, admit(1), deltas(1, 0, Tool(0, "i", "f", "{")), SEAL)

    assert "Notice" not in desk.names()
    assert desk.terminal.answer.lost_tools == ("f",)


def test_complete_answer_that_was_cut_inside_a_call_says_so():
    desk = Desk(OPEN, admit(1), deltas(1, 0, Tool(0, "i", "f", "{")), finished(1, 1, "length"))
    desk.tell(ended(1, None))

    assert desk.names()[-2:] == ["Notice", "TurnCompleted"]


def test_notices_stay_out_of_the_answer():
    desk = Desk(OPEN, admit(1), text(1, 0, "a"), ended(1))
    desk.tell(announce(("reconnecting", "lost")), admit(2), text(2, 0, "b"), finished(2, 1))
    desk.tell(ended(2, None))

    assert desk.terminal.answer.display_text == "b"


def test_closed_turn_publishes_nothing_more():
    desk = Desk(OPEN, admit(1), SEAL)
    before = desk.names()
    desk.tell(text(1, 0), finished(1, 0), usage(1, FIGURES), announce(), conclude(), SEAL, admit(2))

    assert desk.names() == before
    assert desk.refused["turn_closed"] == 7


@pytest.mark.parametrize(("told", "received"), [((), False), ((life(1),), True)])
def test_end_says_whether_anything_was_received(told, received):
    [closed] = Desk(OPEN, admit(1), *told).tell(SEAL)

    assert closed.received is received


@pytest.mark.parametrize(("piece", "visible"), [("a", True), (" ", False)])
def test_end_says_whether_there_is_visible_text(piece, visible):
    [closed] = Desk(OPEN, admit(1), text(1, 0, piece)).tell(SEAL)

    assert closed.visible is visible


def test_report_of_an_attempt_says_when_and_how():
    desk = Desk(1.0, OPEN, admit(41, number=1), Opened(TURN, 41, "req-1"), epoch_s=100.0)
    desk.tell(3.0, text(41, 0), 5.0, text(41, 1), usage(41, FIGURES), 9.0, ended(41))
    desk.tell(20.0, conclude(STALLED))

    [report] = desk.terminal.answer.attempts
    assert (report.number, report.token, report.endpoint) == (1, 41, "chat http://host")
    assert (report.started_at_s, report.first_progress_s, report.ended_s) == (101.0, 2.0, 8.0)
    assert (report.outcome, report.failure) == ("failed", LOST)
    assert (report.request_id, report.usage, report.free) == ("req-1", FIGURES, False)


def test_report_of_the_attempt_that_an_interrupt_ended_has_no_failure():
    [report] = Desk(OPEN, admit(1), SEAL).terminal.answer.attempts

    assert (report.outcome, report.failure) == ("interrupted", None)

"""One turn as the sink writes it: what its readers get, what the supervisor hears."""

from tests.unit.actors.sink.building import (
    LOST,
    OPEN,
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
    question,
    text,
    usage,
)
from tidegate.actors.sink.effects import CreditReviewed
from tidegate.protocol.answers import Answer, Usage
from tidegate.protocol.attempts import Described
from tidegate.protocol.deltas import Tool
from tidegate.protocol.events import (
    AttemptStarted,
    AttemptSuperseded,
    Notice,
    RetryScheduled,
    TextDelta,
    UsageReported,
)
from tidegate.protocol.sink import Fenced, Limit, NotIdle, Snapshot


FIGURES = Usage(input_tokens=3, output_tokens=5)
MORE = Usage(input_tokens=4, output_tokens=6)


def fenced(desk):
    return desk.tell(fence(desk.writer.state.token))[0].snapshot


def test_attempt_is_announced_with_its_token_and_place():
    desk = Desk(2.0, OPEN, admit(41, number=1), epoch_s=1000.0)

    assert desk.outbox.events == [AttemptStarted("turn-7", 1, 0, 1002.0, token=41)]


def test_delta_is_assembled_and_published():
    desk = Desk(OPEN, admit(1), 2.0, text(1, 0, "a", "b"))

    assert desk.take()[1:] == [
        TextDelta("turn-7", 1, 1, 2.0, "a"),
        TextDelta("turn-7", 1, 2, 2.0, "b"),
    ]
    assert desk.writer.snapshot().text == "ab"


def test_refused_delta_leaves_no_trace_but_a_count():
    desk = Desk(OPEN, admit(1), text(1, 1))

    assert desk.names() == ["AttemptStarted"]
    assert desk.writer.snapshot().text == ""
    assert desk.refused == {"gap": 1}


def test_refused_usage_is_not_published():
    desk = Desk(OPEN, admit(1), fence(1), usage(1, FIGURES))

    assert desk.names() == ["AttemptStarted"]
    assert desk.refused == {"fenced": 1}


def test_usage_is_published_and_the_last_figures_stand():
    desk = Desk(OPEN, admit(1), usage(1, FIGURES), usage(1, MORE), text(1, 0))

    assert desk.outbox.events[1:3] == [
        UsageReported("turn-7", 1, 1, 0.0, usage=FIGURES),
        UsageReported("turn-7", 1, 2, 0.0, usage=MORE),
    ]
    assert desk.writer.snapshot().usage.output_tokens == 6


def test_answer_says_what_the_response_is_called():
    desk = Desk(OPEN, admit(1), Described(TURN, 1, "r-1", "m-1", 9), text(1, 0))
    answer = desk.writer.snapshot()

    assert (answer.response_id, answer.model, answer.created) == ("r-1", "m-1", 9)


def test_snapshot_before_any_attempt_is_empty():
    assert Desk(OPEN).writer.snapshot() == Answer()


def test_snapshot_names_the_wire():
    desk = Desk(type(OPEN)(TURN, "turn-7", "messages", 1000))

    assert desk.writer.snapshot().wire == "messages"


def test_fence_reports_what_was_accepted_and_what_was_taken():
    desk = Desk(OPEN, admit(1), text(1, 0, "seen", "unseen"), deltas(1, 2, Tool(0, "i", "f")))
    desk.take(2)

    assert desk.tell(fence(1)) == [
        Fenced(
            TURN,
            1,
            STALLED,
            Snapshot(
                text_chars=10,
                sent_any=True,
                taken_any=True,
                visible_taken=True,
                words_taken=True,
                tools_in_flight=("f",),
                life=True,
            ),
        )
    ]


def test_snapshot_of_an_attempt_that_brought_nothing_is_empty():
    desk = Desk(OPEN, admit(1))
    desk.take()

    assert fenced(desk) == Snapshot()


def test_life_alone_is_no_delta():
    assert fenced(Desk(OPEN, admit(1), life(1))) == Snapshot(life=True)


def test_taken_white_space_is_not_visible():
    desk = Desk(OPEN, admit(1), text(1, 0, " \n"))
    desk.take()
    snapshot = fenced(desk)

    assert snapshot.taken_any
    assert not snapshot.visible_taken


def test_snapshot_is_of_this_attempt_alone():
    desk = Desk(OPEN, admit(1), text(1, 0, "seen"), deltas(1, 1, Tool(0, "i", "f")))
    desk.take()
    desk.tell(ended(1), admit(2), life(2))

    assert fenced(desk) == Snapshot(life=True)


def test_end_passes_on_what_the_provider_refused_and_showed():
    desk = Desk(OPEN, admit(1))
    _, report = desk.tell(ended(1, refused="streaming", learned="contentless"))

    assert (report.refused, report.learned) == ("streaming", "contentless")


def test_answer_of_a_false_alarm_goes_to_the_supervisor():
    desk = Desk(OPEN, admit(1), 5.0, text(1, 0))

    assert desk.tell(9.0, question(1, 1.0)) == [NotIdle(TURN, 1, Limit.PROGRESS, 5.0)]


def test_retry_is_announced_behind_its_notices():
    desk = Desk(OPEN, admit(1), text(1, 0), fence(1))
    desk.tell(4.0, announce(("reconnecting", "lost"), ("streaming_disabled", "plain"), delay_s=2.0))

    assert desk.outbox.events[1:] == [
        Notice("turn-7", 1, 1, 4.0, kind="reconnecting", text="lost"),
        Notice("turn-7", 1, 2, 4.0, kind="streaming_disabled", text="plain"),
        RetryScheduled("turn-7", 1, 3, 4.0, cause=LOST, delay_s=2.0),
    ]


def test_order_of_a_retry_after_something_was_taken():
    desk = Desk(OPEN, admit(1), text(1, 0, "abc"))
    desk.take()
    desk.tell(ended(1), announce(("reconnecting", "lost")), admit(2), text(2, 0), finished(2, 1))
    desk.tell(ended(2, None))

    assert desk.names() == [
        "AttemptStarted",
        "TextDelta",
        "Notice",
        "RetryScheduled",
        "AttemptStarted",
        "AttemptSuperseded",
        "TextDelta",
        "TurnCompleted",
    ]
    assert desk.outbox.events[5] == AttemptSuperseded("turn-7", 1, 5, 0.0, retracts=3)
    assert [event.offset for event in desk.outbox.events] == list(range(8))


def test_retry_after_nothing_was_taken_voids_in_silence():
    desk = Desk(OPEN, admit(1), text(1, 0))
    desk.take(1)
    desk.tell(ended(1), admit(2), text(2, 0))

    assert desk.names() == ["AttemptStarted", "AttemptStarted", "TextDelta"]
    assert desk.writer.snapshot().text == "2.0 "


def test_successor_that_brings_nothing_takes_nothing_away():
    desk = Desk(OPEN, admit(1), text(1, 0, "kept"))
    desk.tell(ended(1), admit(2), life(2), ended(2), conclude())

    assert desk.names() == ["AttemptStarted", "AttemptStarted", "TextDelta", "TurnFailed"]
    assert desk.terminal.answer.text == "kept"


def test_usage_of_a_successor_voids_nothing():
    desk = Desk(OPEN, admit(1), text(1, 0, "kept"), ended(1), admit(2), usage(2, FIGURES))

    assert desk.writer.snapshot().text == "kept"


def test_evidence_of_a_successor_voids_like_progress():
    desk = Desk(OPEN, admit(1), text(1, 0, "void"))
    desk.take()
    desk.tell(ended(1), admit(2), finished(2, 0), ended(2, None))

    assert "AttemptSuperseded" in desk.names()
    assert desk.terminal.answer.text == ""


def test_every_former_attempt_is_voided_once():
    desk = Desk(OPEN, admit(1), text(1, 0))
    desk.take()
    desk.tell(ended(1), admit(2), text(2, 0))
    desk.take()
    desk.tell(ended(2), admit(3), text(3, 0), text(3, 1))

    superseded = [e.attempt for e in desk.outbox.events if isinstance(e, AttemptSuperseded)]
    assert superseded == [1, 2]


def test_attempt_that_only_counted_is_voided_aloud_if_that_was_taken():
    desk = Desk(OPEN, admit(1), usage(1, FIGURES))
    desk.take()
    desk.tell(ended(1), admit(2), text(2, 0))

    assert desk.names()[-2:] == ["AttemptSuperseded", "TextDelta"]


def test_credit_goes_to_the_worker_of_the_attempt():
    desk = Desk(OPEN, admit(1), text(1, 0, "x" * 300))
    desk.take()
    taken = desk.outbox.review(1000)
    desk.tell(CreditReviewed(taken, waiting=False))

    [(generation, grant)] = desk.grants
    assert (generation, grant.token, grant.limit_bytes) == (3, 1, 1332)


def test_next_attempt_has_a_window_of_its_own():
    desk = Desk(OPEN, admit(1), text(1, 0, "x" * 900), ended(1), admit(2))

    assert desk.outbox.review(1000) == 0
    assert desk.writer.state.limit_bytes == 1000

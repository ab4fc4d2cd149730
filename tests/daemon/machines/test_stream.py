"""The machine of one response, one rule at a time."""

import pytest

from tidegate.daemon.stream import machine
from tidegate.daemon.stream.machine import PATIENCE_S, PIECE_BYTES, decide
from tidegate.daemon.stream.messages import (
    Abort,
    Answer,
    Began,
    CancelTimers,
    ClientLeft,
    Completed,
    End,
    Failed,
    InterruptTurn,
    Items,
    Lag,
    LeaveTurn,
    Plan,
    Reply,
    RetryComing,
    Send,
    SendHead,
    SendHeartbeat,
    SetTimer,
    TimerFired,
    WriteTaken,
)
from tidegate.daemon.stream.state import StreamState, evolve


FIELDS = {"commit_after_s": 5.0, "heartbeat_s": 15.0, "queue_bytes": 100, "slow_s": 30.0}
STREAM = Plan(streamed=True, **FIELDS)
WHOLE = Plan(streamed=False, **FIELDS)
EVENTS = Plan(streamed=True, retractable=True, **{**FIELDS, "commit_after_s": 0})
HEAD = [SendHead(), SetTimer("heartbeat", 15.0)]
SLOW = SetTimer("slow", 30.0)
TEXT = Items(b"<text>", content=True)
FACT = Items(b"<fact>", content=False)
ERROR = Reply(429, body=b"{}")
FAILED = Failed(b"<error>", ERROR)
DONE = Completed(b"<done>")
TAKEN = WriteTaken()


class Desk:
    """The machine, and what it ordered last; a number among the messages is the time from then."""

    def __init__(self, plan, *messages):
        self.state = StreamState(plan)
        self.now_s = 0.0
        self.tell(Began(), *messages)

    def tell(self, *messages):
        """Return what the last of the messages leads to."""
        effects = ()
        for message in messages:
            if isinstance(message, float):
                self.now_s = message
                continue
            decision = decide(self.state, message, self.now_s)
            for fact in decision.events:
                self.state = evolve(self.state, fact)
            effects = decision.effects
        return list(effects)


def test_status_waits_for_the_first_content_and_what_came_before_goes_with_it():
    desk = Desk(STREAM)

    assert desk.tell(FACT) == []
    assert desk.tell(TEXT) == [*HEAD, Send(b"<fact><text>"), SLOW]


def test_status_waits_no_longer_than_it_may():
    desk = Desk(STREAM)
    assert decide(StreamState(STREAM), Began(), 0.0).effects == (SetTimer("commit", 5.0),)

    assert desk.tell(FACT, TimerFired("commit")) == [*HEAD, Send(b"<fact>"), SLOW]
    assert desk.tell(TAKEN, TEXT) == [Send(b"<text>")]
    assert desk.tell(TimerFired("commit")) == []


def test_status_is_sent_alone_if_there_is_nothing_to_send():
    desk = Desk(STREAM)

    assert desk.tell(TimerFired("commit")) == [*HEAD, SLOW]
    assert desk.tell(FACT) == []
    assert desk.tell(TAKEN) == [Send(b"<fact>")]


def test_content_that_has_no_frame_sends_the_status():
    assert Desk(STREAM).tell(Items(b"", content=True)) == [*HEAD, SLOW]


def test_events_are_sent_from_the_start():
    desk = Desk(EVENTS)

    assert decide(StreamState(EVENTS), Began(), 0.0).effects == (*HEAD, SLOW)
    assert desk.tell(TAKEN, FACT) == [Send(b"<fact>")]


def test_failure_before_the_status_has_its_own():
    desk = Desk(STREAM, FACT)

    assert desk.tell(FAILED) == [Answer(ERROR), LeaveTurn("ended"), SLOW]
    assert desk.tell(TAKEN) == [CancelTimers()]


def test_failure_behind_the_status_ends_with_its_frame_and_without_the_end_mark():
    desk = Desk(STREAM, TEXT, TAKEN)

    assert desk.tell(FAILED) == [Send(b"<error>"), End(ok=False), LeaveTurn("ended")]
    assert desk.tell(DONE) == []
    assert desk.tell(TAKEN) == [CancelTimers()]


def test_turn_without_content_is_complete_all_the_same():
    orders = Desk(STREAM, FACT).tell(DONE)

    send = Send(b"<fact><done>")
    assert orders == [*HEAD, send, End(ok=True), LeaveTurn("ended"), SLOW]


def test_end_without_frames_ends_the_body():
    desk = Desk(EVENTS, TAKEN)

    assert desk.tell(Completed()) == [End(ok=True), LeaveTurn("ended")]
    assert desk.tell(TAKEN) == [CancelTimers()]


def test_end_waits_for_the_write_before_it_and_the_turn_does_not():
    desk = Desk(STREAM, TEXT)

    assert desk.tell(DONE) == [LeaveTurn("ended")]
    assert desk.tell(TAKEN) == [Send(b"<done>"), End(ok=True)]
    assert desk.tell(TAKEN) == [CancelTimers()]


def test_end_without_frames_waits_for_the_write_before_it():
    desk = Desk(EVENTS)

    assert desk.tell(Completed()) == [LeaveTurn("ended")]
    assert desk.tell(TAKEN) == [End(ok=True)]


def test_nothing_is_written_of_what_has_no_frame():
    desk = Desk(STREAM, TEXT, TAKEN)

    assert desk.tell(Items(b"", content=True)) == []
    assert desk.tell(TEXT) == [Send(b"<text>")]


def test_what_becomes_ready_during_a_write_goes_together():
    desk = Desk(STREAM, TEXT)

    assert desk.tell(TEXT) == []
    assert desk.tell(FACT) == []
    assert desk.tell(TAKEN) == [Send(b"<text><fact>")]
    assert desk.tell(TAKEN) == []


def test_whole_answer_is_one_reply():
    desk = Desk(WHOLE, TEXT, RetryComing(b"<error>"))
    reply = Reply(200, body=b"{answer}")

    assert decide(StreamState(WHOLE), Began(), 0.0).effects == ()
    assert desk.tell(Completed(reply=reply)) == [Answer(reply), LeaveTurn("ended"), SLOW]
    assert desk.tell(TAKEN) == [CancelTimers()]
    assert Desk(WHOLE, TEXT).tell(FAILED) == [Answer(ERROR), LeaveTurn("ended"), SLOW]


def test_retry_cannot_follow_content():
    desk = Desk(STREAM, TEXT, TAKEN)

    assert desk.tell(RetryComing(b"<error>")) == [
        Send(b"<error>"),
        End(ok=False),
        InterruptTurn(machine.UNREADABLE),
        LeaveTurn("ended"),
    ]
    assert desk.tell(TEXT) == []


def test_retry_cannot_follow_content_that_is_still_to_be_written():
    desk = Desk(STREAM, TEXT)

    retry = desk.tell(RetryComing(b"<error>"))
    assert retry == [InterruptTurn(machine.UNREADABLE), LeaveTurn("ended")]
    assert desk.tell(TAKEN) == [Send(b"<error>"), End(ok=False)]


@pytest.mark.parametrize(
    "desk",
    [Desk(STREAM, FACT), Desk(STREAM, FACT, TimerFired("commit")), Desk(EVENTS, TAKEN, TEXT)],
)
def test_retry_may_follow_facts_and_whatever_can_be_taken_back(desk):
    assert desk.tell(RetryComing(b"<error>")) == []
    assert desk.tell(TAKEN, TEXT, TAKEN, DONE)[-1] == LeaveTurn("ended")


def test_heartbeat_follows_a_silence():
    desk = Desk(STREAM, 1.0, TEXT, 5.0, TAKEN, TEXT, TAKEN)

    assert desk.tell(16.0, TimerFired("heartbeat")) == [SetTimer("heartbeat", 4.0)]
    beat = [SendHeartbeat(), SetTimer("heartbeat", 15.0)]
    assert desk.tell(20.0, TimerFired("heartbeat")) == beat
    assert desk.tell(TEXT) == []
    assert desk.tell(TAKEN) == [Send(b"<text>")]


def test_heartbeat_watches_its_own_write():
    desk = Desk(EVENTS, TAKEN, 30.0, TimerFired("slow"))

    beat = [SendHeartbeat(), SetTimer("heartbeat", 15.0), SLOW]
    assert desk.tell(TimerFired("heartbeat")) == beat


def test_no_heartbeat_within_a_write():
    desk = Desk(STREAM, TEXT)

    assert desk.tell(15.0, TimerFired("heartbeat")) == [SetTimer("heartbeat", 15.0)]


@pytest.mark.parametrize("end", [DONE, FAILED, RetryComing(b"<error>")])
def test_no_heartbeat_behind_the_last_frame(end):
    desk = Desk(STREAM, TEXT, TAKEN, end)

    assert desk.tell(60.0, TimerFired("heartbeat")) == []


def test_write_that_nobody_takes_cuts_the_client_off():
    desk = Desk(STREAM, TEXT, 10.0, TAKEN, 12.0, TEXT)

    assert desk.tell(30.0, TimerFired("slow")) == [SetTimer("slow", 12.0)]
    cut = [Abort(), LeaveTurn("cut"), CancelTimers()]
    assert desk.tell(42.0, TimerFired("slow")) == cut
    assert desk.tell(ClientLeft()) == []
    assert desk.tell(TEXT) == []


def test_nobody_is_watched_who_has_taken_everything():
    desk = Desk(STREAM, TEXT, TAKEN)

    assert desk.tell(30.0, TimerFired("slow")) == []
    assert desk.tell(TEXT) == [Send(b"<text>"), SLOW]


def test_last_write_that_nobody_takes_is_cut_off_and_the_turn_was_left():
    desk = Desk(STREAM, TEXT, TAKEN, DONE)

    assert desk.tell(30.0, TimerFired("slow")) == [Abort(), CancelTimers()]


@pytest.mark.parametrize("waiting", [Lag(101), Items(b"." * 101, content=True)])
def test_client_that_lags_is_cut_off(waiting):
    desk = Desk(STREAM, TEXT, PATIENCE_S)

    assert desk.tell(waiting) == [Abort(), LeaveTurn("cut"), CancelTimers()]


def test_what_waits_here_and_elsewhere_is_one_lag():
    desk = Desk(STREAM, TEXT, Items(b"." * 60, content=True), PATIENCE_S)

    assert desk.tell(Lag(40)) == []
    assert desk.tell(Lag(41))[0] == Abort()


@pytest.mark.parametrize(
    ("desk", "waiting"),
    [
        (Desk(STREAM, TEXT, PATIENCE_S), Lag(100)),
        (Desk(STREAM, TEXT, 0.9 * PATIENCE_S), Lag(101)),
        (Desk(STREAM, TEXT, TAKEN, PATIENCE_S), Lag(101)),
        (Desk(STREAM, TEXT, TAKEN, DONE, PATIENCE_S), Lag(101)),
        (Desk(STREAM, PATIENCE_S), Lag(101)),
    ],
)
def test_client_that_had_no_time_to_lag_is_not_cut_off(desk, waiting):
    assert desk.tell(waiting) == []


def test_end_of_a_turn_may_wait_whatever_its_size():
    desk = Desk(STREAM, TEXT, PATIENCE_S)

    assert desk.tell(Completed(b"." * 101)) == [LeaveTurn("ended")]


def test_large_write_goes_in_pieces_each_of_which_is_watched():
    desk = Desk(STREAM)
    data = bytes(range(256)) * (PIECE_BYTES // 256)

    assert desk.tell(Items(data + b"<rest>", content=True)) == [*HEAD, Send(data), SLOW]
    assert desk.tell(TEXT) == []
    assert desk.tell(20.0, TAKEN) == [Send(b"<rest>")]
    assert desk.tell(30.0, TimerFired("slow")) == [SetTimer("slow", 20.0)]
    assert desk.tell(TAKEN) == [Send(b"<text>")]


def test_each_large_write_goes_in_pieces():
    desk = Desk(STREAM, TEXT, TAKEN)
    data = bytes(PIECE_BYTES)

    assert desk.tell(Items(data, content=True), TAKEN) == []
    assert desk.tell(Items(data + b"<rest>", content=True)) == [Send(data)]
    assert desk.tell(TAKEN) == [Send(b"<rest>")]


def test_end_follows_the_last_piece():
    desk = Desk(STREAM, TEXT, TAKEN)
    data = bytes(PIECE_BYTES)

    assert desk.tell(Completed(data + data)) == [Send(data), LeaveTurn("ended")]
    assert desk.tell(TAKEN) == [Send(data), End(ok=True)]


def test_end_waits_for_what_waits_behind_the_last_piece():
    desk = Desk(STREAM, Items(bytes(PIECE_BYTES + 1), content=True), DONE)

    assert desk.tell(TAKEN) == [Send(b"\0")]
    assert desk.tell(TAKEN) == [Send(b"<done>"), End(ok=True)]


@pytest.mark.parametrize(
    "desk",
    [
        Desk(STREAM),
        Desk(STREAM, FACT),
        Desk(STREAM, TEXT),
        Desk(STREAM, TEXT, TAKEN),
        Desk(WHOLE, TEXT),
        Desk(EVENTS, TAKEN),
    ],
)
def test_client_that_leaves_leaves_the_turn_in_every_phase(desk):
    assert desk.tell(ClientLeft()) == [LeaveTurn("left"), CancelTimers()]
    for message in (ClientLeft(), Began(), TEXT, DONE, FAILED, TAKEN, TimerFired("slow"), Lag(101)):
        assert desk.tell(message) == []


def test_client_that_leaves_behind_the_end_of_the_turn_has_not_left_it():
    desk = Desk(STREAM, TEXT, DONE)

    assert desk.tell(ClientLeft()) == [CancelTimers()]


def test_write_that_was_taken_before_is_not_taken_again():
    assert Desk(STREAM, TEXT, TAKEN).tell(TAKEN) == []

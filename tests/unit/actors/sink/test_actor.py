"""The sink as an actor: which turn a message is for, and what becomes of a fault."""

import pytest

from tests.unit.actors.sink.building import (
    LOST,
    OPEN,
    SEAL,
    TURN,
    admit,
    conclude,
    deltas,
    ended,
    fence,
    finished,
    text,
)
from tidegate.actors.sink.actor import SinkActor
from tidegate.actors.sink.channel import TurnChannel
from tidegate.protocol.attempts import Pong
from tidegate.protocol.deltas import Text
from tidegate.protocol.events import (
    AttemptStarted,
    TextDelta,
    TurnCompleted,
    TurnFailed,
    TurnInterrupted,
)
from tidegate.protocol.sink import Fenced, Forget, OpenTurn, ReviewCredit, Seal, TurnClosed
from tidegate.protocol.workers import WorkerLost


WAIT_S = 10
OTHER = 8


class Host:
    """A sink that runs, with what it reports and grants, and the channels of two turns."""

    def __init__(self):
        self.reports, self.grants, self.ends = [], [], []
        self.channels = {
            turn: TurnChannel(turn, f"turn-{turn}", self.review) for turn in (TURN, OTHER)
        }
        self.sink = SinkActor(
            channels=self.channels,
            report=self.reports.append,
            grant=lambda generation, grant: self.grants.append((generation, grant)),
            down=self.ends.append,
            clock=lambda: 1.0,
            epoch_s=1000.0,
        )

    def review(self, turn):
        self.sink.mailbox.tell(ReviewCredit(turn))

    def tell(self, *messages):
        """Tell, stop behind it, and wait: all is taken when this returns."""
        self.sink.launch()
        for message in messages:
            self.sink.mailbox.tell(message)
        pong = Pong(9, 9)
        self.sink.mailbox.tell([pong])
        while pong not in self.reports:
            assert self.sink.actor_ref.is_alive(), self.ends
        self.sink.halt(WAIT_S)


@pytest.fixture
def host():
    return Host()


def test_frame_is_taken_message_by_message(host):
    host.tell(OPEN, admit(1), [text(1, 0, "a"), text(1, 1, "b"), finished(1, 2), ended(1, None)])

    terminal = host.channels[TURN].terminal()
    assert isinstance(terminal, TurnCompleted)
    assert terminal.answer.text == "ab"
    assert terminal.at_s == 1001.0
    assert host.sink.accepted == 2


def test_what_is_about_no_answer_goes_to_the_supervisor_behind_the_reports(host):
    lost = WorkerLost(3, "gone")
    host.tell(OPEN, admit(1), [text(1, 0), ended(1)], lost)

    assert [type(report) for report in host.reports[:-2]] == [type(ended(1)), Fenced]
    assert host.reports[-2] == lost


def test_seal_takes_the_fast_lane(host):
    host.sink.mailbox.tell(OPEN)
    host.sink.mailbox.tell(SEAL)
    host.tell(text(1, 0))

    assert isinstance(host.channels[TURN].terminal(), TurnInterrupted)
    assert host.sink.refused == {"turn_closed": 1}


def test_ends_are_counted_by_their_kind(host):
    host.tell(OPEN, SEAL)

    assert host.sink.closed == {"interrupted": 1}


def test_end_of_an_attempt_of_a_forgotten_turn_is_reported(host):
    host.tell(OPEN, admit(1), SEAL, Forget(TURN), [text(1, 0), ended(1)])

    assert host.reports[-2] == ended(1)
    assert host.sink.refused["turn_forgotten"] == 2
    assert TURN not in host.channels


def test_review_of_a_forgotten_turn_is_nothing(host):
    host.tell(OPEN, SEAL, Forget(TURN), ReviewCredit(TURN))

    assert host.ends == [None]


def test_turns_do_not_meet(host):
    host.tell(
        OPEN,
        OpenTurn(OTHER, "turn-8", "chat", 1000),
        admit(1),
        text(1, 0, "mine"),
        Seal(OTHER, "enough"),
    )

    assert isinstance(host.channels[OTHER].terminal(), TurnInterrupted)
    assert host.channels[TURN].terminal() is None
    assert host.channels[TURN].snapshot().text == "mine"


def test_waiting_that_began_before_the_admission_counts(host):
    host.channels[TURN].begin_wait()
    host.tell(OPEN, admit(1), text(1, 0, "x" * 600))

    [(generation, grant)] = host.grants
    assert (generation, grant.token) == (3, 1)


def test_fault_ends_its_own_turn(host, caplog):
    host.tell(
        OPEN,
        OpenTurn(OTHER, "turn-8", "chat", 1000),
        admit(1),
        text(1, 0, "a"),
        deltas(1, 1, object()),
    )

    terminal = host.channels[TURN].terminal()
    assert isinstance(terminal, TurnFailed)
    assert terminal.error.kind == "internal"
    assert terminal.answer.text == "a"
    assert host.channels[OTHER].terminal() is None
    assert host.ends == [None]
    assert len(caplog.records) == 1


class Unjoinable:
    """Has all that is asked of a text on its way in, and cannot be joined."""

    def isascii(self):
        return True

    def __len__(self):
        return 1


def test_fault_in_the_end_of_a_turn_ends_it_all_the_same(host, caplog):
    host.tell(OPEN, admit(1), deltas(1, 0, Text(Unjoinable())), conclude())

    terminal = host.channels[TURN].terminal()
    assert isinstance(terminal, TurnFailed)
    assert terminal.error.kind == "internal"
    assert TurnClosed(TURN, "failed") in host.reports
    assert host.ends == [None]
    assert len(caplog.records) == 2


def test_reader_that_was_dropped_holds_nothing_up(host):
    channel = host.channels[TURN]
    slow, fast = channel.attach(), channel.attach()
    host.sink.mailbox.tell(OPEN)
    host.sink.mailbox.tell(admit(1))
    host.sink.mailbox.tell(text(1, 0, "x" * 600))
    host.tell()
    assert [type(channel.take(fast)) for _ in range(2)] == [AttemptStarted, TextDelta]

    channel.drop(slow)
    host.sink._handle(ReviewCredit(TURN), 2.0)

    assert list(channel.outbox.cursors) == [fast]
    assert [grant.limit_bytes for _, grant in host.grants] == [1632]


def test_fence_wakes_nobody_and_the_end_wakes_all(host):
    channel = host.channels[TURN]
    woken = []
    reader = channel.attach()
    assert channel.take(reader, lambda: woken.append("reader")) is None
    assert channel.await_terminal(lambda: woken.append("waiter")) is None

    host.tell(OPEN, SEAL)

    assert sorted(woken) == ["reader", "waiter"]


def test_failure_of_the_whole_is_the_end_of_every_open_turn(host):
    host.tell(OPEN, admit(1), text(1, 0, "a"), fence(1))
    channel = host.channels[TURN]

    channel.fail(LOST, 5.0)
    channel.fail(LOST, 6.0)

    assert channel.terminal().at_s == 5.0
    assert channel.terminal().answer.text == "a"

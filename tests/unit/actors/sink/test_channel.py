"""The one place with a lock: readers in threads, and the sink that writes."""

import functools
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.unit.actors.sink.building import LOST, OPEN, TURN, admit, conclude, ended, fence, text
from tidegate.actors.sink.channel import TurnChannel, await_all
from tidegate.actors.sink.writer import TurnWriter
from tidegate.protocol.deltas import Text
from tidegate.protocol.events import TextDelta, TurnFailed


WAIT_S = 10


class Desk:
    """A channel with its writer, written to as the sink does: under the lock, wakers outside."""

    def __init__(self, *told):
        self.reviews, self.refused = [], {}
        self.channel = TurnChannel(TURN, "turn-7", self.reviews.append)
        self.writer = TurnWriter(
            TURN,
            self.channel.outbox,
            report=lambda report: None,
            grant=lambda generation, grant: None,
            refused=self.refused,
        )
        self.channel.look = self.writer.snapshot
        self.tell(*told)

    def tell(self, *messages):
        for message in messages:
            with self.channel.lock:
                self.writer.handle(message, 1.0)
            self.channel.wake()


def read_all(channel):
    """Read to the end, asleep where there is nothing."""
    reader, events = channel.attach(), []
    while True:
        come = threading.Event()
        event = channel.take(reader, come.set)
        if event is not None:
            events.append(event)
        elif channel.drained(reader):
            return events
        else:
            assert come.wait(WAIT_S)


def test_reader_that_finds_nothing_is_woken_once():
    desk = Desk(OPEN)
    reader, woken = desk.channel.attach(), []
    assert desk.channel.take(reader, lambda: woken.append(1)) is None

    desk.tell(admit(1), text(1, 0))

    assert woken == [1]


def test_reader_that_finds_something_leaves_no_waker():
    desk = Desk(OPEN, admit(1))
    reader, woken = desk.channel.attach(), []
    assert desk.channel.take(reader, lambda: woken.append(1)) is not None

    desk.tell(text(1, 0))

    assert woken == []


def test_reader_at_the_end_leaves_no_waker():
    desk = Desk(OPEN, conclude())
    reader = desk.channel.attach()
    desk.channel.take(reader)
    assert desk.channel.drained(reader)

    assert desk.channel.take(reader, lambda: None) is None
    assert desk.channel._wakers == []


def test_one_who_waits_for_the_end_is_not_woken_before_it():
    desk, woken = Desk(OPEN, admit(1)), []
    assert desk.channel.await_terminal(lambda: woken.append(1)) is None
    desk.tell(text(1, 0), fence(1))
    assert woken == []

    desk.tell(conclude())

    assert woken == [1]
    assert desk.channel.await_terminal(lambda: woken.append(2)) is desk.channel.terminal()
    assert woken == [1]


def test_reader_is_not_drained_before_the_terminal_event():
    desk = Desk(OPEN)
    reader = desk.channel.attach()
    assert not desk.channel.drained(reader)

    desk.tell(conclude())
    assert not desk.channel.drained(reader)

    desk.channel.take(reader)
    assert desk.channel.drained(reader)


def test_only_the_first_interrupt_is_one():
    desk = Desk(OPEN)
    assert desk.channel.interruptible

    assert desk.channel.claim_interrupt()
    assert not desk.channel.claim_interrupt()
    assert not desk.channel.interruptible


def test_turn_that_has_ended_cannot_be_interrupted():
    assert not Desk(OPEN, conclude()).channel.interruptible


def test_one_of_many_interrupts_is_the_first():
    for _ in range(50):
        channel = Desk(OPEN).channel
        with ThreadPoolExecutor(4) as pool:
            claims = [
                each.result() for each in [pool.submit(channel.claim_interrupt) for _ in range(8)]
            ]
        assert claims.count(True) == 1


@pytest.mark.parametrize("step", ["begin", "end"])
def test_waiting_makes_a_review_due_while_the_turn_runs(step):
    desk = Desk(OPEN)
    change = desk.channel.begin_wait if step == "begin" else lambda: desk.channel.end_wait(list)
    change()
    desk.tell(conclude())
    change()

    assert desk.reviews == [TURN]


def test_waiter_that_ceases_is_not_woken_at_the_end():
    desk = Desk(OPEN)
    woken = []
    for name in ("gave up", "stayed"):
        desk.channel.begin_wait()
        desk.channel.await_terminal(functools.partial(woken.append, name))
    [gave_up, _] = desk.channel._answered
    desk.channel.end_wait(gave_up)

    desk.tell(conclude())
    desk.channel.wake()

    assert woken == ["stayed"]


def test_reader_that_leaves_makes_a_review_due_while_the_turn_runs():
    desk = Desk(OPEN)
    first, second = desk.channel.attach(), desk.channel.attach()
    desk.channel.detach(first)
    desk.tell(conclude())
    desk.channel.detach(second)

    assert desk.reviews == [TURN]


def test_reader_that_has_read_enough_makes_a_review_due():
    desk = Desk(OPEN, admit(1), text(1, 0, "x" * 300), text(1, 1))
    reader = desk.channel.attach()
    desk.channel.take(reader)
    assert desk.reviews == []

    desk.channel.take(reader)
    assert desk.reviews == [TURN]

    desk.channel.take(reader)
    assert desk.reviews == [TURN]


def test_dropped_reader_is_forgotten_when_somebody_holds_the_lock():
    desk = Desk(OPEN)
    reader = desk.channel.attach()
    with desk.channel.lock:
        desk.channel.drop(reader)
        assert reader in desk.channel.outbox.cursors
        desk.channel.settle_dropped()

    assert reader not in desk.channel.outbox.cursors
    assert desk.reviews == [TURN]


def test_failure_of_the_whole_releases_what_is_frozen():
    desk = Desk(OPEN, admit(1), text(1, 0, "a"), ended(1))
    desk.channel.fail(LOST, 5.0)

    *_, delta, terminal = desk.channel.outbox.events
    assert isinstance(delta, TextDelta)
    assert isinstance(terminal, TurnFailed)
    assert terminal.answer.text == "a"
    assert terminal.answer.failure == LOST
    assert (terminal.attempt, terminal.offset, terminal.at_s) == (1, 2, 5.0)


def test_failure_of_the_whole_wakes_all():
    desk, woken = Desk(OPEN), []
    desk.channel.take(desk.channel.attach(), lambda: woken.append("reader"))
    desk.channel.await_terminal(lambda: woken.append("waiter"))

    desk.channel.fail(LOST, 5.0)

    assert sorted(woken) == ["reader", "waiter"]


def test_turn_that_has_ended_does_not_fail_with_the_whole():
    desk = Desk(OPEN, conclude())
    before = desk.channel.terminal()

    desk.channel.fail(LOST, 5.0)

    assert desk.channel.terminal() is before


def test_answer_that_cannot_be_looked_at_does_not_keep_a_turn_from_ending(caplog):
    desk = Desk(OPEN)

    def broken():
        raise ZeroDivisionError

    desk.channel.look = broken

    desk.channel.fail(LOST, 5.0)

    assert desk.channel.terminal().answer.failure == LOST
    assert len(caplog.records) == 1


def test_await_all_returns_when_every_turn_has_ended():
    desks = [Desk(OPEN) for _ in range(3)]
    waiting = threading.Thread(
        target=await_all, args=([desk.channel for desk in desks], float("inf"))
    )
    waiting.start()

    for desk in desks:
        assert waiting.is_alive()
        desk.tell(conclude())

    waiting.join(WAIT_S)
    assert not waiting.is_alive()


def test_await_all_does_not_wait_beyond_its_instant():
    await_all([Desk(OPEN).channel], 0.0)


def test_readers_in_threads_take_the_same_events_in_the_same_order():
    """Attempts that fail in between withdraw only what nobody has taken."""
    for _ in range(20):
        desk = Desk(OPEN)
        with ThreadPoolExecutor(4) as pool:
            reading = [pool.submit(read_all, desk.channel) for _ in range(4)]
            for token in range(1, 6):
                desk.tell(admit(token))
                for seq in range(10):
                    desk.tell(text(token, seq))
                desk.tell(ended(token))
            desk.tell(admit(6), text(6, 0, "the", " end"), conclude())
            transcripts = [each.result(WAIT_S) for each in reading]

        for transcript in transcripts:
            assert transcript == desk.channel.outbox.events
        assert [event.offset for event in transcripts[0]] == list(range(len(transcripts[0])))
        assert transcripts[0][-1].answer.text == "the end"


def test_freeze_and_take_are_one_step_each():
    """What a thread has taken is in the snapshot, and what it has not taken is withdrawn."""
    for _ in range(50):
        reports = []
        desk = Desk(OPEN, admit(1), *(text(1, seq) for seq in range(20)))
        desk.writer._report = reports.append
        reader, go = desk.channel.attach(), threading.Barrier(2)

        def take(channel=desk.channel, reader=reader, go=go):
            go.wait(WAIT_S)
            return [event for _ in range(10) if (event := channel.take(reader))]

        with ThreadPoolExecutor(1) as pool:
            taking = pool.submit(take)
            go.wait(WAIT_S)
            desk.tell(fence(1))
            taken = taking.result(WAIT_S)

        [fenced] = reports
        deltas = [event for event in taken if isinstance(event, TextDelta)]
        assert fenced.snapshot.taken_any == bool(deltas)
        assert desk.channel.outbox.taken == len(taken)
        assert len(deltas) + len(desk.channel.outbox.frozen) == 20


def test_delta_without_text_is_taken_like_any_other():
    desk = Desk(OPEN, admit(1), text(1, 0, ""))
    reader = desk.channel.attach()
    desk.channel.take(reader)

    assert desk.channel.take(reader).text == Text("").text

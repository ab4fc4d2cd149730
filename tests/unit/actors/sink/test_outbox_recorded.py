"""Events that are written before anybody can take them, and blocks in their places."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.actors.sink.outbox import Outbox
from tidegate.protocol.deltas import Block, Text
from tidegate.protocol.events import AttemptStarted, RetryScheduled, TextDelta
from tidegate.protocol.failures import Failure, FailureKind


WINDOW_BYTES = 1 << 10
CAUSE = Failure(kind=FailureKind.TRUNCATED)


class Host:
    """A turn with one reader and a recorder, whose writes end whenever they like."""

    def __init__(self):
        self.outbox = Outbox("turn", recorded=True, follow_blocks=True)
        self.reader = self.outbox.attach()
        self.attempt = 1
        self.pending = []
        self.written = []
        self.got = []
        self.said = 0

    def append(self):
        if not self.outbox.closed:
            self.said += 1
            text = Text(str(self.said))
            self.outbox.append(self.attempt, 1.0, (text,), WINDOW_BYTES)

    def hand_over(self):
        new = self.outbox.unrecorded()
        if new is not None:
            self.pending.append(new)

    def commit(self):
        if self.pending:
            new = self.pending.pop(0)
            del self.written[new.first :]
            self.written += new.events
            self.outbox.offer(new)

    def take(self):
        self.got += self.outbox.take_all(self.reader)

    def fail(self):
        if self.outbox.closed:
            return
        self.outbox.freeze()
        self.outbox.publish(
            lambda turn, offset: RetryScheduled(turn, 1, offset, 1.0, cause=CAUSE, delay_s=0)
        )
        self.attempt += 1
        self.outbox.publish(lambda turn, offset: AttemptStarted(turn, self.attempt, offset, 1.0))

    def succeed(self):
        if self.attempt > 1 and not self.outbox.closed:
            self.outbox.drop_frozen()
            self.outbox.supersede(self.attempt - 1, 1.0)

    def end(self):
        self.outbox.release(2.0)
        self.outbox.closed = True


ACTIONS = ("append", "hand_over", "commit", "take", "fail", "succeed", "end")


def play(actions):
    host = Host()
    for action in actions:
        getattr(host, action)()
        # Whoever took something finds it in the journal, at its place, for good.
        assert host.written[: len(host.got)] == host.got
        assert [event.offset for event in host.outbox.events] == [*range(len(host.outbox.events))]
    return host


def settle(host):
    for _ in range(2):
        host.hand_over()
        while host.pending:
            host.commit()
        host.take()


@pytest.mark.slow
def test_nobody_takes_what_is_not_written_in_any_order_of_six_steps():
    for actions in itertools.product(ACTIONS, repeat=6):
        host = play(actions)
        settle(host)

        assert host.got == host.written == host.outbox.events


@given(st.lists(st.sampled_from(ACTIONS), max_size=60))
def test_nobody_takes_what_is_not_written(actions):
    host = play(actions)
    settle(host)

    assert host.got == host.written == host.outbox.events


def test_turn_has_ended_for_its_readers_when_the_end_is_written():
    host = play(["append", "end"])

    assert not host.outbox.ended
    play_on = ["hand_over", "commit"]
    for action in play_on:
        getattr(host, action)()
    assert host.outbox.ended


def test_what_is_being_written_when_it_is_withdrawn_is_not_offered():
    host = play(["append", "hand_over", "fail"])

    host.commit()
    host.take()

    assert host.got == []
    settle(host)
    assert [type(event) for event in host.got] == [RetryScheduled, AttemptStarted]


def test_withdrawal_is_written_even_if_nothing_takes_the_place():
    outbox = Outbox("turn", recorded=True)
    outbox.append(1, 1.0, (Text("a"), Text("b")), WINDOW_BYTES)
    outbox.offer(outbox.unrecorded())

    outbox.freeze()

    new = outbox.unrecorded()
    assert (new.first, new.events) == (0, [])
    assert outbox.unrecorded() is None


def test_reader_of_single_events_gets_those_that_are_written():
    outbox = Outbox("turn", recorded=True)
    reader = outbox.attach()
    outbox.append(1, 1.0, (Text("a"),), WINDOW_BYTES)
    outbox.offer(outbox.unrecorded())
    outbox.append(1, 1.0, (Text("b"),), WINDOW_BYTES)

    assert [outbox.take(reader).text, outbox.take(reader)] == ["a", None]


def test_reader_that_left_gets_nothing():
    outbox = Outbox("turn")
    reader = outbox.attach()
    outbox.append(1, 1.0, (Text("a"),), WINDOW_BYTES)
    outbox.detach(reader)

    assert outbox.take_all(reader) == []
    assert outbox.taken == 0


def test_reader_that_begins_behind_all_has_taken_nothing_of_it():
    outbox = Outbox("turn")
    outbox.append(1, 1.0, (Text("a"),), WINDOW_BYTES)

    assert outbox.take_all(outbox.attach(1)) == []
    outbox.freeze()
    assert outbox.events == []


def test_blocks_come_in_their_places_before_the_event_behind_them():
    outbox = Outbox("turn", follow_blocks=True)
    reader = outbox.attach()
    first, second, last = (Block(index, b"{}") for index in range(3))
    outbox.append(1, 1.0, (first, Text("a"), Text("b"), second), WINDOW_BYTES)

    assert _shape(outbox.take_all(reader)) == [first, "a", "b"]
    outbox.append(1, 1.0, (last, Text("c")), WINDOW_BYTES)
    assert _shape(outbox.take_all(reader)) == [second, last, "c"]
    assert outbox.take_all(reader) == []


def test_another_reader_gets_the_blocks_from_its_offset_on():
    outbox = Outbox("turn", follow_blocks=True)
    first, second = Block(0, b"{}"), Block(1, b"{}")
    outbox.append(1, 1.0, (first, Text("a"), second, Text("b")), WINDOW_BYTES)

    assert _shape(outbox.take_all(outbox.attach(1))) == [second, "b"]
    assert _shape(outbox.take_all(outbox.attach())) == [first, "a", second, "b"]


def test_released_blocks_stand_where_they_stood():
    outbox = Outbox("turn", follow_blocks=True)
    reader = outbox.attach()
    first, second = Block(0, b"{}"), Block(1, b"{}")
    outbox.append(1, 1.0, (first, Text("a")), WINDOW_BYTES)
    outbox.take_all(reader)
    outbox.append(1, 1.0, (Text("b"), second, Text("c")), WINDOW_BYTES)

    outbox.freeze()
    assert outbox.take_all(reader) == []
    outbox.release(2.0)

    assert _shape(outbox.take_all(reader)) == ["b", second, "c"]


def test_blocks_of_what_is_dropped_are_dropped():
    outbox = Outbox("turn", follow_blocks=True)
    reader = outbox.attach()
    outbox.append(1, 1.0, (Block(0, b"{}"), Text("a")), WINDOW_BYTES)

    outbox.freeze()
    outbox.drop_frozen()
    outbox.append(2, 2.0, (Text("b"),), WINDOW_BYTES)

    assert _shape(outbox.take_all(reader)) == ["b"]


def test_nobody_keeps_blocks_who_does_not_follow_them():
    outbox = Outbox("turn")
    outbox.append(1, 1.0, (Block(0, b"{}"), Text("a")), WINDOW_BYTES)

    assert _shape(outbox.take_all(outbox.attach())) == ["a"]


def test_lag_is_what_a_reader_has_not_taken_of_the_attempt():
    outbox = Outbox("turn")
    reader = outbox.attach()
    assert outbox.lag_bytes(reader) == 0

    outbox.append(1, 1.0, (Text("ab"),), WINDOW_BYTES)
    outbox.append(1, 1.0, (Text("c"),), WINDOW_BYTES)
    assert outbox.lag_bytes(reader) == (2 + 32) + (1 + 32)
    outbox.take(reader)
    assert outbox.lag_bytes(reader) == 1 + 32
    outbox.take(reader)
    assert outbox.lag_bytes(reader) == 0
    assert outbox.lag_bytes(99) == 0


def _shape(items):
    return [item.text if isinstance(item, TextDelta) else item for item in items]

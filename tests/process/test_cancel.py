"""Cancels overtake what waits for others, and starts that have not left stay at home.

Method: the worker is stopped, so that its socket fills up and the rest waits in the host.
"""

import os
import signal

import pytest

from tidegate.protocol.attempts import Credit, Ended, Life, Opened, Ping, Pong
from tidegate.testing.workers import start


BODY = b"x" * (64 << 10)
LAST = 40  # far more than a socket holds


@pytest.fixture
def probe(forking):
    """How a worker was started makes no difference here."""
    return forking


@pytest.fixture
def full(probe):
    """A probe with a worker that is stopped, and forty starts on their way to it."""
    probe.pid = probe.ready()
    os.kill(probe.pid, signal.SIGSTOP)
    for token in range(1, LAST + 1):
        probe.io.send(1, start(token, "echo", BODY))
    probe.settle()
    return probe


def go_on(probe):
    probe.settle()  # all that was said to the I/O thread is done before the worker reads again
    os.kill(probe.pid, signal.SIGCONT)
    probe.io.send(1, Ping(99))
    probe.wait_for(Pong, number=99)
    return probe.said[1:]


def test_cancel_overtakes_what_waits_for_others(full):
    full.io.cancel(1, 1, 1, 7)

    said = go_on(full)
    assert said.index(Ended(1, 1, cancelled=True)) < said.index(Opened(20, 20, str(len(BODY))))
    assert said.index(Pong(1, 7)) < said.index(Opened(20, 20, str(len(BODY))))
    assert [each.token for each in said if isinstance(each, Opened)] == list(range(1, LAST + 1))


def test_cancels_keep_their_order(full):
    for token in (3, 1, 2):
        full.io.cancel(1, token, token, token)

    said = go_on(full)
    assert [each.token for each in said if isinstance(each, Ended)] == [3, 1, 2]


def test_start_that_has_not_left_is_dropped_with_its_cancel(full):
    full.io.cancel(1, LAST, LAST, 7)
    full.settle()
    assert full.said[1:] == [Ended(LAST, LAST, cancelled=True)]

    said = go_on(full)

    assert len(full.all(Opened)) == LAST - 1
    assert Pong(1, 7) not in said
    assert said.count(Ended(LAST, LAST, cancelled=True)) == 1


def test_start_and_cancel_in_one_breath_send_nothing(probe):
    probe.hold_at(Opened)
    probe.ready()
    probe.io.send(1, start(5, "echo"))
    assert probe.held.wait(10)

    probe.io.send(1, start(6, "echo"))
    probe.io.cancel(1, 6, 6, 7)
    probe.let_go()

    probe.wait_for(Ended, token=6)
    probe.io.send(1, Ping(8))
    probe.wait_for(Pong, number=8)
    assert [each.token for each in probe.all(Opened)] == [5]
    assert probe.all(Pong, number=7) == []


def test_credit_that_has_not_left_is_dropped_by_the_cancel(full):
    full.io.send(1, Credit(1, 1000))
    full.io.send(1, Credit(2, 2000))
    full.io.cancel(1, 1, 1, 7)

    go_on(full)
    assert [each.token for each in full.all(Life)] == [2]


def test_credit_that_has_not_left_is_replaced_by_a_larger_one(full):
    full.io.send(1, Credit(1, 1000))
    full.io.send(1, Credit(1, 2000))

    go_on(full)
    assert [each.turn for each in full.all(Life)] == [2000]


def test_start_that_has_left_in_part_is_sent_whole(full):
    for token in range(1, LAST + 1):
        full.io.cancel(1, token, token, token)

    go_on(full)
    sent = {each.token for each in full.all(Opened)}
    assert sent == set(range(1, len(sent) + 1))
    assert 0 < len(sent) < LAST
    assert {each.token for each in full.all(Ended)} == set(range(1, LAST + 1))
    assert len(full.all(Ended)) == LAST

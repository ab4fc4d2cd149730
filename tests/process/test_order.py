"""Questions and timers come behind what was in the host before them.

Method: the I/O thread is held in a delivery while the worker writes to the socket. The worker
makes a file when it has written everything, or dies. It gets one order only: what is sent behind
that may not have left when the thread is held. Timers run on a clock that the test moves.
"""

import time

import pytest

from tidegate.protocol.attempts import Deltas, Opened
from tidegate.protocol.workers import WorkerLost
from tidegate.testing.eventually import eventually
from tidegate.testing.workers import start


@pytest.fixture
def probe(forking):
    """How a worker was started makes no difference here."""
    return forking


@pytest.fixture
def still(make_probe, clock):
    """A probe for which no time passes by itself."""
    return make_probe(clock=clock, start_method="exec")


def hold_with_unread_deltas(probe, tmp_path):
    probe.ready()
    probe.hold_at(Opened)
    mark = tmp_path / "mark"
    probe.io.send(1, start(5, "mark", bytes(mark)))
    assert probe.held.wait(10)
    eventually(mark.exists)


def place_of(probe, thing):
    eventually(lambda: thing in probe.said)
    return probe.said.index(thing)


def test_question_comes_behind_what_the_socket_holds(probe, tmp_path):
    hold_with_unread_deltas(probe, tmp_path)

    probe.io.ask(1, "question")
    probe.let_go()

    at = place_of(probe, "question")
    assert [each.seq for each in probe.said[:at] if isinstance(each, Deltas)] == [0, 1]


def test_question_to_a_worker_that_died_comes_behind_its_loss(probe, gone):
    pid = probe.ready()
    probe.hold_at(Opened)
    probe.io.send(1, start(5, "parting", b"3"))
    assert probe.held.wait(10)
    eventually(lambda: gone(pid))

    probe.io.ask(1, "question")
    probe.let_go()

    at = place_of(probe, "question")
    assert isinstance(probe.said[at - 1], WorkerLost)
    probe.settle()
    assert len(probe.all(WorkerLost)) == 1


def test_question_to_a_worker_long_gone_is_delivered(probe):
    probe.ready()
    probe.io.kill(1)
    probe.lost()

    probe.io.ask(1, "question")

    assert place_of(probe, "question") == len(probe.said) - 1


def test_question_to_a_worker_that_floods_is_delivered(probe):
    probe.ready()
    probe.io.send(1, start(5, "flood"))
    probe.wait_for(Deltas)

    probe.io.ask(1, "question")

    place_of(probe, "question")


def test_timer_comes_behind_what_the_socket_holds(probe, tmp_path):
    probe.io.start_timer("name", time.monotonic() + 0.05, "late")
    hold_with_unread_deltas(probe, tmp_path)
    probe.io.start_timer("name", time.monotonic(), "alarm")
    probe.let_go()

    at = place_of(probe, "alarm")
    assert [each.seq for each in probe.said[:at] if isinstance(each, Deltas)] == [0, 1]


def test_timers_come_in_the_order_of_their_instants(still, clock):
    for name, delay_s in (("c", 0.3), ("a", 0.1), ("b", 0.2)):
        still.io.start_timer(name, clock.now_s + delay_s, name)
    still.io.start_timer("past", clock.now_s - 1.0, "past")
    still.settle()

    clock.now_s += 0.3

    eventually(lambda: len(still.said) == 4)
    assert still.said == ["past", "a", "b", "c"]


def test_timer_that_is_started_again_fires_once_at_its_new_instant(still, clock):
    still.io.start_timer("name", clock.now_s + 0.1, "early")
    still.io.start_timer("name", clock.now_s + 0.3, "late")
    still.io.start_timer("other", clock.now_s + 0.2, "other")

    clock.now_s += 0.3

    place_of(still, "late")
    assert still.said == ["other", "late"]


def test_timer_that_is_cancelled_does_not_fire(still, clock):
    still.io.start_timer("name", clock.now_s + 0.1, "no")
    still.io.cancel_timer("name")
    still.io.cancel_timer("name that never was")
    still.io.start_timer("other", clock.now_s + 0.2, "yes")
    still.settle()

    clock.now_s += 0.2

    place_of(still, "yes")
    assert still.said == ["yes"]


def test_timer_that_is_cancelled_when_it_is_due_but_not_told_does_not_fire(still, clock):
    still.hold_at(str)
    still.io.start_timer("name", clock.now_s + 0.1, "no")
    still.io.ask(-1, "hold")
    assert still.held.wait(10)
    clock.now_s += 0.1

    still.io.cancel_timer("name")
    still.let_go()

    still.settle()
    assert still.said == ["hold"]


def test_many_timers_that_are_started_again_are_not_kept(forking):
    far_s = time.monotonic() + 1000
    for _ in range(5000):
        forking.io.start_timer("name", far_s, "no")
    forking.settle()

    assert len(forking.io._alarms._heap) < 100

"""What crosses the socket between host and worker.

Goal: everything arrives, once, in order, however it is cut. Method: a real worker, by both ways
of starting one, that does what each start tells it.
"""

import os
import signal
from pathlib import Path

import pytest

from tidegate.protocol.attempts import (
    CancelAttempt,
    Credit,
    Deltas,
    Ended,
    Opened,
    Ping,
    Pong,
    WorkerReady,
)
from tidegate.testing.eventually import eventually
from tidegate.testing.workers import start


def test_worker_that_is_ready_says_so_first(probe):
    pid = probe.ready()

    assert probe.said[0] == WorkerReady(generation=1, pid=pid)


def test_ping_is_answered_with_its_number(probe):
    probe.ready()

    probe.io.send(1, Ping(41))

    assert probe.wait_for(Pong) == Pong(generation=1, number=41)


def test_messages_sent_before_the_worker_is_there_reach_it(probe):
    probe.io.spawn(1)
    probe.io.send(1, start(5, "echo", b"four"))

    assert probe.wait_for(Opened).request_id == "4"


def test_frame_in_pieces_is_one_message(probe):
    probe.ready()

    probe.io.send(1, start(5, "bytewise"))

    assert probe.wait_for(Opened) == Opened(5, 5)


def test_frames_arrive_all_and_in_order(probe):
    probe.ready()

    probe.io.send(1, start(5, "answer", b"500"))

    probe.wait_for(Ended)
    assert [each.seq for each in probe.all(Deltas)] == list(range(500))
    assert isinstance(probe.said[-1], Ended)


def test_message_larger_than_the_socket_arrives(probe):
    probe.ready()

    probe.io.send(1, start(5, "echo", b"x" * (8 << 20)))

    assert probe.wait_for(Opened).request_id == str(8 << 20)


def test_worker_that_floods_still_answers_a_ping_and_a_cancel(probe):
    probe.ready()
    probe.io.send(1, start(5, "flood"))
    eventually(lambda: len(probe.all(Deltas)) > 100)

    probe.io.cancel(1, 5, 5, 42)

    probe.wait_for(Pong, number=42)
    probe.wait_for(Ended, token=5)


def test_worker_that_floods_a_slow_host_is_held_up(probe):
    pid = probe.ready()
    probe.hold_at(Deltas)

    probe.io.send(1, start(5, "flood"))

    # It waits in its loop, with nothing to do, as soon as the socket and its own buffer are full.
    assert probe.held.wait(10)
    eventually(lambda: _sleeps(pid) and _sleeps(pid))
    probe.let_go()


def _sleeps(pid):
    before = Path(f"/proc/{pid}/schedstat").read_text().split()[0]
    eventually(lambda: Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] == "S")
    return Path(f"/proc/{pid}/schedstat").read_text().split()[0] == before


def test_two_workers_do_not_mix(probe):
    probe.ready(1)
    probe.ready(2)

    probe.io.send(1, start(5, "answer", b"50"))
    probe.io.send(2, start(6, "answer", b"50", generation=2))

    probe.wait_for(Ended, token=5)
    probe.wait_for(Ended, token=6)
    for token in (5, 6):
        assert [each.seq for each in probe.all(Deltas, token=token)] == list(range(50))


def test_message_to_a_worker_that_never_was_is_dropped(probe):
    probe.io.send(9, Ping(1))
    probe.io.cancel(9, 5, 5, 2)
    probe.io.kill(9, dump=True)

    probe.settle()
    assert probe.said == []


def test_message_too_long_for_a_frame_is_refused_to_the_caller(probe):
    with pytest.raises(ValueError, match="frame"):
        probe.io.send(1, start(5, "echo", b"x" * (1 << 28)))


def test_worker_has_a_group_of_its_own_and_nothing_that_is_not_its_own(probe):
    pids = [probe.ready(generation) for generation in (1, 2, 3)]

    probe.io.send(3, start(5, "environment", generation=3))

    descriptors, group, session, _ = map(int, probe.wait_for(Opened).request_id.split())
    # Standard streams, socket, last words, the loop's three; forked: null input and a sentinel.
    assert descriptors <= 10
    assert group == pids[2]
    assert session != os.getsid(0)


def test_control_c_at_the_terminal_is_not_for_workers(probe):
    pid = probe.ready()

    os.kill(pid, signal.SIGINT)
    probe.io.send(1, Ping(1))

    probe.wait_for(Pong)


def test_cancel_and_ping_reach_the_worker_together(probe):
    probe.ready()

    probe.io.cancel(1, 5, 6, 7)

    probe.wait_for(Pong)
    assert probe.said[1:] == [Ended(5, 6, cancelled=True), Pong(1, 7)]


def test_credit_reaches_the_worker(probe):
    probe.ready()

    probe.io.send(1, Credit(token=5, limit_bytes=77))

    eventually(lambda: [each.turn for each in probe.said[1:]] == [77])


def test_plain_cancel_is_a_message_like_others(probe):
    probe.ready()

    probe.io.send(1, CancelAttempt(5, 5))

    assert probe.wait_for(Ended).cancelled

"""A worker that is killed is lost at once, whatever state it is in, and told so once."""

import os
import select
import signal
import socket
from pathlib import Path

import pytest

from tidegate.actors.supervisor.cpu import cpu_use
from tidegate.protocol.attempts import Deltas, Ended, Opened, Pong
from tidegate.protocol.workers import WorkerLost
from tidegate.testing.eventually import eventually
from tidegate.testing.workers import start


def hang(probe, pid):
    """Return when the worker is in C for ever, and no longer on its way there."""
    probe.io.send(1, start(5, "hang"))
    probe.wait_for(Opened)
    said_at = cpu_use(pid)
    eventually(lambda: cpu_use(pid).run_ns > said_at.run_ns + 20_000_000)


def lost_once(probe, generation=1):
    lost = probe.lost(generation)
    probe.settle()
    assert probe.all(WorkerLost, generation=generation) == [lost]
    assert [each for each in probe.said if not isinstance(each, WorkerLost)][-1:] != [lost]
    return lost


def test_worker_that_holds_its_interpreter_is_killed_and_its_frame_named(
    probe, gone, caplog, monkeypatch
):
    # A machine that is busy with other tests may need more than the usual 5 ms.
    monkeypatch.setattr("tidegate.actors.supervisor.workers.DUMP_S", 0.5)
    pid = probe.ready()
    hang(probe, pid)

    probe.io.kill(1, dump=True)

    lost = lost_once(probe)
    eventually(lambda: gone(pid))
    assert lost.detail.startswith("it was killed in File")
    assert "in hang" in lost.detail
    assert "in hang" in caplog.text


def test_worker_that_is_stopped_is_killed_without_a_dump(probe, gone, caplog):
    pid = probe.ready()
    os.kill(pid, signal.SIGSTOP)

    probe.io.kill(1, dump=True)

    assert lost_once(probe).detail == "it was killed"
    eventually(lambda: gone(pid))
    assert "no stack dump" in caplog.text


def test_worker_that_does_well_is_killed(probe, gone):
    pid = probe.ready()

    probe.io.kill(1)

    assert lost_once(probe) == WorkerLost(1, "it was killed")
    eventually(lambda: gone(pid))


def test_worker_is_killed_twice_and_lost_once(probe):
    probe.ready()

    probe.io.kill(1, dump=True)
    probe.io.kill(1, dump=True)
    probe.io.kill(1)
    probe.io.kill(1)

    lost_once(probe)


def test_worker_that_dies_while_its_dump_is_awaited_is_lost_once(probe, gone):
    pid = probe.ready()
    os.kill(pid, signal.SIGSTOP)

    probe.io.kill(1, dump=True)
    os.kill(pid, signal.SIGKILL)

    lost_once(probe)
    eventually(lambda: gone(pid))


def test_worker_is_killed_before_there_is_a_process(probe):
    probe.io.spawn(1)
    probe.io.kill(1, dump=True)
    probe.io.kill(1)

    lost_once(probe)
    assert probe.ready(2)


def test_worker_is_killed_while_it_starts(forking):
    """Whatever the moment, nobody is left; a hundred of them meet every one."""
    for generation in range(1, 101):
        forking.io.spawn(generation)
        if generation % 2:
            forking.settle()
        forking.io.kill(generation, dump=generation % 3 == 0)

    eventually(lambda: len(forking.all(WorkerLost)) == 100)
    eventually(lambda: not children_of(forking.io.zygote.pid))
    assert len({each.generation for each in forking.all(WorkerLost)}) == 100


def test_what_the_killed_worker_had_sent_comes_before_its_loss(probe, tmp_path):
    probe.ready()
    probe.hold_at(Opened)
    mark = tmp_path / "mark"
    probe.io.send(1, start(5, "mark", bytes(mark)))
    assert probe.held.wait(10)
    eventually(mark.exists)

    probe.io.kill(1)
    probe.let_go()

    lost_once(probe)
    assert len(probe.all(Deltas)) == 2
    assert isinstance(probe.said[-1], WorkerLost)


def test_flood_of_a_killed_worker_ends(probe):
    probe.ready()
    probe.io.send(1, start(5, "flood"))
    probe.wait_for(Deltas)

    probe.io.kill(1)

    lost_once(probe)
    assert isinstance(probe.said[-1], WorkerLost)


def test_starts_that_wait_for_a_killed_worker_are_dropped(probe):
    pid = probe.ready()
    os.kill(pid, signal.SIGSTOP)
    for token in range(1, 41):
        probe.io.send(1, start(token, "echo", b"x" * (64 << 10)))
    probe.io.kill(1)
    probe.io.cancel(1, 40, 40, 7)

    lost_once(probe)
    assert probe.all(Ended) == []


@pytest.mark.parametrize("body", [b"", b"session"], ids=["in its group", "in a session"])
def test_what_the_worker_has_started_does_not_delay_its_loss(probe, gone, body):
    probe.ready()
    probe.io.send(1, start(5, "child", body))
    child = int(probe.wait_for(Opened).request_id)
    try:
        probe.io.kill(1)

        lost_once(probe)
        if not body:
            eventually(lambda: gone(child))
    finally:
        if not gone(child):
            os.kill(child, signal.SIGKILL)


HEARD, QUIET, STARVED = (True, False), (False, False), (False, True)


def signs_from(probe):
    """Return what the kill timer found: whether the worker was heard, whether it was starved."""
    [signs] = eventually(lambda: probe.all(tuple))
    return signs


def test_worker_that_says_something_in_its_grace_is_heard(make_probe, clock):
    probe = make_probe(clock=clock, start_method="exec")
    probe.ready()
    probe.io.send(1, start(5, "flood"))
    probe.io.start_kill_timer("name", 1.0, 1, lambda *signs: signs)
    probe.settle()
    before = len(probe.all(Deltas))
    eventually(lambda: len(probe.all(Deltas)) > before)

    clock.now_s += 1.0

    assert signs_from(probe) == HEARD


def test_what_a_worker_had_sent_before_its_grace_is_no_sign_of_life(probe):
    """It stops with its socket full of deltas that the host has yet to read."""
    pid = probe.ready()
    probe.hold_at(Deltas)
    probe.io.send(1, start(5, "flood"))
    assert probe.held.wait(10)
    eventually(lambda: state_of(pid) == "S" and unread_bytes(probe))
    os.kill(pid, signal.SIGSTOP)
    eventually(lambda: state_of(pid) == "T")

    probe.io.start_kill_timer("name", 0.0, 1, lambda *signs: signs)
    probe.let_go()

    assert signs_from(probe) == QUIET


@pytest.mark.parametrize("state", ["hangs", "is stopped", "sleeps"])
def test_worker_that_could_have_run_is_not_called_starved(probe, state):
    pid = probe.ready()
    if state == "hangs":
        hang(probe, pid)
    elif state == "is stopped":
        os.kill(pid, signal.SIGSTOP)

    probe.io.start_kill_timer("name", 0.5, 1, lambda *signs: signs)

    assert signs_from(probe) == QUIET


def test_worker_that_wanted_to_run_and_could_not_is_called_starved(probe, gone, starved):
    pid = probe.ready()
    hang(probe, pid)
    with starved(pid):
        probe.io.start_kill_timer("name", 0.25, 1, lambda *signs: signs)
        signs = signs_from(probe)

    probe.io.kill(1)
    eventually(lambda: gone(pid), within_s=30)  # the last in the queue for a processor
    assert signs == STARVED


def test_grace_is_not_used_up_by_a_host_that_is_late_with_the_cancel(make_probe, clock):
    probe = make_probe(clock=clock, start_method="exec")
    probe.ready()
    probe.hold_at(Opened)
    probe.io.send(1, start(5, "echo"))
    assert probe.held.wait(10)

    probe.io.cancel(1, 5, 5, ping=7)
    probe.io.start_kill_timer("name", 1.0, 1, lambda *signs: signs)
    clock.now_s += 60.0
    probe.let_go()
    probe.wait_for(Pong, number=7)
    probe.settle()

    assert not probe.all(tuple)

    clock.now_s += 1.0
    probe.settle()
    assert signs_from(probe) == HEARD


def test_worker_that_answers_while_the_host_is_held_up_is_heard(make_probe, clock):
    """The host gets no processor between what starts the grace and the first look at it."""
    probe = make_probe(clock=clock, start_method="exec")
    probe.ready()
    probe.hold_at(Opened)
    probe.io.send(1, start(5, "deaf"))
    assert probe.held.wait(10)
    link = probe.io._workers._links[1]
    link.sock = HeldUp(link.sock)

    probe.io.cancel(1, 5, 5, ping=7)
    probe.io.start_kill_timer("name", 1.0, 1, lambda *signs: signs)
    probe.let_go()
    probe.wait_for(Pong, number=7)
    probe.settle()
    clock.now_s += 1.0
    probe.settle()

    assert signs_from(probe) == HEARD


class HeldUp:
    """A socket whose writer goes on when its worker has answered, and no sooner."""

    def __init__(self, sock):
        self._sock = sock

    def __getattr__(self, name):
        return getattr(self._sock, name)

    def sendmsg(self, buffers):
        sent_bytes = self._sock.sendmsg(buffers)
        assert select.select([self._sock], [], [], 10)[0]
        return sent_bytes


def test_worker_that_is_gone_is_not_called_starved(probe):
    probe.io.start_kill_timer("name", 0.0, 9, lambda *signs: signs)

    assert signs_from(probe) == QUIET


def state_of(pid):
    return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0]


def unread_bytes(probe, generation=1):
    sock = probe.io._workers._links[generation].sock
    return len(sock.recv(1, socket.MSG_PEEK))


def children_of(pid):
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()

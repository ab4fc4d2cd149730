"""However a worker ends, its loss is told once, behind its last frame, with the cause."""

import os
import signal
import struct

import pytest

from tidegate.protocol.attempts import Opened, Ping, Pong
from tidegate.protocol.workers import WorkerLost
from tidegate.testing.eventually import eventually
from tidegate.testing.workers import FRAGILE, start


def framed(body):
    return struct.pack("!i", len(body)) + body


ENDS = {
    "exits": (start(5, "die", b"3"), "it exited with code 3", 3),
    "exits cleanly": (start(5, "die", b"0"), "it exited with code 0", 0),
    "raises": (start(5, "crash"), "it exited with code 1: RuntimeError: made to fail", 1),
    "dies in mid-frame": (start(5, "half"), "it exited with code 7", 7),
    "reads nowhere": (start(5, "segfault"), "it was ended by SIGSEGV: File", -signal.SIGSEGV),
    "sends a negative length": (
        start(5, "garbage", b"\xff\xff\xff\xff rest"),
        "it sent what is no frame: frame length -1",
        None,
    ),
    "sends a huge length": (
        start(5, "garbage", b"\x7f\xff\xff\xff rest"),
        "it sent what is no frame: frame length 2147483647",
        None,
    ),
    "sends what is no MessagePack": (
        start(5, "garbage", framed(b"\xc1")),
        "it sent what is no frame: MessagePack data is malformed",
        None,
    ),
    "sends an unknown message": (
        start(5, "garbage", framed(b"\x91\x92\x63\x01")),
        "it sent what is no frame: Invalid value 99",
        None,
    ),
    "sends no list": (
        start(5, "garbage", framed(b"\x01")),
        "it sent what is no frame: Expected `array`, got `int`",
        None,
    ),
    "closes its socket and stays": (start(5, "shut"), "its socket was closed", None),
}


@pytest.mark.parametrize("end", ENDS)
def test_worker_that_ends_by_itself_is_lost_once_with_the_cause(probe, gone, end):
    message, detail, exitcode = ENDS[end]
    pid = probe.ready()
    probe.io.send(1, start(4, "echo"))
    probe.wait_for(Opened, token=4)

    probe.io.send(1, message)

    lost = probe.lost()
    probe.io.send(1, Ping(1))
    probe.io.cancel(1, 5, 5, 2)
    probe.settle()
    assert lost.detail.startswith(detail)
    assert lost.exitcode == exitcode
    assert probe.said[2:] == [lost]
    eventually(lambda: gone(pid))


def test_worker_that_is_killed_from_outside_is_lost(probe):
    pid = probe.ready()

    os.kill(pid, signal.SIGKILL)

    assert probe.lost() == WorkerLost(1, "it was ended by SIGKILL", -signal.SIGKILL)


def test_worker_that_is_told_to_end_by_a_signal_ends_though_its_interpreter_is_stuck(probe):
    pid = probe.ready()
    probe.io.send(1, start(5, "hang"))
    probe.wait_for(Opened)

    os.kill(pid, signal.SIGTERM)

    assert probe.lost().exitcode == -signal.SIGTERM


@pytest.mark.parametrize(
    ("providers", "detail"),
    [
        (FRAGILE, "it exited with code 1: RuntimeError: made to fail"),
        ("tidegate.nowhere:Nothing", "it exited with code 1: ModuleNotFoundError: "),
        ("tidegate.testing.workers:nothing", "it exited with code 1: AttributeError: "),
    ],
)
def test_worker_that_cannot_start_is_lost_with_the_cause(
    capfd, make_probe, start_method, providers, detail
):
    probe = make_probe(start_method=start_method)  # here, for it shall have the caught stderr
    probe.io.spawn(1, providers=providers)

    assert probe.lost().detail.startswith(detail)
    assert probe.said == [probe.lost()]
    error = capfd.readouterr().err
    assert "tidegate worker 1 ends: " in error
    assert "Traceback" in error


def test_worker_that_gets_what_is_no_frame_ends_and_says_so(capfd, make_probe, start_method):
    probe = make_probe(start_method=start_method)
    probe.ready()

    probe.io._do(lambda: probe.io._workers.send(1, framed(b"\xc1"), None))

    assert "MessagePack data is malformed" in probe.lost().detail
    assert "tidegate worker 1 ends: " in capfd.readouterr().err


def test_loss_of_one_worker_does_not_touch_another(probe):
    probe.ready(1)
    probe.ready(2)

    probe.io.send(1, start(5, "die", b"1"))
    probe.lost(1)
    probe.io.send(2, Ping(7))

    probe.wait_for(Pong, generation=2)
    assert probe.all(WorkerLost, generation=2) == []


def test_dead_worker_whose_socket_somebody_holds_open_is_lost_all_the_same(forking, gone):
    pid = forking.ready()
    forking.io.send(1, start(5, "child", b"session"))
    child = int(forking.wait_for(Opened).request_id)
    try:
        os.kill(pid, signal.SIGKILL)

        assert forking.lost() == WorkerLost(1, "it was ended by SIGKILL", -signal.SIGKILL)
        assert not gone(child)
    finally:
        os.kill(child, signal.SIGKILL)


def test_what_a_worker_has_started_dies_with_it(probe, gone):
    probe.ready()
    probe.io.send(1, start(5, "child"))
    child = int(probe.wait_for(Opened).request_id)

    probe.io.send(1, start(6, "die", b"0"))

    eventually(lambda: gone(child))
    assert probe.lost().exitcode == 0

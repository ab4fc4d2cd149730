"""What systemd is told, on a real datagram socket."""

import asyncio
import logging
import os
import socket
import time

import pytest

from tidegate.daemon.notify import Notifier


GUARD_S = 10.0


@pytest.fixture(params=["path", "abstract"])
def manager(request, tmp_path):
    """What stands for systemd: its socket, and the variable that names it."""
    name = f"tidegate-test-{os.getpid()}-{time.monotonic_ns()}"
    address = str(tmp_path / "notify") if request.param == "path" else f"@{name}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(address.replace("@", "\0", 1))
        listening.settimeout(GUARD_S)
        yield listening, {"NOTIFY_SOCKET": address}


def heard(listening):
    return dict(line.split("=", 1) for line in listening.recv(4096).decode().split("\n"))


def test_each_step_is_told(manager):
    listening, environ = manager
    notifier = Notifier(environ)

    notifier.ready()
    assert heard(listening) == {"READY": "1", "STATUS": "serving"}
    notifier.status("12 turns\nrun")
    assert heard(listening) == {"STATUS": "12 turns run"}
    notifier.stopping()
    assert heard(listening) == {"STOPPING": "1", "STATUS": "draining"}
    notifier.stopping(within_s=30.0)
    assert heard(listening)["EXTEND_TIMEOUT_USEC"] == "40000000"


def test_reload_says_when_by_the_clock_that_systemd_reads(manager):
    listening, environ = manager
    before_us = time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000
    Notifier(environ).reloading()
    after_us = time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000

    told = heard(listening)
    assert told["RELOADING"] == "1"
    assert before_us <= int(told["MONOTONIC_USEC"]) <= after_us


def test_watchdog_is_fed_again_and_again(manager):
    listening, environ = manager
    notifier = Notifier({**environ, "WATCHDOG_USEC": "2000", "WATCHDOG_PID": str(os.getpid())})
    assert notifier.watchdog_every_s == 0.001

    async def feed():
        feeding = asyncio.ensure_future(notifier.watchdog())
        told = [await asyncio.to_thread(heard, listening) for _ in range(3)]
        feeding.cancel()
        return told

    assert asyncio.run(feed()) == [{"WATCHDOG": "1"}] * 3


@pytest.mark.parametrize(
    "environ",
    [
        {},
        {"WATCHDOG_USEC": "0"},
        {"WATCHDOG_USEC": "soon"},
        {"WATCHDOG_USEC": "2000", "WATCHDOG_PID": "1"},
    ],
)
def test_watchdog_that_nobody_wants_ends_at_once(environ):
    notifier = Notifier(environ)

    assert notifier.watchdog_every_s is None
    asyncio.run(notifier.watchdog())


@pytest.mark.parametrize("address", ["", "/nowhere/notify", "vsock:2:1", "@nobody-listens-here"])
def test_without_a_listener_nothing_happens_but_one_complaint(address, caplog):
    with caplog.at_level(logging.DEBUG):
        notifier = Notifier({"NOTIFY_SOCKET": address})
        notifier.ready()
        notifier.reloading()
        notifier.stopping()

    assert len(caplog.records) == (1 if address else 0)


def test_listener_that_takes_nothing_is_not_waited_for(manager):
    _listening, environ = manager
    notifier = Notifier(environ)

    for _ in range(2000):
        notifier.status("x" * 500)


def test_own_environment_is_read(monkeypatch, manager):
    listening, environ = manager
    monkeypatch.setenv("NOTIFY_SOCKET", environ["NOTIFY_SOCKET"])

    Notifier().ready()
    assert heard(listening)["READY"] == "1"

"""How much later the first byte comes through the daemon than from the provider itself.

Both are asked in turn by one client on kept connections; the provider answers at once.
"""

from __future__ import annotations

import time
from statistics import median

from benchmarks.daemon_process import Connection, Daemon
from benchmarks.figures import Effort, Figure, shown, spread
from benchmarks.provider import Provider


TIMES = 40
AFTER_US = 5_000
PATH = "/v1/chat/completions"


def run(effort: Effort) -> list[Figure]:
    """Measure."""
    rounds = effort.of(15, 2)
    with Provider() as provider:
        url = provider.url("first", AFTER_US)
        straight = url.removeprefix(provider.base).removesuffix("/v1") + PATH
        with Daemon(url) as daemon:
            both = Connection(provider.port, straight), Connection(daemon.port, PATH)
            for connection in both * TIMES:
                _first_s(connection)
            times: list[list[float]] = [[], []]
            for _ in range(rounds * TIMES):
                for connection, took_s in zip(both, times, strict=True):
                    took_s.append(_first_s(connection))
            for connection in both:
                connection.close()
    added_ms = (median(times[1]) - median(times[0])) * 1e3
    behind = f"direct {shown(median(times[0]) * 1e3)} ms; through the daemon {spread(times[1])}"
    return [Figure("daemon: time to first byte, p50", added_ms, "ms more", 2.0, behind=behind)]


def _first_s(connection: Connection) -> float:
    """Ask, and return how long the first byte of the text took."""
    began_s = time.perf_counter()
    connection.ask()
    got = connection.until(b'"content":"')
    took_s = time.perf_counter() - began_s
    if not got.endswith(b"0\r\n\r\n"):
        connection.until(b"0\r\n\r\n")
    return took_s

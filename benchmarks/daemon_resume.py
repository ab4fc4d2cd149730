"""How soon a reader who comes back to the middle of a long turn gets its next event.

The time begins before it connects.
"""

from __future__ import annotations

import json
import time

from benchmarks.daemon_process import Connection, Daemon
from benchmarks.figures import Effort, Figure, percentile, spread
from benchmarks.provider import Provider


EVENTS = 10_000
PER_WRITE = 8


def run(effort: Effort) -> list[Figure]:
    """Measure."""
    times = effort.of(200, 10)
    with Provider() as provider, Daemon(provider.url("flow", EVENTS, PER_WRITE)) as daemon:
        turn = _turn(daemon)
        took_s = [_first_s(daemon, turn) for _ in range(times + 5)][5:]
    p99_ms = percentile(took_s, 99) * 1e3
    what = f"daemon: resume in the middle of {EVENTS:,} events, p99"
    return [Figure(what, p99_ms, "ms", 20.0, behind=spread(took_s))]


def _turn(daemon: Daemon) -> str:
    """Make a turn, read it to its end, and return its name."""
    connection = Connection(daemon.port, "/v1/turns")
    payload = {"model": "bench", "messages": [{"role": "user", "content": "Hello"}]}
    connection.post({"endpoint": "main", "payload": payload})
    made = json.loads(connection.until(b"}").partition(b"\r\n\r\n")[2])
    connection.close()
    turn: str = made["id"]
    reader = Connection(daemon.port, f"/v1/turns/{turn}/events")
    reader.get()
    found = reader.whole().count(b"event: text.delta\n")
    if found != EVENTS:
        raise RuntimeError(f"{found} text events in place of {EVENTS}")
    reader.close()
    return turn


def _first_s(daemon: Daemon, turn: str) -> float:
    began_s = time.perf_counter()
    connection = Connection(daemon.port, f"/v1/turns/{turn}/events?after={EVENTS // 2}")
    connection.get()
    connection.until(b"id: %d\n" % (EVENTS // 2 + 1))
    took_s = time.perf_counter() - began_s
    connection.close()
    return took_s

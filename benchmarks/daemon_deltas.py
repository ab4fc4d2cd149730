"""How many deltas a second go through one core of the daemon, against the LiteLLM proxy there.

Each has one core for its own process, in turn; the other one is for the provider, the client and
the daemon's workers. Several streams flow at once, as fast as they are read.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from statistics import median

from benchmarks.daemon_process import Connection, Daemon, count_all
from benchmarks.figures import Effort, Figure, shown
from benchmarks.litellm_process import HEADERS, LiteLlm
from benchmarks.processes import family, pin
from benchmarks.provider import Provider


STREAMS = 8
PER_WRITE = 8
PATH = "/v1/chat/completions"
MARK = b'"content":"'


def run(effort: Effort) -> list[Figure]:
    """Measure."""
    rounds = effort.of(3, 1)
    ours: list[float] = []
    theirs: list[float] = []
    with _on_the_last_core(), Provider() as provider:
        for _ in range(rounds):
            count = effort.of(8_000, 800)
            with Daemon(provider.url("flow", count, PER_WRITE)) as daemon:
                own, *workers = family(daemon.pid)
                pin([own], first=True)
                pin(workers, first=False)
                ours.append(_rate(daemon.port, count))
            count = effort.of(800, 80)
            with LiteLlm(provider.url("flow", count, PER_WRITE)) as proxy:
                pin(family(proxy.pid), first=True)
                theirs.append(_rate(proxy.port, count, HEADERS))
    ratio = median(one / other for one, other in zip(ours, theirs, strict=True))
    behind = f"daemon {shown(median(ours))}, LiteLLM {shown(median(theirs))} a second"
    behind += f"; {STREAMS} streams, {rounds} rounds"
    return [Figure("daemon: deltas a second, to LiteLLM", ratio, "x", 10.0, True, behind)]


def _rate(port: int, count: int, headers: str = "") -> float:
    connections = [Connection(port, PATH, headers) for _ in range(STREAMS)]
    for times in (1, 2):  # the first time warms it
        began_s = time.perf_counter()
        for connection in connections:
            connection.ask()
        found = count_all(connections, MARK)
        took_s = time.perf_counter() - began_s
        if any(each < count for each in found):
            raise RuntimeError(f"deltas were lost, or joined, in round {times}: {found}")
    for connection in connections:
        connection.close()
    return STREAMS * count / took_s


@contextmanager
def _on_the_last_core() -> Iterator[None]:
    """Keep this process and those that it starts away from the first core."""
    before = os.sched_getaffinity(0)
    pin([os.getpid()], first=False)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)

"""A thousand clients at once, some of them slow and some that leave: ``python -m benchmarks.load``.

Each client gets four deltas a second through the daemon, in streams of half a minute, one after the
other; they begin one by one. Fifty read a byte a second and fifty leave at random moments; all
others check that every delta of theirs has come, in order and in time. Memory is that of the
daemon's own process, through which everything goes that a client is sent.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gc
import os
import random
import subprocess
import sys
import time
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec
import uvloop

from benchmarks.daemon_process import Daemon
from benchmarks.figures import Figure, percentile, shown, spread, table
from benchmarks.load_clients import Client, trickle
from benchmarks.load_provider import Figures
from benchmarks.processes import cpu_s, family


EVERY_S = 0.25
STREAM_S = 30.0
RAMP_S = STREAM_S  # so that streams begin and end evenly ever after
SEED = 20_261_130
GROWTH_MIB = 16.0
"""The most by which the largest size in the last quarter may exceed that in the second quarter."""


class Plan(NamedTuple):
    """How much there is of everything; ``lasts_s`` is for the streams that begin."""

    clients: int
    slow: int
    leaving: int
    lasts_s: float


class Sample(NamedTuple):
    """The daemon at one moment."""

    at_s: float
    rss_bytes: int
    own_cpu_s: float
    workers_cpu_s: float


class Load:
    """One run.

    Args:
        plan: of what there is how much.
        daemon: serves.
    """

    def __init__(self, plan: Plan, daemon: Daemon) -> None:
        self._plan = plan
        self._daemon = daemon
        self._dice = random.Random(SEED)
        self._began_s = time.monotonic()
        self._left: dict[str, float] = {}
        self._late_s: array[float] = array("d")
        self._clients: list[Client] = []
        self._samples: list[Sample] = []
        self._open = plan.clients - plan.slow
        self._ended = asyncio.Event()

    async def run(self) -> None:
        """Run until every client has got what it waits for."""
        slow = [
            asyncio.ensure_future(trickle(self._daemon.port, f"slow{number}"))
            for number in range(self._plan.slow)
        ]
        sampling = asyncio.ensure_future(self._sample())
        await self._connect()
        del self._late_s[:]  # that was the opening
        await self._ended.wait()
        for task in (sampling, *slow):
            task.cancel()
        await asyncio.gather(sampling, *slow, return_exceptions=True)

    async def _connect(self) -> None:
        loop = asyncio.get_running_loop()
        plan, count = self._plan, self._open
        expected = round(STREAM_S / EVERY_S)
        for number in range(count):
            until_s = self._began_s + plan.lasts_s
            client = Client(f"c{number}", expected, until_s, self._late_s, self._end)
            self._clients.append(client)
            await loop.create_connection(
                lambda client=client: client,  # type: ignore[misc]
                "127.0.0.1",
                self._daemon.port,
            )
            if number < plan.leaving:
                after_s = self._dice.uniform(1, plan.lasts_s - RAMP_S)
                loop.call_later(after_s, self._leave, client)
            await asyncio.sleep(RAMP_S / count)

    def _leave(self, client: Client) -> None:
        self._left[client.name] = time.monotonic()
        client.leave()

    def _end(self) -> None:
        self._open -= 1
        if not self._open:
            self._ended.set()

    async def _sample(self) -> None:
        while True:
            self._samples.append(_sample_of(self._daemon.pid))
            await asyncio.sleep(1)

    def figures(self, seen: Figures) -> list[Figure]:
        """Say what has come out, given what the provider has seen."""
        stayed = [client for client in self._clients if not client.left]
        wrong = [client.wrong for client in stayed if client.wrong]
        for words in wrong[:5]:
            print(words, file=sys.stderr)
        well = 100 * (len(stayed) - len(wrong)) / len(stayed)
        streams = sum(client.streams for client in stayed)
        # One that left between two streams has closed nothing.
        closed_s = [
            seen.closed_at_s[name] - at_s
            for name, at_s in self._left.items()
            if name in seen.closed_at_s
        ]
        p99_ms = percentile(self._late_s, 99) * 1e3
        closed_ms = percentile(closed_s, 99) * 1e3
        whose = f"{len(stayed)} clients, {streams} streams, {len(self._late_s)} deltas"
        how, gone = spread(self._late_s), spread(closed_s)
        return [
            Figure("clients that got all of theirs", well, "%", 100.0, True, whose),
            Figure("added latency, p99", p99_ms, "ms", 50.0, behind=how),
            self._grown(),
            Figure("client gone to socket closed, p99", closed_ms, "ms", 100.0, behind=gone),
            self._busy(),
        ]

    def _grown(self) -> Figure:
        sizes = [
            max(each.rss_bytes for each in self._between(*part)) / (1 << 20)
            for part in ((0.25, 0.5), (0.75, 1.0))
        ]
        behind = (
            f"{shown(sizes[0])} MiB at most in the second quarter, {shown(sizes[1])} in the last"
        )
        return Figure("memory, growth", sizes[1] - sizes[0], "MiB", GROWTH_MIB, behind=behind)

    def _busy(self) -> Figure:
        """Say what a delta costs while all clients are there, more or less."""
        part = self._between(0.25, 0.75)
        deltas = (part[-1].at_s - part[0].at_s) * self._plan.clients / EVERY_S
        own_us = (part[-1].own_cpu_s - part[0].own_cpu_s) / deltas * 1e6
        workers_us = (part[-1].workers_cpu_s - part[0].workers_cpu_s) / deltas * 1e6
        behind = f"its own process {shown(own_us)} us, its workers {shown(workers_us)} us"
        # Two cores have 500 for each of 4,000 deltas a second, the provider and the clients too.
        return Figure("processor time for a delta", own_us + workers_us, "us", 350.0, behind=behind)

    def _between(self, begin: float, end: float) -> list[Sample]:
        """Return the samples of a part of the time in which streams began."""
        span_s = self._plan.lasts_s
        return [
            each for each in self._samples
            if begin * span_s <= each.at_s - self._began_s <= end * span_s
        ]  # fmt: skip


def _sample_of(pid: int) -> Sample:
    own, *workers = family(pid)
    workers_s = 0.0
    for worker in workers:
        with contextlib.suppress(OSError):  # it may have ended just now
            workers_s += cpu_s(worker)
    pages = int(Path(f"/proc/{own}/statm").read_text().split()[1])
    return Sample(time.monotonic(), pages * os.sysconf("SC_PAGE_SIZE"), cpu_s(own), workers_s)


@contextlib.contextmanager
def provider() -> Iterator[subprocess.Popen[str]]:
    """Run the provider; its first line is its port."""
    numbers = [str(round(STREAM_S / EVERY_S)), str(round(EVERY_S * 1e6))]
    command = [sys.executable, "-m", "benchmarks.load_provider", *numbers]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        try:
            yield process
        finally:
            process.stdin.close()


async def _run(plan: Plan, daemon: Daemon) -> Load:
    load = Load(plan, daemon)
    await load.run()
    return load


def main() -> int:
    """Run it, and say whether all bounds were met."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.load", description=__doc__)
    parser.add_argument("--clients", type=int, default=1000, help="how many, 1000 by default")
    parser.add_argument("--seconds", type=float, default=120, help="how long, 120 by default")
    given = parser.parse_args()
    if given.clients < 20 or given.seconds < 2 * RAMP_S:
        parser.error(f"give at least 20 clients, and {2 * RAMP_S:g} seconds or more")
    plan = Plan(given.clients, given.clients // 20, given.clients // 20, given.seconds)
    gc.freeze()
    gc.disable()  # what is measured here is the daemon
    print(f"load before: {os.getloadavg()[0]:.2f}")
    with provider() as process:
        assert process.stdin is not None
        assert process.stdout is not None
        port = int(process.stdout.readline())
        with Daemon(f"http://127.0.0.1:{port}/v1") as daemon:
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                load = runner.run(_run(plan, daemon))
            process.stdin.write("\n")
            process.stdin.flush()
            seen = msgspec.json.decode(process.stdout.readline(), type=Figures)
    figures = load.figures(seen)
    print(table(figures))
    print(f"{seen.written} deltas were written, at most {shown(seen.late_s * 1e3)} ms too late")
    return 0 if all(figure.met for figure in figures) else 1


if __name__ == "__main__":
    sys.exit(main())

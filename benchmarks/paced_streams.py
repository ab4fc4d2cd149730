"""A thousand slow streams in one runtime: all delivered, how late, and in how much memory.

One event loop reads them all. Each text is the instant of its write, so its lateness is that of
the whole path. Memory is the proportional set size of all processes less the same before.
"""

from __future__ import annotations

import time
from statistics import median
from typing import Any, NamedTuple

from benchmarks.figures import Effort, Figure, percentile, shown, spread
from benchmarks.provider import Provider
from benchmarks.sides import Side


STREAMS = 1_000
EVERY_US = 250_000
WARM_STREAMS = 20
SETTLE_S = 2.0


class _Round(NamedTuple):
    delivered: int
    expected: int
    late_s: list[float]
    stream_kib: float


def run(effort: Effort) -> list[Figure]:
    """Measure."""
    rounds, count = effort.of(3, 1), effort.of(80, 32)
    with Provider() as provider:
        found = [_round(provider, count) for _ in range(rounds)]
    delivered = 100.0 * sum(each.delivered for each in found) / sum(each.expected for each in found)
    late_s = [late for each in found for late in each.late_s]
    sizes = [each.stream_kib for each in found]
    p99_ms = percentile(late_s, 99) * 1e3
    of_rounds = ", ".join(map(shown, sizes))
    return [
        Figure(f"{STREAMS} streams: delivered", delivered, "%", 100.0, True, f"{rounds} rounds"),
        Figure(f"{STREAMS} streams: added latency, p99", p99_ms, "ms", 10.0, behind=spread(late_s)),
        Figure(
            f"{STREAMS} streams: memory each", median(sizes), "KiB", 60.0, behind=f"of {of_rounds}"
        ),
    ]


def _round(provider: Provider, count: int) -> _Round:
    with Side("tidegate_side") as ours:
        _open(ours, provider.url("stamped", 8, 50_000), WARM_STREAMS)
        ours.ask("finish")
        before_bytes = ours.pss_bytes()
        _open(ours, provider.url("stamped", count, EVERY_US), STREAMS)
        ours.ask("count")
        time.sleep(SETTLE_S)
        stream_kib = (ours.pss_bytes() - before_bytes) / STREAMS / 1024
        ours.ask("count")  # the latenesses so far are of the opening, and of the look at memory
        end: dict[str, Any] = ours.ask("finish")
    assert end["completed"] == STREAMS, f"{end['completed']} of {STREAMS} turns were completed"
    return _Round(end["deltas"], STREAMS * count, end["late_s"], stream_kib)


def _open(side: Side, url: str, streams: int) -> None:
    side.ask("begin_stamped", url=url, streams=streams)

"""What a delta costs in processor time when each comes alone.

User and system time of all of a side's processes over the same time: of the host, the zygote and
the workers, and of the SDK's one process; not of the lab. Each stream has a thread that reads it.
"""

from __future__ import annotations

import time
from statistics import median

from benchmarks.figures import Effort, Figure, shown
from benchmarks.provider import Provider
from benchmarks.sides import Side


LOADS = (
    ("1 stream, 250/s", 1, 4_000),
    ("100 streams, 250/s together", 100, 400_000),
    ("100 streams, 250/s each", 100, 4_000),
)
"""Name, streams, and microseconds between two deltas of one of them."""

SETTLE_S = 0.5


def run(effort: Effort) -> list[Figure]:
    """Measure."""
    rounds, window_s = effort.of(3, 1), effort.of(8, 3)
    figures = []
    with Provider() as provider, Side("tidegate_side") as ours, Side("sdk_side") as sdk:
        for name, streams, every_us in LOADS:
            costs = []
            for _ in range(rounds):
                pair = [
                    _cost_us(side, provider, streams, every_us, window_s) for side in (ours, sdk)
                ]
                costs.append(pair)
            ratio = median(mine / theirs for mine, theirs in costs)
            mine, theirs = (median(each) for each in zip(*costs, strict=True))
            behind = f"tidegate {shown(mine)} us, SDK {shown(theirs)} us; {rounds} x {window_s} s"
            figures.append(Figure(f"CPU per delta, {name}", ratio, "x SDK", 1.0, behind=behind))
    return figures


def _cost_us(side: Side, provider: Provider, streams: int, every_us: int, window_s: int) -> float:
    # Long enough for a beginning and an end outside of the window, also for who is slow.
    count = int((window_s + 4) * 1e6 / every_us)
    side.ask("begin", url=provider.url("paced", count, every_us), streams=streams)
    time.sleep(SETTLE_S)
    before, before_s = side.ask("count"), side.cpu_s()
    time.sleep(window_s)
    after_s, after = side.cpu_s(), side.ask("count")
    end = side.ask("finish")
    assert end["deltas"] == streams * count, f"{side.name}: {end['deltas']} of {streams * count}"
    deltas: int = after["deltas"] - before["deltas"]
    return 1e6 * (after_s - before_s) / deltas

"""How much later the first delta comes than with aiohttp alone, when everything is warm."""

from __future__ import annotations

from statistics import median

from benchmarks.figures import Effort, Figure, shown
from benchmarks.provider import Provider
from benchmarks.sides import Side


TIMES = 20
AFTER_US = 5_000


def run(effort: Effort) -> list[Figure]:
    """Measure."""
    rounds = effort.of(15, 3)
    with Provider() as provider, Side("tidegate_side") as ours, Side("bare_side") as bare:
        url = provider.url("first", AFTER_US)
        for side in (ours, bare):
            side.ask("first", url=url, times=TIMES)
        pairs = [
            [median(side.ask("first", url=url, times=TIMES)) for side in (ours, bare)]
            for _ in range(rounds)
        ]
    added_ms = median(mine - theirs for mine, theirs in pairs) * 1e3
    mine, theirs = (shown(median(each) * 1e3) for each in zip(*pairs, strict=True))
    behind = f"tidegate {mine} ms, aiohttp {theirs} ms; {rounds} rounds of {TIMES} turns"
    return [Figure("time to first delta, over aiohttp", added_ms, "ms more", 2.0, behind=behind)]

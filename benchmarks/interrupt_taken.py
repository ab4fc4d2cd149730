"""How soon the reader of a turn has its terminal event once somebody interrupts it."""

from __future__ import annotations

from statistics import median

from benchmarks.figures import Effort, Figure, percentile, spread
from benchmarks.interrupts import TURNS, measure


def run(effort: Effort) -> list[Figure]:
    """Measure."""
    taken_s = measure(effort).taken_s
    behind = f"{TURNS} turns streaming; {spread(taken_s)}"
    p50_ms, p99_ms = median(taken_s) * 1e3, percentile(taken_s, 99) * 1e3
    return [
        Figure("interrupt to terminal event taken, p50", p50_ms, "ms", 2.0, behind=behind),
        Figure("interrupt to terminal event taken, p99", p99_ms, "ms", 10.0, behind=behind),
    ]

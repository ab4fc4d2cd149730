"""How soon the provider sees its connection closed once somebody interrupts the turn.

Both processes read the same monotonic clock of the kernel.
"""

from __future__ import annotations

from benchmarks.figures import Effort, Figure, percentile, spread
from benchmarks.interrupts import TURNS, measure


WIRES = ("chat", "converse")
"""Those between send as chat does; the requests of converse are signed in threads."""


def run(effort: Effort) -> list[Figure]:
    """Measure."""
    figures = []
    for wire in WIRES:
        closed_s = measure(effort, wire).closed_s
        behind = f"{TURNS} turns streaming; {spread(closed_s)}"
        p99_ms = percentile(closed_s, 99) * 1e3
        what = f"interrupt to socket closed, {wire}, p99"
        figures.append(Figure(what, p99_ms, "ms", 50.0, behind=behind))
    return figures

"""How many deltas a second get through when there is no end of them.

The whole path: lab socket, worker, pipe, sink, and a consumer that iterates; one provider delta is
one event. The peer reads the same stream with the SDK's synchronous iterator, in turn with it.
"""

from __future__ import annotations

from statistics import median
from typing import Any

from benchmarks.answers import text_of
from benchmarks.figures import Effort, Figure, shown
from benchmarks.provider import Provider
from benchmarks.sides import Side


PER_WRITE = 64
WIRES = {"chat": 10.0, "responses": 8.0, "messages": 2.0, "converse": 10.0}
"""By wire, how many times faster than the SDK it must be."""
RATE = 100_000


def run(effort: Effort) -> list[Figure]:
    """Measure."""
    rounds = effort.of(7, 2)
    count = PER_WRITE * effort.of(640, 64)
    figures = []
    with Provider() as provider, Side("tidegate_side") as ours, Side("sdk_side") as sdk:
        url, first = provider.url("flow", count, PER_WRITE), provider.url("flow", *[PER_WRITE] * 2)
        for wire, bound in WIRES.items():
            for side in (ours, sdk):
                _rate(side, wire, first, PER_WRITE)
            rates = [[_rate(side, wire, url, count) for side in (ours, sdk)] for _ in range(rounds)]
            ratio = median(fast / slow for fast, slow in rates)
            fast, slow = (median(each) for each in zip(*rates, strict=True))
            behind = f"tidegate {shown(fast)}/s, SDK {shown(slow)}/s; {rounds} x {count:,} deltas"
            what = f"deltas a second, {wire}"
            figures.append(Figure(f"{what}, over the SDK's", ratio, "x", bound, True, behind))
            figures.append(Figure(what, fast, "/s", RATE, True, "as above"))
    return figures


def _rate(side: Side, wire: str, url: str, count: int) -> float:
    read: dict[str, Any] = side.ask("read", url=url, wire=wire)
    assert read["deltas"] == count, f"{side.name}: {read['deltas']} of {count} deltas"
    assert read["chars"] == len(text_of(count)), f"{side.name}: {read['chars']} characters"
    rate: float = count / read["took_s"]
    return rate

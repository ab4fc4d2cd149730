"""How long a call with a history of 500 KB takes to its first delta, against the SDK's.

Both have the payload as Python objects and a warm connection; the provider reads it whole and
answers at once.
"""

from __future__ import annotations

from statistics import median

from benchmarks.figures import Effort, Figure, shown
from benchmarks.provider import Provider
from benchmarks.sides import Side


TIMES = 4
EVENTS = 64
WIRES = ("chat", "responses", "messages", "converse")


def run(effort: Effort) -> list[Figure]:
    """Measure."""
    rounds = effort.of(9, 2)
    figures = []
    with Provider() as provider, Side("tidegate_side") as ours, Side("sdk_side") as sdk:
        url = provider.url("flow", EVENTS, EVENTS)
        for wire in WIRES:
            for side in (ours, sdk):
                side.ask("first_long", url=url, wire=wire, times=2)
            pairs = [
                [
                    median(side.ask("first_long", url=url, wire=wire, times=TIMES))
                    for side in (ours, sdk)
                ]
                for _ in range(rounds)
            ]
            part = median(mine / theirs for mine, theirs in pairs)
            mine, theirs = (shown(median(each) * 1e3) for each in zip(*pairs, strict=True))
            behind = f"tidegate {mine} ms, SDK {theirs} ms; {rounds} rounds of {TIMES}"
            what = f"500 KB history: time to first delta, {wire}"
            figures.append(Figure(what, part, "x SDK", 0.25, behind=behind))
    return figures

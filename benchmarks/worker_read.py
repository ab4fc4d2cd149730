"""What it costs a worker to turn what it reads into deltas, when there is no end of them.

Processor time of one process that does nothing else, against that of the SDK's synchronous iterator
over the same stream, in turn with it.
"""

from __future__ import annotations

from statistics import median

from benchmarks.answers import text_of
from benchmarks.figures import Effort, Figure, shown
from benchmarks.provider import Provider
from benchmarks.sides import Side


PER_WRITE = 64
WIRES = {"chat": 30.0, "responses": 25.0, "messages": 10.0, "converse": 7.0}
"""By wire, how many times less than the SDK's it must be."""
ALONE = 3.0
"""The same for chat, one event a read, with the write to the host."""
EVERY_US = 1_000


def run(effort: Effort) -> list[Figure]:
    """Measure."""
    rounds = effort.of(7, 2)
    count = PER_WRITE * effort.of(640, 64)
    figures = []
    with Provider() as provider, Side("worker_side") as ours, Side("sdk_side") as sdk:
        url, first = provider.url("flow", count, PER_WRITE), provider.url("flow", *[PER_WRITE] * 2)
        for wire, bound in WIRES.items():
            for side in (ours, sdk):
                _cost_us(side, wire, first, PER_WRITE)
            costs = [
                [_cost_us(side, wire, url, count) for side in (ours, sdk)] for _ in range(rounds)
            ]
            ratio = median(theirs / mine for mine, theirs in costs)
            mine, theirs = (median(each) for each in zip(*costs, strict=True))
            behind = f"worker {shown(mine)} us, SDK {shown(theirs)} us; {rounds} x {count:,} deltas"
            what = f"CPU from read to delta, {wire}: SDK's over ours"
            figures.append(Figure(what, ratio, "x", bound, True, behind))
        figures.append(_alone(effort, provider, ours, sdk))
    return figures


def _alone(effort: Effort, provider: Provider, ours: Side, sdk: Side) -> Figure:
    rounds, count = effort.of(7, 2), effort.of(2_000, 400)
    url = provider.url("paced", count, EVERY_US)
    costs = [
        (
            _cost_us(ours, "chat", url, count, pipe=True),
            _cost_us(sdk, "chat", url, count),
        )
        for _ in range(rounds)
    ]
    ratio = median(theirs / mine for mine, theirs in costs)
    mine, theirs = (median(each) for each in zip(*costs, strict=True))
    behind = f"worker {shown(mine)} us, SDK {shown(theirs)} us; {rounds} x {count:,} deltas"
    what = "the same, one event a read and a frame each, chat"
    return Figure(what, ratio, "x", ALONE, True, behind)


def _cost_us(side: Side, wire: str, url: str, count: int, **more: bool) -> float:
    read = side.ask("read", url=url, wire=wire, **more)
    assert read["deltas"] == count, f"{side.name}: {read['deltas']} of {count} deltas"
    assert read["chars"] == len(text_of(count)), f"{side.name}: {read['chars']} characters"
    cost_us: float = 1e6 * read["cpu_s"] / count
    return cost_us

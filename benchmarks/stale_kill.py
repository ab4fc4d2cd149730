"""How late a stalled attempt is fenced: from the end of its budget, by the sink's own instants."""

from __future__ import annotations

from typing import Any

from benchmarks.figures import Effort, Figure, percentile, spread
from benchmarks.provider import Provider
from benchmarks.sides import Side


BUDGET_S = 0.1


def run(effort: Effort) -> list[Figure]:
    """Measure."""
    kills = effort.of(200, 20)
    with Provider() as provider, Side("tidegate_side") as ours:
        url = provider.url("stall")
        ours.ask("read", url=provider.url("flow", 64, 64))
        found: list[dict[str, Any]] = ours.ask(
            "kill_stale", url=url, kills=kills, budget_s=BUDGET_S
        )
    fenced_s = [each["fenced_s"] for each in found]
    assert min(fenced_s) >= 0, "fenced before the budget was used up"
    taken = spread([each["taken_s"] for each in found])
    behind = f"{spread(fenced_s)}; to the reader: {taken}"
    p99_ms = percentile(fenced_s, 99) * 1e3
    return [Figure("stale budget to fence, p99", p99_ms, "ms", 20.0, behind=behind)]

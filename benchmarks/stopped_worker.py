"""What an interrupt comes to when the turn's worker has been stopped with SIGSTOP."""

from __future__ import annotations

from typing import Any

from benchmarks.figures import Effort, Figure, percentile, spread
from benchmarks.interrupts import EVERY_US, FOR_EVER
from benchmarks.provider import Provider
from benchmarks.sides import Side


KILL_GRACE_MS = 250.0
"""The built-in ``Policy.kill_grace_s``."""


def run(effort: Effort) -> list[Figure]:
    """Measure."""
    samples = effort.of(100, 10)
    with Provider() as provider, Side("tidegate_side") as ours:
        url = provider.url("paced", FOR_EVER, EVERY_US)
        found: list[dict[str, Any]] = ours.ask(
            "stop_workers", url=url, samples=samples, port=provider.port
        )
    taken_s = [each["taken_s"] for each in found]
    gone_s = [each["gone_s"] for each in found]
    return [
        Figure(
            "worker stopped: interrupt to terminal event, p99",
            percentile(taken_s, 99) * 1e3,
            "ms",
            10.0,
            behind=spread(taken_s),
        ),
        Figure(
            "worker stopped: interrupt to worker gone, p99",
            percentile(gone_s, 99) * 1e3,
            "ms",
            KILL_GRACE_MS + 100,
            behind=spread(gone_s),
        ),
    ]

"""What a benchmark says: a figure, the bound that it must reach, and how both are shown."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import NamedTuple


class Effort(NamedTuple):
    """How much is measured; ``quick`` shows that a benchmark works, and proves nothing."""

    quick: bool

    def of(self, full: int, quick: int) -> int:
        """Choose a number."""
        return quick if self.quick else full


class Figure(NamedTuple):
    """One measured number.

    Attributes:
        what: what it is, in a few words.
        value: the number.
        unit: stands behind it, as in ``ms``; ``x`` for a ratio.
        bound: what the number must reach.
        at_least: whether it must not be smaller than ``bound``; it must not be larger otherwise.
        behind: the medians that it comes from.
    """

    what: str
    value: float
    unit: str
    bound: float
    at_least: bool = False
    behind: str = ""

    @property
    def met(self) -> bool:
        """Whether the bound was reached."""
        return self.value >= self.bound if self.at_least else self.value <= self.bound

    def cells(self) -> tuple[str, str, str, str, str]:
        """Return the row of a table: what, measured, must reach, met, behind it."""
        sign = "at least" if self.at_least else "at most"
        return (
            self.what,
            f"{shown(self.value)} {self.unit}",
            f"{sign} {shown(self.bound)} {self.unit}",
            "yes" if self.met else "NO",
            self.behind,
        )


HEADINGS = ("what", "measured", "must reach", "met", "behind it")


def shown(value: float) -> str:
    """Write a number with as many digits as mean something."""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def table(figures: Sequence[Figure]) -> str:
    """Lay out ``figures`` as a Markdown table that can be read as it is."""
    rows = [HEADINGS, *(figure.cells() for figure in figures)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEADINGS))]
    lines = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |"
        for row in rows
    ]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(lines)


def percentile(values: Sequence[float], percent: float) -> float:
    """Return the smallest value that so many percent of ``values`` do not exceed."""
    ordered = sorted(values)
    place = -(-len(ordered) * percent // 100)
    return ordered[max(0, int(place) - 1)]


def spread(values: Sequence[float], scale: float = 1e3, unit: str = "ms") -> str:
    """Describe ``values``: how many, their median, p99 and largest."""
    parts = (median(values), percentile(values, 99), max(values))
    p50, p99, top = (shown(part * scale) for part in parts)
    return f"n {len(values)}, p50 {p50}, p99 {p99}, max {top} {unit}"

"""Interrupts of turns that stream; the two rows that look at them share this."""

from __future__ import annotations

from typing import Any, NamedTuple

from benchmarks.figures import Effort
from benchmarks.provider import Provider
from benchmarks.sides import Side
from tidegate.testing.eventually import eventually


TURNS = 200
EVERY_US = 50_000
FOR_EVER = 1_000_000


class Interrupts(NamedTuple):
    """What came of them, in seconds.

    Attributes:
        taken_s: from the call to the reader's having the terminal event.
        closed_s: from the call to the provider's seeing the connection closed.
    """

    taken_s: list[float]
    closed_s: list[float]


def measure(effort: Effort, wire: str = "chat") -> Interrupts:
    """Interrupt turn after turn while ``TURNS`` of them stream, and a new one replaces each."""
    samples = effort.of(500, 50)
    with Provider() as provider, Side("tidegate_side") as ours:
        url = provider.url("paced", FOR_EVER, EVERY_US)
        found: list[dict[str, Any]] = ours.ask(
            "interrupt", url=url, turns=TURNS, samples=samples, wire=wire
        )
        closed_at_s = eventually(lambda: _closed_at_s(provider, found))
    closed_s = [closed_at_s[each["user"]] - each["at_s"] for each in found]
    return Interrupts([each["taken_s"] for each in found], closed_s)


def _closed_at_s(provider: Provider, found: list[dict[str, Any]]) -> dict[str, float] | None:
    """Return when each connection was closed by its client, None while one is open."""
    report = provider.report()
    seen = {each["user"]: report[each["user"]] for each in found}
    if any(each["closed_how"] not in ("eof", "reset") for each in seen.values()):
        return None
    return {user: each["closed_at_s"] for user, each in seen.items()}

"""What ``/metrics`` shows: every series with its labels and its meaning, and how to count one."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Mapping
from typing import Literal, NamedTuple, TypeAlias

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)


Kind: TypeAlias = Literal["counter", "gauge", "histogram"]
Values: TypeAlias = tuple[str, ...]
"""Those of a series' labels, in their order."""

PREFIX = "tidegate_"

WAITS_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0)
"""Bounds for what a provider takes, in seconds."""

REACTIONS_S = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)
"""Bounds for what we take ourselves, in seconds."""


class Series(NamedTuple):
    """One series: without the prefix, and for a counter without ``_total``."""

    name: str
    kind: Kind
    labels: Values
    meaning: str

    @property
    def shown(self) -> str:
        """Its name as a query has it; that of a histogram without ``_bucket`` and the like."""
        return f"{PREFIX}{self.name}{'_total' if self.kind == 'counter' else ''}"


_BY = ("endpoint", "wire")

SERIES: dict[str, Series] = {
    each.name: each
    for each in (
        Series("turns", "counter", (*_BY, "api", "state"), "Turns that ended, by how."),
        Series("turns_running", "gauge", (), "Turns that run."),
        Series("turns_queued", "gauge", (), "Turns that wait for others to end."),
        Series(
            "turn_failures",
            "counter",
            (*_BY, "kind"),
            "Turns that ended by a failure, by its kind; circuit_open is the breaker's.",
        ),
        Series("turn_seconds", "histogram", _BY, "From the request for a turn to its end."),
        Series(
            "interrupt_latency_seconds",
            "histogram",
            (),
            "From the order to interrupt a turn to its terminal event, kept and to be read.",
        ),
        Series("attempts", "counter", (*_BY, "outcome"), "Attempts at turns that ended, by how."),
        Series(
            "retries",
            "counter",
            (*_BY, "cause"),
            "Attempts that were followed by another, by the kind of their failure.",
        ),
        Series(
            "stalls",
            "counter",
            (*_BY, "limit"),
            "Attempts that were ended for silence, by the limit that they met.",
        ),
        Series("stale_kills", "counter", (), "Attempts that the runtime ended for silence."),
        Series(
            "first_progress_seconds",
            "histogram",
            _BY,
            "From the start of an attempt to the first delta with content.",
        ),
        Series(
            "tool_calls_lost",
            "counter",
            _BY,
            "Tool calls that were cut off, and so reach nobody as calls.",
        ),
        Series(
            "model_tokens",
            "counter",
            (*_BY, "kind"),
            "Model tokens of all attempts as providers counted them: input, output, and of these"
            " cached_input and reasoning.",
        ),
        Series(
            "model_tokens_lost",
            "counter",
            (*_BY, "kind"),
            "Model tokens of attempts that were followed by another.",
        ),
        Series("deltas", "counter", (), "Deltas that the sink has accepted."),
        Series(
            "refused",
            "counter",
            ("reason",),
            "Messages of attempts that the sink has refused, such as those of a fenced token.",
        ),
        Series("dead_letters", "counter", (), "Messages to an actor that had stopped."),
        Series("subscribers", "gauge", (), "Clients that read the events of a turn."),
        Series("lag_bytes", "gauge", (), "What the slowest of all clients has still to be given."),
        Series("clients_cut_off", "counter", (), "Clients that were cut off because they lagged."),
        Series("clients_left", "counter", (), "Clients that left before their turn had ended."),
        Series("journal_commit_seconds", "histogram", (), "What a commit takes."),
        Series("journal_entries", "counter", (), "Entries that were committed."),
        Series("journal_events", "counter", (), "Events in them."),
        Series("journal_bytes", "counter", (), "Bytes of JSON in them."),
        Series("journal_withdrawals", "counter", (), "Entries that took events back."),
        Series("journal_refused", "counter", (), "Entries of turns that the journal has not."),
        Series("journal_queue", "gauge", (), "Entries that wait for a commit."),
        Series("journal_file_bytes", "gauge", (), "The database, without its write-ahead log."),
        Series("journal_trouble", "gauge", (), "1 while the journal cannot be written, else 0."),
        Series("workers", "gauge", (), "Worker processes, the warm standby included."),
        Series("workers_lost", "counter", (), "Worker processes that ended, for whatever reason."),
        Series("workers_killed", "counter", (), "Those that were ended: they answered nothing."),
        Series("observers_dropped", "counter", (), "What observers were not told, being behind."),
        Series("draining", "gauge", (), "1 while the daemon takes on no turns and ends, else 0."),
        Series("info", "gauge", ("version",), "1 for the version that runs."),
    )
}
"""By name, in the order in which they are shown."""


class Counts:
    """A counter for each set of values of its labels."""

    def __init__(self) -> None:
        self._counts: defaultdict[Values, float] = defaultdict(float)

    def add(self, values: Values = (), by: float = 1) -> None:
        """Count."""
        self._counts[values] += by

    def family(self, series: Series) -> Metric:
        """Return what is shown; a counter without labels is there from the beginning."""
        return counter(series, self._counts if series.labels else {(): self._counts[()]})


class Histogram:
    """How often what took how long, for each set of values of its labels.

    Args:
        bounds: of the buckets, rising; one without a bound is added.
    """

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self._bounds = bounds
        self._counts: dict[Values, list[int]] = {}
        self._sums: defaultdict[Values, float] = defaultdict(float)

    def add(self, value: float, values: Values = ()) -> None:
        """Count ``value``."""
        counts = self._counts.setdefault(values, [0] * (len(self._bounds) + 1))
        counts[bisect_left(self._bounds, value)] += 1
        self._sums[values] += value

    def family(self, series: Series) -> Metric:
        """Return what is shown."""
        family = HistogramMetricFamily(PREFIX + series.name, series.meaning, labels=series.labels)
        empty = [0] * (len(self._bounds) + 1)
        found = self._counts if series.labels else {(): self._counts.get((), empty)}
        for values, counts in found.items():
            reached, buckets = 0, []
            for bound, count in zip((*self._bounds, float("inf")), counts, strict=True):
                reached += count
                buckets.append((bound_shown(bound), float(reached)))
            family.add_metric(values, buckets, float(self._sums[values]))
        return family


def bound_shown(bound: float) -> str:
    """Return the bound of a bucket as it is written."""
    return "+Inf" if bound == float("inf") else repr(float(bound))


def counter(series: Series, found: Mapping[Values, float]) -> Metric:
    """Return the family of a counter."""
    family = CounterMetricFamily(PREFIX + series.name, series.meaning, labels=series.labels)
    for values, count in found.items():
        family.add_metric(values, count)
    return family


def gauge(series: Series, value: float, values: Values = ()) -> Metric:
    """Return the family of a gauge."""
    family = GaugeMetricFamily(PREFIX + series.name, series.meaning, labels=series.labels)
    family.add_metric(values, value)
    return family

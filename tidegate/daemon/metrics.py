"""Counts what happens, and shows it together with what others have counted.

Used in the event loop's thread alone. What runtime and journal count themselves is asked for when
somebody wants to see it.

Path: the daemon's shells -> this -> ``/metrics``; ``series.py`` says what each series means.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Protocol

from prometheus_client.core import HistogramMetricFamily, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector, CollectorRegistry

from tidegate.daemon.journal.model import JournalStatistics
from tidegate.daemon.logs.turns import EndedTurn
from tidegate.daemon.series import (
    PREFIX,
    REACTIONS_S,
    SERIES,
    WAITS_S,
    Counts,
    Histogram,
    Values,
    bound_shown,
    counter,
    gauge,
)
from tidegate.protocol.answers import Answer, Usage
from tidegate.protocol.events import TurnFailed
from tidegate.protocol.failures import FailureKind
from tidegate.statistics import Statistics


class Counting(Protocol):
    """A runtime."""

    def statistics(self) -> Statistics:
        """Count what was done so far."""


class Keeping(Protocol):
    """A journal."""

    def statistics(self) -> JournalStatistics:
        """Count what was done so far."""


class Standing(Protocol):
    """What is known of all turns together."""

    @property
    def running(self) -> int: ...  # noqa: D102
    @property
    def queued(self) -> int: ...  # noqa: D102
    @property
    def mode(self) -> str: ...  # noqa: D102


class Reader(Protocol):
    """Who reads a turn."""

    @property
    def lag_bytes(self) -> int: ...  # noqa: D102


class Read(Protocol):
    """A turn that is read."""

    @property
    def subscriptions(self) -> Iterable[Reader]: ...  # noqa: D102


class Turns(Protocol):
    """The daemon's registry of turns."""

    @property
    def state(self) -> Standing: ...  # noqa: D102
    @property
    def hosted(self) -> Mapping[str, Read]: ...  # noqa: D102


class Metrics:
    """Everything that ``/metrics`` shows.

    Args:
        runtime: runs the turns.
        journal: keeps them.
        clock: monotonic seconds.
    """

    def __init__(
        self, runtime: Counting, journal: Keeping, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._runtime = runtime
        self._journal = journal
        self._clock = clock
        self._turns: Turns | None = None
        self._counts = {name: Counts() for name in _COUNTED}
        self._histograms = {
            "turn_seconds": Histogram(WAITS_S),
            "first_progress_seconds": Histogram(WAITS_S),
            "interrupt_latency_seconds": Histogram(REACTIONS_S),
        }
        self._asked_s: dict[str, float] = {}
        self._subscribers = 0
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(_Collector(self.families))
        ProcessCollector(registry=self._registry)

    def follow(self, turns: Turns) -> None:
        """Show how these turns stand, from here on."""
        self._turns = turns

    def turn_ended(self, hosted: EndedTurn) -> None:
        """Count a turn that has ended, with its attempts."""
        record, terminal = hosted.record, hosted.terminal or hosted.ending
        asked_s = self._asked_s.pop(record.id, None)
        if asked_s is not None:
            self._histograms["interrupt_latency_seconds"].add(self._clock() - asked_s)
        by = (record.endpoint, record.wire)
        self._count("turns", (*by, record.api, record.state))
        if terminal is None:
            return
        self._histograms["turn_seconds"].add(max(0.0, terminal.at_s - record.created_at), by)
        if isinstance(terminal, TurnFailed):
            self._count("turn_failures", (*by, terminal.error.kind.value))
        answer = terminal.answer
        self._count("tool_calls_lost", by, len(answer.incomplete_tool_calls))
        self._count_attempts(by, answer)
        self._count_tokens("model_tokens", by, answer.usage_all_attempts or answer.usage)

    def interrupt_asked(self, turn_id: str) -> None:
        """Begin to measure how long an interrupt takes; the first order counts."""
        self._asked_s.setdefault(turn_id, self._clock())

    def subscriber(self, change: int) -> None:
        """Count a client that begins (1) or ceases (-1) to read a turn's events."""
        self._subscribers += change

    def client_cut_off(self) -> None:
        """Count a client that was cut off because it lagged."""
        self._count("clients_cut_off")

    def client_left(self) -> None:
        """Count a client that left before its turn had ended."""
        self._count("clients_left")

    def scrape(self, accept: str = "") -> tuple[bytes, str]:
        """Return the text of all series, and its content type.

        Args:
            accept: what the scraper takes, as in the header of that name.
        """
        encode, content_type = choose_encoder(accept)
        return encode(self._registry), content_type

    def families(self) -> Iterator[Metric]:
        """Return every series as it stands, in their order."""
        found = {**self._own(), **self._of_runtime(), **self._of_journal(), **self._of_turns()}
        return (found[name] for name in SERIES)

    def _count(self, name: str, values: Values = (), by: float = 1) -> None:
        if by:
            self._counts[name].add(values, by)

    def _count_attempts(self, by: Values, answer: Answer) -> None:
        reports = answer.attempts
        for report in reports:
            self._count("attempts", (*by, report.outcome or "unknown"))
            if report.first_progress_s is not None:
                self._histograms["first_progress_seconds"].add(report.first_progress_s, by)
            failure = report.failure
            if failure is not None and failure.kind is FailureKind.STALLED:
                self._count("stalls", (*by, failure.reason or "unknown"))
        for report in reports[:-1]:
            cause = report.failure.kind.value if report.failure is not None else "unknown"
            self._count("retries", (*by, cause))
            self._count_tokens("model_tokens_lost", by, report.usage)

    def _count_tokens(self, name: str, by: Values, usage: Usage | None) -> None:
        if usage is None:
            return
        for kind in ("input", "output", "cached_input", "reasoning"):
            self._count(name, (*by, kind), getattr(usage, f"{kind}_tokens"))

    def _own(self) -> dict[str, Metric]:
        return {
            **{name: counts.family(SERIES[name]) for name, counts in self._counts.items()},
            **{name: each.family(SERIES[name]) for name, each in self._histograms.items()},
            "subscribers": gauge(SERIES["subscribers"], self._subscribers),
            "info": gauge(SERIES["info"], 1, (_version(),)),
        }

    def _of_turns(self) -> dict[str, Metric]:
        turns, state = self._turns, self._turns.state if self._turns is not None else None
        hosted = turns.hosted.values() if turns is not None else ()
        lags = (reader.lag_bytes for each in hosted for reader in each.subscriptions)
        values = {
            "turns_running": state.running if state is not None else 0,
            "turns_queued": state.queued if state is not None else 0,
            "draining": int(state is not None and state.mode != "open"),
            "lag_bytes": max(lags, default=0),
        }
        return {name: gauge(SERIES[name], value) for name, value in values.items()}

    def _of_runtime(self) -> dict[str, Metric]:
        known = self._runtime.statistics()
        names = ("stale_kills", "deltas", "workers_lost", "workers_killed", "observers_dropped")
        counted: dict[str, Mapping[Values, float]] = {
            name: {(): getattr(known, name)} for name in names
        }
        counted["refused"] = {(reason,): count for reason, count in known.refused.items()}
        counted["dead_letters"] = {(): sum(known.dead_letters.values())}
        return {
            **{name: counter(SERIES[name], found) for name, found in counted.items()},
            "workers": gauge(SERIES["workers"], known.workers),
        }

    def _of_journal(self) -> dict[str, Metric]:
        known = self._journal.statistics()
        counted = {
            "journal_entries": known.entries,
            "journal_events": known.events,
            "journal_bytes": known.data_bytes,
            "journal_withdrawals": known.withdrawals,
            "journal_refused": known.refused,
        }
        standing = {
            "journal_queue": known.queued,
            "journal_file_bytes": known.file_bytes,
            "journal_trouble": int(known.trouble is not None),
        }
        series = SERIES["journal_commit_seconds"]
        commits = HistogramMetricFamily(PREFIX + series.name, series.meaning)
        buckets = [(bound_shown(bound), count) for bound, count in known.commit_buckets]
        commits.add_metric((), buckets, known.commit_seconds)
        return {
            **{name: counter(SERIES[name], {(): value}) for name, value in counted.items()},
            **{name: gauge(SERIES[name], value) for name, value in standing.items()},
            "journal_commit_seconds": commits,
        }


_COUNTED = (
    "turns",
    "turn_failures",
    "attempts",
    "retries",
    "stalls",
    "tool_calls_lost",
    "model_tokens",
    "model_tokens_lost",
    "clients_cut_off",
    "clients_left",
)
"""What is counted here."""


class _Collector(Collector):
    def __init__(self, families: Callable[[], Iterator[Metric]]) -> None:
        self._families = families

    def collect(self) -> Iterator[Metric]:
        return self._families()


def _version() -> str:
    try:
        return version("tidegate")
    except PackageNotFoundError:
        return "unknown"

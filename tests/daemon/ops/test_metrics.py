"""What ``/metrics`` counts, after real turns, and whether scrapers can read it."""

import re
from pathlib import Path
from types import SimpleNamespace

import pytest
from prometheus_client.openmetrics.parser import (
    text_string_to_metric_families as openmetrics_families,
)
from prometheus_client.parser import text_string_to_metric_families
from starlette.applications import Starlette
from starlette.routing import Route

import tidegate as tg
from tests.daemon.ops.serving import Client, Server
from tidegate.daemon.api.metrics import MetricsRoute
from tidegate.daemon.journal.journal import Journal
from tidegate.daemon.journal.model import Entry, TurnRecord, state_of
from tidegate.daemon.metrics import Metrics
from tidegate.daemon.series import SERIES
from tidegate.testing import Answer, End, Lab, chat
from tidegate.testing.eventually import eventually
from tidegate.testing.reading import Reading


PAGE = Path(__file__).parents[3] / "docs/daemon-metrics.md"


@pytest.fixture(scope="module")
def runtime():
    with tg.Runtime(workers=1) as runtime:
        yield runtime


@pytest.fixture
def journal(tmp_path):
    journal = Journal.open(
        tmp_path / "turns.db",
        sync="normal",
        keep_s=60.0,
        bytes_max=1 << 30,
        idempotency_keep_s=60.0,
        on_trouble=lambda _: None,
    )
    yield journal
    journal.close()


@pytest.fixture
def clock():
    return [0.0]


@pytest.fixture
def metrics(runtime, journal, clock):
    return Metrics(runtime, journal, clock=lambda: clock[0])


class Samples(dict):
    """The value of each sample, by its name and the values of its labels in any order."""

    def __init__(self, metrics):
        for family in text_string_to_metric_families(metrics.scrape()[0].decode()):
            for sample in family.samples:
                self[sample.name, frozenset(sample.labels.values())] = sample.value

    def of(self, name, *values):
        return self.get((f"tidegate_{name}", frozenset(values)))


def run(runtime, answers, **policy):
    """Return the terminal event of a turn that was read to its end."""
    with Lab(answers) as lab:
        endpoint = tg.Endpoint.chat(lab.url, "a-key")
        given = tg.Policy(backoff_s=(0,), **policy)
        request = tg.Request(endpoint, {"model": "m", "messages": []}, policy=given)
        return Reading(runtime.start(request)).to_end()


def ended(terminal, **changes):
    given = {"id": terminal.turn_id, "endpoint": "main", "wire": "chat", "api": "turns"}
    times = {"created_at": terminal.at_s - 0.5, "ended_at": terminal.at_s}
    record = TurnRecord(**{**given, "state": state_of(terminal), **times, **changes})
    return SimpleNamespace(record=record, terminal=terminal, ending=None)


def test_turn_that_completed_is_counted_with_its_attempt(runtime, metrics):
    terminal = run(runtime, [chat.answer("hello", steps=[chat.usage(7, 3)])])
    metrics.turn_ended(ended(terminal))

    found = Samples(metrics)
    assert found.of("turns_total", "main", "chat", "turns", "completed") == 1
    assert found.of("attempts_total", "main", "chat", "completed") == 1
    assert found.of("model_tokens_total", "main", "chat", "input") == 7
    assert found.of("model_tokens_total", "main", "chat", "output") == 3
    assert found.of("turn_seconds_count", "main", "chat") == 1
    assert found.of("turn_seconds_sum", "main", "chat") == pytest.approx(0.5)
    assert found.of("first_progress_seconds_count", "main", "chat") == 1
    assert found.of("turn_seconds_bucket", "main", "chat", "+Inf") == 1


def test_attempt_that_was_retried_is_counted_by_its_cause(runtime, metrics):
    cut = Answer([chat.text("he"), End.CUT])
    terminal = run(runtime, [cut, chat.answer("hello")], after_visible_text="restart")
    assert isinstance(terminal, tg.TurnCompleted)
    metrics.turn_ended(ended(terminal))

    found = Samples(metrics)
    assert found.of("retries_total", "main", "chat", "truncated") == 1
    assert found.of("attempts_total", "main", "chat", "failed") == 1
    assert found.of("attempts_total", "main", "chat", "completed") == 1


def test_turn_that_failed_is_counted_by_its_kind(runtime, metrics):
    terminal = run(runtime, [chat.error_answer(400, "no")], retries=0)
    metrics.turn_ended(ended(terminal))

    found = Samples(metrics)
    assert found.of("turns_total", "main", "chat", "turns", "failed") == 1
    assert found.of("turn_failures_total", "main", "chat", "bad_request") == 1


def test_turn_that_never_ran_is_counted_too(metrics):
    terminal = tg.TurnInterrupted("turn_1", 0, 0, 10.0, "daemon draining", tg.Answer())
    metrics.turn_ended(ended(terminal))

    found = Samples(metrics)
    assert found.of("turns_total", "main", "chat", "turns", "interrupted") == 1
    assert found.of("attempts_total", "main", "chat", "interrupted") is None


def test_interrupt_is_measured_from_the_first_order_to_the_end(metrics, clock):
    terminal = tg.TurnInterrupted("turn_1", 0, 0, 10.0, "a reason", tg.Answer())
    metrics.interrupt_asked("turn_1")
    clock[0] = 0.004
    metrics.interrupt_asked("turn_1")
    clock[0] = 0.02
    metrics.turn_ended(ended(terminal))
    metrics.turn_ended(ended(terminal, id="turn_2"))

    found = Samples(metrics)
    assert found.of("interrupt_latency_seconds_count") == 1
    assert found.of("interrupt_latency_seconds_sum") == 0.02
    assert found.of("interrupt_latency_seconds_bucket", "0.01") == 0
    assert found.of("interrupt_latency_seconds_bucket", "0.025") == 1


def test_clients_are_counted(metrics):
    for change in (1, 1, -1):
        metrics.subscriber(change)
    metrics.client_cut_off()
    metrics.client_left()
    metrics.client_left()

    found = Samples(metrics)
    assert found.of("subscribers") == 1
    assert found.of("clients_cut_off_total") == 1
    assert found.of("clients_left_total") == 2


def test_turns_are_shown_as_they_stand(metrics):
    def turn(*lags):
        return SimpleNamespace(subscriptions=[SimpleNamespace(lag_bytes=lag) for lag in lags])

    state = SimpleNamespace(running=3, queued=2, mode="open")
    turns = SimpleNamespace(state=state, hosted={"a": turn(), "b": turn(7, 900), "c": turn(8)})
    assert Samples(metrics).of("turns_running") == 0
    metrics.follow(turns)

    found = Samples(metrics)
    assert found.of("turns_running") == 3
    assert found.of("turns_queued") == 2
    assert found.of("lag_bytes") == 900
    assert found.of("draining") == 0
    state.mode = "draining"
    assert Samples(metrics).of("draining") == 1


def test_what_the_runtime_has_counted_is_shown(runtime, metrics):
    run(runtime, [chat.answer("hello")])

    found = Samples(metrics)
    assert found.of("deltas_total") == runtime.statistics().deltas > 0
    assert found.of("workers") == runtime.statistics().workers
    assert found.of("stale_kills_total") == 0


def test_what_the_journal_has_counted_is_shown(runtime, metrics, journal):
    done = []
    terminal = run(runtime, [chat.answer("hello")])
    journal.begin(TurnRecord(id=terminal.turn_id), lambda _: None)
    journal.write(Entry(terminal.turn_id, terminal.offset, [terminal], lambda: done.append(True)))
    eventually(lambda: done)

    found = Samples(metrics)
    assert found.of("journal_events_total") == 1
    assert found.of("journal_commit_seconds_count") == journal.statistics().commits > 0
    assert found.of("journal_commit_seconds_sum") > 0
    assert found.of("journal_file_bytes") > 0
    assert found.of("journal_trouble") == 0


def test_every_series_is_shown_as_it_is_declared(metrics):
    text = metrics.scrape()[0].decode()
    kinds = dict(re.findall(r"^# TYPE (tidegate_\w+) (\w+)$", text, re.MULTILINE))
    words = dict(re.findall(r"^# HELP (tidegate_\w+) (.+)$", text, re.MULTILINE))

    assert kinds == {each.shown: each.kind for each in SERIES.values()}
    assert words == {each.shown: each.meaning for each in SERIES.values()}


def test_page_says_of_each_series_what_it_is():
    row = re.compile(r"^\| `(tidegate_\w+)` \| (\w+) \| (.*) \| (.+) \|$", re.MULTILINE)
    rows = row.findall(PAGE.read_text())

    assert rows == [
        (each.shown, each.kind, ", ".join(f"`{label}`" for label in each.labels), each.meaning)
        for each in SERIES.values()
    ]


def test_series_in_the_words_of_the_page_exist():
    shown = {each.shown for each in SERIES.values()}
    named = set(re.findall(r"tidegate_\w+", PAGE.read_text()))

    assert {re.sub("_bucket$", "", name) for name in named} == shown


def test_values_of_labels_are_those_of_the_configuration(metrics):
    terminal = tg.TurnInterrupted("turn_1", 0, 0, 10.0, "a reason", tg.Answer())
    metrics.turn_ended(ended(terminal, endpoint='my "own"\n', model="anything"))

    assert Samples(metrics).of("turns_total", 'my "own"\n', "chat", "turns", "interrupted")
    assert "anything" not in metrics.scrape()[0].decode()


@pytest.mark.parametrize(
    ("accept", "content_type", "families"),
    [
        ("", "text/plain; version=0.0.4", text_string_to_metric_families),
        (
            "application/openmetrics-text;version=1.0.0",
            "application/openmetrics",
            openmetrics_families,
        ),
    ],
)
def test_scraper_gets_the_form_that_it_takes(metrics, runtime, accept, content_type, families):
    metrics.turn_ended(ended(run(runtime, [chat.answer("hello")])))
    app = Starlette(routes=[Route("/metrics", MetricsRoute(metrics).show)])
    with Server(app) as server, Client(server.port) as client:
        client.ask(path="/metrics", headers=f"accept: {accept}\r\n" if accept else "")
        status, headers, body = client.answer()

    assert status == 200
    assert headers["content-type"].startswith(content_type)
    names = {family.name for family in families(body.decode())}
    assert {"tidegate_turns_running", "process_resident_memory_bytes"} <= names

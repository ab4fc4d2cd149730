"""Journals in a folder of their own, and a pen that waits for what it has written."""

import threading

import msgspec
import pytest

from tidegate.daemon.journal import Entry, Journal, TurnRecord
from tidegate.protocol.events import AttemptStarted, TextDelta


GUARD_S = 30
LONG_S = 1e12
START_S = 1_700_000_000.0


class Clock:
    """Seconds since the epoch, as the test says."""

    def __init__(self):
        self.now_s = START_S

    def __call__(self):
        return self.now_s


class Told(list):
    """What a callback was called with, and a way to wait for it."""

    def __init__(self):
        self._come = threading.Semaphore(0)

    def __call__(self, *values):
        self.append(values[0] if values else None)
        self._come.release()

    def wait(self):
        assert self._come.acquire(timeout=GUARD_S), "nobody called"
        return self[-1]


class Pen:
    """Writes to a journal and waits until it is committed."""

    def __init__(self, journal):
        self.journal = journal
        self.next = {}

    def begin(self, turn_id, **fields):
        told = Told()
        fields = {"wire": "chat", "endpoint": "main", "created_at": START_S} | fields
        self.journal.begin(TurnRecord(id=turn_id, **fields), told)
        return told.wait()

    def entry(self, turn_id, first, *events):
        told = Told()
        self.journal.write(Entry(turn_id, first, events, told))
        return told

    def write(self, turn_id, *events):
        self.entry(turn_id, events[0].offset, *events).wait()

    def withdraw(self, turn_id, first):
        self.entry(turn_id, first).wait()

    def forget(self, turn_id):
        told = Told()
        self.journal.forget(turn_id, told)
        return told.wait()

    def sweep(self):
        told = Told()
        self.journal.sweep(told)
        told.wait()

    def flush(self):
        """Wait for everything that was queued."""
        self.forget("turn_nobody")

    def held(self):
        """Hold up the writer; what is queued until the release is one group."""
        reached, go_on = threading.Event(), threading.Event()

        def hold(_):
            reached.set()
            assert go_on.wait(GUARD_S)

        self.journal.forget("turn_nobody", hold)
        assert reached.wait(GUARD_S)
        return Release(go_on)


class Release:
    """Lets the writer go on, at the latest when the test is over."""

    def __init__(self, go_on):
        self._go_on = go_on

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._go_on.set()


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def troubles():
    return Told()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "journal.db"


@pytest.fixture
def open_journal(path, clock, troubles):
    """Open the journal; keywords are those of ``Journal.open``."""
    journals = []

    def make(at=path, **options):
        limits = {"keep_s": LONG_S, "bytes_max": 1 << 40, "idempotency_keep_s": LONG_S}
        rest = {"sync": "normal", "clock": clock, "on_trouble": troubles}
        journal = Journal.open(at, **(limits | rest | options))
        journals.append(journal)
        return journal

    yield make
    for journal in journals:
        journal.close()


@pytest.fixture
def pen(open_journal):
    return Pen(open_journal())


@pytest.fixture
def new_pen(open_journal):
    """Open the journal anew, after whoever had it has closed it."""
    return lambda **options: Pen(open_journal(**options))


@pytest.fixture
def started():
    return lambda turn_id, offset=0, attempt=1: AttemptStarted(
        turn_id, attempt, offset, START_S, token=attempt
    )


@pytest.fixture
def words():
    """Make text deltas from an offset on."""

    def make(turn_id, first, *texts, attempt=1, choice=0):
        return [
            TextDelta(turn_id, attempt, offset, START_S, text, choice)
            for offset, text in enumerate(texts, first)
        ]

    return make


@pytest.fixture
def read():
    """Read all events of a turn as what they were, in pieces of so many bytes."""

    def take(journal, turn_id, after=-1, limit_bytes=1 << 20):
        lines = []
        while True:
            stored = journal.events(turn_id, after, limit_bytes)
            assert not stored.expired
            for kind, offset, line in stored.items:
                assert msgspec.json.decode(line)["type"] == kind
                assert msgspec.json.decode(line)["offset"] == offset
                assert offset == after + 1
                after = offset
                lines.append(line)
            if stored.ended or not stored.items:
                return lines

    return take

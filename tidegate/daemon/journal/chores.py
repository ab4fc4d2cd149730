"""What the writer does when it has nothing to write: join rows, and give up what has expired.

Each step is one small transaction of about a millisecond, so that an entry that comes meanwhile
waits no longer than that.

Path: ``journal/writer.py`` -> this -> SQLite.
"""

from __future__ import annotations

import sqlite3
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from tidegate.daemon.journal import store
from tidegate.daemon.journal.schema import first_place


CHUNK_BYTES = 64 << 10
TOMBSTONES_MAX = 100_000
TOMBSTONE_KEEPS = 4
"""How many times longer than its events a turn's final state is kept."""
_ROWS_PER_STEP = 512
_CHUNKS_PER_STEP = 16
_TURNS_PER_STEP = 128
_PAGES_PER_STEP = 128


class Limits(NamedTuple):
    """How long and how much is kept.

    Attributes:
        keep_s: seconds from a turn's end for which its events are kept.
        bytes_max: what the database may hold before the oldest ended turns lose their events.
        idempotency_keep_s: seconds from an ended turn's last change for which its key is kept.
    """

    keep_s: float
    bytes_max: int
    idempotency_keep_s: float


class Chores:
    """The steps that are due, one at a time.

    Args:
        connection: the writer's.
        loose: numbers of ended turns whose rows are to be joined.
        limits: what is kept.
        clock: seconds since the epoch.
    """

    def __init__(
        self,
        connection: sqlite3.Connection,
        loose: Iterable[int],
        limits: Limits,
        clock: Callable[[], float],
    ) -> None:
        self._connection = connection
        self._limits = limits
        self._clock = clock
        self._loose = deque(loose)
        self._steps: Iterator[None] | None = None
        self._waiting: list[Callable[[], None]] = []
        self._due = False
        self._finish: Callable[[sqlite3.Connection], None] | None = None

    @property
    def pending(self) -> bool:
        """Whether there is anything to do."""
        return self._steps is not None or self._due or bool(self._loose or self._finish)

    def join(self, numbers: list[int]) -> None:
        """Have the rows of ended turns joined."""
        self._loose.extend(numbers)

    def sweep(self, done: Callable[[], None] | None = None) -> None:
        """Have everything looked through for what has expired; ``done`` is called at its end."""
        self._due = True
        if done is not None:
            self._waiting.append(done)

    def turn_over(self, finish: Callable[[sqlite3.Connection], None]) -> None:
        """Have the write-ahead log started anew, before anything else."""
        self._finish = finish

    def step(self) -> list[Callable[[], None]]:
        """Do the next step; returns what to call because everything is done.

        Raises:
            sqlite3.Error: it was undone; what it was part of is begun anew at the next step.
        """
        if self._finish is not None:
            self._finish(self._connection)
            self._finish = None
            return []
        if self._steps is None:
            self._due, due = False, self._due
            self._steps = self._all(sweep=due)
        try:
            next(self._steps)
        except StopIteration:
            self._steps = None
        except BaseException:
            self._steps = None
            self._due = True
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise
        if self.pending:
            return []
        calls, self._waiting = self._waiting, []
        return calls

    def _all(self, *, sweep: bool) -> Iterator[None]:
        while self._loose:
            yield from self._join(self._loose[0])
            self._loose.popleft()
        if sweep:
            yield from self._expire_old()
            yield from self._expire_large()
            yield from self._bury()
            yield from self._drop_keys()
            yield from self._shrink()

    def _join(self, no: int) -> Iterator[None]:
        offset = kept = 0
        while (chunk := self._next_rows(no, offset)).spans:
            (place, last), *others = chunk.spans
            if others:
                newest, last = others[-1]
                with _transaction(self._connection):
                    self._connection.execute(
                        "DELETE FROM events WHERE place > ? AND place <= ?", (place, newest)
                    )
                    self._connection.execute(
                        "UPDATE events SET last = ?, data = ? WHERE place = ?",
                        (last, chunk.data, place),
                    )
            kept += len(chunk.data)
            offset = last + 1
            yield
        with _transaction(self._connection):
            store.drop_withdrawn(self._connection, no)
            self._connection.execute(
                "UPDATE turns SET compacted = 1, kept_bytes = ? WHERE no = ?", (kept, no)
            )
        yield

    def _next_rows(self, no: int, offset: int) -> store.Joined:
        return store.joined_rows(self._connection, no, offset, CHUNK_BYTES, _ROWS_PER_STEP)

    def _expire_old(self) -> Iterator[None]:
        before_s = self._clock() - self._limits.keep_s
        while (no := self._oldest(before_s)) is not None:
            yield from self._expire(no)

    def _expire_large(self) -> Iterator[None]:
        while self._used_bytes() > self._limits.bytes_max:
            no = self._oldest(float("inf"))
            if no is None:
                return  # the rest belongs to turns that run
            yield from self._expire(no)

    def _oldest(self, before_s: float) -> int | None:
        row = self._connection.execute(
            "SELECT no FROM turns WHERE expired = 0 AND ended_at <= ? ORDER BY ended_at LIMIT 1",
            (before_s,),
        ).fetchone()
        return None if row is None else int(row[0])

    def _expire(self, no: int) -> Iterator[None]:
        between = (first_place(no), first_place(no + 1))
        left = True
        while left:
            with _transaction(self._connection):
                # First of all, so that nobody takes a part for the whole.
                self._connection.execute(
                    "UPDATE turns SET expired = 1, compacted = 1, kept_bytes = 0 WHERE no = ?",
                    (no,),
                )
                left = bool(
                    self._connection.execute(
                        "DELETE FROM events WHERE place IN (SELECT place FROM events "
                        "WHERE place >= ? AND place < ? LIMIT ?)",
                        (*between, _CHUNKS_PER_STEP),
                    ).rowcount
                )
                if not left:
                    store.drop_withdrawn(self._connection, no)
            yield

    def _bury(self) -> Iterator[None]:
        before_s = self._clock() - TOMBSTONE_KEEPS * self._limits.keep_s
        (count,) = self._connection.execute(
            "SELECT count(*) FROM turns WHERE expired = 1"
        ).fetchone()
        too_many = count - TOMBSTONES_MAX
        while True:
            oldest = self._connection.execute(
                "SELECT no, ended_at FROM turns WHERE expired = 1 ORDER BY ended_at LIMIT ?",
                (_TURNS_PER_STEP,),
            ).fetchall()
            gone = [
                (no,)
                for place, (no, ended_at) in enumerate(oldest)
                if ended_at <= before_s or place < too_many
            ]
            if not gone:
                return
            with _transaction(self._connection):
                self._connection.executemany("DELETE FROM turns WHERE no = ?", gone)
            too_many -= len(gone)
            yield

    def _drop_keys(self) -> Iterator[None]:
        before_s = self._clock() - self._limits.idempotency_keep_s
        while self._connection.execute(
            "UPDATE turns SET idempotency_key = NULL WHERE no IN (SELECT no FROM turns "
            "WHERE idempotency_key IS NOT NULL AND ended_at IS NOT NULL AND changed_at <= ? "
            "LIMIT ?)",
            (before_s, _TURNS_PER_STEP),
        ).rowcount:
            yield

    def _shrink(self) -> Iterator[None]:
        # Some free pages are left, for what is given up today is needed again tomorrow.
        before = self._pragma("freelist_count")
        while (free := self._pragma("freelist_count")) > max(
            _PAGES_PER_STEP, self._pragma("page_count") // 16
        ):
            self._connection.execute(f"PRAGMA incremental_vacuum({_PAGES_PER_STEP})").fetchall()
            yield
            if self._pragma("freelist_count") >= free:
                return  # a reader holds the pages; the next sweep comes back to them
        if before != free:
            # The file itself becomes smaller once the log is carried over.
            self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
            yield

    def _used_bytes(self) -> int:
        pages = self._pragma("page_count") - self._pragma("freelist_count")
        return pages * self._pragma("page_size")

    def _pragma(self, name: str) -> int:
        return int(self._connection.execute(f"PRAGMA {name}").fetchone()[0])


class _transaction:  # noqa: N801 - used like a function
    """``BEGIN`` and ``COMMIT`` around a step; the step's caller rolls back."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def __enter__(self) -> None:
        self._connection.execute("BEGIN IMMEDIATE")

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            self._connection.execute("COMMIT")

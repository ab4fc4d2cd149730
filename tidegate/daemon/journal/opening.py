"""Opens a journal: its epoch grows, and turns that a lost daemon left open are ended.

Path: ``journal/journal.py`` -> this -> ``journal/schema.py``, ``journal/recovery.py``.
"""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from tidegate.daemon.journal import store
from tidegate.daemon.journal.lines import events_from, lines_from
from tidegate.daemon.journal.model import JournalError, TurnRecord
from tidegate.daemon.journal.recovery import Fold, end_lost
from tidegate.daemon.journal.schema import damaged, explained, first_place, prepare
from tidegate.protocol.events import TERMINAL


AUTO_CHECKPOINT_PAGES = 16_000
LOG_BYTES_KEPT = 64 << 20


_IN_MEMORY = "/dev/shm"  # noqa: S108 - a folder of our own is made in it


def scratch_folder() -> TemporaryDirectory[str]:
    """Return a folder that is gone when it is left, in memory if that can be.

    Raises:
        JournalError: none can be made.
    """
    for place in (_IN_MEMORY, None):
        if place is None or os.access(place, os.W_OK | os.X_OK):
            try:
                return TemporaryDirectory(prefix="tidegate-", dir=place)
            except OSError as error:
                why = error
    raise JournalError(
        f"journal none: no temporary folder can be made ({why.strerror}): give a file with "
        "--journal FILE"
    )


class Opened(NamedTuple):
    """A journal that is ready to be written.

    Attributes:
        epoch: how often it was opened.
        ended: turns that were open, as they are now.
        next_no: the number for the next turn.
        loose: numbers of ended turns whose rows were not joined yet.
    """

    connection: sqlite3.Connection
    epoch: int
    ended: list[TurnRecord]
    next_no: int
    loose: list[int]


def open_database(path: Path, sync: str, now_s: float) -> Opened:
    """Open the database, count the opening, and end what a lost daemon has left open.

    Args:
        path: the database; its lock is held.
        sync: ``normal`` survives any end of the process, ``full`` that of power, too.
        now_s: seconds since the epoch.

    Raises:
        JournalError: it cannot be used; the text names the file and the way out.
    """
    connection = prepare(path)
    try:
        with explained(path):
            # Still durable whatever ``sync`` is: no token is ever given again.
            connection.execute("UPDATE meta SET value = value + 1 WHERE name = 'epoch'")
            epoch = _number(connection, "SELECT value FROM meta WHERE name = 'epoch'")
            _set_pace(connection, sync)
            ended = recover(connection, path, now_s)
            next_no = _number(connection, "SELECT coalesce(max(no), 0) + 1 FROM turns")
            loose = connection.execute(
                "SELECT no FROM turns WHERE ended_at IS NOT NULL AND compacted = 0 ORDER BY no"
            ).fetchall()
    except BaseException:
        connection.close()
        raise
    return Opened(connection, epoch, ended, next_no, [no for (no,) in loose])


def recover(connection: sqlite3.Connection, path: Path, now_s: float) -> list[TurnRecord]:
    """End every turn that is open, each in a transaction of its own; returns them as they are now.

    Raises:
        JournalError: what is stored of one cannot be read.
    """
    rows = connection.execute(f"{store.SELECT_TURN} WHERE ended_at IS NULL ORDER BY no").fetchall()
    for no, *_ in rows:
        row = connection.execute(f"{store.SELECT_TURN} WHERE no = ?", (no,)).fetchone()
        record = store.record_from(row)
        connection.execute("BEGIN IMMEDIATE")
        try:
            _end(connection, no, record, now_s)
        except (ValueError, IndexError) as error:
            connection.execute("ROLLBACK")
            raise damaged(path, f"what it holds of turn {record.id}: {error}") from error
        connection.execute("COMMIT")
    return [
        store.record_from(connection.execute(f"{store.SELECT_TURN} WHERE no = ?", (no,)).fetchone())
        for no, *_ in rows
    ]


def _set_pace(connection: sqlite3.Connection, sync: str) -> None:
    connection.execute(f"PRAGMA synchronous = {'FULL' if sync == 'full' else 'NORMAL'}")
    connection.execute(f"PRAGMA wal_autocheckpoint = {AUTO_CHECKPOINT_PAGES}").fetchone()
    connection.execute(f"PRAGMA journal_size_limit = {LOG_BYTES_KEPT}").fetchone()


def _number(connection: sqlite3.Connection, query: str) -> int:
    return int(connection.execute(query).fetchone()[0])


def _end(connection: sqlite3.Connection, no: int, record: TurnRecord, now_s: float) -> None:
    fold = Fold(record.id, record.wire, f"{record.wire} {record.endpoint}", record.model)
    kept_bytes = 0
    for _, _, data in store.rows_from(connection, no, 0):
        kept_bytes += len(data)
        fold.add(events_from(data))
    withdrawn = events_from(store.withdrawn_of(connection, no))
    more = end_lost(fold, withdrawn, now_s)
    if more:
        data = lines_from(more)
        kept_bytes += len(data)
        place = first_place(no) + more[0].offset
        store.insert_rows(connection, [(place, more[-1].offset, data)])
        store.drop_withdrawn(connection, no)
    terminal = fold.terminal
    assert isinstance(terminal, TERMINAL), "what was folded has ended"
    store.end_turn(connection, no, terminal, kept_bytes, now_s)

"""Reads the journal beside its writer, from any number of threads.

Path: ``journal/journal.py`` -> this -> SQLite.
"""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tidegate.daemon.journal import store
from tidegate.daemon.journal.chores import CHUNK_BYTES
from tidegate.daemon.journal.lines import type_of
from tidegate.daemon.journal.model import JournalError, StoredEvents, TurnRecord, TurnState
from tidegate.daemon.journal.schema import connect, damaged, first_place, offset_at, touch


NAMELESS_CONNECTIONS = 4
_LIVE_OR_ENDED = (
    "(id IN (SELECT value FROM json_each(?)) OR (id NOT IN (SELECT value FROM json_each(?)) "
    "AND ended_at IS NOT NULL AND state = coalesce(?, state)))"
)


class Reader:
    """Connections that can only read, each used by one thread at a time and kept for the next."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._changed = threading.Condition()
        self._free: list[sqlite3.Connection] = []
        self._closed = False
        self._is_nameless = False

    def lose_name(self) -> None:
        """Open all connections that there will ever be, for the file's name is taken away."""
        for _ in range(NAMELESS_CONNECTIONS):
            connection = connect(self._path, read_only=True)
            touch(connection)
            self._free.append(connection)
        self._is_nameless = True

    def turn(self, turn_id: str) -> TurnRecord | None:
        """Return a turn, if there is such a turn."""
        found = self._select("WHERE id = ?", [turn_id])
        return found[0] if found else None

    def turns(
        self,
        *,
        owner: str | None,
        limit: int,
        before: str | None,
        state: TurnState | None,
        live: Mapping[str, TurnState] | None,
    ) -> list[TurnRecord]:
        """Return turns, the newest first."""
        conditions, values = [], list[Any]()
        if owner is not None:
            conditions.append("owner = ?")
            values.append(owner)
        if live is not None:
            conditions.append(_LIVE_OR_ENDED)
            fitting = [each for each, its_state in live.items() if state in (None, its_state)]
            values += [json.dumps(fitting), json.dumps(list(live)), state]
        elif state is not None:
            conditions.append("state = ?")
            values.append(state)
        if before is not None:
            conditions.append(
                "no < (SELECT no FROM turns WHERE id = ? AND owner = coalesce(?, owner))"
            )
            values += [before, owner]
        where = "WHERE " + " AND ".join(conditions) if conditions else ""
        return self._select(f"{where} ORDER BY no DESC LIMIT ?", [*values, limit])

    def events(self, turn_id: str, after: int, limit_bytes: int) -> StoredEvents:
        """Return events of a turn behind the offset ``after``, at least one if there is one."""
        with self._connection() as connection:
            row = connection.execute(
                "SELECT no, ended_at IS NOT NULL, expired FROM turns WHERE id = ?", (turn_id,)
            ).fetchone()
            if row is None or row[2]:
                return StoredEvents([], ended=True, expired=True)
            no, ended, _ = row
            # Of the first row most may be behind ``after``.
            joined = store.joined_rows(connection, no, after + 1, limit_bytes + CHUNK_BYTES)
            (high,) = connection.execute(
                "SELECT max(place) FROM events WHERE place < ?", (first_place(no + 1),)
            ).fetchone()
        try:
            items, whole = _items_from(joined, after, limit_bytes)
        except (ValueError, IndexError) as error:
            raise damaged(self._path, f"what it holds of turn {turn_id}: {error}") from error
        at_end = whole and (not joined.spans or joined.spans[-1][0] == high)
        return StoredEvents(items, ended=bool(ended) and at_end, expired=False)

    def close(self) -> None:
        """Close all connections; those in use are closed when they are given back."""
        with self._changed:
            self._closed = True
            free, self._free = self._free, []
            self._changed.notify_all()
        for connection in free:
            connection.close()

    def _select(self, rest: str, values: list[Any]) -> list[TurnRecord]:
        with self._connection() as connection:
            rows = connection.execute(f"{store.SELECT_TURN} {rest}", values).fetchall()
        return [store.record_from(row) for row in rows]

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        """Lend a connection inside a transaction, so that all it reads is of one instant."""
        connection = self._lent()
        try:
            connection.execute("BEGIN")
            yield connection
            connection.execute("COMMIT")
        except sqlite3.Error as error:
            self._take_back_broken(connection)
            raise self._unreadable(error) from error
        except BaseException:
            self._take_back_broken(connection)
            raise
        self._take_back(connection)

    def _lent(self) -> sqlite3.Connection:
        with self._changed:
            if self._is_nameless:
                self._changed.wait_for(lambda: self._free or self._closed)
            if self._closed:
                raise JournalError(f"journal {self._path}: it is closed; nothing can be read")
            if self._free:
                return self._free.pop()
        try:
            return connect(self._path, read_only=True)
        except sqlite3.Error as error:
            raise self._unreadable(error) from error

    def _unreadable(self, error: sqlite3.Error) -> JournalError:
        return JournalError(
            f"journal {self._path}: it cannot be read ({error}); "
            "see what the daemon's log says of its writer"
        )

    def _take_back(self, connection: sqlite3.Connection) -> None:
        with self._changed:
            if not self._closed:
                self._free.append(connection)
                self._changed.notify()
                return
        connection.close()

    def _take_back_broken(self, connection: sqlite3.Connection) -> None:
        """Keep a connection whose transaction has failed only if there can be no other."""
        if not self._is_nameless:
            connection.close()
            return
        with suppress(sqlite3.Error):
            connection.execute("ROLLBACK")
        self._take_back(connection)


def _items_from(
    joined: store.Joined, after: int, limit_bytes: int
) -> tuple[list[tuple[str, int, bytes]], bool]:
    """Return the events behind ``after``, and whether these are all of them."""
    lines = joined.data.splitlines()
    items: list[tuple[str, int, bytes]] = []
    size = number = 0
    for place, last in joined.spans:
        for offset in range(offset_at(place), last + 1):
            line = lines[number]
            number += 1
            if offset <= after:
                continue
            size += len(line)
            if items and size > limit_bytes:
                return items, False
            items.append((type_of(line), offset, line))
    return items, True

"""Statements of the writer: each is one step inside a transaction that its caller began.

Path: ``journal/group.py``, ``journal/opening.py`` -> this -> SQLite.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

from tidegate.daemon.journal.lines import json_from, type_of
from tidegate.daemon.journal.model import TurnRecord, final_from, state_of
from tidegate.daemon.journal.recovery import WITHDRAWABLE
from tidegate.daemon.journal.schema import first_place
from tidegate.protocol.events import Terminal


ROWS_AT_ONCE = 64
"""How many rows one statement inserts at most."""

EventRow: TypeAlias = tuple[int, int, bytes]

_WITHDRAWABLE_TYPES = frozenset(each.__struct_config__.tag for each in WITHDRAWABLE)
_COLUMNS = (
    "id, owner, endpoint, wire, model, api, on_disconnect, created_at, ended_at, changed_at, "
    "state, attempt, coalesce(idempotency_key, ''), idempotency_digest, kept_bytes, expired, final"
)
SELECT_TURN = f"SELECT no, {_COLUMNS} FROM turns"  # noqa: S608 - our own words
_INSERT_TURN = (
    "INSERT INTO turns (no, id, owner, endpoint, wire, model, api, on_disconnect, created_at, "
    "ended_at, changed_at, state, attempt, idempotency_key, idempotency_digest, final) "
    "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, nullif(?, ''), ?, ?)"
)
_INSERT_EVENTS = [
    f"INSERT INTO events (place, last, data) VALUES {', '.join(['(?, ?, ?)'] * count)}"  # noqa: S608
    for count in range(ROWS_AT_ONCE + 1)
]
# Each of the two is one step, however many rows there are.
_MEASURE_ROWS = """
SELECT group_concat(place), group_concat(last), group_concat(size) FROM (
    SELECT place, last, length(data) AS size FROM events
    WHERE place >= coalesce((SELECT max(place) FROM events WHERE place >= :low AND place <= :at),
                            :low) AND place < :high AND last >= :offset
    ORDER BY place LIMIT :rows)
"""
_JOIN_ROWS = """
SELECT CAST(group_concat(data, '') AS BLOB) FROM (
    SELECT data FROM events WHERE place >= ? AND place <= ? ORDER BY place LIMIT ?)
"""


def record_from(row: Sequence[Any]) -> TurnRecord:
    """Return the turn in a row of ``SELECT_TURN``."""
    fields = dict(zip(TurnRecord.__struct_fields__, row[1:], strict=True))
    fields["expired"] = bool(fields["expired"])
    return TurnRecord(**fields)


def insert_turn(connection: sqlite3.Connection, no: int, record: TurnRecord) -> None:
    """Add a turn."""
    connection.execute(
        _INSERT_TURN,
        (
            no,
            record.id,
            record.owner,
            record.endpoint,
            record.wire,
            record.model,
            record.api,
            record.on_disconnect,
            record.created_at,
            record.ended_at,
            record.changed_at,
            record.state,
            record.attempt,
            record.idempotency_key,
            record.idempotency_digest,
            record.final,
        ),
    )


def insert_rows(connection: sqlite3.Connection, rows: Sequence[EventRow]) -> None:
    """Add rows of events in as few steps as may be.

    Each step gives up the interpreter's lock, and a busy thread may take long to give it back. Up
    to ``ROWS_AT_ONCE`` rows are one step, which outside a transaction is one of its own.
    """
    for start in range(0, len(rows), ROWS_AT_ONCE):
        part = rows[start : start + ROWS_AT_ONCE]
        connection.execute(_INSERT_EVENTS[len(part)], [value for row in part for value in row])


def end_turn(
    connection: sqlite3.Connection, no: int, terminal: Terminal, kept_bytes: int, now_s: float
) -> None:
    """Keep how a turn ended."""
    connection.execute(
        "UPDATE turns SET state = ?, ended_at = ?, changed_at = ?, attempt = ?, kept_bytes = ?, "
        "final = ? WHERE no = ?",
        (
            state_of(terminal),
            terminal.at_s,
            now_s,
            terminal.attempt,
            kept_bytes,
            json_from(final_from(terminal)),
            no,
        ),
    )


def begin_attempt(connection: sqlite3.Connection, no: int, attempt: int, now_s: float) -> None:
    """Keep that a turn's attempt has started."""
    connection.execute(
        "UPDATE turns SET state = 'running', attempt = ?, changed_at = ? "
        "WHERE no = ? AND ended_at IS NULL",
        (attempt, now_s, no),
    )


def drop_key(connection: sqlite3.Connection, turn_id: str) -> None:
    """Let a turn's idempotency key be used again."""
    connection.execute("UPDATE turns SET idempotency_key = NULL WHERE id = ?", (turn_id,))


def number_of(connection: sqlite3.Connection, turn_id: str) -> int | None:
    """Return a turn's number, if there is such a turn."""
    row = connection.execute("SELECT no FROM turns WHERE id = ?", (turn_id,)).fetchone()
    return None if row is None else int(row[0])


def delete_turn(connection: sqlite3.Connection, no: int) -> None:
    """Remove a turn and all that is stored of it."""
    delete_events(connection, no)
    connection.execute("DELETE FROM turns WHERE no = ?", (no,))


def delete_events(connection: sqlite3.Connection, no: int) -> None:
    """Remove the events of a turn, those withdrawn too."""
    between = (first_place(no), first_place(no + 1))
    connection.execute("DELETE FROM events WHERE place >= ? AND place < ?", between)
    connection.execute("DELETE FROM withdrawn WHERE place >= ? AND place < ?", between)


class Joined(NamedTuple):
    """Consecutive rows of a turn, and their data in one piece.

    Attributes:
        spans: place and last offset of each row.
    """

    spans: list[tuple[int, int]]
    data: bytes


def joined_rows(
    connection: sqlite3.Connection, no: int, offset: int, bytes_max: int, rows_max: int = 512
) -> Joined:
    """Return the rows of a turn from the one that holds ``offset`` on, at least one if there is.

    A few steps whatever there is, because each gives up the interpreter's lock.
    """
    low = first_place(no)
    at, high = low + max(0, offset), first_place(no + 1)
    bounds = {"low": low, "at": at, "high": high, "offset": offset, "rows": rows_max}
    found = connection.execute(_MEASURE_ROWS, bounds).fetchone()
    if found[0] is None:
        return Joined([], b"")
    spans: list[tuple[int, int]] = []
    size = 0
    for place, last, length in zip(*(map(int, each.split(",")) for each in found), strict=True):
        size += length
        if spans and size > bytes_max:
            break
        spans.append((place, last))
    ends = (spans[0][0], spans[-1][0], len(spans))
    (data,) = connection.execute(_JOIN_ROWS, ends).fetchone()
    return Joined(spans, data)


def rows_from(connection: sqlite3.Connection, no: int, offset: int) -> list[EventRow]:
    """Return all rows of a turn from the one that holds ``offset`` on, as place, last and data."""
    low, at = first_place(no), first_place(no) + max(0, offset)
    return connection.execute(
        "SELECT place, last, data FROM events WHERE place >= coalesce("
        "(SELECT max(place) FROM events WHERE place >= ? AND place <= ?), ?) "
        "AND place < ? ORDER BY place",
        (low, at, low, first_place(no + 1)),
    ).fetchall()


def withdraw(connection: sqlite3.Connection, no: int, first: int) -> tuple[int, bool]:
    """Take back all events from ``first`` on.

    Returns:
        How many bytes fewer are kept, and whether any of it may be given back.
    """
    fewer, gone = 0, b""
    for place, last, data in rows_from(connection, no, first):
        if last < first:
            continue
        stays = max(0, first - (place - first_place(no)))
        lines = data.splitlines(keepends=True)
        left, taken = b"".join(lines[:stays]), lines[stays:]
        fewer += len(data) - len(left)
        gone += b"".join(line for line in taken if type_of(line) in _WITHDRAWABLE_TYPES)
        if left:
            connection.execute(
                "UPDATE events SET last = ?, data = ? WHERE place = ?", (first - 1, left, place)
            )
        else:
            connection.execute("DELETE FROM events WHERE place = ?", (place,))
    if gone:
        connection.execute(
            "INSERT INTO withdrawn SELECT coalesce(max(place) + 1, ?), ? FROM withdrawn "
            "WHERE place >= ? AND place < ?",
            (first_place(no), gone, first_place(no), first_place(no + 1)),
        )
    return fewer, bool(gone)


def drop_withdrawn(connection: sqlite3.Connection, no: int) -> None:
    """Give up for good what was withdrawn of a turn."""
    connection.execute(
        "DELETE FROM withdrawn WHERE place >= ? AND place < ?",
        (first_place(no), first_place(no + 1)),
    )


def withdrawn_of(connection: sqlite3.Connection, no: int) -> bytes:
    """Return the lines that were withdrawn of a turn and may be given back, in order."""
    rows = connection.execute(
        "SELECT data FROM withdrawn WHERE place >= ? AND place < ? ORDER BY place",
        (first_place(no), first_place(no + 1)),
    )
    return b"".join(data for (data,) in rows)

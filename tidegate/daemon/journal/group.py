"""One commit group: everything that was queued at one moment, in one transaction.

A group changes nothing of what is known in memory before it is committed, so that it can be tried
again from the start.

Path: ``journal/writer.py`` -> this -> ``journal/store.py``.
"""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import NamedTuple, TypeAlias

import msgspec

from tidegate.daemon.journal import store
from tidegate.daemon.journal.lines import lines_from
from tidegate.daemon.journal.model import Entry, Reserved, TurnRecord
from tidegate.daemon.journal.recovery import voids_withdrawn
from tidegate.daemon.journal.schema import first_place
from tidegate.protocol.events import TERMINAL, AnyEvent, Terminal


_log = logging.getLogger("tidegate.journal")

EVENTS_PER_ROW_MAX = 256


class Begin(NamedTuple):
    """Reserve a turn."""

    record: TurnRecord
    done: Callable[[Reserved], None]


class Forget(NamedTuple):
    """Remove a turn."""

    turn_id: str
    done: Callable[[bool], None]


class Sweep(NamedTuple):
    """Look for what has expired now, and say when all of it is gone."""

    done: Callable[[], None]


Item: TypeAlias = Entry | Begin | Forget | Sweep


class Tail:
    """The end of a turn's events as the journal has them.

    Attributes:
        next: the offset that follows the last one.
        loose: whether something withdrawn may still be given back.
    """

    __slots__ = ("attempt", "changed", "kept_bytes", "loose", "next", "no", "pending", "terminal")

    def __init__(self, no: int) -> None:
        self.no = no
        self.next = 0
        self.attempt = 0
        self.kept_bytes = 0
        self.loose = False
        self.pending: list[AnyEvent] = []
        self.changed = False
        self.terminal: Terminal | None = None

    def copy(self) -> Tail:
        """Return one that can be given up."""
        other = Tail(self.no)
        other.next, other.attempt = self.next, self.attempt
        other.kept_bytes, other.loose = self.kept_bytes, self.loose
        return other


class Group:
    """The work of one transaction.

    Args:
        connection: the writer's.
        tails: what is known of each turn that has not ended; not changed.
        next_no: the number for the next turn.
        now_s: seconds since the epoch.
        key_keep_s: how long an ended turn's idempotency key is kept.

    Attributes:
        calls: what to call once it is committed, in order.
        touched: the tails that it has changed; None for a turn that is gone.
        ended: numbers of turns whose rows can be joined now.
        pages: of the write-ahead log that it takes, more or less.
        sweeps: whom to tell that everything that has expired is gone.
    """

    def __init__(
        self,
        connection: sqlite3.Connection,
        tails: Mapping[str, Tail],
        next_no: int,
        *,
        now_s: float,
        key_keep_s: float,
    ) -> None:
        self._connection = connection
        self._tails = tails
        self._now_s = now_s
        self._key_keep_s = key_keep_s
        self._rows: list[store.EventRow] = []
        self.next_no = next_no
        self.calls: list[Callable[[], None]] = []
        self.touched: dict[str, Tail | None] = {}
        self.ended: list[int] = []
        self.sweeps: list[Callable[[], None]] = []
        self.pages = 1
        self.entries = self.events = self.data_bytes = self.withdrawals = self.refused = 0

    def commit(self, items: Iterable[Item]) -> None:
        """Carry out ``items`` in order, all of them or none.

        Raises:
            sqlite3.Error: none of them; the transaction is rolled back.
        """
        try:
            for item in items:
                if isinstance(item, Entry):
                    self._entry(item)
                else:
                    self._other(item)
            for tail in self.touched.values():
                if tail is not None:
                    self._flush(tail)
            # One statement outside a transaction is a transaction, at half the cost.
            if len(self._rows) > store.ROWS_AT_ONCE:
                self._transact()
            self._write_rows()
            for tail in self.touched.values():
                if tail is not None and tail.changed:
                    self._keep_state(tail)
            if self._connection.in_transaction:
                self._connection.execute("COMMIT")
        except BaseException:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise

    def _entry(self, entry: Entry) -> None:
        self.calls.append(entry.done)
        self.entries += 1
        tail = self._tail(entry.turn_id)
        if tail is None:
            self.refused += 1
            _log.info("turn %s is not in the journal: its events are refused", entry.turn_id)
            return
        first, events = entry.first, entry.events
        if first != tail.next:
            self._jump(entry.turn_id, tail, first)
        if not events:
            return
        tail.pending.extend(events)
        tail.next = first + len(events)
        self.events += len(events)
        if tail.loose and voids_withdrawn(events):
            self._transact()
            store.drop_withdrawn(self._connection, tail.no)
            tail.loose = False
        last = events[-1]
        if last.attempt > tail.attempt:
            tail.attempt, tail.changed = last.attempt, True
            self._transact()
        if isinstance(last, TERMINAL):
            tail.terminal, tail.changed = last, True
            self.ended.append(tail.no)
            self._transact()

    def _other(self, item: Begin | Forget | Sweep) -> None:
        self._transact()
        if isinstance(item, Begin):
            self.calls.append(partial(item.done, self._reserve(item.record)))
        elif isinstance(item, Forget):
            no = store.number_of(self._connection, item.turn_id)
            if no is not None:
                self.touched[item.turn_id] = None
                # Its rows that were not written yet are dropped below the ones that were.
                self._rows = [row for row in self._rows if not _is_of(row, no)]
                store.delete_turn(self._connection, no)
            self.calls.append(partial(item.done, no is not None))
        else:
            self.sweeps.append(item.done)

    def _reserve(self, record: TurnRecord) -> Reserved:
        known = self._select("WHERE id = ?", record.id)
        if known is not None:
            return Reserved(known, conflict=True)
        if record.idempotency_key:
            known = self._select(
                "WHERE owner = ? AND idempotency_key = ?", record.owner, record.idempotency_key
            )
            if known is not None and not self._key_expired(known):
                same = known.idempotency_digest == record.idempotency_digest
                return Reserved(known, replayed=same, conflict=not same)
            if known is not None:
                store.drop_key(self._connection, known.id)
        record = msgspec.structs.replace(record, changed_at=self._now_s)
        store.insert_turn(self._connection, self.next_no, record)
        self.touched[record.id] = Tail(self.next_no)
        self.next_no += 1
        return Reserved(record)

    def _jump(self, turn_id: str, tail: Tail, first: int) -> None:
        self._flush(tail)
        if first > tail.next:
            # Kept as it is: an offset that is missing shows more than one that was made up.
            _log.error("turn %s: offsets %d to %d are missing", turn_id, tail.next, first - 1)
            tail.next = first
            return
        self.withdrawals += 1
        self._transact()
        self._write_rows()
        fewer, loose = store.withdraw(self._connection, tail.no, first)
        tail.kept_bytes -= fewer
        tail.loose = tail.loose or loose
        tail.next = first

    def _keep_state(self, tail: Tail) -> None:
        tail.changed = False
        if tail.terminal is None:
            store.begin_attempt(self._connection, tail.no, tail.attempt, self._now_s)
        else:
            store.end_turn(self._connection, tail.no, tail.terminal, tail.kept_bytes, self._now_s)

    def _flush(self, tail: Tail) -> None:
        events, tail.pending = tail.pending, []
        for start in range(0, len(events), EVENTS_PER_ROW_MAX):
            part = events[start : start + EVENTS_PER_ROW_MAX]
            data = lines_from(part)
            place = first_place(tail.no) + part[0].offset
            self._rows.append((place, part[-1].offset, data))
            tail.kept_bytes += len(data)
            self.data_bytes += len(data)
            self.pages += 1 + (len(data) >> 12)

    def _write_rows(self) -> None:
        store.insert_rows(self._connection, self._rows)
        self._rows = []

    def _tail(self, turn_id: str) -> Tail | None:
        if turn_id in self.touched:
            return self.touched[turn_id]
        known = self._tails.get(turn_id)
        if known is None:
            return None
        tail = self.touched[turn_id] = known.copy()
        return tail

    def _transact(self) -> None:
        if not self._connection.in_transaction:
            self._connection.execute("BEGIN IMMEDIATE")

    def _select(self, where: str, *values: str) -> TurnRecord | None:
        row = self._connection.execute(f"{store.SELECT_TURN} {where}", values).fetchone()
        return None if row is None else store.record_from(row)

    def _key_expired(self, record: TurnRecord) -> bool:
        ended = record.ended_at is not None
        return ended and self._now_s - record.changed_at >= self._key_keep_s


def _is_of(row: store.EventRow, no: int) -> bool:
    return first_place(no) <= row[0] < first_place(no + 1)

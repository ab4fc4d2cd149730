"""The journal: what the daemon's turns were, in a file that survives it.

Nothing is shown to a reader before it is in here, so whatever a client saw is there after the
daemon was killed. One thread writes (``writer.py``); reading is done in any thread, beside it.

Path: the turns of the daemon -> this -> ``journal/writer.py``, ``journal/reader.py``.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal, Self

from tidegate.daemon.journal import opening
from tidegate.daemon.journal.chores import Chores, Limits
from tidegate.daemon.journal.group import Begin, Forget, Sweep
from tidegate.daemon.journal.lock import FileLock
from tidegate.daemon.journal.model import (
    Entry,
    JournalError,
    JournalStatistics,
    JournalTrouble,
    Reserved,
    StoredEvents,
    TurnRecord,
    TurnState,
)
from tidegate.daemon.journal.reader import Reader
from tidegate.daemon.journal.schema import check_place, secure
from tidegate.daemon.journal.writer import Writer


class Journal:
    """One open journal; made by ``open``.

    Attributes:
        epoch: how often it was opened; the tokens of this run begin at ``epoch << 32``.
    """

    def __init__(
        self, lock: FileLock, writer: Writer, reader: Reader, epoch: int, ended: list[TurnRecord]
    ) -> None:
        self.epoch = epoch
        self._lock = lock
        self._writer = writer
        self._reader = reader
        self._recovered = ended

    @classmethod
    def open(  # noqa: PLR0913 - each is a key of the configuration
        cls,
        path: str | Path,
        *,
        sync: Literal["normal", "full"] = "normal",
        keep_s: float,
        bytes_max: int,
        idempotency_keep_s: float,
        clock: Callable[[], float] = time.time,
        on_trouble: Callable[[JournalTrouble | None], None],
    ) -> Self:
        """Open the journal at ``path``, which is made if it is not there, and end what was open.

        Args:
            path: the database; ``-wal``, ``-shm`` and ``.lock`` come beside it, all mode 0600.
            sync: ``normal``: a commit survives any end of the process; ``full``: of power, too.
            keep_s: seconds from a turn's end for which its events are kept; its final state is
                kept four times as long.
            bytes_max: what the file may hold before the oldest ended turns lose their events.
            idempotency_keep_s: seconds from an ended turn's last change for which its key is kept.
            clock: seconds since the epoch.
            on_trouble: called in the writer's thread when nothing can be written, and with None
                when everything that waited is written.

        Raises:
            JournalError: it cannot be used; the text names the file and the way out.
        """
        path = Path(path).expanduser().absolute()
        limits = Limits(keep_s, bytes_max, idempotency_keep_s)
        check_place(path)
        lock = FileLock(path)
        try:
            secure(path)
            opened = opening.open_database(path, sync, clock())
        except BaseException:
            lock.release()
            raise
        writer = Writer(
            path,
            opened.connection,
            Chores(opened.connection, opened.loose, limits, clock),
            next_no=opened.next_no,
            key_keep_s=idempotency_keep_s,
            clock=clock,
            on_trouble=on_trouble,
        )
        return cls(lock, writer, Reader(path), opened.epoch, opened.ended)

    @classmethod
    def open_nameless(
        cls,
        *,
        keep_s: float,
        bytes_max: int,
        idempotency_keep_s: float,
        clock: Callable[[], float] = time.time,
        on_trouble: Callable[[JournalTrouble | None], None],
    ) -> Self:
        """Open a journal that ends with this process, however that ends.

        Its files are open and have no names, in memory where the system has a folder for that. The
        arguments are those of ``open``.

        Raises:
            JournalError: it cannot be made.
        """
        with opening.scratch_folder() as folder:
            journal = cls.open(
                Path(folder) / "journal.db",
                keep_s=keep_s,
                bytes_max=bytes_max,
                idempotency_keep_s=idempotency_keep_s,
                clock=clock,
                on_trouble=on_trouble,
            )
            journal._lose_name()  # noqa: SLF001 - its own
        return journal

    def _lose_name(self) -> None:
        self._writer.lose_name()
        self._reader.lose_name()

    def recovered(self) -> list[TurnRecord]:
        """Return the turns that were open when it was opened; they have failed since."""
        return list(self._recovered)

    def begin(
        self, record: TurnRecord, done: Callable[[Reserved], None], *, soon: bool = True
    ) -> None:
        """Reserve a turn, before any work for it starts.

        Args:
            record: the turn; with an idempotency key, one of the same owner may be there already.
            done: called in the writer's thread once it is committed, with what became of it.
            soon: whether somebody waits for that; otherwise it is committed with what comes next,
                such as the turn's first event.

        Raises:
            JournalError: a field is no text that can be stored, or the journal is closed.
        """
        for name in record.__struct_fields__:
            value = getattr(record, name)
            if isinstance(value, str) and not value.isascii():
                try:
                    value.encode()
                except UnicodeEncodeError as error:
                    raise JournalError(
                        f"the turn's {name} {value!a} holds half a character; "
                        "send it as valid Unicode"
                    ) from error
        self._writer.put(Begin(record, done), soon=soon)

    def write(self, entry: Entry, *, soon: bool = True) -> None:
        """Store events; returns at once, ``entry.done`` is called when they are committed.

        Args:
            entry: the events.
            soon: whether that is begun now, and not when ``wake`` is called.

        Raises:
            ValueError: the events do not begin at ``entry.first``.
            JournalError: the journal is closed.
        """
        events = entry.events
        if events and events[0].offset != entry.first:
            raise ValueError(
                f"turn {entry.turn_id}: an entry from offset {entry.first} on begins with "
                f"offset {events[0].offset}"
            )
        self._writer.put(entry, soon=soon)

    def wake(self) -> None:
        """Begin to store what has come and was not to be stored by itself; returns at once."""
        self._writer.wake()

    def forget(self, turn_id: str, done: Callable[[bool], None]) -> None:
        """Remove a turn with all its events; ``done`` is told whether there was one.

        What is written for it later is refused, and its ``done`` called all the same.

        Raises:
            JournalError: the journal is closed.
        """
        self._writer.put(Forget(turn_id, done))

    def sweep(self, done: Callable[[], None]) -> None:
        """Give up now what has expired, instead of within half a minute.

        Args:
            done: called in the writer's thread when all of it is gone; not if it is closed
                before that.

        Raises:
            JournalError: the journal is closed.
        """
        self._writer.put(Sweep(done))

    def turn(self, turn_id: str) -> TurnRecord | None:
        """Return a turn, if there is such a turn.

        Raises:
            JournalError: it cannot be read; so for all that follow.
        """
        return self._reader.turn(turn_id)

    def turns(
        self,
        *,
        owner: str | None = None,
        limit: int,
        before: str | None = None,
        state: TurnState | None = None,
        live: Mapping[str, TurnState] | None = None,
    ) -> list[TurnRecord]:
        """Return at most ``limit`` turns, the newest first.

        Args:
            owner: whose; None for all.
            limit: how many at most.
            before: only turns that are older than the one of this id; none if it is not there.
            state: only turns in this state.
            live: the state of each turn that is in memory, which then counts in place of what is
                written; of all others only those that have ended are returned. None for what is
                written, which names turns too that are not taken on.
        """
        return self._reader.turns(owner=owner, limit=limit, before=before, state=state, live=live)

    def events(self, turn_id: str, after: int, limit_bytes: int) -> StoredEvents:
        """Return the next events of a turn.

        A turn that is not there has nothing that is kept: ``expired``.

        Args:
            turn_id: the turn.
            after: the offset of the last one that the reader has, -1 for none.
            limit_bytes: of JSON; one event is returned however large it is.
        """
        return self._reader.events(turn_id, after, limit_bytes)

    def statistics(self) -> JournalStatistics:
        """Count what was done so far."""
        return self._writer.statistics()

    def close(self) -> None:
        """Write what is queued, then let another daemon have the file; idempotent.

        Raises:
            JournalLost: not everything could be written; the text says what.
        """
        self._reader.close()
        try:
            self._writer.close()
        finally:
            self._lock.release()

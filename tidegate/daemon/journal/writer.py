"""The one thread that writes the journal.

It takes everything that is queued, commits it as one group, and says so to whoever waits; then it
takes what has come meanwhile. Nothing is waited for to make a group larger. A group that cannot be
committed is kept and tried again, and what follows waits behind it.

Path: ``journal/journal.py`` -> this -> ``journal/group.py``, ``journal/chores.py``.
"""

from __future__ import annotations

import logging
import sqlite3
import threading
import time
from bisect import bisect_left
from collections.abc import Callable
from pathlib import Path

from tidegate.daemon.journal.checkpoint import Checkpointer
from tidegate.daemon.journal.chores import Chores
from tidegate.daemon.journal.files import Files
from tidegate.daemon.journal.group import Group, Item, Tail
from tidegate.daemon.journal.inbox import Inbox
from tidegate.daemon.journal.model import (
    Entry,
    JournalError,
    JournalLost,
    JournalStatistics,
    JournalTrouble,
)
from tidegate.daemon.journal.trouble import trouble_from


_log = logging.getLogger("tidegate.journal")

RETRY_S = 1.0
SWEEP_EVERY_S = 30.0
CHORE_EVERY_S = 0.05
"""How long joining and expiring may be put off by a queue that is never empty."""
_GROUP_ITEMS_MAX = 20_000
_BUCKETS_S = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0)


class _Stop:
    """Put in the queue behind the last item."""


class Writer:
    """The thread and its queue.

    Args:
        path: the database, absolute.
        connection: the writer's own from here on.
        chores: what it does between groups.
        next_no: the number for the next turn.
        key_keep_s: how long an ended turn's idempotency key is kept.
        clock: seconds since the epoch.
        on_trouble: told, in the writer's thread, why nothing can be written, and None when
            everything that waited is written.
    """

    def __init__(  # noqa: PLR0913 - each is a fact of its own
        self,
        path: Path,
        connection: sqlite3.Connection,
        chores: Chores,
        *,
        next_no: int,
        key_keep_s: float,
        clock: Callable[[], float],
        on_trouble: Callable[[JournalTrouble | None], None],
    ) -> None:
        self._path = path
        self._connection = connection
        self._chores = chores
        self._checkpointer = Checkpointer(path)
        self._next_no = next_no
        self._key_keep_s = key_keep_s
        self._clock = clock
        self._on_trouble = on_trouble
        self._tails: dict[str, Tail] = {}
        self._inbox: Inbox[Item | _Stop] = Inbox()
        self._group: list[Item] = []
        self._lost = ""
        self._troubles: dict[Callable[[], None], JournalTrouble] = {}
        self._files = Files(path, connection)
        self._chore_at_s = 0.0
        self._sweep_at_s = 0.0
        self._counts = [0] * 6
        self._buckets = [0] * (len(_BUCKETS_S) + 1)
        self._commit_s = 0.0
        # Of those that end with the program: nothing that is still queued was promised to anybody.
        self._thread = threading.Thread(target=self._run, name="tidegate-journal", daemon=True)
        self._thread.start()

    def lose_name(self) -> None:
        """Go on without looking for the file by its name, which is taken away."""
        self._checkpointer.touch()
        self._files.lose_names()

    def put(self, item: Item, *, soon: bool = True) -> None:
        """Queue ``item``; never waits.

        Args:
            item: the next one.
            soon: whether it is to be written now, and not with whatever comes next.

        Raises:
            JournalError: the journal is closed.
        """
        if not self._inbox.put(item, soon=soon):
            raise JournalError(f"journal {self._path}: it is closed; nothing can be written")

    def wake(self) -> None:
        """Write what was put and not to be written by itself."""
        self._inbox.flush()

    def close(self) -> None:
        """Write what is queued, and end the thread; idempotent.

        Raises:
            JournalLost: not everything could be written.
        """
        first = self._inbox.close(_Stop())
        self._thread.join()
        if first:
            self._checkpointer.close()
            self._connection.close()
            if self._lost:
                raise JournalLost(self._lost)

    def statistics(self) -> JournalStatistics:
        """Count what was done so far."""
        commits, entries, events, data_bytes, withdrawals, refused = self._counts
        passed, buckets = 0, []
        for bound, count in zip((*_BUCKETS_S, float("inf")), self._buckets, strict=True):
            passed += count
            buckets.append((bound, passed))
        return JournalStatistics(
            commits=commits,
            entries=entries,
            events=events,
            data_bytes=data_bytes,
            withdrawals=withdrawals,
            refused=refused,
            commit_seconds=self._commit_s,
            commit_buckets=tuple(buckets),
            queued=len(self._inbox) + len(self._group),
            file_bytes=self._path.stat().st_size if self._path.exists() else 0,
            trouble=next(iter(list(self._troubles.values())), None),
        )

    def _run(self) -> None:
        stopping = False
        while not stopping:
            stopping = self._fill()
            while self._group and not self._try(self._commit):
                if self._inbox.closed:
                    self._give_up()
                    return
                self._inbox.wait_closed(RETRY_S)

    def _fill(self) -> bool:
        """Wait for items and take all that are there, doing chores meanwhile; False at the end."""
        group = self._group
        item: Item | _Stop | None = self._next()
        while item is not None:
            if isinstance(item, _Stop):
                return True
            group.append(item)
            item = self._inbox.get_now() if len(group) < _GROUP_ITEMS_MAX else None
        return False

    def _next(self) -> Item | _Stop:
        while True:
            now_s = time.monotonic()
            if now_s >= self._sweep_at_s:
                self._sweep_at_s = now_s + SWEEP_EVERY_S
                self._chores.sweep()
            idle = not len(self._inbox)
            if self._chores.pending and (idle or now_s >= self._chore_at_s):
                done = self._try(self._chore)
                # Not from the beginning: a step may take long where the disk is slow.
                self._chore_at_s = time.monotonic() + (CHORE_EVERY_S if done else RETRY_S)
            patience_s = self._sweep_at_s - now_s
            if self._chores.pending:
                patience_s = RETRY_S if self._troubles else 0.0
            item = self._inbox.get(max(0.0, patience_s))
            if item is not None:
                return item

    def _try(self, work: Callable[[], None]) -> bool:
        """Do ``work``; says whether it was done, and tells of trouble that begins or ends."""
        troubles = self._troubles
        try:
            self._files.look()
            work()
        except Exception as error:  # noqa: BLE001 - whatever it is, nothing may be lost by it
            trouble = trouble_from(error, self._path, len(self._inbox) + len(self._group))
            before, troubles[work] = troubles.get(work), trouble
            if before is None or before.kind != trouble.kind:
                _log.error("%s; %s", trouble.message, trouble.way_out, exc_info=error)
                self._tell(trouble)
            return False
        if troubles.pop(work, None) is not None and not troubles:
            _log.info("journal %s: it is written again", self._path)
            self._tell(None)
        return True

    def _commit(self) -> None:
        began_s = time.perf_counter()
        group = Group(
            self._connection,
            self._tails,
            self._next_no,
            now_s=self._clock(),
            key_keep_s=self._key_keep_s,
        )
        group.commit(self._group)
        self._files.written()
        self._settle(group, time.perf_counter() - began_s)
        for call in group.calls:
            self._call(call)

    def _settle(self, group: Group, took_s: float) -> None:
        self._group.clear()
        self._next_no = group.next_no
        for turn_id, tail in group.touched.items():
            if tail is None or tail.terminal is not None:
                self._tails.pop(turn_id, None)
            else:
                self._tails[turn_id] = tail
        if group.ended:
            self._chores.join(group.ended)
        for done in group.sweeps:
            self._chores.sweep(done)
        self._checkpointer.written(group.pages)
        if self._checkpointer.due:
            self._chores.turn_over(self._checkpointer.finish)
        self._commit_s += took_s
        self._buckets[bisect_left(_BUCKETS_S, took_s)] += 1
        counts = (
            1,
            group.entries,
            group.events,
            group.data_bytes,
            group.withdrawals,
            group.refused,
        )
        self._counts = [old + new for old, new in zip(self._counts, counts, strict=True)]

    def _chore(self) -> None:
        calls = self._chores.step()
        self._files.written()
        for call in calls:
            self._call(call)

    def _call(self, call: Callable[[], None]) -> None:
        try:
            call()
        except Exception:  # noqa: BLE001 - it is theirs, and the next one still waits
            _log.exception("who waited for the journal has failed")

    def _tell(self, trouble: JournalTrouble | None) -> None:
        self._call(lambda: self._on_trouble(trouble))

    def _give_up(self) -> None:
        """Say what the journal never held, because it is closed in the midst of trouble."""
        items = list(self._group)
        while (item := self._inbox.get_now()) is not None:
            if not isinstance(item, _Stop):
                items.append(item)
        entries = [item for item in items if isinstance(item, Entry)]
        turns = sorted({entry.turn_id for entry in entries})
        events = sum(len(entry.events) for entry in entries)
        why = "; ".join(trouble.message for trouble in self._troubles.values())
        self._lost = (
            f"{why}; closed with {len(items)} items lost, {events} events among them, "
            f"of turns {', '.join(turns) or 'none'}"
        )
        _log.critical("%s", self._lost)

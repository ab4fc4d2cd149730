"""Carries the write-ahead log over into the database, beside the writer.

That waits for the disk for tens of milliseconds, and what is written meanwhile need not. The log
starts anew only at an instant when all of it is carried over, which never comes while there is
always something to write: so once it has grown large the writer itself does the small rest.

Path: ``journal/writer.py`` -> this -> SQLite.
"""

from __future__ import annotations

import logging
import sqlite3
import threading
from pathlib import Path

from tidegate.daemon.journal.schema import connect, touch


_log = logging.getLogger("tidegate.journal")

EVERY_PAGES = 1000
LOG_PAGES_MAX = 8000
_STATEMENT = "PRAGMA wal_checkpoint(PASSIVE)"


class Checkpointer:
    """A thread with a connection of its own, which changes nothing that anybody reads.

    Args:
        path: the database.

    Attributes:
        due: whether the writer should call ``finish``.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._connection = connect(path)
        self._pages = 0
        self._wanted = threading.Event()
        self._closed = False
        self.due = False
        self._thread = threading.Thread(target=self._run, name="tidegate-checkpoint", daemon=True)
        self._thread.start()

    def written(self, pages: int) -> None:
        """Count what the writer has added to the log, more or less."""
        self._pages += pages
        if self._pages >= EVERY_PAGES:
            self._pages = 0
            self._wanted.set()

    def finish(self, connection: sqlite3.Connection) -> None:
        """Carry over the rest from the writer's thread, so that its next commit starts a new log.

        Raises:
            sqlite3.Error: the disk does not take it.
        """
        connection.execute(_STATEMENT).fetchall()
        self.due = False

    def touch(self) -> None:
        """Open all files; afterwards they need no names."""
        touch(self._connection)

    def close(self) -> None:
        """End the thread."""
        self._closed = True
        self._wanted.set()
        self._thread.join()
        self._connection.close()

    def _run(self) -> None:
        while True:
            self._wanted.wait()
            self._wanted.clear()
            if self._closed:
                return
            if self.due:
                continue  # only one of the two can be at it, and now it is the writer's turn
            try:
                _, log_pages, _ = self._connection.execute(_STATEMENT).fetchone()
            except sqlite3.Error:
                # The writer meets it, too, and it is the writer who tells of trouble.
                _log.debug("journal %s: its log stays", self._path, exc_info=True)
                self.due = True
            else:
                self.due = self.due or log_pages > LOG_PAGES_MAX

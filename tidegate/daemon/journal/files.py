"""Whether the journal's files are where they were and what they were, as far as that is seen.

SQLite goes on with a file whose name is gone, and writes on behind the end of a log that somebody
has cut: all seems well until the next start, when nothing of it is there. None of the files but
the log is ever opened here: to close one would give up SQLite's locks on it.

Path: ``journal/writer.py`` -> this -> the file system.
"""

from __future__ import annotations

import math
import os
import sqlite3
import time
from pathlib import Path

from tidegate.daemon.journal.trouble import DamagedError, MovedError


LOOK_EVERY_S = 1.0
"""How often names and heads are looked at; the log's size is looked at each time."""

_HEADS = (b"\x37\x7f\x06\x82", b"\x37\x7f\x06\x83")
_LOG_HEAD_BYTES = 32
_FRAME_HEAD_BYTES = 24


class Files:
    """The database, its log, their index and the lock; for the writer's thread alone.

    Args:
        path: the database, which is open, and was written.
        connection: the writer's.
    """

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self._path = path
        self._log = Path(f"{path}-wal")
        self._names = (path, self._log, Path(f"{path}-shm"), Path(f"{path}.lock"))
        self._identities = [_identity(each) for each in self._names]
        self._connection = connection
        self._damage = ""
        self._look_at_s = 0.0
        self._log_bytes = 0
        self._nameless = False

    def lose_names(self) -> None:
        """Look no more: the names are taken away, and nobody else can reach the files."""
        self._nameless = True

    def look(self) -> None:
        """See that nothing has happened to the files since the last time.

        Raises:
            MovedError: one of them is not there any more, or is another one.
            DamagedError: one was cut or overwritten, which stays so.
        """
        try:
            self._look()
        except (MovedError, DamagedError):
            if not self._nameless:  # else it was just made so
                raise

    def _look(self) -> None:
        if self._nameless:
            return
        if self._damage:
            raise DamagedError(self._damage)
        now_s = time.monotonic()
        due = now_s >= self._look_at_s
        if due or _size(self._log) < self._log_bytes:
            self._look_at_names()
        self._damage = self._damage_to_log() or (self._damage_to_heads() if due else "")
        if self._damage:
            raise DamagedError(self._damage)
        if due:
            self._look_at_s = now_s + LOOK_EVERY_S

    def written(self) -> None:
        """Take the log's size, as the writer has left it, for what it must have from now on."""
        if not self._nameless:
            self._log_bytes = _size(self._log)

    def _look_at_names(self) -> None:
        for path, identity in zip(self._names, self._identities, strict=True):
            if _identity(path) != identity:
                raise MovedError(f"the name {path.name} leads to another file, or to none")

    def _damage_to_heads(self) -> str:
        if not _size(self._path):
            return f"{self._path.name} was made empty"
        head = _head(self._log)
        return f"{self._log.name} was overwritten" if head and head not in _HEADS else ""

    def _damage_to_log(self) -> str:
        size = _size(self._log)
        if size < self._log_bytes:
            # Another program may have carried all of it over, and then it was right to cut it.
            if size < self._needed_bytes():
                return f"{self._log.name} was cut short"
            self._log_bytes = size
        return ""

    def _needed_bytes(self) -> float:
        """Return what size the log must have for what is still to be read from it."""
        try:
            (page,) = self._connection.execute("PRAGMA page_size").fetchone()
            _, frames, _ = self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
        except sqlite3.Error:
            return math.inf  # it looked for something that is not there
        return _LOG_HEAD_BYTES + frames * (_FRAME_HEAD_BYTES + page) if frames > 0 else 0


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _head(path: Path) -> bytes:
    """Return the first bytes of a file on which there are no locks."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""  # its rights were taken away, which changes nothing for whoever has it open
    try:
        return os.read(descriptor, len(_HEADS[0]))
    finally:
        os.close(descriptor)

"""What an error of SQLite means for whoever runs the daemon; pure."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from tidegate.daemon.journal.model import JournalTrouble, TroubleKind


class MovedError(Exception):
    """One of the journal's files is not where it was: what is written would be lost."""


class DamagedError(Exception):
    """One of the journal's files was changed by somebody else: what it held is lost."""


_KINDS: dict[int, TroubleKind] = {
    sqlite3.SQLITE_FULL: "full",
    sqlite3.SQLITE_IOERR: "io",
    sqlite3.SQLITE_CANTOPEN: "io",
    sqlite3.SQLITE_CORRUPT: "damaged",
    sqlite3.SQLITE_NOTADB: "damaged",
    sqlite3.SQLITE_READONLY: "read_only",
    sqlite3.SQLITE_PERM: "read_only",
    sqlite3.SQLITE_BUSY: "busy",
    sqlite3.SQLITE_LOCKED: "busy",
}
_WORDS: dict[TroubleKind, tuple[str, str]] = {
    "full": (
        "there is no room left for it",
        "free space on its file system, or raise its quota; what waits is written then",
    ),
    "io": (
        "its file system fails",
        "see the kernel's log for the disk; what waits is written once the disk takes it",
    ),
    "damaged": (
        "it is damaged",
        "stop the daemon, move the file and its -wal away, keep them, and start again",
    ),
    "moved": (
        "it was moved or removed",
        "put it back where it was; or stop the daemon and start it again with a new one",
    ),
    "read_only": (
        "it cannot be written any more",
        "give the daemon's user the right to write the file and its folder",
    ),
    "busy": (
        "another program holds it",
        "end the transaction of that program, such as an open sqlite3 shell",
    ),
    "defect": (
        "this is a defect of tidegate",
        "report it with the log; a new start ends the turns that are open",
    ),
}


def trouble_from(error: Exception, path: Path, waiting: int) -> JournalTrouble:
    """Return what to tell of ``error`` while ``waiting`` items cannot be written to ``path``."""
    kind: TroubleKind = "defect"
    if isinstance(error, MovedError):
        kind = "moved"
    elif isinstance(error, DamagedError):
        kind = "damaged"
    elif isinstance(error, sqlite3.Error):
        # The low byte is the kind; what is above tells where it happened.
        kind = _KINDS.get(getattr(error, "sqlite_errorcode", 0) & 0xFF, "defect")
    what, way_out = _WORDS[kind]
    detail = str(error) or type(error).__name__
    return JournalTrouble(
        kind, f"journal {path}: {what} ({detail}); {waiting} waiting to be written", way_out
    )

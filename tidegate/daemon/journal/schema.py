"""The journal's file: its tables, its mode, and whether it is one of ours and sound.

A row of ``events`` holds consecutive events of one turn as lines of JSON. Its key, the *place*,
packs the turn's number and the offset of its first event, so that the rows of a turn lie together
and an offset is found without an index. What was withdrawn is in ``withdrawn`` until its attempt
has a successor, for a turn that is lost gives it back.

Path: ``journal/opening.py`` -> this -> SQLite.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tidegate.daemon.journal.model import JournalError


VERSION: Final = 1
APPLICATION_ID: Final = 0x74696465
"""``tide`` in ASCII: tells our files from those of others."""
OFFSET_BITS: Final = 32
MODE: Final = 0o600
_SIDE_FILES = ("-wal", "-shm")
_OWN_WAY_OUT = "give another file with --journal FILE, or --journal none to keep nothing"

TABLES: Final = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE turns (
    no INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    owner TEXT NOT NULL,
    endpoint TEXT NOT NULL,
    wire TEXT NOT NULL,
    model TEXT NOT NULL,
    api TEXT NOT NULL,
    on_disconnect TEXT NOT NULL,
    created_at REAL NOT NULL,
    ended_at REAL,
    changed_at REAL NOT NULL,
    state TEXT NOT NULL,
    attempt INTEGER NOT NULL,
    idempotency_key TEXT,
    idempotency_digest TEXT NOT NULL,
    kept_bytes INTEGER NOT NULL DEFAULT 0,
    compacted INTEGER NOT NULL DEFAULT 0,
    expired INTEGER NOT NULL DEFAULT 0,
    final BLOB NOT NULL DEFAULT x''
);
CREATE UNIQUE INDEX turns_by_key ON turns (owner, idempotency_key)
    WHERE idempotency_key IS NOT NULL;
CREATE INDEX turns_keyed ON turns (changed_at)
    WHERE idempotency_key IS NOT NULL AND ended_at IS NOT NULL;
CREATE INDEX turns_by_owner ON turns (owner);
CREATE INDEX turns_open ON turns (no) WHERE ended_at IS NULL;
CREATE INDEX turns_loose ON turns (no) WHERE ended_at IS NOT NULL AND compacted = 0;
CREATE INDEX turns_kept ON turns (ended_at) WHERE expired = 0;
CREATE INDEX turns_expired ON turns (ended_at) WHERE expired = 1;
CREATE TABLE events (place INTEGER PRIMARY KEY, last INTEGER NOT NULL, data BLOB NOT NULL);
CREATE TABLE withdrawn (place INTEGER PRIMARY KEY, data BLOB NOT NULL);
"""


def first_place(no: int) -> int:
    """Return the place of a turn's offset 0; its rows lie before ``first_place(no + 1)``."""
    return no << OFFSET_BITS


def offset_at(place: int) -> int:
    """Return the offset of the first event in the row at ``place``."""
    return place & ((1 << OFFSET_BITS) - 1)


def check_place(path: Path) -> None:
    """See to it that a file can be at ``path``.

    Raises:
        JournalError: there is no such folder, or it is one itself.
    """
    if not path.parent.is_dir():
        raise JournalError(
            f"journal {path}: there is no folder {path.parent}; make it, or {_OWN_WAY_OUT}"
        )
    if path.is_dir():
        raise JournalError(f"journal {path}: this is a folder; {_OWN_WAY_OUT}")


def secure(path: Path) -> None:
    """Make ``path`` if need be, and see to it that its owner alone can read it.

    The files that SQLite puts beside it get the same mode, whatever the umask is.

    Raises:
        JournalError: the file cannot be made or is not ours, or its log is without it.
    """
    try:
        new = not path.exists() or path.stat().st_size == 0
        _refuse_orphan(path, new=new)
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, MODE))
        for each in (path, *(Path(f"{path}{side}") for side in _SIDE_FILES)):
            if each.exists() and stat.S_IMODE(each.stat().st_mode) != MODE:
                each.chmod(MODE)
    except OSError as error:
        raise JournalError(
            f"journal {path}: cannot be written ({error.strerror}); "
            f"give this user the right to it, or {_OWN_WAY_OUT}"
        ) from error


def connect(path: Path, *, read_only: bool = False) -> sqlite3.Connection:
    """Open a connection that may be used from any one thread at a time."""
    uri = path.as_uri() + ("?mode=ro" if read_only else "?mode=rw")
    return sqlite3.connect(
        uri,
        uri=True,
        isolation_level=None,  # we say BEGIN ourselves
        check_same_thread=False,
        timeout=1.0,
        cached_statements=256,
    )


def touch(connection: sqlite3.Connection) -> None:
    """Have the connection open each file of the database, as its first reading does."""
    connection.execute("SELECT count(*) FROM meta").fetchall()


def prepare(path: Path) -> sqlite3.Connection:
    """Open the writer's connection to a journal that is sound, and made if it was not there.

    Raises:
        JournalError: the file is damaged, not a journal, or of a newer version.
    """
    connection = connect(path)
    try:
        with explained(path):
            _check_or_make(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection


@contextlib.contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turn what SQLite says at the opening of ``path`` into a ``JournalError``."""
    try:
        yield
    except sqlite3.Error as error:
        kind = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if kind == sqlite3.SQLITE_BUSY:
            raise JournalError(
                f"journal {path}: another program holds it ({error}); end that one, or "
                f"{_OWN_WAY_OUT}"
            ) from error
        if kind in {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}:
            raise damaged(path, str(error)) from error
        raise JournalError(
            f"journal {path}: it cannot be opened ({error}); see to the room and the rights on "
            f"its file system, or {_OWN_WAY_OUT}"
        ) from error


def _check_or_make(connection: sqlite3.Connection, path: Path) -> None:
    tables = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]
    if not tables:
        # Before the first table, or it has no effect.
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
    else:
        _check(connection, path)
    (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
    if mode != "wal":
        raise JournalError(
            f"journal {path}: its file system cannot share memory between connections; "
            "give a file on a local disk with --journal FILE"
        )
    connection.execute("PRAGMA synchronous = FULL")
    if not tables:
        connection.execute("BEGIN IMMEDIATE")
        for statement in TABLES.split(";"):
            if statement.strip():
                connection.execute(statement)
        connection.execute("INSERT INTO meta VALUES ('schema', ?), ('epoch', 0)", (VERSION,))
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {VERSION}")
        connection.execute("COMMIT")


def _check(connection: sqlite3.Connection, path: Path) -> None:
    if connection.execute("PRAGMA application_id").fetchone()[0] != APPLICATION_ID:
        raise JournalError(f"journal {path}: this is a database of another program; {_OWN_WAY_OUT}")
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version != VERSION:
        raise JournalError(
            f"journal {path}: it was written by another tidegate (schema {version}, and this one "
            f"reads {VERSION}); start that one, or {_OWN_WAY_OUT}"
        )
    (found,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    if found != "ok":
        raise damaged(path, " ".join(found.split()))


def _refuse_orphan(path: Path, *, new: bool) -> None:
    """Refuse a write-ahead log without its database: SQLite would throw it away in silence."""
    log = Path(f"{path}-wal")
    with contextlib.suppress(FileNotFoundError):
        if new and log.stat().st_size:
            raise JournalError(
                f"journal {path}: it is gone or empty, but {log.name} beside it holds data; "
                f"put the journal back, or move {log.name} away"
            )


def damaged(path: Path, why: str) -> JournalError:
    """Return the error that says that ``path`` is damaged, and what to do."""
    return JournalError(
        f"journal {path}: it is damaged ({why}); move it and its -wal away and keep them, "
        "for `sqlite3 FILE .recover` reads what is left, then start again, "
        "or put a copy of it back"
    )

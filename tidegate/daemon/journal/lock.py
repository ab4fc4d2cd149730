"""One daemon per journal: a lock beside the file, which ends with whoever holds it."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from tidegate.daemon.journal.model import JournalError


class FileLock:
    """An exclusive lock on ``PATH.lock``; the kernel gives it up when its process ends, however.

    The file stays, with the holder's process id in it: removing it would let two hold "it".

    Raises:
        JournalError: another holds it; the text says who.
    """

    def __init__(self, path: Path) -> None:
        self._side = Path(f"{path}.lock")
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        try:
            self._descriptor: int | None = os.open(self._side, flags, 0o600)
        except OSError as error:
            raise JournalError(
                f"journal {path}: {self._side.name} beside it cannot be written "
                f"({error.strerror}); give this user the right to the folder, "
                "or give another file with --journal FILE"
            ) from error
        try:
            self._take(path, self._descriptor)
        except BaseException:
            os.close(self._descriptor)
            raise

    def release(self) -> None:
        """Let another daemon have the journal; idempotent."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.ftruncate(descriptor, 0)
            os.close(descriptor)

    def _take(self, path: Path, descriptor: int) -> None:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            holder = os.pread(descriptor, 32, 0).decode("ascii", "replace").strip()
            who = f"process {holder}" if holder else "another process"
            raise JournalError(
                f"journal {path}: {who} writes it, and only one daemon can; "
                "end that one, or give this one another file with --journal FILE"
            ) from error
        except OSError as error:
            raise JournalError(
                f"journal {path}: its folder's file system knows no locks ({error.strerror}); "
                "give a file on a local disk with --journal FILE"
            ) from error
        try:
            os.fchmod(descriptor, 0o600)
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        except OSError as error:
            raise JournalError(
                f"journal {path}: {self._side.name} beside it cannot be written "
                f"({error.strerror}); free space on its file system, or give another file with "
                "--journal FILE"
            ) from error

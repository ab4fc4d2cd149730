"""Makes one file of what went over the wire in one turn."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from tidegate.cli.usage import UsageError
from tidegate.protocol.captures import PART


OWNER_ONLY = 0o600


@contextmanager
def captured_in(file: Path | None) -> Iterator[str | None]:
    """Yield a folder for the captures of one turn, and join them into ``file`` at the end.

    Args:
        file: the file to make; None to capture nothing, and then the folder is None as well.

    Raises:
        UsageError: the file cannot be written, or has something in it, which is known before
            anything is asked.
    """
    if file is None:
        yield None
        return
    part = _begun(file)
    try:
        with TemporaryDirectory(prefix="tidegate-capture-") as folder:
            try:
                yield folder
            finally:
                _join(Path(folder), part)
        if part.stat().st_size:
            part.replace(file)
        else:
            print("nothing was captured, for no request was sent", file=sys.stderr)
    finally:
        part.unlink(missing_ok=True)


def _begun(file: Path) -> Path:
    part = Path(f"{file}{PART}")
    try:
        if (trouble := _trouble_with(file)) is not None:
            raise FileExistsError(trouble)
        part.unlink(missing_ok=True)
        os.close(os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, OWNER_ONLY))
    except OSError as error:
        raise UsageError(f"cannot write the capture {file}: {error}") from error
    return part


def _trouble_with(file: Path) -> str | None:
    """Say what keeps a new file from taking the place of what is there."""
    if not os.path.lexists(file):
        return None
    found = file.lstat()
    if stat.S_ISDIR(found.st_mode):
        return "it is a folder"
    if not stat.S_ISREG(found.st_mode):
        return "it is there, and no plain file"
    return "it is there, and not empty: name another one, or remove it" if found.st_size else None


def _join(folder: Path, part: Path) -> None:
    with part.open("wb") as joined:
        for each in sorted(folder.iterdir()):
            # Behind its last line a worker that was killed may have left a piece of one.
            lines, end, _ = each.read_bytes().rpartition(b"\n")
            joined.write(lines + end)

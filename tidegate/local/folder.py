"""Where the weights are kept on this machine, and who may write there."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tidegate.errors import ConfigurationError
from tidegate.settings import environment


if sys.platform == "win32":
    import msvcrt
else:
    import fcntl


def models_folder() -> Path:
    """Where the weights are kept: ``TIDEGATE_CACHE_DIR``, or the user's cache folder."""
    if chosen := environment().get("TIDEGATE_CACHE_DIR"):
        return expanded(chosen).absolute() / "models"
    if sys.platform == "darwin":
        base = expanded("~/Library/Caches")
    elif sys.platform == "win32":
        base = Path(environment().get("LOCALAPPDATA") or expanded("~/AppData/Local"))
    else:
        # The specification of the variable says that a relative path is to be ignored.
        named = Path(environment().get("XDG_CACHE_HOME", ""))
        base = named if named.is_absolute() else expanded("~/.cache")
    return base / "tidegate" / "models"


def expanded(path: str) -> Path:
    """Resolve a leading ``~``.

    Raises:
        ConfigurationError: the account has no home folder.
    """
    try:
        return Path(path).expanduser()
    except RuntimeError as error:
        raise ConfigurationError(
            f"{path!r} cannot be resolved ({error}): set TIDEGATE_CACHE_DIR to a folder of yours, "
            f"or write the path in full"
        ) from error


@contextmanager
def only_user(folder: Path) -> Iterator[None]:
    """Wait until no other process or thread is inside; the kernel frees the lock of the dead."""
    with (folder / ".lock").open("wb") as lock:
        if sys.platform == "win32":
            msvcrt.locking(lock.fileno(), msvcrt.LK_LOCK, 1)
            yield
            return
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            yield
        finally:
            # Closing is not enough if the user's program forked: the copy would keep the lock.
            fcntl.flock(lock, fcntl.LOCK_UN)


def sync(folder: Path) -> None:
    """Make the rename last through a power cut, where folders can be opened."""
    if sys.platform != "win32":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

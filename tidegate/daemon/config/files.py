"""Files of which the configuration consists: read whole, or not at all, and never waited for."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path


def content_of(path: str | Path, bytes_max: int) -> bytes:
    """Return what a file holds.

    A pipe is refused, for whoever reads it waits until somebody writes it; a device likewise.

    Args:
        path: from the current folder on.
        bytes_max: more than these are refused.

    Raises:
        OSError: it cannot be read, is no regular file, or is larger.
        ValueError: no file can have that name.
    """
    with open(path, "rb", opener=_without_waiting) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(errno.EINVAL, "it is no regular file")
        content = file.read(bytes_max + 1)
    if len(content) > bytes_max:
        raise OSError(errno.EFBIG, f"it has more than {bytes_max} bytes")
    return content


def _without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK | os.O_NOCTTY)

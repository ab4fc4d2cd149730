"""What waits in a body, in one piece.

aiohttp keeps each HTTP chunk by itself, and when it gives them out asks its parser after each one
whether it can go on. Most servers send each event in a chunk of its own, so that this cost a
quarter of a worker's time for a delta. All but the last are taken from under it here; the last one
it gives out itself, and does then what is to be done once.

Path: ``provider/connections.py`` -> this
"""

from __future__ import annotations

from typing import Any

import aiohttp


# Where they are is aiohttp's own affair. One that keeps them elsewhere is asked the usual way.
_KNOWN = all(
    hasattr(aiohttp.StreamReader, name)
    for name in ("_buffer", "_buffer_offset", "_cursor", "_size")
)


def all_of(content: aiohttp.StreamReader) -> bytes:
    """Return all that waits in a body, as its ``read_nowait`` does.

    Args:
        content: something waits in it, and it has not failed.
    """
    inner: Any = content
    if not _KNOWN or len(inner._buffer) < 2 or inner._buffer_offset:  # noqa: SLF001
        return content.read_nowait()
    *pieces, last = inner._buffer  # noqa: SLF001
    inner._buffer.clear()  # noqa: SLF001
    inner._buffer.append(last)  # noqa: SLF001
    size = sum(map(len, pieces))
    inner._size -= size  # noqa: SLF001
    inner._cursor += size  # noqa: SLF001
    return b"".join((*pieces, content.read_nowait()))

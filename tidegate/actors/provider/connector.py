"""Opens connections, and hands on those that are kept: only if nothing has come on them meanwhile.

What a server sends before it is asked, be it late or too much, would be read as the answer to the
next request, which may be somebody else's.

Path: ``provider/connections.py`` -> this
"""

from __future__ import annotations

import asyncio
import select
from contextvars import ContextVar
from typing import Any

import aiohttp


READ_BYTES = 63 << 10
"""How much one read takes from the socket, and half of what waits unread in a resting one.

asyncio allocates this much for every read, and a block of 64 KiB would be mapped anew each time
(see ``worker_environment``), which costs more than the read.
"""


class Seat:
    """Where the connector leaves the transport of the request that this task is making."""

    transport: asyncio.Transport | None = None


seat_of_task: ContextVar[Seat] = ContextVar("seat_of_task")


class Connector(aiohttp.TCPConnector):
    """Connections of aiohttp, each left in its task's seat."""

    async def connect(self, *args: Any, **options: Any) -> aiohttp.connector.Connection:
        """Return a connection on which nothing has come that was not asked for."""
        while _has_rest(connection := await super().connect(*args, **options)):
            connection.close()
        transport = seat_of_task.get().transport = connection.transport
        if transport is not None and hasattr(transport, "max_size"):
            transport.max_size = READ_BYTES
        return connection


def _has_rest(connection: aiohttp.connector.Connection) -> bool:
    """Say whether a connection that is used again has something on it, or its end."""
    protocol: Any = connection.protocol
    if protocol is None:
        return True  # it is closed
    # Nothing else knows of half a head. An aiohttp that keeps it elsewhere must go on to work.
    parser = getattr(protocol, "_parser", None)
    if parser is None:
        return False  # it is new
    # An answer that nobody asked for, a part of one, and what the loop has not read yet.
    return protocol.should_close or _has_begun(parser) or _is_readable(connection.transport)


def _has_begun(parser: Any) -> bool:
    """Say whether a parser is in the midst of an answer; it is not used again after that."""
    try:
        return parser.feed_eof() is not None
    except Exception:  # noqa: BLE001 - whatever it is that it cannot make sense of
        return True


def _is_readable(transport: asyncio.Transport | None) -> bool:
    socket = None if transport is None else transport.get_extra_info("socket")
    if socket is None:
        return True  # it is closed
    poll = select.poll()
    poll.register(socket.fileno(), select.POLLIN)
    return bool(poll.poll(0))

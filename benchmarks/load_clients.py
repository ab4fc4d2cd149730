"""Many clients of the daemon in one event loop, each of which checks its own text."""

from __future__ import annotations

import asyncio
import contextlib
import re
import socket
import time
from array import array
from collections.abc import Callable

import msgspec


SLOW_BUFFER_BYTES = 4096
_SAID = re.compile(rb'"content":"(\w+) (\d+) ([\d.]+);"')


class Client(asyncio.Protocol):
    """One client that reads stream after stream on its connection.

    Args:
        name: of its first stream; each of its deltas must say whose it is.
        expected: how many deltas each stream has.
        until_s: it begins no further stream after this instant of the monotonic clock.
        late_s: gets how long each delta was under way.
        ended: called at the end, whole or not.

    Attributes:
        streams: how many were read to their ends.
        wrong: what came that should not have come; empty while all is well.
        left: whether it has gone in the midst of a stream.
    """

    def __init__(
        self,
        name: str,
        expected: int,
        until_s: float,
        late_s: array[float],
        ended: Callable[[], None],
    ) -> None:
        self.streams = 0
        self.wrong = ""
        self.left = False
        self._first = name
        self._expected = expected
        self._until_s = until_s
        self._count = 0
        self._is_reading = True
        self._late_s = late_s
        self._ended = ended
        self._rest = b""
        self._transport: asyncio.Transport

    @property
    def name(self) -> str:
        """Of the stream that it reads."""
        return f"{self._first}_{self.streams}"

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Ask for the stream."""
        self._transport = transport
        transport.write(request_for(self.name))

    def data_received(self, data: bytes) -> None:
        """Check what has come."""
        now_s = time.monotonic()
        if self._rest:
            data = self._rest + data
        end = data.rfind(b"\n\n") + 2
        self._rest = data[end:] if end > 1 else data
        if end == 1:
            return
        own = self.name.encode()
        for name, number, at_s in _SAID.findall(data, 0, end):
            if name != own or int(number) != self._count:
                self.wrong = self.wrong or f"{name!r} {number!r} in place of {self._count}"
            self._count += 1
            self._late_s.append(now_s - float(at_s))
        if data.find(b"data: [DONE]", 0, end) >= 0:
            self._go_on(now_s)

    def _go_on(self, now_s: float) -> None:
        """Look that a stream was whole, and begin the next one if there is time."""
        if self._count != self._expected:
            self.wrong = self.wrong or f"{self.name} has ended after {self._count}"
        self.streams += 1
        self._count, self._rest = 0, b""
        if now_s < self._until_s:
            self._transport.write(request_for(self.name))
        else:
            self._is_reading = False
            self._transport.close()

    def connection_lost(self, _error: Exception | None) -> None:
        """Tell of the end."""
        if self._is_reading and not self.left:
            self.wrong = self.wrong or f"{self.name} was cut after {self._count}: {self._rest!r}"
        self._ended()

    def leave(self) -> None:
        """Go in the midst of it."""
        self.left = True
        self._transport.abort()


def request_for(name: str) -> bytes:
    """Return the bytes of a request."""
    body = msgspec.json.encode(
        {"model": name, "stream": True, "messages": [{"role": "user", "content": "Hello"}]}
    )
    head = "POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\n"
    return f"{head}content-length: {len(body)}\r\n\r\n".encode() + body


async def trickle(port: int, name: str) -> None:
    """Read one stream at a byte a second, until cancelled or cut off."""
    loop = asyncio.get_running_loop()
    with contextlib.closing(socket.socket()) as reading:
        reading.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SLOW_BUFFER_BYTES)
        reading.setblocking(False)
        await loop.sock_connect(reading, ("127.0.0.1", port))
        await loop.sock_sendall(reading, request_for(name))
        with contextlib.suppress(OSError):
            while await loop.sock_recv(reading, 1):  # noqa: ASYNC110 - it is meant to be slow
                await asyncio.sleep(1)

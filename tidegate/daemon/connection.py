"""What a request may know of its client, and what its protocol needs of sockets and timers."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, RequestResponseCycle

from tidegate.daemon.access.headers import HEAD_BYTES_MAX


_UNSENT_BYTES = 128 << 10
_RESET_AT_CLOSE = struct.pack("ii", 1, 0)


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """What a client may cost before it has said who it is, and after it was answered.

    Attributes:
        head_bytes_max: request line and headers, in bytes; 431 beyond.
        head_s: until the headers are whole, from the connection or their first byte; 408 beyond.
        flush_s: without anything taken of a response that has ended; the socket is reset then.
        drop_bytes_max: of a body that was refused, read for the client to see the answer.
        drop_s: likewise.
    """

    head_bytes_max: int = HEAD_BYTES_MAX
    head_s: float = 30.0
    flush_s: float = 30.0
    drop_bytes_max: int = 16 << 20
    drop_s: float = 5.0


class Connection:
    """The client of one request, as its protocol sees it; for the loop's thread alone.

    A client has gone when its side has ended or was reset while the request was under way. One
    that was cut off by ``abort`` has not gone: whoever cuts knows it.

    Args:
        transport: the client's socket.
        cut: ends it at once.

    Attributes:
        gone: set when the client has gone, and never otherwise.
    """

    __slots__ = ("_callbacks", "_cut", "_transport", "gone", "is_cut")

    def __init__(self, transport: asyncio.Transport, cut: Callable[[], None]) -> None:
        self._transport = transport
        self._cut = cut
        self._callbacks: list[Callable[[], None]] = []
        self.gone = asyncio.Event()
        self.is_cut = False

    def abort(self) -> None:
        """Cut the client off: what it has not taken is dropped, and its socket reset.

        From here on ``send`` does nothing. It may be called again, and after the end.
        """
        if not self.is_cut:
            self.is_cut = True
            self._callbacks.clear()
            self._cut()

    def buffered(self) -> int:
        """Return the bytes that were sent and that the system has not taken yet."""
        return self._transport.get_write_buffer_size()

    def when_gone(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call ``callback`` when the client goes: in that very step, or now if it has gone.

        Args:
            callback: called once and without waiting for anything; it may not raise.

        Returns:
            What takes the callback back; it may be called at any time.
        """
        if self.gone.is_set():
            callback()
            return _nothing
        if not self.is_cut:
            self._callbacks.append(callback)

        def take_back() -> None:
            if callback in self._callbacks:
                self._callbacks.remove(callback)

        return take_back

    def client_left(self) -> None:
        """Tell everybody; for the protocol."""
        if self.gone.is_set() or self.is_cut:
            return
        self.gone.set()
        callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback()


class Timers:
    """One timer for each name."""

    __slots__ = ("_handles", "_loop")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._handles: dict[str, asyncio.TimerHandle] = {}

    def start(
        self, name: str, delay_s: float, then: Callable[[], None], *, again: bool = True
    ) -> None:
        """Call ``then`` in a while; if the timer runs already, begin anew, or leave it alone."""
        if name in self._handles and not again:
            return
        self.stop(name)

        def due() -> None:
            del self._handles[name]
            then()

        self._handles[name] = self._loop.call_later(delay_s, due)

    def stop(self, *names: str) -> None:
        """Stop these timers, or all of them."""
        for name in names or tuple(self._handles):
            handle = self._handles.pop(name, None)
            if handle is not None:
                handle.cancel()


def prepare(transport: asyncio.Transport) -> None:
    """Send small frames at once, and let the system keep little that it has not sent."""
    found = transport.get_extra_info("socket")
    if found is None or found.family not in (socket.AF_INET, socket.AF_INET6):
        return
    found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    unsent = getattr(socket, "TCP_NOTSENT_LOWAT", None)
    if unsent is not None:
        found.setsockopt(socket.IPPROTO_TCP, unsent, _UNSENT_BYTES)


def reset_at_close(transport: asyncio.Transport) -> None:
    """Let the system forget what it has not sent, instead of offering it for minutes more.

    Args:
        transport: not lost yet: the number of its socket could be another's by now.
    """
    found = transport.get_extra_info("socket")
    if found is not None:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_AT_CLOSE)


def without_chunks(cycle: RequestResponseCycle) -> Callable[[Any], Awaitable[None]]:
    """Return what sends to a client of any HTTP but 1.1, which knows neither chunks nor 100.

    A body whose length is not told goes as it is, and ends with the connection (RFC 9112, 6.1).
    """
    cycle.keep_alive = False
    cycle.waiting_for_100_continue = False
    untold = False

    async def send(message: Any) -> None:
        nonlocal untold
        if message["type"] == "http.response.start":
            names = {name.lower() for name, _ in message.get("headers", ())}
            untold = b"content-length" not in names
            if untold:
                cycle.chunked_encoding = False
        elif untold:
            while cycle.flow.write_paused and not cycle.disconnected:
                await cycle.flow.drain()
            # Nothing comes between this and uvicorn's own look at it.
            cycle.expected_content_length = len(message.get("body", b""))
        await cycle.send(message)

    return send


def closing_answer(status: int, body: bytes) -> bytes:
    """Return a whole response, after which the connection is of no more use."""
    head = b"content-type: application/json\r\nconnection: close\r\ncontent-length: %d\r\n\r\n"
    return STATUS_LINE[status] + head % len(body) + body


def _nothing() -> None:
    pass

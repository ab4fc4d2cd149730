"""HTTP over each client's socket, so that a client that goes is noticed in every phase.

What uvicorn's own protocol leaves open, and what is done about it here:

- It tells of a client that left only to whoever waits in ``receive()``, and not while reading is
  paused, as it is behind a large body or with a second request in the pipe. Here reading goes on,
  and the end of the client's side is its leaving, the moment it is seen: neither browsers nor SDKs
  close one half of a connection and go on reading.
- A response that nobody reads is never given up. Here it can be cut (``Connection.abort``), and
  what is left of it at its end must be taken, piece by piece, within ``flush_s`` each.
- Headers and trailers may be endless, and may take for ever. Here both have a bound.
- Clients of HTTP/1.0 get chunks, of which they know nothing. Here they get bodies as they are.
- An answer to what cannot be read is written into whatever response is under way. Here it is not.
"""

from __future__ import annotations

import asyncio
from enum import Enum
from typing import Any

import httptools
import msgspec
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from tidegate.daemon.connection import (
    Connection,
    Limits,
    Timers,
    closing_answer,
    prepare,
    reset_at_close,
    without_chunks,
)


CONNECTION = "tidegate.connection"
"""Where ``scope["extensions"]`` has the request's ``Connection``."""

WRITE_BUFFER_BYTES = 64 << 10
_PIPELINE_MAX = 16
# A byte of a body may be a chunk of its own, with five bytes around it.
_BYTES_FOR_ONE = 8


class _Phase(Enum):
    IDLE = "between two requests"
    HEAD = "in the headers"
    BODY = "in the body"
    DEAF = "nothing more is understood"


class ClientProtocol(HttpToolsProtocol):
    """What to give uvicorn as ``http``; ``protocol_with`` makes one with other limits."""

    limits = Limits()

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._phase = _Phase.IDLE
        self._running: RequestResponseCycle | None = None
        self._connection: Connection | None = None
        self._timers = Timers(self.loop)
        self._is_repeated = False  # the head that is parsed, for the sake of its body
        self._head_bytes = 0
        self._fed = 0  # of the body, by the piece that is being parsed
        self._idle_bytes = 0  # that have brought neither a body nor another phase
        self._dropped = 0

    # The socket

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take a new client."""
        super().connection_made(transport)
        transport.set_write_buffer_limits(high=WRITE_BUFFER_BYTES)
        prepare(transport)
        self._timers.start("head", self.limits.head_s, self._head_is_late)

    def eof_received(self) -> None:
        """Take the end of the client's side as its leaving."""
        if self._is_busy():
            self._client_left()
            self.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """End what is under way."""
        if exc is not None:
            self._client_left()
        self._disconnect()
        self._timers.stop()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse bytes of requests, within the limits."""
        self._unset_keepalive_if_required()
        if self._is_dropping():
            self._drop(len(data))
        if self._phase is _Phase.DEAF or self.transport.is_closing():
            return
        before, self._fed = (self._phase, self.cycle), 0
        try:
            self._feed(data)
        except httptools.HttpParserError:
            if self._head_bytes > self.limits.head_bytes_max:
                self._refuse(431, "the headers are too large")
            else:
                self._refuse(400, "this is no HTTP request")
            return
        moved = before != (self._phase, self.cycle)
        pure = 0 if moved else len(data) - (1 + _BYTES_FOR_ONE) * self._fed
        self._idle_bytes = 0 if moved else max(0, self._idle_bytes + pure)
        if self._idle_bytes > self.limits.head_bytes_max:
            self._refuse(431, "the headers are too large")
        elif self._phase is _Phase.HEAD or (self._phase is _Phase.IDLE and not self._is_busy()):
            self._timers.start("head", self.limits.head_s, self._head_is_late, again=False)

    def _feed(self, data: bytes) -> None:
        """Parse, and take an offer of another protocol for a request like any other.

        The parser takes it for the end of HTTP, body or not; Java's own client makes it with each
        first request. So another parser is told the framing of the body, and goes on from there.
        """
        while True:
            try:
                self.parser.feed_data(data)
            except httptools.HttpParserUpgrade as found:
                data = data[found.args[0] :]
            else:
                return
            self.parser = httptools.HttpRequestParser(self)
            self.parser.set_dangerous_leniencies(lenient_data_after_close=True)
            framing = [
                b"%s: %s\r\n" % header
                for header in self.headers
                if header[0] in (b"content-length", b"transfer-encoding")
            ]
            self._is_repeated = True
            self.parser.feed_data(b"POST / HTTP/1.1\r\n%s\r\n" % b"".join(framing))

    # The parser

    def on_message_begin(self) -> None:
        """Begin a request."""
        if not self._is_repeated:
            super().on_message_begin()
            self._phase, self._head_bytes = _Phase.HEAD, 0

    def on_url(self, url: bytes) -> None:
        """Take a piece of the request's target."""
        if not self._is_repeated:
            super().on_url(url)
            self._count_head(len(url))

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header; trailers are dropped, for the request was judged without them."""
        self._count_head(len(name) + len(value) + 4)
        if self._phase is _Phase.HEAD:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Begin to serve the request, or let it wait for the one before it."""
        if self._is_repeated:
            self._is_repeated = False
            return
        self._phase = _Phase.BODY
        self._timers.stop("head")
        super().on_headers_complete()
        if 0 < len(self.pipeline) <= _PIPELINE_MAX:
            self.flow.resume_reading()

    def on_body(self, body: bytes) -> None:
        """Take a piece of the body."""
        self._fed += len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Take the end of a request, and go on reading to see its client leave."""
        if self.parser.should_upgrade():
            return  # its body is still to come
        super().on_message_complete()
        self._phase, self._dropped = _Phase.IDLE, 0
        self._timers.stop("drop")
        if self.cycle is self._running:
            self.flow.resume_reading()

    def _count_head(self, size: int) -> None:
        self._head_bytes += size
        if self._head_bytes > self.limits.head_bytes_max:
            raise ValueError("the headers are too large")  # it stops the parser

    # Requests

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._running = cycle
        self._connection = Connection(self.transport, self._cut)
        scope: Any = cycle.scope
        scope.setdefault("extensions", {})[CONNECTION] = self._connection

        async def serving(scope: Any, receive: Any, send: Any) -> None:
            if scope["http_version"] != "1.1":
                send = without_chunks(cycle)
            try:
                await app(scope, receive, send)
            finally:
                # However it ends, and however much uvicorn then writes about that.
                self.loop.call_soon(self._watch_flush)

        super()._start_asgi_task(cycle, serving)

    def on_response_complete(self) -> None:
        """Let the next request begin, and see that this response is taken."""
        super().on_response_complete()
        self._watch_flush()
        if self._is_dropping():
            self._timers.start("drop", self.limits.drop_s, self.transport.abort)

    def _is_busy(self) -> bool:
        return self._running is not None and not self._running.response_complete

    def _client_left(self) -> None:
        busy = self._is_busy()
        self._disconnect()
        if busy and self._connection is not None:
            self._connection.client_left()

    def _disconnect(self) -> None:
        """Tell each request that has no answer yet that it needs none."""
        waiting = [cycle for cycle, _ in self.pipeline]
        for cycle in [self._running, *waiting]:
            if cycle is not None and not cycle.response_complete:
                cycle.disconnected = True
                cycle.message_event.set()

    def _cut(self) -> None:
        self._disconnect()
        if self.parser is not None:  # else the connection is lost, and its socket closed
            reset_at_close(self.transport)
            self.transport.abort()

    # Limits

    def _refuse(self, status: int, words: str) -> None:
        """Answer what cannot be served, and listen no more; the rest of it is dropped."""
        self._phase = _Phase.DEAF
        self._timers.stop("head")
        if self._is_busy():
            self._client_left()
            self.transport.abort()
            return
        body = msgspec.json.encode({"error": {"type": "bad_request", "message": words}})
        self.transport.write(closing_answer(status, body))
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self._timers.start("drop", self.limits.drop_s, self.transport.abort)

    def _is_dropping(self) -> bool:
        """Return whether what comes belongs to a request that has its answer already."""
        if self._phase is _Phase.DEAF:
            return True
        return self._phase is _Phase.BODY and self.cycle.response_complete

    def _drop(self, size: int) -> None:
        self._dropped += size
        if self._dropped > self.limits.drop_bytes_max:
            self.transport.abort()

    def _head_is_late(self) -> None:
        if self._is_busy():
            self._timers.start("head", self.limits.head_s, self._head_is_late)
        elif self._phase is _Phase.HEAD:
            self._refuse(408, "the headers were not whole in time")
        else:
            self.transport.close()

    def _watch_flush(self, seen: int | None = None) -> None:
        """Give the connection up if nothing of an ended response was taken since ``seen``."""
        left = self.transport.get_write_buffer_size()
        if not left or (seen is None and self._is_busy() and not self.transport.is_closing()):
            return
        if seen is not None and left >= seen:
            self._cut()
            return
        self._timers.start("flush", self.limits.flush_s, lambda: self._watch_flush(left))


def protocol_with(limits: Limits) -> type[ClientProtocol]:
    """Make a protocol with limits of its own."""
    return type("ClientProtocol", (ClientProtocol,), {"limits": limits})

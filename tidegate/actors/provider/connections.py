"""Carries the SDK's requests over aiohttp connections, and hands out the bodies unread.

The SDK sees an httpx2 transport. A body is not read through httpx2's layers of generators but
straight from aiohttp, and a connection can be closed at once in each state: also while a request
is being sent that nobody takes.

Path: a provider's socket -> ``provider/connector.py`` -> this -> ``provider/transport.py``
"""

from __future__ import annotations

import asyncio
import io
import ssl
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any, NamedTuple

import aiohttp
import httpx2

from tidegate.actors.provider.connector import READ_BYTES, Connector, Seat, seat_of_task
from tidegate.actors.provider.heads import Head
from tidegate.actors.provider.sdk_response import response_from
from tidegate.actors.provider.unread import all_of


KEEPALIVE_S = 15.0
"""How long an idle connection is kept; servers often close theirs soon after."""

WRITE_BYTES = 1 << 20
"""A larger body is written in pieces, so that the loop turns meanwhile."""

ANSWERED = "tidegate.answered"
"""Where a request has the exchange that it has begun already."""

DRAIN_BYTES = 1 << 16
DRAIN_S = 1.0


class BodyEnd(NamedTuple):
    """The end of a body; ``error`` says how it broke, and is None if it is whole."""

    error: BaseException | None = None


class _Tap(asyncio.Protocol):
    """Stands between a socket and aiohttp, and says when something has gone through.

    Args:
        inner: aiohttp's end, which gets everything.
        flowed: called behind each read and behind the end.
    """

    def __init__(self, inner: asyncio.Protocol, flowed: Callable[[], None]) -> None:
        self.inner = inner
        self._flowed = flowed

    def data_received(self, data: bytes) -> None:
        self.inner.data_received(data)
        self._flowed()

    def eof_received(self) -> bool | None:
        return self.inner.eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        self.inner.connection_lost(exc)
        self._flowed()

    def pause_writing(self) -> None:
        self.inner.pause_writing()

    def resume_writing(self) -> None:
        self.inner.resume_writing()


class Exchange:
    """A response whose head has come and whose body has not been read.

    Attributes:
        status: of the response.
        read: returns the next bytes of the body as they were sent, and ``b""`` at its end.
    """

    def __init__(self, response: aiohttp.ClientResponse, transport: asyncio.Transport) -> None:
        self.status = response.status
        self._response = response
        self._transport = transport
        self.read: Callable[[], Awaitable[bytes]] = response.content.readany
        self._take: Callable[[bytes], bool]
        self._settled: asyncio.Future[BodyEnd | None]
        self._tap: _Tap | None = None
        self._taken_bytes = 0

    def header(self, name: str) -> str:
        """Return a header's value, empty if there is none."""
        return self._response.headers.get(name, "")

    @property
    def raw_headers(self) -> Sequence[tuple[bytes, bytes]]:
        """All headers as they came."""
        return self._response.raw_headers

    async def flow(self, take: Callable[[bytes], bool]) -> BodyEnd | None:
        """Hand the body to ``take`` as it comes, in the callback that reads it from the socket.

        To wake a task for each read would cost more than all that is then done with it.

        Args:
            take: gets the next bytes; returns whether it wants more.

        Returns:
            How the body ended, or None if ``take`` wanted no more.

        Raises:
            Exception: what ``take`` raised.
        """
        self._take = take
        self._settled = asyncio.get_running_loop().create_future()
        try:
            self._hand_on()
            if not self._settled.done():
                inner = self._transport.get_protocol()
                assert isinstance(inner, asyncio.Protocol)
                self._tap = _Tap(inner, self._hand_on)
                self._transport.set_protocol(self._tap)
            return await self._settled
        finally:
            self._untap()
            del self._take, self._settled  # whoever takes holds this exchange

    def pause(self) -> None:
        """Take nothing more from the socket, not even its end."""
        protocol = self._protocol()
        if protocol is not None and protocol.connected:
            protocol.pause_reading()

    def resume(self) -> None:
        """Take from the socket again. What came before the pause is read first."""
        protocol = self._protocol()
        if protocol is not None and protocol.connected:
            protocol.resume_reading()

    def abort(self) -> None:
        """Close the socket in the loop's next turn, whatever waits to be sent or read."""
        if not self._response.content.is_eof():
            self._transport.abort()
        self._response.close()

    async def drain(self) -> None:
        """Read what is left of the body, so that the connection can serve the next request.

        A connection whose body does not end within ``DRAIN_BYTES`` and ``DRAIN_S`` is closed.
        """
        content, left = self._response.content, DRAIN_BYTES
        try:
            # The answer is complete: whatever goes wrong behind it costs a connection at most.
            with suppress(TimeoutError, aiohttp.ClientError):
                async with asyncio.timeout(DRAIN_S):
                    while left > 0 and (data := await self.read()):
                        left -= len(data)
        finally:
            if not content.is_eof():
                self.abort()

    def _hand_on(self) -> None:
        content, settled = self._response.content, self._settled
        try:
            while not settled.done():
                error = content.exception()
                if error is not None:
                    self._settle(BodyEnd(error))
                # Asked for, because to read nothing costs as much as to read a delta.
                elif content.total_bytes > self._taken_bytes:
                    data = all_of(content)
                    self._taken_bytes += len(data)
                    if not self._take(data):
                        self._settle(None)
                elif content.at_eof():
                    self._settle(BodyEnd())
                else:
                    return
        except Exception as error:  # noqa: BLE001 - of ``take``: it ends who waits, not the loop
            self._untap()
            settled.set_exception(error)

    def _settle(self, end: BodyEnd | None) -> None:
        self._untap()  # at once, for at its end the connection may serve somebody else
        self._settled.set_result(end)

    def _untap(self) -> None:
        tap, self._tap = self._tap, None
        if tap is not None:
            self._transport.set_protocol(tap.inner)

    def _protocol(self) -> Any:
        connection = self._response.connection
        return connection.protocol if connection is not None else None


class Connections(httpx2.AsyncBaseTransport):
    """A pool of connections, without a limit to their number.

    Args:
        tls: for ``https``.
        proxy: URL of an HTTP proxy; empty for none.
    """

    exchange_from: Callable[[aiohttp.ClientResponse, asyncio.Transport], Exchange] = Exchange

    def __init__(self, tls: ssl.SSLContext, proxy: str = "") -> None:
        self._proxy = proxy or None
        self._session = aiohttp.ClientSession(
            connector=Connector(ssl=tls, limit=0, keepalive_timeout=KEEPALIVE_S),
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            read_bufsize=READ_BYTES,
        )

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request and wait for the head of its response.

        Raises:
            aiohttp.ClientError: as aiohttp raises it; the SDK lets it pass.
        """
        # Those that it is redirected to have its extensions.
        if (answered := request.extensions.pop(ANSWERED, None)) is not None:
            return response_from(answered)
        connect_s = request.extensions.get("timeout", {}).get("connect")
        return response_from(await self.send(Head.of(request), await request.aread(), connect_s))

    async def send(self, head: Head, body: bytes, connect_s: float | None) -> Exchange:
        """Send a request that is made up already, and wait for the head of its response.

        Args:
            head: of the request.
            body: of the request.
            connect_s: what look-up, connect and TLS may take together; None for any time.

        Raises:
            aiohttp.ClientError: as aiohttp raises it.
        """
        seat_of_task.set(seat := Seat())
        try:
            response = await self._session.request(
                head.method,
                head.url,
                headers=head.headers,
                data=_payload_from(body),
                allow_redirects=False,
                timeout=_timeout_from(connect_s),
                proxy=self._proxy,
            )
        except BaseException:
            if seat.transport is not None:
                seat.transport.abort()
            raise
        assert seat.transport is not None
        return self.exchange_from(response, seat.transport)

    async def aclose(self) -> None:
        """Close all connections, those in use included."""
        await self._session.close()


@lru_cache(maxsize=64)
def _timeout_from(connect_s: float | None) -> aiohttp.ClientTimeout:
    # aiohttp's name for look-up, connect and TLS together.
    return aiohttp.ClientTimeout(total=None, connect=connect_s)


def _payload_from(body: bytes) -> bytes | io.BytesIO | None:
    return io.BytesIO(body) if len(body) > WRITE_BYTES else body or None

"""Connections that note what goes over them, for the attempts of which that is wanted.

Which recording is whose is known by the task: an attempt's request is made in the attempt's task.

Path: ``provider/connections.py`` -> this -> ``provider/recording.py``
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import ContextVar

import aiohttp
import httpx2

from tidegate.actors.provider.connections import BodyEnd, Connections, Exchange
from tidegate.actors.provider.recording import Recording, how_of
from tidegate.actors.provider.sdk_response import EXCHANGE
from tidegate.protocol.captures import How


recording_of_task: ContextVar[Recording | None] = ContextVar("recording_of_task", default=None)


class CapturedExchange(Exchange):
    """An exchange that is noted as it is read."""

    def __init__(
        self,
        response: aiohttp.ClientResponse,
        transport: asyncio.Transport,
        recording: Recording,
    ) -> None:
        super().__init__(response, transport)
        self._recording = recording
        self._read = self.read
        self.read = self._noted_read

    async def flow(self, take: Callable[[bytes], bool]) -> BodyEnd | None:
        """Hand the body to ``take``, noting it first."""

        def noted(data: bytes) -> bool:
            self._recording.body(data)
            return take(data)

        end = await super().flow(noted)
        if end is not None:
            self._note_end(end.error)
        return end

    def abort(self) -> None:
        """Close the socket; what was not over by now was left."""
        self._recording.end(How.LEFT)
        super().abort()

    async def _noted_read(self) -> bytes:
        try:
            data = await self._read()
        except aiohttp.ClientError as error:
            self._note_end(error)
            raise
        if data:
            self._recording.body(data)
        else:
            self._note_end(None)
        return data

    def _note_end(self, error: BaseException | None) -> None:
        self._recording.end(How.EOF if error is None else how_of(error), error)


def exchange_from(response: aiohttp.ClientResponse, transport: asyncio.Transport) -> Exchange:
    """Return an exchange, noted if this task's are."""
    recording = recording_of_task.get()
    if recording is None:
        return Exchange(response, transport)
    return CapturedExchange(response, transport, recording)


class CapturedConnections(Connections):
    """A pool of connections that can be noted."""

    exchange_from = staticmethod(exchange_from)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request and wait for the head of its response, noting both.

        Raises:
            aiohttp.ClientError: as aiohttp raises it; the SDK lets it pass.
        """
        recording = recording_of_task.get()
        if recording is None:
            return await super().handle_async_request(request)
        body = await request.aread()
        recording.request(request.method, str(request.url), request.headers.multi_items(), body)
        try:
            response = await super().handle_async_request(request)
        except Exception as error:
            recording.end(How.FAILED, error)
            raise
        exchange: Exchange = response.extensions[EXCHANGE]
        recording.head(response.status_code, exchange.raw_headers)
        return response

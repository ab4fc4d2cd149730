"""Requests that an SDK builds and authenticates; what it has built once is sent again.

To build a request takes an SDK longer than everything else up to the first byte on the socket, and
comes out the same each time: for one client, address, headers and query, only the body differs. So
the first request is the SDK's, and its address and headers serve those that follow. What has other
headers or goes elsewhere is another first request, and so is one that was redirected.

Path: ``provider/transport.py`` -> this -> ``provider/connections.py``
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable

import httpx2

from tidegate.actors.provider.connections import ANSWERED, Exchange
from tidegate.actors.provider.heads import Head
from tidegate.actors.provider.network import client_over, connections_for
from tidegate.actors.provider.sdk_response import NO_SUCCESS, opened_by
from tidegate.protocol.attempts import Order, Target


HEADS_MAX = 64
"""How many are kept: a target has few, unless its users set headers of their own."""


class SdkSender(ABC):
    """One SDK client.

    Args:
        target: where to, and as whom; headers and query are each request's own.
    """

    def __init__(self, target: Target) -> None:
        self._connections = connections_for(target)
        self._http = client_over(self._connections, target)
        self._heads: dict[Hashable, Head] = {}

    @property
    def made(self) -> bool:
        """It is complete from the start."""
        return True

    async def make(self) -> None:  # noqa: B027 - there is nothing left to do
        """Make what it lacks, which is nothing."""

    async def send(self, order: Order) -> Exchange | httpx2.Response:
        """Send a request; return the exchange, or the response, read, if it is no success.

        Raises:
            Exception: of the SDK, the transport or the operating system; see ``failure_from``.
        """
        path, body = self._path_for(order), self._body_for(order)
        key = (path, order.target.headers, order.target.query)
        head = self._heads.get(key)
        # A capture shows the request as the SDK makes it.
        if head is not None and not order.capture:
            exchange = await self._connections.send(head, body, order.connect_timeout_s)
            if exchange.status < NO_SUCCESS:
                return exchange  # of what httpx2 would make of it nothing is needed
            response = await self._follow(order, head, body, exchange)
        else:
            response = await self._build_and_send(order, path, body)
            self._keep(key, Head.of(response.request))
        if response.history:
            self._heads.pop(key, None)  # several may be redirected at the same time
        return await opened_by(response)

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    @abstractmethod
    def _path_for(self, order: Order) -> str:
        """Return what follows the base URL."""

    @abstractmethod
    def _body_for(self, order: Order) -> bytes:
        """Return the payload with what this attempt asks for."""

    @abstractmethod
    async def _build_and_send(self, order: Order, path: str, body: bytes) -> httpx2.Response:
        """Let the SDK do what ``send`` does."""

    async def _follow(
        self, order: Order, head: Head, body: bytes, exchange: Exchange
    ) -> httpx2.Response:
        """Let httpx2 take it from an answer that is no success: it knows where redirects lead."""
        request = self._http.build_request(
            head.method,
            str(head.url),
            headers=[*head.headers.items()],
            content=body,
            timeout=httpx2.Timeout(None, connect=order.connect_timeout_s),
            extensions={ANSWERED: exchange},
        )
        return await self._http.send(request, stream=True)

    def _keep(self, key: Hashable, head: Head) -> None:
        if len(self._heads) >= HEADS_MAX:
            del self._heads[next(iter(self._heads))]
        self._heads[key] = head

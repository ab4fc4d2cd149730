"""Exchanges for those who know httpx2's responses, as the SDKs do.

A body is read through httpx2 only if it is an error's text, or stands before a redirect. It ends
early rather than fail, wait or fill the memory, because the status has said what matters.

Path: ``provider/connections.py`` -> this -> the SDKs
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import TYPE_CHECKING

import aiohttp
import httpx2

from tidegate.actors.provider.dialects.body import Inflater, UnknownEncoding


if TYPE_CHECKING:
    from tidegate.actors.provider.connections import Exchange

ERROR_BODY_BYTES = 1 << 16
ERROR_BODY_S = 5.0
EXCHANGE = "tidegate.exchange"
NO_SUCCESS = 300
"""The lowest status behind which there is no answer."""
_ENCODING = b"content-encoding"  # its undoing is not left to httpx2


class ErrorBody(httpx2.AsyncByteStream):
    """The beginning of a body, decompressed: httpx2 would do that too, but without a limit.

    Args:
        exchange: whose body it is.
    """

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange

    async def __aiter__(self) -> AsyncIterator[bytes]:
        left = ERROR_BODY_BYTES
        with suppress(TimeoutError, aiohttp.ClientError, zlib.error):
            inflater = self._inflater()
            async with asyncio.timeout(ERROR_BODY_S):
                while left > 0 and (data := await self._exchange.read()):
                    for piece in (data,) if inflater is None else inflater.pieces(data):
                        yield piece[:left]
                        left -= len(piece)
                        if left <= 0:
                            break

    async def aclose(self) -> None:
        """Close the connection, unless the body was read to its end."""
        self._exchange.abort()

    def _inflater(self) -> Inflater | None:
        encoding = self._exchange.header("content-encoding").strip().lower()
        with suppress(UnknownEncoding):  # it is shown as it is, like what is not compressed
            return Inflater(encoding)
        return None


def response_from(exchange: Exchange) -> httpx2.Response:
    """Return an exchange as the SDKs see it."""
    return httpx2.Response(
        status_code=exchange.status,
        headers=[each for each in exchange.raw_headers if each[0].lower() != _ENCODING],
        stream=ErrorBody(exchange),
        extensions={EXCHANGE: exchange},
    )


async def opened_by(response: httpx2.Response) -> Exchange | httpx2.Response:
    """Return the exchange behind a response, or the response, read, if it is no success."""
    if response.status_code >= NO_SUCCESS:
        await response.aread()
        return response
    # The response holds the request, and that the prompt, so only the exchange goes on.
    exchange: Exchange = response.extensions[EXCHANGE]
    return exchange

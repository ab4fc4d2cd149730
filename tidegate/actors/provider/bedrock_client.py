"""Requests of the ``converse`` wire, built, validated and signed by botocore.

botocore sends nothing to Bedrock: just before it would, the signed request is taken from it and
goes over our own connections. Its retries and its limits to a silence therefore play no part. What
of it takes time, or may wait for another service of AWS, runs in threads.

Path: ``provider/transport.py`` -> this -> ``provider/connections.py``
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from contextvars import ContextVar
from typing import Any

import httpx2
from botocore import UNSIGNED
from botocore.awsrequest import AWSPreparedRequest, AWSRequest, AWSResponse
from botocore.credentials import RefreshableCredentials
from botocore.exceptions import NoCredentialsError

from tidegate.actors.provider.bedrock_blobs import parameters_from
from tidegate.actors.provider.bedrock_session import (
    NO_CREDENTIALS,
    Made,
    NoCredentials,
    client_from,
)
from tidegate.actors.provider.connections import Exchange
from tidegate.actors.provider.network import client_over, connections_for, tls_context
from tidegate.actors.provider.sdk_response import opened_by
from tidegate.protocol.attempts import Order, Target


# Few sign, for they compute: each of them is one more that the loop must wait for.
_signers = ThreadPoolExecutor(2, thread_name_prefix="bedrock-signer")
# Who fetches credentials waits for another service, and must keep nobody from signing.
_fetchers = ThreadPoolExecutor(4, thread_name_prefix="bedrock-fetcher")
# Clients are made one after the other, see ``bedrock_session.py``.
_maker = ThreadPoolExecutor(1, thread_name_prefix="bedrock-client")


class _Call:
    """One call of a botocore client, which ends with a request instead of an answer."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.signed: AWSPreparedRequest | None = None


_call: ContextVar[_Call] = ContextVar("_call")


class BedrockSender:
    """One botocore client.

    Args:
        target: where to, and as whom; headers and query are each request's own.
    """

    def __init__(self, target: Target) -> None:
        self._target = target
        self._making: asyncio.Future[Made] | None = None
        self._http: httpx2.AsyncClient | None = None

    @property
    def made(self) -> bool:
        """Whether there is a client."""
        making = self._making
        return making is not None and making.done() and making.exception() is None

    async def make(self) -> None:
        """Make the client, which takes tenths of a second, and more where credentials are far."""
        with suppress(Exception):  # who sends makes it anew, and hears of it
            await self._made()

    async def send(self, order: Order) -> Exchange | httpx2.Response:
        """Send a request; return the exchange, or the response, read, if its status is an error.

        Raises:
            Exception: of botocore, the transport or the operating system; see ``failure_from``.
        """
        made = await self._made()
        loop = asyncio.get_running_loop()
        if not _authorization(order.target) and _is_stale(made.credentials):
            await loop.run_in_executor(_fetchers, made.credentials.get_frozen_credentials)
        try:
            signed = await loop.run_in_executor(_signers, _sign, made.client, order)
        except NoCredentials:
            self._making = None  # whoever comes next looks for them again
            raise
        http = self._http = self._http or client_over(connections_for(made.target), made.target)
        request = http.build_request(
            "POST",
            signed.url,
            headers=_headers_from(signed),
            content=signed.body,
            # Silence is the supervisor's affair.
            timeout=httpx2.Timeout(None, connect=order.connect_timeout_s),
        )
        return await opened_by(await http.send(request, stream=True))

    async def close(self) -> None:
        """Close the connections."""
        if self._http is not None:
            await self._http.aclose()

    async def _made(self) -> Made:
        """Return the client, which is made once, and anew if that has failed."""
        making = self._making
        if making is None or (making.done() and not self.made):
            making = asyncio.get_running_loop().run_in_executor(_maker, _make, self._target)
            making.add_done_callback(asyncio.Future.exception)  # whoever waited may have left
            self._making = making
        # Others may wait for it as well.
        return await asyncio.shield(making)


def _make(target: Target) -> Made:
    made = client_from(target)
    meta = made.client.meta
    events, service = meta.events, meta.service_model.service_id.hyphenize()
    events.register_first(f"choose-signer.{service}", _choose_signer)
    events.register(f"before-sign.{service}", _complete)
    events.register(f"before-send.{service}", _take)
    tls_context(made.target.verify)  # it takes time to read; from now on it is there
    return made


def _is_stale(credentials: Any) -> bool:
    """Say whether credentials must be fetched before they can sign; those that last never are."""
    return isinstance(credentials, RefreshableCredentials) and credentials.refresh_needed()


def _sign(client: Any, order: Order) -> AWSPreparedRequest:
    """Have a request built and signed."""
    call = _Call(order.target)
    token = _call.set(call)
    try:
        name = "ConverseStream" if order.stream else "Converse"
        shape = client.meta.service_model.operation_model(name).input_shape
        parameters = parameters_from(shape, order.body)
        (client.converse_stream if order.stream else client.converse)(**parameters)
    except NoCredentialsError as error:
        raise NoCredentials(NO_CREDENTIALS) from error
    finally:
        _call.reset(token)
    assert call.signed is not None, "botocore has sent something by itself"
    return call.signed


def _choose_signer(**_event: Any) -> Any:
    """Leave a request unsigned that says in another way who sends it."""
    return UNSIGNED if _authorization(_call.get().target) else None


def _complete(request: AWSRequest, **_event: Any) -> None:
    """Add what is this request's own, as long as it can be signed."""
    target = _call.get().target
    for name, value in (*_authorization(target), *target.headers):
        del request.headers[name]
        request.headers[name] = value
    if target.query:
        request.params = dict(target.query)


def _take(request: AWSPreparedRequest, **_event: Any) -> AWSResponse:
    """Keep a request, and answer it with nothing."""
    _call.get().signed = request
    return AWSResponse(request.url, 200, {}, _Nothing())


class _Nothing:
    """An answer's body with the least that botocore reads without complaint."""

    def stream(self) -> Iterator[bytes]:
        yield b"{}"


def _authorization(target: Target) -> tuple[tuple[str, str], ...]:
    """Return the header that stands for a signature, if there is one."""
    given = tuple(each for each in target.headers if each[0].lower() == "authorization")
    if given or not target.api_key:
        return given
    return (("Authorization", f"Bearer {target.api_key}"),)


def _headers_from(signed: AWSPreparedRequest) -> dict[str, str]:
    headers = {
        name: value.decode() if isinstance(value, bytes) else str(value)
        for name, value in signed.headers.items()
        if name.lower() not in ("content-length", "accept-encoding")
    }
    return {**headers, "accept-encoding": "identity"}

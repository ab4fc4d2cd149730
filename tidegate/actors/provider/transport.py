"""The only way to a provider: SDK clients that are kept, and requests that come back unread.

Path: ``provider/connections.py`` -> this -> ``provider/actor.py``
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter, OrderedDict
from typing import NamedTuple

import httpx2
import msgspec

from tidegate.actors.provider.capture import recording_of_task
from tidegate.actors.provider.connections import Exchange
from tidegate.actors.provider.dialects.dialect import DIALECTS
from tidegate.actors.provider.files import (
    Stamps,
    authorities_of_environment,
    files_of,
    stamps_of,
)
from tidegate.actors.provider.recording import Recording
from tidegate.actors.provider.senders import SLOW, MakeSender, Sender, Senders
from tidegate.actors.provider.turnstile import Turnstile
from tidegate.protocol.attempts import Order, Target
from tidegate.protocol.failures import Failure, FailureKind


CLIENTS_MAX = 64

_ERROR = 400
"""The lowest status of an error; what is below and yet no success leads somewhere else."""

_NO_SUCH_PLACE = (404, 405)


class _Key(NamedTuple):
    """What tells a client from others.

    Attributes:
        target: without what is each request's own.
        files: how the files looked that it was made of.
    """

    target: Target
    files: Stamps


class Rejected(NamedTuple):
    """The provider answered with a status that is no success.

    Attributes:
        refused: a compatibility retry that would help: ``stream_options`` or ``streaming``.
    """

    failure: Failure
    refused: str = ""


class Clients:
    """SDK clients by endpoint and credentials; those used last are kept, ``limit`` of them.

    One whose files have changed since is kept no longer. One that is in use is never closed, so
    that there can be more for a while.

    Attributes:
        kinds: the classes that clients are made of.
    """

    def __init__(self, limit: int = CLIENTS_MAX) -> None:
        self.kinds = Senders()
        self._limit = limit
        self._authorities = authorities_of_environment()  # as it was when the worker began
        self._senders: OrderedDict[_Key, Sender] = OrderedDict()
        self._outdated: set[_Key] = set()
        self._users: Counter[_Key] = Counter()
        self._exchanges: dict[Exchange, _Key] = {}
        self._recordings: dict[Exchange, Recording] = {}
        self._closing: set[asyncio.Task[None]] = set()
        self._turnstile = Turnstile()

    def ready(self, target: Target) -> bool:
        """Say whether a request can leave at once, and nobody has to wait for a client."""
        if self.kinds.find(target.wire) is None:
            return False
        if target.wire not in SLOW:
            return True
        sender = self._senders.get(self._key_of(target))
        return sender is not None and sender.made

    async def prepare(self, target: Target) -> None:
        """Wait until the SDK is imported and, where that takes long, a client is made.

        If there can be no such client, whoever opens an exchange hears why.

        Raises:
            Exception: of the import.
        """
        make = await self.kinds.load(target.wire)
        if target.wire not in SLOW:
            return
        key = self._key_of(target)
        sender = self._sender_for(key, make)
        self._users[key] += 1
        try:
            await sender.make()
        finally:
            self._release(key)

    async def open(self, order: Order) -> Exchange | Rejected:
        """Send a request and wait for the head of the response.

        Returns:
            An exchange to be given back to ``leave``, or what an error status means.

        Raises:
            Exception: of the SDK, the transport or the operating system; see ``failure_from``.
        """
        if not order.capture:
            return await self._open(order)
        recording = Recording(order)
        recording_of_task.set(recording)
        opened = None
        try:
            opened = await self._open(order)
        finally:
            if isinstance(opened, Exchange):
                self._recordings[opened] = recording
            else:
                recording.close()
        return opened

    def leave(self, exchange: Exchange) -> None:
        """Take back an exchange that is over."""
        self._release(self._exchanges.pop(exchange))
        if (recording := self._recordings.pop(exchange, None)) is not None:
            recording.close()

    async def close(self) -> None:
        """Close all clients, and with them every connection."""
        self._limit = 0
        self._exchanges.clear()
        self._users.clear()
        self._evict()
        await asyncio.gather(*self._closing)

    async def _open(self, order: Order) -> Exchange | Rejected:
        make = await self.kinds.load(order.target.wire)
        await self._turnstile.pass_through()
        key = self._key_of(order.target)
        sender = self._sender_for(key, make)
        self._users[key] += 1
        try:
            opened = await sender.send(order)
            if isinstance(opened, httpx2.Response):
                rejected = _rejected_from(order.target.wire, opened)
                self._release(key)
                return rejected
        except BaseException:
            self._release(key)
            raise
        self._exchanges[opened] = key
        return opened

    def _key_of(self, target: Target) -> _Key:
        files = stamps_of(files_of(target, self._authorities))
        return _Key(msgspec.structs.replace(target, headers=(), query=()), files)

    def _sender_for(self, key: _Key, make: MakeSender) -> Sender:
        sender = self._senders.get(key)
        if sender is None:
            sender = make(key.target)
            self._outdated.update(each for each in self._senders if each.target == key.target)
            self._senders[key] = sender
        self._senders.move_to_end(key)
        return sender

    def _release(self, key: _Key) -> None:
        self._users[key] -= 1
        if not self._users[key]:
            del self._users[key]
            self._evict()

    def _evict(self) -> None:
        surplus = len(self._senders) - self._limit
        if surplus <= 0 and not self._outdated:
            return
        unused = [key for key in self._senders if key not in self._users]
        for place, key in enumerate(unused):
            if place < surplus or key in self._outdated:
                self._outdated.discard(key)
                closing = asyncio.create_task(self._senders.pop(key).close())
                self._closing.add(closing)
                closing.add_done_callback(self._closing.discard)


def _rejected_from(wire: str, response: httpx2.Response) -> Rejected:
    dialect, status, body = DIALECTS[wire], response.status_code, response.content
    failure = dialect.rejected(status, body, response.headers, now_s=time.time())
    asked = f"{response.request.method} {response.request.url.copy_with(query=None)}"
    if status < _ERROR:
        # Nobody knows where it leads, so that it would lead there again.
        failure = msgspec.structs.replace(
            failure,
            kind=FailureKind.BAD_REQUEST,
            reason="redirect",
            retryable=False,
            status=status,
            detail=f"HTTP {status} is no answer and names no address to go on to: check the "
            f"endpoint's own ({asked})",
        )
        return Rejected(failure)
    if status in _NO_SUCH_PLACE and failure.code is None:
        # Mostly an address without its ``/v1``, which hardly any server's words tell.
        failure = msgspec.structs.replace(
            failure, detail=f"{failure.detail} ({asked})" if failure.detail else asked
        )
    return Rejected(failure, dialect.refused(status, body))

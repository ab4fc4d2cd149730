"""Provider actors: each runs one attempt, as a task around its machine.

Path: ``provider/transport.py`` -> this -> ``provider/worker.py``
"""

from __future__ import annotations

import asyncio
import logging
from asyncio import CancelledError, Future, Task
from functools import partial
from typing import Protocol, assert_never

import msgspec

from tidegate.actors.causes import log_fault
from tidegate.actors.provider.connections import Exchange
from tidegate.actors.provider.dialects.body import BodyDecoder, Inflater
from tidegate.actors.provider.dialects.dialect import DIALECTS
from tidegate.actors.provider.exceptions import failure_from
from tidegate.actors.provider.facts import (
    AttemptEffect,
    AttemptFailed,
    AttemptMessage,
    BatchCame,
    BodyEnded,
    CancelCame,
    CloseSocket,
    CreditCame,
    DrainSocket,
    HeadersCame,
    PauseReading,
    PreparingBegan,
    PreparingOver,
    ResumeReading,
    Send,
    SendNow,
)
from tidegate.actors.provider.machine import AttemptState, decide, evolve
from tidegate.actors.provider.scrubbing import masked, scrubbed, secrets_of
from tidegate.actors.provider.transport import Clients, Rejected
from tidegate.protocol.attempts import (
    CancelAttempt,
    Credit,
    Ended,
    FromWorker,
    Order,
    StartAttempt,
)
from tidegate.protocol.base import Token
from tidegate.protocol.failures import FailureKind


REQUEST_IDS = ("x-request-id", "request-id", "x-amzn-requestid")
"""Where providers tell by which name they know a request."""

logger = logging.getLogger("tidegate.provider")


class Uplink(Protocol):
    """What takes the messages to the host."""

    def send(self, message: FromWorker) -> None:
        """Send at the end of the loop's turn."""

    def send_now(self, message: FromWorker) -> None:
        """Send at once, behind what is queued."""

    @property
    def full(self) -> bool:
        """Whether the host does not keep up."""

    async def drained(self) -> None:
        """Wait until the host has taken enough."""


class Providers:
    """All attempts of one worker; its methods run in the worker's loop."""

    def __init__(self, uplink: Uplink) -> None:
        self._uplink = uplink
        self._clients = Clients()
        self._attempts: dict[Token, ProviderActor] = {}

    def receive(self, message: StartAttempt | CancelAttempt | Credit) -> None:
        """Start, cancel or feed an attempt. A cancel is always answered by an ``Ended``."""
        token = message.token
        attempt = self._attempts.get(token)
        match message:
            case StartAttempt():
                assert attempt is None, f"token {token} is in use"
                attempt = ProviderActor(message, self._uplink, self._clients)
                self._attempts[token] = attempt
                # Not a closure over the message, which would keep the prompt.
                attempt.task.add_done_callback(partial(self._forget, token))
            case CancelAttempt():
                if attempt is None or attempt.over:
                    ended = Ended(message.turn, token, cancelled=True)
                    self._uplink.send_now(ended)
                if attempt is not None:
                    attempt.cancel()
            case Credit():
                if attempt is not None:
                    attempt.credit(message.limit_bytes)
            case _:
                assert_never(message)

    async def close(self) -> None:
        """Cancel every attempt, and close all connections."""
        attempts = tuple(self._attempts.values())
        for attempt in attempts:
            attempt.cancel()
        await asyncio.gather(*(attempt.task for attempt in attempts))
        await self._clients.close()

    def _forget(self, token: Token, _task: Task[None]) -> None:
        del self._attempts[token]


class ProviderActor:
    """One attempt, from its start until its connection is closed or free for the next.

    Attributes:
        task: runs the attempt; it never fails.
    """

    __slots__ = (
        "_began",
        "_cancelled",
        "_clients",
        "_exchange",
        "_loop",
        "_rest",
        "_secrets",
        "_state",
        "_uplink",
        "task",
    )

    def __init__(self, start: StartAttempt, uplink: Uplink, clients: Clients) -> None:
        order = start.order
        self._state = AttemptState(
            start.turn, start.token, start.limit_bytes, life_every_s=order.life_every_s
        )
        self._uplink = uplink
        self._clients = clients
        self._secrets = secrets_of(order.target)
        self._exchange: Exchange | None = None
        self._rest: Future[None] | None = None
        self._began = False
        self._cancelled = False
        self._loop = asyncio.get_running_loop()
        # The task alone holds the order, so that the prompt can be let go of.
        self.task: Task[None] = asyncio.create_task(
            self._run([order]), name=f"attempt-{start.token}"
        )

    @property
    def over(self) -> bool:
        """Whether the end was decided; its connection may still be drained."""
        return self._state.phase == "ended"

    def cancel(self) -> None:
        """End the attempt, or the draining behind it; what was cancelled already is let be."""
        if self._cancelled:
            return
        self._cancelled = True
        # A task that is cancelled before its first step never runs, and would not report.
        if self._began:
            self.task.cancel()

    def credit(self, limit_bytes: int) -> None:
        """Raise the limit."""
        for effect in self._decided(CreditCame(limit_bytes)):
            self._perform(effect)

    async def _run(self, orders: list[Order]) -> None:
        self._began = True
        try:
            if self._cancelled:
                raise CancelledError  # noqa: TRY301 - as if it had come a moment later
            await self._attempt(orders)
        except CancelledError:
            await self._take(CancelCame())
        except Exception as error:  # noqa: BLE001 - the rim: it becomes the attempt's end
            failure = failure_from(error)
            if failure.kind is FailureKind.INTERNAL:
                turn, token = self._state.turn, self._state.token
                log_fault(logger, f"turn {turn}, token {token}: its attempt failed", error)
            await self._take(AttemptFailed(failure))
        finally:
            if self._exchange is not None:
                self._clients.leave(self._exchange)

    async def _attempt(self, orders: list[Order]) -> None:
        order = orders.pop()
        wire = order.target.wire
        if not self._clients.ready(order.target):
            await self._take(PreparingBegan())
            await self._clients.prepare(order.target)
            await self._take(PreparingOver())
        opened = await self._clients.open(order)
        if isinstance(opened, Rejected):
            await self._take(AttemptFailed(opened.failure, opened.refused))
            return
        self._exchange = opened
        decoder = BodyDecoder(DIALECTS[wire], order, opened.header("content-type"))
        del order
        request_id = next(filter(None, map(opened.header, REQUEST_IDS)), None)
        await self._take(HeadersCame(request_id and masked(request_id, self._secrets)))
        await self._read(opened, decoder)

    async def _read(self, exchange: Exchange, decoder: BodyDecoder) -> None:
        encoding = exchange.header("content-encoding").strip().lower()
        inflater = Inflater(encoding) if encoding not in ("", "identity") else None
        last: tuple[AttemptEffect, ...] = ()

        def take(data: bytes) -> bool:
            nonlocal last
            for piece in inflater.pieces(data) if inflater else (data,):
                effects = self._decided(BatchCame(decoder.feed(piece)))
                if self.over:
                    last = effects
                    return False
                for effect in effects:
                    self._perform(effect)
            return self._rest is None and not self._uplink.full

        while (end := await exchange.flow(take)) is None:
            if self.over:
                await self._carry_out(last)
                return
            if self._rest is not None:
                await self._rest
            await self._uplink.drained()
        ending = failure_from(end.error) if end.error is not None else None
        await self._take(BodyEnded(decoder.eof(), ending, decoder.learned))

    async def _take(self, message: AttemptMessage) -> None:
        await self._carry_out(self._decided(message))

    async def _carry_out(self, effects: tuple[AttemptEffect, ...]) -> None:
        for effect in effects:
            match effect:
                case CloseSocket():
                    if self._exchange is not None:
                        self._exchange.abort()
                    # The loop closes what was aborted before it comes back here.
                    await asyncio.sleep(0)
                case DrainSocket():
                    if self._exchange is not None:
                        await self._exchange.drain()
                case _:
                    self._perform(effect)

    def _decided(self, message: AttemptMessage) -> tuple[AttemptEffect, ...]:
        events, effects = decide(self._state, message, self._loop.time())
        for event in events:
            self._state = evolve(self._state, event)
        return effects

    def _perform(self, effect: AttemptEffect) -> None:
        match effect:
            case Send(message):
                self._uplink.send(message)
            case SendNow(message):
                self._uplink.send_now(self._scrubbed(message))
            case PauseReading():
                assert self._exchange is not None, "only what is open can rest"
                self._exchange.pause()
                self._rest = self._loop.create_future()
            case ResumeReading():
                assert self._exchange is not None
                assert self._rest is not None
                self._exchange.resume()
                self._rest.set_result(None)
                self._rest = None
            case CloseSocket() | DrainSocket():
                raise AssertionError(f"{effect} takes time")
            case _:
                assert_never(effect)

    def _scrubbed(self, message: FromWorker) -> FromWorker:
        if not isinstance(message, Ended) or message.failure is None:
            return message
        failure = scrubbed(message.failure, self._secrets)
        return msgspec.structs.replace(message, failure=failure)

"""One client's response: carries out what the machine decides, on the client's own socket.

Everything is decided and ordered in the step in which it becomes known; the task of the response
does the writing. So a client that leaves costs the provider's stream nothing but that step.

Path: ``api/`` -> this -> ``stream/machine.py``, ``turns/hosted.py``
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

from tidegate.daemon.connection import Connection
from tidegate.daemon.protocol import WRITE_BUFFER_BYTES
from tidegate.daemon.stream.machine import decide
from tidegate.daemon.stream.messages import (
    Abort,
    Answer,
    Began,
    CancelTimers,
    ClientLeft,
    End,
    InterruptTurn,
    Lag,
    LeaveTurn,
    Plan,
    Reply,
    Send,
    SendHead,
    SendHeartbeat,
    SetTimer,
    StreamEffect,
    StreamMessage,
    Timer,
    TimerFired,
    WriteTaken,
)
from tidegate.daemon.stream.state import StreamState, evolve


AsgiSend = Callable[[dict[str, Any]], Any]

STREAM_HEADERS = (
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),  # nginx holds a stream back otherwise
)


class Source(Protocol):
    """What a response is made from, batch by batch."""

    def take(self) -> Sequence[Any]:
        """Take all that is there; if there is nothing, the response is woken when there is."""

    def watch(self) -> None:
        """Have the response woken at whatever comes next, without taking anything."""

    @property
    def lag_bytes(self) -> int:
        """How much there is to take."""

    def close(self) -> None:
        """Take nothing any more."""


class Renderer(Protocol):
    """Puts what was taken into the words of an API."""

    heartbeat: bytes

    def render(self, batch: Sequence[Any]) -> list[StreamMessage]:
        """Return what the batch means for the response."""


class Reader(Protocol):
    """Whoever answers for the turn that is read."""

    def leave(self, how: str) -> None:
        """Hear once that the response takes nothing any more: ``ended``, ``left`` or ``cut``."""

    def interrupt(self, reason: str) -> None:
        """Interrupt the turn."""


class Client(NamedTuple):
    """Whom a response goes to.

    Attributes:
        connection: notices when the client goes.
        send: of ASGI.
        headers: what else is in the response's head.
    """

    connection: Connection
    send: AsgiSend
    headers: tuple[tuple[bytes, bytes], ...]


class Response:
    """Serves one request to its end.

    Args:
        plan: what kind of response it is.
        renderer: makes frames and replies.
        reader: answers for the turn.
        client: whom it goes to.
    """

    def __init__(self, plan: Plan, renderer: Renderer, reader: Reader, client: Client) -> None:
        self._state = StreamState(plan)
        self._renderer = renderer
        self._reader = reader
        self._connection, self._send, self._headers = client
        self._source: Source | None = None
        self._orders: deque[StreamEffect] = deque()
        self._signal = asyncio.Event()
        self._timers: dict[Timer, asyncio.TimerHandle] = {}
        self._drain: asyncio.Task[None] | None = None
        self._take_back: Callable[[], None] = _nothing

    def begin(self) -> None:
        """Let the machine know of the client; before the turn is asked for."""
        self.tell(Began())
        self._take_back = self._connection.when_gone(self._left)

    def read(self, source: Source) -> None:
        """Read from here on."""
        self._source = source
        self.wake()

    def wake(self) -> None:
        """Take what is there, unless the client still has to take what it was given."""
        source = self._source
        if source is None:
            return
        if self._is_writing():
            self.tell(Lag(source.lag_bytes))
        else:
            while self._source is source and not self._is_writing() and (batch := source.take()):
                for message in self._renderer.render(batch):
                    self.tell(message)
        if self._source is source and self._is_writing():
            source.watch()

    def _is_writing(self) -> bool:
        return self._state.write_since_s is not None

    def tell(self, message: StreamMessage) -> None:
        """Decide, and order."""
        decision = decide(self._state, message, time.monotonic())
        for fact in decision.events:
            self._state = evolve(self._state, fact)
        for effect in decision.effects:
            self._perform(effect)

    @property
    def over(self) -> bool:
        """Whether nothing is to be done any more."""
        return self._state.phase == "over" and not self._orders

    async def serve(self) -> None:
        """Write what is ordered, until the response is over."""
        try:
            while not self.over:
                self._signal.clear()
                if self._orders:
                    await self._write_orders()
                else:
                    await self._signal.wait()
        except BaseException:
            self._left()  # the server ends the task of a client that it gives up
            raise
        finally:
            self._take_back()
            self._take_back = _nothing  # it leads back here, and kept the turn in memory
            self._leave_source()
            if self._drain is not None:
                self._drain.cancel()

    def _perform(self, effect: StreamEffect) -> None:
        match effect:
            case SetTimer(timer, delay_s):
                old = self._timers.get(timer)
                if old is not None:
                    old.cancel()
                loop = asyncio.get_running_loop()
                self._timers[timer] = loop.call_later(delay_s, self._due, timer)
            case CancelTimers():
                for handle in self._timers.values():
                    handle.cancel()
                self._timers.clear()
                self._signal.set()
            case LeaveTurn(how):
                self._leave_source()
                self._reader.leave(how)
            case InterruptTurn(reason):
                self._reader.interrupt(reason)
            case Abort():
                self._orders.clear()
                self._connection.abort()
            case _:
                self._orders.append(effect)
                self._signal.set()

    async def _write_orders(self) -> None:
        while self._orders:
            await self._write(self._orders.popleft())
        if self._state.write_since_s is None:
            return  # it was cut off meanwhile
        if self._connection.buffered() > WRITE_BUFFER_BYTES:
            self._drain = asyncio.ensure_future(self._drained())
        else:
            self._taken()

    async def _write(self, order: StreamEffect) -> None:
        match order:
            case SendHead():
                await self._send(_start(200, (*STREAM_HEADERS, *self._headers)))
            case Send(data):
                await self._send(_body(data))
            case SendHeartbeat():
                await self._send(_body(self._renderer.heartbeat))
            case Answer(reply):
                await self._send(_start(reply.status, _reply_head(reply, self._headers)))
                await self._send({"type": "http.response.body", "body": reply.body})
            case End():
                await self._send({"type": "http.response.body", "body": b""})
            case _:
                raise AssertionError(f"{order} is no writing")

    async def _drained(self) -> None:
        # It waits for the socket to take what is there, and writes nothing.
        await self._send(_body(b""))
        self._drain = None
        self._taken()

    def _taken(self) -> None:
        self.tell(WriteTaken())
        self.wake()

    def _due(self, timer: Timer) -> None:
        self._timers.pop(timer, None)
        self.tell(TimerFired(timer))

    def _left(self) -> None:
        self._orders.clear()
        self.tell(ClientLeft())

    def _leave_source(self) -> None:
        source, self._source = self._source, None
        if source is not None:
            source.close()


def _start(status: int, headers: Sequence[tuple[bytes, bytes]]) -> dict[str, Any]:
    return {"type": "http.response.start", "status": status, "headers": list(headers)}


def _body(data: bytes) -> dict[str, Any]:
    return {"type": "http.response.body", "body": data, "more_body": True}


def _reply_head(reply: Reply, headers: Sequence[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    own = [(name.lower().encode(), value.encode("latin-1")) for name, value in reply.headers]
    if not any(name == b"content-type" for name, _ in own):
        own.append((b"content-type", b"application/json"))
    return [*own, (b"content-length", b"%d" % len(reply.body)), *headers]


def _nothing() -> None:
    """There is nothing to take back."""

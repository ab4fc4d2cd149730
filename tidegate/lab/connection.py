"""One connection of the lab: reads requests whole and plays each one's answer.

The event loop reads at all times, also while a script waits, holds or stands at a gate, so a
client that leaves is noticed at once; its script is cancelled on the spot. A client that closes
only its sending half counts as gone.

Path: ``tidegate.lab.script`` -> this -> the client's socket
"""

from __future__ import annotations

import asyncio
import struct
from collections import deque
from datetime import UTC, datetime
from socket import IPPROTO_TCP, SO_LINGER, SOL_SOCKET, TCP_NODELAY
from time import monotonic
from typing import Protocol

from tidegate.lab.kernel import unsent_bytes
from tidegate.lab.record import CloseKind, ConnectionRecord, Record, Request
from tidegate.lab.request import MalformedRequest, RequestReader
from tidegate.lab.script import Answer, Blast, End, Gate, Pace, Send, Wait


BAD_REQUEST = b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
TURN_BYTES = 1 << 16  # what a blast writes before it looks round
UNSENT_POLL_S = 0.001
LINGER_ZERO = struct.pack("ii", 1, 0)  # close() then sends RST instead of FIN


class Stage(Protocol):
    """What a connection asks of the lab."""

    record: Record

    def answer_for(self, request: Request) -> tuple[Answer, bool]:
        """Choose the answer, and say whether the request was unexpected."""
        ...

    async def pass_gate(self, name: str) -> None:
        """Return when the gate is open."""
        ...

    def enter(self, connection: Connection) -> None:
        """Take note of an open connection."""
        ...

    def leave(self, connection: Connection, failure: BaseException | None) -> None:
        """Take note that it is gone, and of what went wrong in the lab itself."""
        ...


class Connection(asyncio.Protocol):
    """Plays answers one after another on one socket."""

    def __init__(self, stage: Stage, *, tls: bool) -> None:
        self._stage = stage
        self._tls = tls
        self._reader = RequestReader()
        self._queue: deque[tuple[Request, Answer]] = deque()
        self._playing: asyncio.Task[None] | None = None
        self._idle: asyncio.TimerHandle | None = None
        self._writable = asyncio.Event()
        self._held_head = b""
        self._failure: BaseException | None = None
        self._transport: asyncio.Transport
        self._noted: ConnectionRecord

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin to listen."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        # asyncio does this only for sockets that were made with the protocol's number. Without it
        # a small write waits up to 40 ms for the client's acknowledgement of the one before.
        sock = transport.get_extra_info("socket")
        sock.setsockopt(IPPROTO_TCP, TCP_NODELAY, 1)
        # Writing counts as paused until the kernel has everything, so that a reset or a gate
        # stands behind all that was written before it.
        # TLS counts from "as many as" where plain TCP counts from "more than".
        transport.set_write_buffer_limits(high=1 if self._tls else 0, low=0)
        self._writable.set()
        self._noted = self._stage.record.add_connection(monotonic())
        self._stage.enter(self)

    def data_received(self, data: bytes) -> None:
        """Take a piece of a request; a complete one gets its answer in order of arrival."""
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None
        now_s = monotonic()
        try:
            requests = self._reader.feed(data)
        except MalformedRequest as error:
            self._refuse(error)
            return
        for raw in requests:
            request = Request(raw.method, raw.target, raw.headers, raw.body, now_s, self._noted)
            try:
                answer, unexpected = self._stage.answer_for(request)
            except Exception as error:  # noqa: BLE001  a test's own route; raised when the lab ends
                self._fail(error)
                return
            self._stage.record.add_request(request, unexpected=unexpected)
            self._queue.append((request, answer))
        if self._queue and self._playing is None:
            self._playing = asyncio.get_running_loop().create_task(self._play_all())
            self._playing.add_done_callback(self._played)

    def eof_received(self) -> None:
        """The client closed the connection."""
        self._note_closed("eof")
        self.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """The socket is gone; whoever closed it first has been noted already."""
        self._note_closed("reset" if isinstance(exc, ConnectionError) else "eof")
        if self._playing is not None:
            self._playing.cancel()
        if self._idle is not None:
            self._idle.cancel()
        self._stage.leave(self, self._failure)

    def pause_writing(self) -> None:
        """The client reads slower than we write."""
        self._writable.clear()

    def resume_writing(self) -> None:
        """Everything is with the kernel."""
        self._writable.set()

    def abort(self) -> None:
        """Close at once, whatever the script says."""
        self._note_closed("server")
        if self._playing is not None:
            self._playing.cancel()
        self._transport.abort()

    def _refuse(self, error: MalformedRequest) -> None:
        self._stage.record.add_malformed(str(error))
        if self._playing is None:
            self._transport.write(BAD_REQUEST)
        self._close()

    def _note_closed(self, how: CloseKind) -> None:
        self._stage.record.add_closed(self._noted, how, monotonic())

    def _played(self, task: asyncio.Task[None]) -> None:
        self._playing = None
        if not task.cancelled() and (failure := task.exception()) is not None:
            self._fail(failure)

    def _fail(self, failure: BaseException) -> None:
        self._failure = failure
        self.abort()

    async def _play_all(self) -> None:
        while self._queue:
            request, answer = self._queue.popleft()
            await self._play(answer)
            await self._finish(request, answer)

    async def _play(self, answer: Answer) -> None:
        if answer.delay_s:
            await asyncio.sleep(answer.delay_s)
        self._held_head = answer.head(datetime.now(UTC))
        if not answer.headers_with_first_frame:
            await self._write(b"")
        for step in answer.program:
            match step:
                case Send(data):
                    if data:
                        await self._write(data)
                case Wait(wait_s):
                    await asyncio.sleep(wait_s)
                case Pace():
                    await self._pace(step)
                case Blast():
                    await self._blast(step)
                case Gate(name):
                    await self._stage.pass_gate(name)
                case _:
                    raise AssertionError(f"{step!r:.200} is not compiled")

    async def _finish(self, request: Request, answer: Answer) -> None:
        match answer.end:
            case End.HOLD:
                await asyncio.get_running_loop().create_future()
            case End.RESET:
                connection = self._transport.get_extra_info("socket")
                while unsent_bytes(connection.fileno()):  # noqa: ASYNC110  the kernel tells nobody
                    await asyncio.sleep(UNSENT_POLL_S)
                connection.setsockopt(SOL_SOCKET, SO_LINGER, LINGER_ZERO)
                self.abort()
            case End.CUT:
                self._close(politely=False)
            case End.EOF:
                self._close()
            case End.KEEPALIVE if request.last:
                self._close()
            case End.KEEPALIVE:
                if answer.keepalive_close_after_s is not None and not self._queue:
                    loop = asyncio.get_running_loop()
                    self._idle = loop.call_later(answer.keepalive_close_after_s, self._close)

    def _close(self, *, politely: bool = True) -> None:
        self._queue.clear()
        self._note_closed("server")
        if self._tls and not politely:
            self._transport.abort()  # close() would say goodbye in TLS first
        else:
            self._transport.close()

    async def _pace(self, step: Pace) -> None:
        loop = asyncio.get_running_loop()
        due_s = loop.time()
        for _ in range(step.times):
            for frame in step.frames:
                due_s += step.every_s
                await asyncio.sleep(due_s - loop.time())
                await self._write(frame)

    async def _blast(self, step: Blast) -> None:
        written_bytes = 0
        for _ in range(step.times):
            for block in step.blocks:
                await self._write(block)
                written_bytes += len(block)
                if written_bytes >= TURN_BYTES:
                    written_bytes = 0
                    await asyncio.sleep(0)  # other connections get their turn

    async def _write(self, data: bytes) -> None:
        if self._held_head:
            data = self._held_head + data
            self._held_head = b""
        # What a broken connection is given asyncio only complains about, on standard error.
        if not self._transport.is_closing():
            self._transport.write(data)
        if not self._writable.is_set():
            await self._writable.wait()

"""The worker's main: one event loop, one socket to the host, many provider actors.

Path: ``provider/actor.py`` -> this -> ``supervisor/link.py``.
"""

from __future__ import annotations

import asyncio
import contextlib
import faulthandler
import importlib
import os
import selectors
import signal
import socket
import sys
import traceback
from collections.abc import Callable
from typing import NoReturn, Protocol

from tidegate.actors.provider.process import settle
from tidegate.protocol.attempts import (
    CancelAttempt,
    Credit,
    FromWorker,
    Ping,
    Pong,
    StartAttempt,
    WorkerReady,
)
from tidegate.protocol.base import Generation
from tidegate.protocol.codec import FrameBuffer, decode_to_worker, frame_from


UNSENT_BYTES_MAX = 256 << 10
QUEUED_MESSAGES_MAX = 256
CLOSE_S = 1.0


class TurnSelector(selectors.DefaultSelector):
    """The loop's selector, which also tells when a turn of the loop is over.

    Attributes:
        turn_over: called before each look at the sockets; returns whether the loop has something
            to do before it may sleep.
    """

    def __init__(self) -> None:
        super().__init__()
        self.turn_over: Callable[[], bool] = bool

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Wait, unless the end of the turn has made something to do."""
        return super().select(0 if self.turn_over() else timeout)


class Receiver(Protocol):
    """What takes the worker's messages; made by ``package.module:factory`` with the uplink."""

    def receive(self, message: StartAttempt | CancelAttempt | Credit) -> None:
        """Take one message; an exception ends the worker."""

    async def close(self) -> None:
        """End every attempt; the host will hear nothing more."""


class Uplink(asyncio.Protocol):
    """The worker's end of the socket: frames in, messages out.

    Args:
        generation: whose pongs these are.
        ended: is resolved when the host has closed its end, or failed by what went wrong.
    """

    def __init__(self, generation: Generation, ended: asyncio.Future[None]) -> None:
        self._generation = generation
        self._ended = ended
        self._frames = FrameBuffer()
        self._queue: list[FromWorker] = []
        self._writable = asyncio.Event()
        self._writable.set()
        self._transport: asyncio.Transport
        self._receiver: Receiver

    def send(self, message: FromWorker) -> None:
        """Queue ``message``; what is queued in one turn of the loop goes as one frame."""
        self._queue.append(message)
        if len(self._queue) >= QUEUED_MESSAGES_MAX:
            self._flush()  # keeps a frame far below its limit, whatever a turn brings

    def send_now(self, message: FromWorker) -> None:
        """Send what is queued and ``message`` behind it, in one frame, at once."""
        self._queue.append(message)
        self._flush()

    @property
    def full(self) -> bool:
        """Whether the host does not keep up."""
        return not self._writable.is_set()

    async def drained(self) -> None:
        """Wait until the host has taken enough; returns at once if it keeps up."""
        await self._writable.wait()

    def turn_over(self) -> bool:
        """Send what the loop's turn has queued; return whether that was the end of the line."""
        if not self._queue:
            return False
        self._flush()
        return self._ended.done() or self._transport.is_closing()

    def serve(self, receiver: Receiver) -> None:
        """Report ready, and pass on what comes from here on."""
        self._receiver = receiver
        self.send_now(WorkerReady(generation=self._generation, pid=os.getpid()))
        self._transport.resume_reading()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Hold back what comes until somebody takes it."""
        assert isinstance(transport, asyncio.Transport)
        transport.set_write_buffer_limits(high=UNSENT_BYTES_MAX)
        transport.pause_reading()
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Decode frames; answer pings, pass on the rest."""
        try:
            for body in self._frames.feed(data):
                for message in decode_to_worker(body):
                    if isinstance(message, Ping):
                        pong = Pong(generation=self._generation, number=message.number)
                        self.send_now(pong)
                    else:
                        self._receiver.receive(message)
        except Exception as error:  # noqa: BLE001 - the rim: the worker ends by it
            self._fail(error)

    def connection_lost(self, exc: Exception | None) -> None:
        """End: the host has gone, or has done with this worker, however that shows."""
        del exc  # an unread frame makes a reset of what would be a clean end
        self._writable.set()
        if not self._ended.done():
            self._ended.set_result(None)

    def pause_writing(self) -> None:
        """Hold up ``drained``."""
        self._writable.clear()

    def resume_writing(self) -> None:
        """Let ``drained`` return."""
        self._writable.set()

    def _flush(self) -> None:
        if not self._queue:
            return
        try:
            # What a broken transport is given it would only complain about, on standard error.
            if not (self._ended.done() or self._transport.is_closing()):
                self._transport.write(frame_from(self._queue))
        except Exception as error:  # noqa: BLE001 - the rim: the worker ends by it
            self._fail(error)
        self._queue.clear()

    def _fail(self, error: Exception) -> None:
        # The first cause counts; nothing that comes behind it is taken.
        self._transport.pause_reading()
        if not self._ended.done():
            self._ended.set_exception(error)


def receiver_from(dotted: str) -> Callable[[Uplink], Receiver]:
    """Import ``package.module:factory``.

    Raises:
        ImportError, AttributeError: there is none such.
    """
    module, _, name = dotted.partition(":")
    factory: Callable[[Uplink], Receiver] = getattr(importlib.import_module(module), name)
    return factory


async def _serve(
    sock: socket.socket, generation: Generation, providers: str, selector: TurnSelector
) -> None:
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[None] = loop.create_future()
    _, uplink = await loop.connect_accepted_socket(lambda: Uplink(generation, ended), sock)
    receiver = receiver_from(providers)(uplink)
    selector.turn_over = uplink.turn_over
    uplink.serve(receiver)
    await ended
    with contextlib.suppress(TimeoutError):  # what does not end in time ends with the process
        await asyncio.wait_for(receiver.close(), CLOSE_S)


def worker_main(
    sock: socket.socket, generation: Generation, words_fd: int, providers: str
) -> NoReturn:
    """Serve the host until it closes its end; never returns.

    Args:
        sock: the worker's end of the socket pair.
        generation: whose life this is.
        words_fd: a pipe for last words: stack dumps on SIGUSR1 and on a crash, and the cause of
            an exit in one line. It does not block.
        providers: ``package.module:factory`` of what takes the messages.
    """
    faulthandler.enable(file=words_fd)
    if sys.platform != "win32":
        faulthandler.register(signal.SIGUSR1, file=words_fd)
    code = 0
    try:
        sock.setblocking(False)
        # Not asyncio.run, which ends by waiting for every thread of the loop's executor.
        selector = TurnSelector()
        loop = asyncio.SelectorEventLoop(selector)
        loop.run_until_complete(_serve(sock, generation, providers, selector))
    except BaseException as error:  # noqa: BLE001 - the rim: it becomes an exit code
        code = 1
        cause = "".join(traceback.format_exception_only(error)).strip()
        sys.stderr.write(f"tidegate worker {generation} ends: {cause}\n")
        traceback.print_exc()
        with contextlib.suppress(OSError):  # nobody reads it any more, or it is full
            os.write(words_fd, cause.encode("utf-8", "replace")[:4096])
    # Not by the interpreter's own end: it would wait for threads that may be stuck for ever.
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def exec_main(
    sock_fd: int, words_fd: int, generation: Generation, providers: str, parent_pid: int
) -> NoReturn:
    """Run a worker that was exec'd, where there is no zygote to fork it; never returns."""
    settle(f"tidegate-w{generation}", parent_pid)
    # They were made inheritable to get here, and are not for the worker's own children.
    os.set_inheritable(sock_fd, False)
    os.set_inheritable(words_fd, False)
    worker_main(socket.socket(fileno=sock_fd), generation, words_fd, providers)

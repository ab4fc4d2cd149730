"""The lab: a scripted provider on a real loopback socket, in a thread of this process.

Path: the test -> this -> ``tidegate.lab.connection``
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from types import TracebackType
from typing import Self, TypeAlias

from tidegate.lab.capture import answers_from_capture
from tidegate.lab.connection import Connection
from tidegate.lab.record import Closed, Record, Request
from tidegate.lab.script import Answer
from tidegate.lab.tls import write_credentials


HOST = "127.0.0.1"
BACKLOG = 4096
ACCEPT_TURNS = 3
"""Turns of asyncio's loop in which a socket that was accepted becomes a connection of ours."""
NO_TUNNEL = Answer.whole(b"the lab is no tunnel\n", "text/plain", 405)

Route: TypeAlias = Callable[[Request], Answer | None]


class Lab:
    """A provider that does what its script says, and records what it saw.

    It speaks HTTP/1.1 with kept-alive connections, and as a proxy it takes whole URLs as targets.
    One thread with one event loop serves any number of connections. Its methods may be called
    from every thread; ``with`` starts it and ends it, leaving no thread and no socket.

    Args:
        answers: one for each request, in order of arrival; one with ``repeat`` is never used up.
        route: asked first, in the lab's thread; None sends the request to ``answers``.
        tls: serve ``https`` with the certificate in ``ca_file``.
        port: 0 takes a free one.

    Attributes:
        record: all that was seen; the methods below are the short way to it.
    """

    def __init__(
        self,
        answers: Iterable[Answer] = (),
        *,
        route: Route | None = None,
        tls: bool = False,
        port: int = 0,
    ) -> None:
        self.record = Record()
        self._answers = deque(answers)
        self._route = route
        self._tls = tls
        self._wanted_port = port
        self._port = 0
        self._connections: set[Connection] = set()
        self._gates: dict[str, asyncio.Event] = {}
        self._failures: list[BaseException] = []
        self._credentials: TemporaryDirectory[str] | None = None
        self._thread: Thread | None = None
        self._loop: asyncio.AbstractEventLoop
        self._stopping: asyncio.Event
        self._emptied: asyncio.Event

    @classmethod
    def from_capture(
        cls, *files: str | Path, speed: float = 1.0, tls: bool = False, port: int = 0
    ) -> Self:
        """Make a lab that does what a provider once did.

        Args:
            files: captures; their attempts are answered in this order.
            speed: how many times faster than it was; ``float("inf")`` for no silence at all.
            tls: as for every lab.
            port: as for every lab.

        Raises:
            OSError: a file cannot be read.
            ValueError: a file is no capture, or ``speed`` is not above 0.
        """
        answers = [
            answer
            for file in files
            for answer in answers_from_capture(Path(file).read_bytes(), speed)
        ]
        return cls(answers, tls=tls, port=port)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()
        if self._failures and error is None:
            raise self._failures[0]

    @property
    def base(self) -> str:
        """The server's address, such as ``http://127.0.0.1:40000``.

        Raises:
            RuntimeError: the lab was never started, so that nobody listens.
        """
        if not self._port:
            raise RuntimeError("the lab is not started: put it in a with block, or call start()")
        return f"{'https' if self._tls else 'http'}://{HOST}:{self._port}"

    @property
    def url(self) -> str:
        """The base URL of its chat API: ``base`` and ``/v1``."""
        return f"{self.base}/v1"

    @property
    def port(self) -> int:
        """The port it listens on; 0 before it is started."""
        return self._port

    @property
    def ca_file(self) -> str:
        """Path of the certificate a client must trust; it exists while the lab runs.

        Raises:
            RuntimeError: the lab does not run, or not with TLS.
        """
        if self._credentials is None:
            raise RuntimeError("there is a certificate only while a lab with tls=True runs")
        return str(Path(self._credentials.name) / "cert.pem")

    @property
    def requests(self) -> list[Request]:
        """The requests so far, in the order in which they had been read whole."""
        return self.record.requests

    @property
    def unexpected(self) -> list[Request]:
        """The requests that were answered 500 because no answer was left."""
        return self.record.unexpected

    @property
    def connections_count(self) -> int:
        """How many connections were accepted, those without a request included."""
        return len(self.record.connections)

    @property
    def open_connections_count(self) -> int:
        """How many of them neither side has closed."""
        return sum(each.closed is None for each in self.record.connections)

    def add(self, *answers: Answer) -> None:
        """Append answers for further requests."""
        self._answers.extend(answers)

    def open(self, gate: str) -> None:
        """Let scripts pass the gate of this name, now and later."""
        self._loop.call_soon_threadsafe(lambda: self._gate(gate).set())

    def reached(self, gate: str, timeout: float = 10.0, *, times: int = 1) -> None:
        """Wait until a script stands at a gate; all it wrote before is with the kernel then.

        Args:
            gate: its name.
            timeout: guard against a hang, in seconds.
            times: how many arrivals to wait for, when several scripts come to this gate.

        Raises:
            TimeoutError: nobody came.
        """
        self.record.wait_reached(gate, times, timeout)

    def wait_requests(self, count: int, timeout: float = 10.0) -> list[Request]:
        """Wait until so many requests have been read whole, and return all there are.

        Raises:
            TimeoutError: fewer came in ``timeout`` seconds.
        """
        return self.record.wait_requests(count, timeout)

    def wait_closed(self, index: int = 0, timeout: float = 10.0) -> Closed:
        """Wait until the connection of request ``index`` is closed, and return how and when.

        Raises:
            TimeoutError: it was still open after ``timeout`` seconds.
        """
        return self.record.wait_closed(index, timeout)

    def start(self) -> None:
        """Listen; ``url`` is valid afterwards.

        Raises:
            OSError: the port is taken.
        """
        assert self._thread is None, "a lab is started once"
        listener = socket.create_server((HOST, self._wanted_port), backlog=BACKLOG)
        started: Future[None] = Future()
        try:
            context = self._tls_context() if self._tls else None
            self._port = listener.getsockname()[1]
            self._thread = Thread(
                target=lambda: asyncio.run(self._serve(listener, context, started)),
                name="lab",
                daemon=True,  # a program that forgets stop() still ends
            )
            self._thread.start()
            started.result()
        except BaseException:
            listener.close()
            self._forget_credentials()
            raise

    def stop(self) -> None:
        """Close every connection and end the thread; harmless when it is not running."""
        if self._thread is not None and self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stopping.set)
            self._thread.join()
        self._forget_credentials()

    def answer_for(self, request: Request) -> tuple[Answer, bool]:
        """Choose the answer; runs in the lab's thread, in order of arrival."""
        if request.method == "CONNECT":
            return NO_TUNNEL, False
        if self._route is not None and (answer := self._route(request)) is not None:
            return answer, False
        if not self._answers:
            asked = f"{request.method} {request.path}"
            error = {"message": f"the lab has no answer left for this request, {asked}"}
            return Answer.json({"error": error}, 500), True
        return (self._answers[0] if self._answers[0].repeat else self._answers.popleft()), False

    async def pass_gate(self, name: str) -> None:
        """Stand at a gate until it is open; runs in the lab's thread."""
        self.record.add_reached(name)
        await self._gate(name).wait()

    def enter(self, connection: Connection) -> None:
        """Keep a connection until it leaves; runs in the lab's thread."""
        self._connections.add(connection)

    def leave(self, connection: Connection, failure: BaseException | None) -> None:
        """Forget a connection, and keep the lab's own failure for the test."""
        self._connections.discard(connection)
        if failure is not None:
            self._failures.append(failure)
        if not self._connections:
            self._emptied.set()

    def _gate(self, name: str) -> asyncio.Event:
        return self._gates.setdefault(name, asyncio.Event())

    def _tls_context(self) -> ssl.SSLContext:
        self._credentials = TemporaryDirectory(prefix="tidegate-lab-")
        certificate, key = write_credentials(Path(self._credentials.name))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        return context

    def _forget_credentials(self) -> None:
        if self._credentials is not None:
            self._credentials.cleanup()
            self._credentials = None

    async def _serve(
        self, listener: socket.socket, context: ssl.SSLContext | None, started: Future[None]
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._stopping = asyncio.Event()
        self._emptied = asyncio.Event()
        server = await self._loop.create_server(
            lambda: Connection(self, tls=self._tls), sock=listener, ssl=context, backlog=BACKLOG
        )
        started.set_result(None)
        await self._stopping.wait()
        # asyncio forgets to close a socket that it has accepted when its server closes just then.
        with contextlib.suppress(NotImplementedError):  # Windows
            self._loop.remove_reader(listener)
        for _ in range(ACCEPT_TURNS):
            await asyncio.sleep(0)
        server.close()
        self._emptied.clear()
        for connection in tuple(self._connections):
            connection.abort()
        if self._connections:
            await self._emptied.wait()

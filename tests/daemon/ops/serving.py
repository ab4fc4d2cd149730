"""uvicorn with our protocol on a real socket, and a client without an HTTP library's opinions."""

import asyncio
import json
import queue
import select
import socket
import threading

import uvicorn
import uvloop
from uvicorn.server import ServerState

from tidegate.daemon.protocol import ClientProtocol


GUARD_S = 10.0


class Server:
    """Serves ``app`` by a protocol of uvicorn's, in a thread of its own, until it is left."""

    def __init__(self, app, protocol=ClientProtocol, loop="asyncio"):
        config = uvicorn.Config(app, ws="none", lifespan="off", log_config=None, access_log=False)
        self._loop = uvloop.new_event_loop() if loop == "uvloop" else asyncio.new_event_loop()
        self._state = ServerState()
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        self._make = lambda: protocol(config, self._state, {}, self._loop)
        self._thread = threading.Thread(target=self._loop.run_forever)

    def __enter__(self):
        self._thread.start()
        making = self._loop.create_server(self._make, sock=self._listening)
        self._server = asyncio.run_coroutine_threadsafe(making, self._loop).result(GUARD_S)
        return self

    def __exit__(self, *_):
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result(GUARD_S)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(GUARD_S)
        self._loop.close()

    async def _end(self):
        self._server.close()
        for connection in list(self._state.connections):
            connection.transport.abort()
        tasks = list(self._state.tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._loop.shutdown_default_executor()


class Client:
    """One TCP connection.

    Args:
        port: of the server, on 127.0.0.1.
        taking: bytes that the system takes beyond what the test has read; None for its default.
    """

    def __init__(self, port, taking=None):
        self.socket = socket.socket()
        if taking is not None:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, taking)
        self.socket.settimeout(GUARD_S)
        self.socket.connect(("127.0.0.1", port))
        self._read = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.leave()

    def send(self, data):
        self.socket.sendall(data)

    def ask(self, method="GET", path="/", headers="", body=None):
        head = f"{method} {path} HTTP/1.1\r\nhost: localhost\r\n{headers}"
        if body is not None:
            head += f"content-length: {len(body)}\r\n"
        self.send(head.encode() + b"\r\n" + (body or b""))

    def until(self, mark):
        """Return everything up to and including ``mark``."""
        while mark not in self._read:
            piece = self.socket.recv(1 << 16)
            assert piece, f"closed after {self._read!r}"
            self._read += piece
        found, mark, self._read = self._read.partition(mark)
        return found + mark

    def answer(self):
        """Return status, headers and body of a response that has a length."""
        first, *lines = self.until(b"\r\n\r\n").decode().strip().split("\r\n")
        headers = dict(line.split(": ", 1) for line in lines)
        size = int(headers.get("content-length", 0))
        while len(self._read) < size:
            piece = self.socket.recv(1 << 16)
            assert piece, f"closed within a body, after {self._read!r}"
            self._read += piece
        body, self._read = self._read[:size], self._read[size:]
        return int(first.split()[1]), headers, body

    def json(self):
        status, headers, body = self.answer()
        return status, headers, json.loads(body)

    def rest(self):
        """Return everything up to the end of the connection."""
        while piece := self.socket.recv(1 << 16):
            self._read += piece
        rest, self._read = self._read, b""
        return rest

    def end(self):
        """Return how the connection ends: ``eof`` or ``reset``; what comes before is dropped."""
        try:
            while self.socket.recv(1 << 20):
                pass
        except ConnectionResetError:
            return "reset"
        return "eof"

    def is_reset(self):
        """Wait until the connection is reset, and take nothing of what is there to be read."""
        poll = select.poll()
        poll.register(self.socket, 0)
        return bool(poll.poll(GUARD_S * 1000))

    def leave(self):
        self.socket.close()

    def leave_with_reset(self):
        on_for_0_s = b"\x01\0\0\0\0\0\0\0"
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, on_for_0_s)
        self.socket.close()


class Steps:
    """What an app has done, for the test to wait for, and gates that the test opens."""

    def __init__(self):
        self._seen = queue.Queue()
        self._gates = {}
        self._lock = threading.Lock()

    def tell(self, step):
        self._seen.put(step)

    def next(self):
        """Return the next step; the guard is there against a hang alone."""
        return self._seen.get(timeout=GUARD_S)

    def open(self, gate):
        self._gate(gate).set()

    async def passed(self, gate):
        await asyncio.to_thread(self._gate(gate).wait, GUARD_S)

    def _gate(self, name):
        with self._lock:
            return self._gates.setdefault(name, threading.Event())


async def read_all(receive):
    """Return the whole body of a request, or None if its client went."""
    body = b""
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        body += message["body"]
        if not message["more_body"]:
            return body


async def answer(send, body=b"", status=200, headers=()):
    head = [(b"content-length", str(len(body)).encode()), *headers]
    await send({"type": "http.response.start", "status": status, "headers": head})
    await send({"type": "http.response.body", "body": body})


async def begin_stream(send):
    head = [(b"content-type", b"text/event-stream")]
    await send({"type": "http.response.start", "status": 200, "headers": head})


async def stream(send, piece, *, more=True):
    await asyncio.sleep(0)  # an app that never waits would let nothing else happen
    await send({"type": "http.response.body", "body": piece, "more_body": more})

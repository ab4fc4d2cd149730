"""A provider of paced streams that costs next to nothing, in a process of its own.

Each request's ``model`` is its name. Each delta says whose it is, its number, and the instant of
its write: ``NAME NUMBER INSTANT;``.
"""

from __future__ import annotations

import asyncio
import gc
import sys
import time

import msgspec
import uvloop


HEAD = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n"
    b"connection: close\r\n\r\n"
)
_START = b'data: {"id":"chatcmpl-load","object":"chat.completion.chunk","created":0,"model":"load",'
_CHOICE = _START + (
    b'"service_tier":"default","system_fingerprint":"fp_44709d6fcb","choices":[{"index":0,'
    b'"delta":%b,"logprobs":null,"finish_reason":%b}],"obfuscation":"aB3xY9"}\n\n'
)
_SAID = b'{"content":"%b %d %.6f;"}'


class Figures(msgspec.Struct):
    """What the provider has seen so far.

    Attributes:
        closed_at_s: monotonic instants at which clients left before the end, by name.
        late_s: the most that a write came too late.
    """

    requests: int = 0
    open: int = 0
    written: int = 0
    late_s: float = 0.0
    closed_at_s: dict[str, float] = {}


class Stream(asyncio.Protocol):
    """One connection, with one request.

    Args:
        count: how many deltas it gets.
        every_s: how often.
        figures: where it is counted.
    """

    def __init__(self, count: int, every_s: float, figures: Figures) -> None:
        self._count = count
        self._every_s = every_s
        self._figures = figures
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport
        self._got = b""
        self._name = b""
        self._number = 0
        self._due_s = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for a request."""
        self._transport = transport
        self._figures.open += 1

    def data_received(self, data: bytes) -> None:
        """Begin once the request is whole."""
        self._got += data
        head, end, body = self._got.partition(b"\r\n\r\n")
        if not end or self._name:
            return
        size = int(head.lower().partition(b"content-length:")[2].split(b"\r\n", 1)[0])
        if len(body) < size:
            return
        self._name = msgspec.json.decode(body)["model"].encode()
        self._got = b""
        self._figures.requests += 1
        self._transport.write(HEAD + _chunk(_CHOICE % (b'{"role":"assistant"}', b"null")))
        self._due_s = self._loop.time()
        self._plan()

    def connection_lost(self, _error: Exception | None) -> None:
        """Note who left early."""
        self._figures.open -= 1
        if self._timer is not None:
            self._timer.cancel()
            self._figures.closed_at_s[self._name.decode()] = time.monotonic()

    def _plan(self) -> None:
        self._due_s += self._every_s
        self._timer = self._loop.call_at(self._due_s, self._write)

    def _write(self) -> None:
        now_s = time.monotonic()
        said = _SAID % (self._name, self._number, now_s)
        self._transport.write(_chunk(_CHOICE % (said, b"null")))
        self._number += 1
        figures = self._figures
        figures.written += 1
        figures.late_s = max(figures.late_s, self._loop.time() - self._due_s)
        if self._number < self._count:
            self._plan()
            return
        self._timer = None
        self._transport.write(
            _chunk(_CHOICE % (b"{}", b'"stop"')) + _chunk(b"data: [DONE]\n\n") + b"0\r\n\r\n"
        )
        self._transport.close()


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


async def serve(count: int, every_s: float) -> None:
    """Serve; each line on standard input is answered with the figures, and its end is the end."""
    loop = asyncio.get_running_loop()
    figures = Figures()
    server = await loop.create_server(
        lambda: Stream(count, every_s, figures), "127.0.0.1", 0, backlog=2048
    )
    print(server.sockets[0].getsockname()[1], flush=True)
    while await asyncio.to_thread(sys.stdin.readline):
        print(msgspec.json.encode(figures).decode(), flush=True)


def main() -> None:
    """Run: ``python -m benchmarks.load_provider COUNT EVERY_US``."""
    count, every_us = map(int, sys.argv[1:])
    gc.freeze()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(serve(count, every_us / 1e6))


if __name__ == "__main__":
    main()

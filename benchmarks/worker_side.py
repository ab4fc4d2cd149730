"""What a worker does with a stream, and nothing else: from its socket to deltas of our own."""

from __future__ import annotations

import asyncio
import os
import subprocess
import time
from collections.abc import Callable

from benchmarks.sides import serve
from tidegate.actors.provider.dialects.body import BodyDecoder
from tidegate.actors.provider.dialects.dialect import DIALECTS
from tidegate.actors.provider.transport import Clients, Rejected
from tidegate.protocol.attempts import Deltas, FromWorker, Order, Target
from tidegate.protocol.base import Seq, Token, TurnNumber
from tidegate.protocol.codec import frame_from
from tidegate.protocol.deltas import Delta, Text


BODY = b'{"model":"lab","messages":[{"role":"user","content":"go"}]}'
BODIES = {"converse": b'{"modelId":"lab","messages":[{"role":"user","content":[{"text":"go"}]}]}'}
OPTIONS = {"converse": (("region", "us-east-1"),)}


class WorkerSide:
    """What it can be asked for."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._clients = Clients()

    def read(self, url: str, wire: str, *, pipe: bool = False) -> dict[str, float]:
        """Read one stream; with ``pipe`` write a frame for each read, as a worker does."""
        base_url = url.removesuffix("/v1") if wire in ("messages", "converse") else url
        target = Target(wire, base_url, api_key="none", options=OPTIONS.get(wire, ()))
        order = Order(target=target, body=BODIES.get(wire, BODY))
        sent = _Pipe() if pipe else None
        began_s, began_cpu_s = time.perf_counter(), time.process_time()
        deltas, chars = self._loop.run_until_complete(self._read(order, sent))
        read = {
            "deltas": deltas,
            "chars": chars,
            "took_s": time.perf_counter() - began_s,
            "cpu_s": time.process_time() - began_cpu_s,
        }
        if sent is not None:
            sent.close()
        return read

    def close(self) -> None:
        """Close the connections."""
        self._loop.run_until_complete(self._clients.close())
        self._loop.close()

    async def _read(
        self, order: Order, send: Callable[[list[Delta]], None] | None
    ) -> tuple[int, int]:
        exchange = await self._clients.open(order)
        assert not isinstance(exchange, Rejected), exchange
        decoder = BodyDecoder(DIALECTS[order.target.wire], order, "text/event-stream")
        deltas = chars = 0

        def take(data: bytes) -> bool:
            nonlocal deltas, chars
            batch = decoder.feed(data)
            if send is not None and batch.deltas:
                send(batch.deltas)
            for delta in batch.deltas:
                if isinstance(delta, Text):
                    deltas += 1
                    chars += len(delta.text)
            return True

        await exchange.flow(take)
        self._clients.leave(exchange)
        return deltas, chars


class _Pipe:
    """Writes frames to a process that reads them and does nothing else."""

    def __init__(self) -> None:
        self._reader = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
        assert self._reader.stdin is not None
        self._fd = self._reader.stdin.fileno()
        self._seq = 0

    def __call__(self, deltas: list[Delta]) -> None:
        message = Deltas(TurnNumber(1), Token(1), Seq(self._seq), tuple(deltas))
        self._seq += len(deltas)
        messages: list[FromWorker] = [message]
        os.write(self._fd, frame_from(messages))

    def close(self) -> None:
        self._reader.communicate()


if __name__ == "__main__":
    side = WorkerSide()
    serve(side)
    side.close()

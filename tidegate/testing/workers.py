"""What a worker can run in place of provider actors, to be slow, deaf, wild or dead on command.

Give ``PUPPETS`` to ``WorkerIo(providers=...)``; the ``wire`` of a start's target then says what to
do, and its ``body`` how much.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from tidegate.actors.provider.worker import Uplink
from tidegate.protocol.attempts import (
    CancelAttempt,
    Credit,
    Deltas,
    Ended,
    FromWorker,
    Life,
    Opened,
    Order,
    StartAttempt,
    Target,
    WorkerReady,
)
from tidegate.protocol.base import Generation, Seq, Token, TurnNumber
from tidegate.protocol.codec import frame_from
from tidegate.protocol.deltas import Text


PUPPETS = "tidegate.testing.workers:Puppets"
FRAGILE = "tidegate.testing.workers:fragile"

FLOOD_TEXT = "x" * 1024


def start(token: int, act: str, body: bytes = b"", generation: int = 1) -> StartAttempt:
    """Make a start that tells a puppet to ``act``; its turn has the token's number."""
    return StartAttempt(
        turn=TurnNumber(token),
        token=Token(token),
        generation=Generation(generation),
        order=Order(target=Target(wire=act), body=body),
        limit_bytes=1 << 18,
    )


def fragile(_uplink: Uplink) -> Puppets:
    """Fail before there is anybody to take messages."""
    raise RuntimeError("made to fail")


class Puppets:
    """Does what each start says; answers a cancel and a credit, unless told to be deaf."""

    def __init__(self, uplink: Uplink) -> None:
        self._uplink = uplink
        self._deaf = False
        self._tasks: set[asyncio.Task[None]] = set()

    def receive(self, message: StartAttempt | CancelAttempt | Credit) -> None:
        """Act."""
        match message:
            case StartAttempt():
                act: Callable[[StartAttempt], None] = getattr(self, message.order.target.wire)
                act(message)
            case CancelAttempt() if not self._deaf:
                self._uplink.send_now(Ended(message.turn, message.token, cancelled=True))
            case Credit() if not self._deaf:
                self._uplink.send(Life(TurnNumber(message.limit_bytes), message.token))
            case _:
                return

    async def close(self) -> None:
        """End the floods."""
        for task in self._tasks:
            task.cancel()

    def echo(self, start: StartAttempt) -> None:
        """Open, and say how long the body was."""
        self._uplink.send(Opened(start.turn, start.token, str(len(start.order.body))))

    def answer(self, start: StartAttempt) -> None:
        """Open, send as many deltas as the body says, each in a frame of its own, and end."""
        self._uplink.send(Opened(start.turn, start.token))
        for seq in range(int(start.order.body)):
            self._uplink.send_now(_delta(start, seq, str(seq)))
        self._uplink.send_now(Ended(start.turn, start.token))

    def mark(self, start: StartAttempt) -> None:
        """Open, send two deltas, and make the file that the body names when all is sent."""
        self._uplink.send_now(Opened(start.turn, start.token))
        for seq in range(2):
            self._uplink.send_now(_delta(start, seq, str(seq)))
        Path(os.fsdecode(start.order.body)).touch()

    def parting(self, start: StartAttempt) -> None:
        """Open, send two deltas, and exit with the code in the body."""
        self._uplink.send_now(Opened(start.turn, start.token))
        for seq in range(2):
            self._uplink.send_now(_delta(start, seq, str(seq)))
        self.die(start)

    def deaf(self, start: StartAttempt) -> None:
        """Answer neither cancel nor credit any more."""
        self._deaf = True
        self.echo(start)

    def hang(self, start: StartAttempt) -> None:
        """Open, and hold the interpreter in C for ever, where it looks at no signal."""
        self._uplink.send_now(Opened(start.turn, start.token))
        sum(itertools.repeat(0))

    def flood(self, start: StartAttempt) -> None:
        """Send deltas for ever, as fast as the host takes them."""
        task = asyncio.get_running_loop().create_task(self._flood(start))
        self._tasks.add(task)

    def garbage(self, start: StartAttempt) -> None:
        """Send the body where a frame should be; the worker lives on."""
        self._write(start.order.body)

    def bytewise(self, start: StartAttempt) -> None:
        """Open, in a frame that is sent byte by byte."""
        messages: list[FromWorker] = [Opened(start.turn, start.token)]
        frame = frame_from(messages)
        for at in range(len(frame)):
            self._write(frame[at : at + 1])

    def half(self, start: StartAttempt) -> None:
        """Send half of a frame and die."""
        messages: list[FromWorker] = [WorkerReady(start.generation, os.getpid())]
        frame = frame_from(messages)
        self._write(frame[: len(frame) // 2])
        os._exit(7)

    def die(self, start: StartAttempt) -> None:
        """Exit with the code in the body."""
        os._exit(int(start.order.body))

    def crash(self, _start: StartAttempt) -> None:
        """End by an exception."""
        raise RuntimeError("made to fail")

    def segfault(self, _start: StartAttempt) -> None:
        """Read where nothing is."""
        __import__("ctypes").string_at(0)

    def shut(self, _start: StartAttempt) -> None:
        """Close the socket, and stay."""
        os.close(self._fileno())
        sum(itertools.repeat(0))

    def child(self, start: StartAttempt) -> None:
        """Start a process that holds the socket open, and report its number as an id."""
        command = [sys.executable, "-c", "import time; time.sleep(600)"]
        sock_fd = self._fileno()
        process = subprocess.Popen(
            command, pass_fds=(sock_fd,), start_new_session=start.order.body == b"session"
        )
        self._uplink.send(Opened(start.turn, start.token, str(process.pid)))

    def environment(self, start: StartAttempt) -> None:
        """Report what a worker has around it: its open descriptors, group, session, threads."""
        descriptors = len([*Path("/proc/self/fd").iterdir()]) - 1
        facts = f"{descriptors} {os.getpgid(0)} {os.getsid(0)} {os.getppid()}"
        self._uplink.send(Opened(start.turn, start.token, facts))

    async def _flood(self, start: StartAttempt) -> None:
        for seq in itertools.count():
            self._uplink.send(_delta(start, seq, FLOOD_TEXT))
            await self._uplink.drained()
            await asyncio.sleep(0)

    def _write(self, raw: bytes) -> None:
        self._uplink._transport.write(raw)  # noqa: SLF001 - no provider may do this

    def _fileno(self) -> int:
        sock = self._uplink._transport.get_extra_info("socket")  # noqa: SLF001 - as above
        fileno: int = sock.fileno()
        return fileno


def _delta(start: StartAttempt, seq: int, text: str) -> Deltas:
    return Deltas(start.turn, start.token, Seq(seq), (Text(text),))

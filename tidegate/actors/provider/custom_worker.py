"""What a worker of custom streams runs: a thread that reads, beside the loop with the pipe.

The streams may block as they like; the loop goes on turning. They are read one after the other,
which is all that is asked of such a worker.

Path: ``provider/stream_run.py`` -> this -> ``provider/worker.py``
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import deque
from queue import SimpleQueue
from typing import assert_never

from tidegate.actors.provider.readings import Home
from tidegate.actors.provider.stream_run import StreamRun
from tidegate.actors.provider.worker import Uplink
from tidegate.protocol.attempts import (
    CancelAttempt,
    Credit,
    Ended,
    FromWorker,
    StartAttempt,
)
from tidegate.protocol.base import Token


class CustomStreams:
    """The attempts of one worker; its methods run in the worker's loop.

    Args:
        uplink: takes the messages to the host.
    """

    def __init__(self, uplink: Uplink) -> None:
        self._uplink = uplink
        self._loop = asyncio.get_running_loop()
        self._runs: dict[Token, StreamRun] = {}
        self._home = Home()
        self._queue: SimpleQueue[StreamRun | None] = SimpleQueue()
        self._said: deque[FromWorker] = deque()
        self._passing_on = False
        self._read_all: asyncio.Future[None] = self._loop.create_future()
        # A daemon: a stream that does not return must not keep the process.
        threading.Thread(target=self._serve, name="tidegate-stream", daemon=True).start()

    def receive(self, message: StartAttempt | CancelAttempt | Credit) -> None:
        """Start, cancel or feed an attempt. A cancel is always answered by an ``Ended``."""
        run = self._runs.get(message.token)
        match message:
            case StartAttempt():
                assert run is None, f"token {message.token} is in use"
                self._runs[message.token] = run = StreamRun(message, self._home, self._say)
                self._queue.put(run)
            case CancelAttempt():
                if run is None:
                    self._uplink.send_now(Ended(message.turn, message.token, cancelled=True))
                else:
                    run.cancel()
            case Credit():
                if run is not None:
                    run.credit(message.limit_bytes)
            case _:
                assert_never(message)

    async def close(self) -> None:
        """Cancel every attempt, and close what the factories made."""
        for run in self._runs.values():
            run.cancel()
        self._queue.put(None)
        await self._read_all

    def _serve(self) -> None:
        """Read streams, in the thread that is theirs, until there are no more to come."""
        while (run := self._queue.get()) is not None:
            try:
                while run.step():
                    pass
            except BaseException as error:  # noqa: BLE001 - the rim: it ends one attempt
                run.fail(error)
            del run  # and with it the prompt
        self._home.close()
        self._call(self._read_all.set_result, None)

    def _say(self, message: FromWorker) -> None:
        """Hand a message to the loop; what comes while that is busy goes along."""
        self._said.append(message)
        if not self._passing_on:
            self._passing_on = True
            self._call(self._pass_on)

    def _call(self, function: object, *arguments: object) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed, and nobody listens
            self._loop.call_soon_threadsafe(function, *arguments)  # type: ignore[arg-type]

    def _pass_on(self) -> None:
        self._passing_on = False  # first: what is said from here on calls again
        while self._said:
            message = self._said.popleft()
            if isinstance(message, Ended):
                del self._runs[message.token]
                self._uplink.send_now(message)
            else:
                self._uplink.send(message)

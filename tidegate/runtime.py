"""The runtime: what starts turns, and ends everything that it has started.

Path: the caller -> this -> ``engine.py``, ``turn.py``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from os import PathLike
from typing import Self

import tidegate.arguments as arguments  # noqa: PLR0402 - "from tidegate" would load all of it
from tidegate.engine import Engine
from tidegate.errors import ConfigurationError
from tidegate.observing import Observer
from tidegate.protocol.answers import Answer
from tidegate.protocol.events import AnyEvent
from tidegate.protocol.policy import Settings
from tidegate.protocol.requests import Request
from tidegate.reading import EventReader
from tidegate.statistics import Statistics, statistics_from
from tidegate.turn import Turn


class Runtime(Engine):
    """Runs turns: one supervisor, one sink, one I/O thread, and worker processes.

    A context manager, also an asynchronous one; leaving it stops it. Usable from any number of
    threads and event loops. It belongs to the process that made it.

    Args:
        workers: worker processes, 1 or more; by default ``settings``, else one per core.
        settings: what holds for all its turns.
        observers: look on at every attempt, from beside its path.
        capture: a folder for what goes over the wire, with one file for each attempt.

    Raises:
        ConfigurationError: a value that makes no sense.
    """

    def __init__(
        self,
        *,
        workers: int | None = None,
        settings: Settings | None = None,
        observers: Iterable[Observer] = (),
        capture: str | PathLike[str] | None = None,
    ) -> None:
        super().__init__(workers, settings, observers, capture)

    def start(self, request: Request, *, session: None = None, scope: None = None) -> Turn:
        """Start a turn and return at once.

        Args:
            request: what to ask, and where.
            session: not available yet.
            scope: not available yet.

        Raises:
            ConfigurationError: the request cannot be sent by anybody.
            RuntimeStopped: the runtime has been stopped, or has failed.
            ForkedRuntime: this process is a fork of the one that made the runtime.
        """
        if session is not None or scope is not None:
            raise ConfigurationError("session and scope are not available yet: leave them out")
        return self._begin(request)

    def run(self, request: Request, on_event: Callable[[AnyEvent], object] | None = None) -> Answer:
        """Run a turn to its end and return its answer; whatever ends the call ends the turn.

        Args:
            request: what to ask, and where.
            on_event: called with each event. If it raises, the turn is interrupted and the
                exception leaves here.

        Raises:
            TurnError: as ``Turn.result``.
        """
        if on_event is None:
            with self._begin(request) as turn:
                return turn.result()
        turn, events = self._start_heard(request)
        with turn:
            for event in events:
                turn._tell(on_event, event)  # noqa: SLF001 - not for users
            return turn.result()

    async def arun(
        self, request: Request, on_event: Callable[[AnyEvent], object] | None = None
    ) -> Answer:
        """Do what ``run`` does without blocking the event loop."""
        if on_event is None:
            async with self._begin(request) as turn:
                return await turn
        turn, events = self._start_heard(request)
        async with turn:
            async for event in events:
                turn._tell(on_event, event)  # noqa: SLF001
            return await turn

    def statistics(self) -> Statistics:
        """Return what the runtime has done and is doing.

        Raises:
            ForkedRuntime: this process is a fork of the one that made the runtime.
        """
        self._check_process()
        running = sum(channel.terminal() is None for channel in list(self._channels.values()))
        return statistics_from(self._sink, self._supervisor, self._observing, self._newest, running)

    def stop(self, drain_s: float = 0) -> None:
        """End all turns and everything that the runtime has started.

        New turns are refused from now on; those that still run after ``drain_s`` seconds are
        interrupted with the reason "runtime stopped", and every turn gets its terminal event.
        Idempotent, from any thread; each call returns when all is ended.

        Raises:
            ConfigurationError: ``drain_s`` is no number.
        """
        self._end(arguments.seconds("drain_s", drain_s))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.stop()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_error: object) -> None:
        await asyncio.to_thread(self.stop)

    def _start_heard(self, request: Request) -> tuple[Turn, EventReader]:
        """Start a turn that has its reader before anything can happen to it."""
        readers: list[EventReader] = []
        turn = self._begin(request, prepare=lambda turn: readers.append(turn._hear()))  # noqa: SLF001
        return turn, readers[0]

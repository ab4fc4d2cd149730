"""All that a request can need of the daemon."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable
from typing import Any

from tidegate.daemon.access.middleware import Scope
from tidegate.daemon.calls import LoopCalls
from tidegate.daemon.config.model import DaemonConfig
from tidegate.daemon.config.troubles import unusable
from tidegate.daemon.connection import Connection
from tidegate.daemon.journal.journal import Journal
from tidegate.daemon.metrics import Metrics
from tidegate.daemon.protocol import CONNECTION
from tidegate.daemon.stream.response import Client
from tidegate.daemon.turns.hosted import HostedTurn
from tidegate.daemon.turns.messages import (
    ClientCut,
    ClientLeft,
    InterruptAsked,
    Limits,
    LimitsChanged,
)
from tidegate.daemon.turns.recent import Lanes
from tidegate.daemon.turns.registry import Registry
from tidegate.settings import environment


TURN = b"tidegate-turn"


class Service:
    """The daemon as its routes see it.

    Args:
        config: as it is now; replaced when it is read again.
        registry: the turns.
        journal: where they are kept.
        metrics: counts.
        calls: the way into the event loop.
        lanes: the turns as they are shown to people.
    """

    def __init__(  # noqa: PLR0913, PLR0917 - each is a part of the daemon
        self,
        config: DaemonConfig,
        registry: Registry,
        journal: Journal,
        metrics: Metrics,
        calls: LoopCalls,
        lanes: Lanes,
    ) -> None:
        self.config = config
        self.registry = registry
        self.journal = journal
        self.metrics = metrics
        self.calls = calls
        self.lanes = lanes

    def apply(self, config: DaemonConfig) -> None:
        """Go on with a configuration that was read again."""
        self.config = config
        self.registry.tell(LimitsChanged(Limits(config.max_running, config.max_queued)))

    def usable(self) -> bool:
        """Say whether a turn of any endpoint could begin now."""
        environ = environment()
        return any(unusable(each, environ) is None for each in self.config.made.values())


class Asker:
    """The client that waits for a turn's answer: what it does decides about the turn.

    Args:
        service: the daemon.
        turn_id: the turn's.
    """

    def __init__(self, service: Service, turn_id: str) -> None:
        self._service = service
        self._turn_id = turn_id

    def leave(self, how: str) -> None:
        """Hear how the response left the turn."""
        registry = self._service.registry
        hosted = registry.hosted.get(self._turn_id)
        if how == "left":
            self._service.metrics.client_left()
        elif how == "cut":
            self._service.metrics.client_cut_off()
        if hosted is None:
            return  # it was forgotten, and is not to be known again by this
        if how != "ended":
            gone = ClientLeft if how == "left" else ClientCut
            registry.tell(gone(self._turn_id))
        registry.release(hosted)

    def interrupt(self, reason: str) -> None:
        """Interrupt the turn."""
        self._service.registry.tell(InterruptAsked(self._turn_id, reason))


def client_of(scope: Scope, send: Any, turn_id: str) -> Client:
    """Return whom a turn's response goes to, with the turn's name in its head."""
    connection: Connection = scope["extensions"][CONNECTION]
    return Client(connection, send, ((TURN, turn_id.encode()),))


def owner_of(scope: Scope) -> str:
    """Return whose request it is."""
    owner: str = scope["state"]["owner"]
    return owner


async def in_thread(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call what reads from a disk, beside the event loop."""
    return await asyncio.get_running_loop().run_in_executor(
        None, functools.partial(function, *arguments)
    )


def seen_by(hosted: HostedTurn | None, owner: str) -> HostedTurn | None:
    """Return a turn to whom it belongs, and nothing to others."""
    return hosted if hosted is not None and hosted.record.owner == owner else None

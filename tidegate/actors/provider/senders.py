"""The SDKs: which class makes the requests of a wire, and its import when it is needed first.

Workers are forked with some SDKs. Any other is imported in a thread, beside the loop, which goes on
turning for the other attempts; the host hears of it, and does not take it for a silent provider.

Path: ``provider/actor.py`` and ``provider/transport.py`` -> this
"""

from __future__ import annotations

import asyncio
import gc
import importlib
import sys
from asyncio import Future
from collections.abc import Callable, Mapping
from functools import partial
from types import ModuleType
from typing import Protocol, TypeAlias

import httpx2

from tidegate.actors.provider.connections import Exchange
from tidegate.protocol.attempts import Order, Target


SENDERS = {
    "chat": "tidegate.actors.provider.openai_client:OpenAISender",
    "responses": "tidegate.actors.provider.openai_client:OpenAISender",
    "messages": "tidegate.actors.provider.anthropic_client:AnthropicSender",
    "converse": "tidegate.actors.provider.bedrock_client:BedrockSender",
}
"""By wire, the class that makes requests from a ``Target``; imported by whoever needs it first."""

SLOW = frozenset({"converse"})
"""Wires whose clients take long to make: what they are made of is read and asked for in threads."""


class Sender(Protocol):
    """A client of one SDK."""

    @property
    def made(self) -> bool:
        """Whether it can send at once."""

    async def make(self) -> None:
        """Make what it lacks; if that cannot be done, ``send`` raises why."""

    async def send(self, order: Order) -> Exchange | httpx2.Response:
        """Send a request; return the exchange, or the response, read, if its status is an error."""

    async def close(self) -> None:
        """Close the connections."""


MakeSender: TypeAlias = Callable[[Target], Sender]


class Senders:
    """The classes of ``table``, each from a module that is imported once for all who wait for it.

    Args:
        table: ``package.module:Class`` by wire.
    """

    def __init__(self, table: Mapping[str, str] = SENDERS) -> None:
        self._table = table
        self._classes: dict[str, MakeSender] = {}
        self._imports: dict[str, Future[ModuleType]] = {}

    def find(self, wire: str) -> MakeSender | None:
        """Return the class for a wire; None if its module is still to be imported."""
        if wire not in self._classes:
            module, _, name = self._table[wire].partition(":")
            # A module is listed as imported before it is, and may have its classes by then.
            if module in self._imports or sys.modules.get(module) is None:
                return None
            self._classes[wire] = getattr(sys.modules[module], name)
        return self._classes[wire]

    async def load(self, wire: str) -> MakeSender:
        """Import the module for a wire, if need be, and return its class.

        Whoever is cancelled in here takes the import from nobody else.

        Raises:
            Exception: of the import; whoever comes after that tries again.
        """
        while (make := self.find(wire)) is None:
            module = self._table[wire].partition(":")[0]
            if module not in self._imports:
                importing = asyncio.ensure_future(asyncio.to_thread(_imported, module))
                self._imports[module] = importing
                importing.add_done_callback(partial(self._forget, module))
            await asyncio.shield(self._imports[module])
        return make

    def _forget(self, module: str, _importing: Future[ModuleType]) -> None:
        del self._imports[module]


def _imported(name: str) -> ModuleType:
    # An SDK makes objects by the hundred thousand: to look among them for garbage while they come
    # in, and ever after, would hold up the loop for a tenth of a second each time.
    gc.disable()
    try:
        return importlib.import_module(name)
    finally:
        gc.freeze()
        gc.enable()

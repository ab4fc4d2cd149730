"""What a daemon consists of, put together and taken apart.

Path: ``serve.py`` -> this -> ``app.py``, ``hosting.py``, ``turns/registry.py``, ``journal/``
"""

from __future__ import annotations

import asyncio
import functools
import logging
from collections.abc import Callable
from typing import Self

from tidegate.daemon.access.keys import Keys
from tidegate.daemon.access.middleware import Access
from tidegate.daemon.access.rate import RateLimit
from tidegate.daemon.access.rules import Rules
from tidegate.daemon.app import App
from tidegate.daemon.calls import LoopCalls
from tidegate.daemon.config.load import Loaded
from tidegate.daemon.config.model import DaemonConfig
from tidegate.daemon.config.references import resolve_keys
from tidegate.daemon.config.reload import reloaded
from tidegate.daemon.hosting import TURN_BYTES_MAX, HostedRuntime
from tidegate.daemon.journal.journal import Journal
from tidegate.daemon.journal.model import JournalTrouble
from tidegate.daemon.logs import AccessLog, TurnLog
from tidegate.daemon.metrics import Metrics
from tidegate.daemon.notify import Notifier
from tidegate.daemon.refusing import refused
from tidegate.daemon.service import Service
from tidegate.daemon.turns.messages import Drain, DrainOver, InterruptAsked, JournalWell, Limits
from tidegate.daemon.turns.recent import Lanes
from tidegate.daemon.turns.registry import Registry
from tidegate.errors import TidegateError


_log = logging.getLogger("tidegate.daemon")

NAMELESS_BYTES_MAX = 256 << 20
"""What is kept of turns at most where there is no file: it is memory."""


class Parts:
    """All that a daemon consists of; entered, it runs turns, and left, nothing of it is there.

    Args:
        config: what it begins with.

    Raises:
        ConfigurationError: the journal cannot be used.
    """

    def __init__(self, config: DaemonConfig) -> None:
        self.config = config
        self.notifier = Notifier()
        calls = LoopCalls(asyncio.get_running_loop())
        self._journal = open_journal(
            config, lambda trouble: calls.call(functools.partial(self._journal_is, trouble))
        )
        try:
            self._runtime = HostedRuntime(
                config,
                self._journal,
                lambda turn_id: calls.call(functools.partial(self._too_large, turn_id)),
            )
        except BaseException:
            self._journal.close()
            raise
        if lost := len(self._journal.recovered()):
            _log.warning("%d turns were open when the daemon was lost: they have failed", lost)
        self.metrics = Metrics(self._runtime, self._journal)
        limits = Limits(config.max_running, config.max_queued)
        lanes = Lanes(TurnLog(self.metrics), config.settings)
        self.registry = Registry(self._runtime, self._journal, calls, limits, lanes)
        self.metrics.follow(self.registry)
        self.service = Service(config, self.registry, self._journal, self.metrics, calls, lanes)
        rate = RateLimit(config.rate_per_minute)
        self._access = Access(App(self.service), rules_of(config), rate, refusal=refused)
        self.app = AccessLog(self._access)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_error: object) -> None:
        # Beside the loop, in which the last turns are told of their ends.
        try:
            await asyncio.to_thread(self._runtime.stop)
        finally:
            await asyncio.to_thread(self._journal.close)

    async def until_drained(self) -> None:
        """Wait until nothing runs any more and nothing will."""
        watchdog = asyncio.ensure_future(self.notifier.watchdog())
        try:
            await self.registry.drained.wait()
        finally:
            watchdog.cancel()

    def drain(self) -> None:
        """Take on no more turns; asked for again, wait for none."""
        if self.registry.state.mode == "open":
            within_s = self.config.drain_s
            _log.info("draining: what runs may go on for %g s", within_s)
            self.notifier.stopping(within_s)
            self.registry.tell(Drain(within_s))
        else:
            self.registry.tell(DrainOver())

    def read_again(self, load: Callable[[], Loaded]) -> None:
        """Go on with what the configuration says now, if it can be used."""
        self.notifier.reloading()
        try:
            config, changes = reloaded(self.config, load().config)
            rules = rules_of(config)
        except TidegateError as error:
            _log.error("the configuration stays as it was: %s", error)
        else:
            self.config = config
            self.service.apply(config)
            self._access.rules = rules
            self._access.rate = RateLimit(config.rate_per_minute)
            _log.info(
                "the configuration was read again: %s", ", ".join(changes.applied) or "as before"
            )
            if changes.needs_restart:
                _log.warning("needs a restart: %s", ", ".join(changes.needs_restart))
        self.notifier.ready()

    def _too_large(self, turn_id: str) -> None:
        if turn_id in self.registry.hosted:
            reason = f"there is more of it than {TURN_BYTES_MAX} bytes"
            self.registry.tell(InterruptAsked(turn_id, reason))

    def _journal_is(self, trouble: JournalTrouble | None) -> None:
        if trouble is None:
            _log.warning("the journal is written again")
            self.registry.tell(JournalWell())
        else:
            _log.critical("the journal cannot be written: %s; %s", trouble.message, trouble.way_out)
            self.registry.journal_fails()


def open_journal(
    config: DaemonConfig, on_trouble: Callable[[JournalTrouble | None], None]
) -> Journal:
    """Open the journal that is configured.

    Raises:
        ConfigurationError: it cannot be used.
    """
    if config.journal_path is None:
        return Journal.open_nameless(
            keep_s=config.journal_keep_s,
            bytes_max=min(config.journal_bytes_max, NAMELESS_BYTES_MAX),
            idempotency_keep_s=config.idempotency_keep_s,
            on_trouble=on_trouble,
        )
    return Journal.open(
        config.journal_path,
        sync=config.journal_sync,
        keep_s=config.journal_keep_s,
        bytes_max=config.journal_bytes_max,
        idempotency_keep_s=config.idempotency_keep_s,
        on_trouble=on_trouble,
    )


def rules_of(config: DaemonConfig) -> Rules:
    """Return who may call.

    Raises:
        ConfigurationError: a key cannot be had.
    """
    return Rules(
        keys=Keys(secret.reveal({}) for secret in resolve_keys(config.keys)),
        loopback=config.is_loopback,
        hosts=frozenset(config.hosts),
        origins=frozenset(config.cors_origins),
    )

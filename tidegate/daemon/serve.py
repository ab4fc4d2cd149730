"""The daemon as a process: serves until a signal has ended it, and ends in good order.

SIGTERM and SIGINT drain, a second one ends what still runs; SIGHUP reads the configuration again.

Path: the command line -> this -> ``parts.py``
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import resource
import signal
import socket
import sys
from collections.abc import Callable, Iterator

import uvicorn
import uvloop

from tidegate.daemon.config.load import Loaded
from tidegate.daemon.config.model import DaemonConfig
from tidegate.daemon.config.references import resolve
from tidegate.daemon.config.starting import family_of
from tidegate.daemon.logs import AccessLog, configure
from tidegate.daemon.parts import Parts
from tidegate.daemon.protocol import ClientProtocol
from tidegate.errors import ConfigurationError
from tidegate.protocol.secrets import MissingKey
from tidegate.settings import environment


SWITCH_S = 0.0005
"""How long a thread may keep the others from the interpreter, a tenth of Python's own choice.

What a client waits for goes through three threads: it is read in one, written to the journal in
another and sent in the third.
"""

GC_THRESHOLDS = (10_000, 100, 100)
"""How rarely the collector looks for cycles: a turn that is over leaves none behind.

With a thousand turns in memory a whole look takes a third of a second, in which nobody is served.
"""

FLUSH_S = 5
"""How long responses may take to be written out when all turns have ended."""

_BACKLOG = 2048


class Daemon:
    """One daemon, from its first to its last step.

    Args:
        loaded: the configuration that it begins with.
        reload: reads the configuration again.
        ready: called with the address once it serves.
    """

    def __init__(
        self, loaded: Loaded, reload: Callable[[], Loaded], ready: Callable[[str], None]
    ) -> None:
        self._config = loaded.config
        self._reload = reload
        self._ready = ready
        self._parts: Parts | None = None
        self._ended_early = False

    async def run(self) -> None:
        """Serve until a signal has ended it.

        Raises:
            ConfigurationError: the address cannot be had, or the journal.
        """
        config = self._config
        configure(config.log_level, config.log_format, keys=keys_of(config))
        async with contextlib.AsyncExitStack() as stack:
            stack.enter_context(self._signals())
            listener = stack.enter_context(contextlib.closing(listening(config)))
            parts = await stack.enter_async_context(Parts(config))
            server = Server(parts.app)
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(server.serve([listener]))
                await server.up.wait()
                self._ready(address_of(listener))
                parts.notifier.ready()
                self._parts = parts
                if self._ended_early:
                    self._stop()
                await parts.until_drained()
                server.should_exit = True

    @contextlib.contextmanager
    def _signals(self) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        actions = {
            signal.SIGTERM: self._stop,
            signal.SIGINT: self._stop,
            signal.SIGHUP: self._read_again,
        }
        for number, action in actions.items():
            loop.add_signal_handler(number, action)
        try:
            yield
        finally:
            for number in actions:
                loop.remove_signal_handler(number)
                signal.signal(number, signal.SIG_IGN)  # all that is left to do is to end

    def _stop(self) -> None:
        if self._parts is None:
            self._ended_early = True
        else:
            self._parts.drain()

    def _read_again(self) -> None:
        if self._parts is None:
            return  # it was read just now
        before = self._parts.config
        self._parts.read_again(self._reload)
        if (config := self._parts.config) is not before:
            configure(config.log_level, config.log_format, keys=keys_of(config))


class Server(uvicorn.Server):
    """uvicorn without its signal handlers, which would end it while turns run.

    Args:
        app: what it serves.

    Attributes:
        up: set once it accepts connections.
    """

    def __init__(self, app: AccessLog) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                http=ClientProtocol,
                ws="none",
                lifespan="off",
                log_config=None,
                access_log=False,
                proxy_headers=False,  # nobody asks where a client is
                server_header=False,
                timeout_graceful_shutdown=FLUSH_S,
                backlog=_BACKLOG,
            )
        )
        self.up = asyncio.Event()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to the daemon."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept connections from here on, and say so."""
        try:
            await super().startup(sockets)
        finally:
            self.up.set()


def run(daemon: Daemon) -> None:
    """Run a daemon until it has ended, in a loop of its own."""
    _allow_many_clients()
    sys.setswitchinterval(SWITCH_S)
    gc.freeze()  # what was imported stays
    gc.set_threshold(*GC_THRESHOLDS)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(daemon.run())


def _allow_many_clients() -> None:
    """Raise the number of descriptors that may be open, which is often 1,024, as far as may be."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def listening(config: DaemonConfig) -> socket.socket:
    """Return the socket on which the daemon listens.

    Raises:
        ConfigurationError: the address cannot be had.
    """
    try:
        listener = socket.create_server(
            (config.host, config.port), family=family_of(config), backlog=_BACKLOG
        )
    except OSError as error:
        raise ConfigurationError(
            f"listen={config.listen!r}: {error.strerror or error}: stop whoever has it, or give "
            "another one"
        ) from error
    listener.setblocking(False)
    return listener


def keys_of(config: DaemonConfig) -> list[str]:
    """Return all keys that the daemon knows, for what must never show them."""
    keys: list[str] = []
    references = (each for endpoint in config.endpoints.values() for each in endpoint.references)
    for reference in (*config.keys, *references):
        with contextlib.suppress(MissingKey):  # then there is nothing to show
            keys.append(resolve(reference, environment()))
    # A bearer token is known by its last word too.
    return list(dict.fromkeys((*keys, *(key.rpartition(" ")[2] for key in keys))))


def address_of(listener: socket.socket) -> str:
    """Return where a client finds the daemon."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"

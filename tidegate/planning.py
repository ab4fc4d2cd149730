"""From a request to what the supervisor needs: encoded once, with every limit settled."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import TYPE_CHECKING

from tidegate.actors.supervisor.pool import Pool
from tidegate.errors import ConfigurationError, TidegateError
from tidegate.protocol.attempts import Target
from tidegate.protocol.base import TurnNumber
from tidegate.protocol.endpoints import Endpoint
from tidegate.protocol.failures import Failure, FailureKind
from tidegate.protocol.policy import Policy, Settings
from tidegate.protocol.requests import Request
from tidegate.protocol.secrets import MissingKey
from tidegate.protocol.supervisor import Prepared, TurnPlan
from tidegate.protocol.targets import target_of
from tidegate.settings import environment


if TYPE_CHECKING:
    from tidegate.local.server import LocalServers


class LocalAddresses:
    """Where the local models are served, for those who ask; costs nothing until then.

    Args:
        tell: tells the supervisor.
    """

    def __init__(self, tell: Callable[[Prepared], None]) -> None:
        self._tell = tell
        self._lock = threading.Lock()
        self._servers: LocalServers | None = None
        self._closed = False

    def address(self, endpoint: Endpoint) -> Future[str] | None:
        """Return a future of the base URL, starting the server if it does not run.

        None if the endpoint is not served here.
        """
        if endpoint.local_model is None:
            return None
        from tidegate.local.server import LocalServers  # noqa: PLC0415 - only who uses it pays

        with self._lock:
            if self._servers is None:
                self._servers = LocalServers()
                if self._closed:  # whoever asks this late gets the error that says so
                    self._servers.close()
            servers = self._servers
        return servers.address(endpoint.local_model)

    def locate(self, turn: TurnNumber, endpoint: Endpoint) -> None:
        """Tell where a turn goes as soon as its server has an address; never waits for that."""
        address = self.address(endpoint)
        assert address is not None, "only a local server's address takes time, or changes"

        def settle(address: Future[str]) -> None:
            target, failure = target_from(endpoint, environment(), address)
            self._tell(Prepared(turn, target, failure))

        address.add_done_callback(settle)

    def close(self) -> None:
        """End the servers."""
        with self._lock:
            self._closed = True
            servers = self._servers
        if servers is not None:
            servers.close()


def settings_from(settings: Settings | None) -> Settings:
    """Return what holds for all turns."""
    if settings is not None and not isinstance(settings, Settings):
        raise ConfigurationError(f"settings={settings!r}: give a tidegate.Settings")
    return settings or Settings()


def pool_from(workers: int | None, settings: Settings) -> Pool:
    """Return the workers: as many as told, else as set, else one per core."""
    size = workers if workers is not None else settings.workers
    if size is None:
        size = os.cpu_count() or 1
    elif isinstance(size, bool) or not isinstance(size, int) or size < 1:
        raise ConfigurationError(f"workers={size!r}: give a whole number of at least 1")
    return Pool(
        size=size,
        restarts_max=settings.worker_restarts_max,
        period_s=settings.worker_restarts_period_s,
    )


def captures_in(folder: str | os.PathLike[str] | None, tag: str) -> str:
    """Return how the names of a runtime's captures begin, and make their folder.

    Args:
        folder: where they go; None if none are wanted.
        tag: is in the names of the runtime's turns.

    Raises:
        ConfigurationError: nothing can be written there.
    """
    if folder is None:
        return ""
    if not isinstance(folder, str | os.PathLike) or not str(folder):
        raise ConfigurationError(f"capture={folder!r}: give the path of a folder")
    path = Path(folder).absolute()
    try:
        str(path).encode()  # workers are told of it
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        raise ConfigurationError(
            f"capture={str(folder)!r}: no folder can be made: {error}"
        ) from error
    if not os.access(path, os.W_OK | os.X_OK):
        raise ConfigurationError(f"capture={str(folder)!r}: this user may not write there")
    return str(path / f"turn_{tag}_")


def plan_from(
    request: Request,
    settings: Settings,
    environ: Mapping[str, str],
    captures: str = "",
    *,
    irrevocable: bool = False,
) -> TurnPlan:
    """Return the plan of a turn that starts now.

    Args:
        request: what to ask, and where.
        settings: what holds for all turns.
        environ: has the defaults.
        captures: how the names of captures begin; empty for none.
        irrevocable: as in ``TurnPlan``.

    Raises:
        ConfigurationError: it is no request, its payload cannot be encoded, or a variable makes
            no sense.
    """
    if not isinstance(request, Request):
        raise ConfigurationError(f"request={request!r}: give a tidegate.Request")
    encoded = request.encode(environ)
    endpoint = request.endpoint.located(environ)
    policy = (request.policy or Policy()).resolved(request, settings, environ=environ)
    return TurnPlan(
        label=endpoint.label,
        memory=endpoint.key,
        circuit=(endpoint.key, encoded.model),
        body=encoded.body,
        stream=request.stream,
        stream_options=encoded.stream_options,
        choices=encoded.choices,
        policy=policy.values(),
        moving=None if endpoint.local_model is None else endpoint,
        factory=endpoint.factory or "",
        inline=endpoint.placement == "inline",
        capture=captures,
        irrevocable=irrevocable,
    )


def target_from(
    endpoint: Endpoint, environ: Mapping[str, str], address: Future[str] | None
) -> tuple[Target | None, Failure | None]:
    """Return where a request goes, or why it cannot go anywhere, or neither yet.

    Args:
        endpoint: the request's.
        environ: has the defaults, and the keys that are references.
        address: the address of the local server, for an endpoint of that kind.
    """
    if address is None:
        base_url = None
    elif not address.done():
        return None, None
    elif (error := address.exception()) is not None:
        return None, _failure_from(error)
    else:
        base_url = address.result()
    try:
        return target_of(endpoint, environ, base_url=base_url), None
    except MissingKey as missing:
        return None, Failure(kind=FailureKind.AUTH, reason="missing_key", detail=str(missing))


def _failure_from(error: BaseException) -> Failure:
    """The local server cannot be had: what depends on the outside fails the turn."""
    ours = isinstance(error, TidegateError)
    return Failure(
        kind=FailureKind.CONNECTION_LOST,
        reason="local_server",
        detail=str(error) if ours else f"{type(error).__name__}: {error}",
        cause=type(error).__name__,
    )

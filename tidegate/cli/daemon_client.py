"""Talks to a daemon for the commands that watch and stop turns.

Path: ``cli/commands/`` -> this -> the daemon's HTTP API
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Self
from urllib.parse import quote

import httpx
import msgspec

from tidegate.cli.overview import Overview
from tidegate.cli.usage import UsageError
from tidegate.daemon.config.kinds import split_listen
from tidegate.daemon.config.load import InvalidConfig, load
from tidegate.errors import ConfigurationError, TidegateError
from tidegate.protocol.addresses import check_address, shown
from tidegate.protocol.events import TERMINAL, AnyEvent
from tidegate.protocol.secrets import MissingKey, Secret
from tidegate.wire.sse import SseDecoder


URL_VARIABLE = "TIDEGATE_URL"
KEY_VARIABLE = "TIDEGATE_KEY"
REFERENCE = "env:"
LANES_MAX = 2000
EVENT_BYTES_MAX = 256 << 20
PAUSES_S = (0.1, 0.25, 0.5, *(1.0,) * 30)
"""Before each further try to come back to a stream."""

_TIMEOUT = httpx.Timeout(10.0, read=120.0)  # a daemon sends a heartbeat far more often
_EVENT = msgspec.json.Decoder(AnyEvent)
_TURN_ID = re.compile(r"[A-Za-z0-9_-]+")


class DaemonError(TidegateError):
    """The daemon cannot be reached, or refuses; the text says why and the way out.

    Attributes:
        status: of HTTP; 0 if there was no answer.
        body: what it answered with, empty if that is no JSON.
    """

    def __init__(self, message: str, status: int = 0, body: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.body = body or {}

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self), self.status, self.body)


class Address(msgspec.Struct, frozen=True):
    """Where a daemon is, and the key for it, which is shown nowhere; empty for none."""

    url: str
    key: str = ""

    def __repr__(self) -> str:
        return f"<Address {shown(self.url)}>"


def address_from(url: str | None, key: str | None) -> Address:
    """Return the daemon that is meant.

    Args:
        url: as given on the command line; None for the variable ``TIDEGATE_URL``, then the
            address on which the configuration says to listen.
        key: as given, ``env:NAME``; None for the variable ``TIDEGATE_KEY``.

    Raises:
        UsageError: one of them makes no sense.
    """
    given = url or os.environ.get(URL_VARIABLE) or _configured()
    try:
        check_address("--url", given)
    except ConfigurationError as error:
        given = given.rpartition("@")[2]
        words = f"--url: {given!r:.200} is none: give one such as http://127.0.0.1:8765"
        raise UsageError(words) from error
    return Address(given.rstrip("/"), _key(key))


def _key(given: str | None) -> str:
    if given is None:
        if not os.environ.get(KEY_VARIABLE, "").strip():
            return ""
        given = f"{REFERENCE}{KEY_VARIABLE}"
    if not given.startswith(REFERENCE):
        # Every user of a machine sees the commands that run on it.
        raise UsageError("a key must not stand in a command: give --key env:NAME")
    try:
        return Secret(given).reveal(os.environ)
    except (ConfigurationError, MissingKey) as error:
        raise UsageError(f"--key: {error}") from error


def turn_id(given: str) -> str:
    """Return the id of a turn, which stands in the path of what is asked.

    Raises:
        UsageError: it is none.
    """
    if not _TURN_ID.fullmatch(given):
        raise UsageError(
            f"{given!r:.100} is no turn's id: `tidegate ps --all` lists those there are"
        )
    return given


def _configured() -> str:
    try:
        listen = load().config.listen
    except InvalidConfig as error:
        raise UsageError(f"{error}\n  or give --url") from error
    host, port = split_listen(listen)
    if not port:
        raise UsageError(f"listen={listen!r} is any free port: give --url, as the daemon said it")
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 - to reach it
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


class DaemonClient:
    """A client of one daemon, until it is left.

    Args:
        address: of the daemon.
    """

    def __init__(self, address: Address) -> None:
        self.address = address
        headers = {"authorization": f"Bearer {address.key}"} if address.key else {}
        # Through no proxy of the environment: a daemon is here, or its address says where.
        self._http = httpx.Client(
            base_url=address.url, headers=headers, timeout=_TIMEOUT, trust_env=False
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._http.close()

    def overview(self) -> Overview:
        """Return all turns at a glance."""
        data = self._ask("GET", f"/v1/lanes?limit={LANES_MAX}")
        with self._reaching():
            return msgspec.json.decode(data, type=Overview)

    def interrupt(self, turn: str, reason: str) -> dict[str, Any]:
        """Interrupt a turn, and return how it stands after that.

        Raises:
            DaemonError: there is no such turn, or no daemon.
        """
        path = f"/v1/turns/{quote(turn, safe='')}/interrupt"
        data = self._ask("POST", path, {"reason": reason}, turn)
        found: dict[str, Any] = msgspec.json.decode(data)
        return found

    def follow(
        self, turn: str, after: int = -1, lost: Callable[[str], None] = lambda _why: None
    ) -> Iterator[AnyEvent]:
        """Yield a turn's events to its end, and come back when the connection is lost.

        Args:
            turn: its id.
            after: the offset of the last event that is known, -1 for none.
            lost: is told why the connection was lost, before each try to come back.

        Raises:
            DaemonError: the daemon refuses, or cannot be reached for half a minute.
        """
        tries = 0
        reached = False
        while True:
            try:
                for event in self._events(turn, after):
                    tries, reached, after = 0, True, event.offset
                    yield event
                    if isinstance(event, TERMINAL):
                        return
                trouble = DaemonError("the stream ended before the turn did")
            except DaemonError as error:
                gone = error.status == 0 or error.status >= 500
                if not (gone and reached) or tries >= len(PAUSES_S):
                    raise
                trouble = error
            if tries >= len(PAUSES_S):
                raise trouble
            lost(str(trouble))
            time.sleep(PAUSES_S[tries])
            tries += 1

    def _events(self, turn: str, after: int) -> Iterator[AnyEvent]:
        path = f"/v1/turns/{quote(turn, safe='')}/events?after={after}"
        decoder = SseDecoder(EVENT_BYTES_MAX)
        with self._reaching(), self._http.stream("GET", path) as response:
            if response.status_code != 200:
                response.read()
                raise _refusal(response, turn)
            for data in response.iter_raw():
                for frame in decoder.feed(data):
                    if not frame.name.startswith(b"daemon."):
                        yield _EVENT.decode(frame.data)

    def _ask(
        self, method: str, path: str, body: dict[str, Any] | None = None, turn: str = ""
    ) -> bytes:
        with self._reaching():
            response = self._http.request(method, path, json=body)
        if response.status_code >= 300:
            raise _refusal(response, turn)
        return response.content

    @contextmanager
    def _reaching(self) -> Iterator[None]:
        url = shown(self.address.url)
        try:
            yield
        except httpx.ConnectError as error:
            raise DaemonError(
                f"no daemon answers at {url}: start one with `tidegate serve`, or give --url"
            ) from error
        except httpx.HTTPError as error:
            raise DaemonError(f"{url}: {str(error) or type(error).__name__}") from error
        except msgspec.DecodeError as error:
            raise DaemonError(f"{url} is another version of tidegate, or none: {error}") from error


def _refusal(response: httpx.Response, turn: str = "") -> DaemonError:
    """Return what the daemon has said as an error, about that turn if it was about one."""
    try:
        body: dict[str, Any] = msgspec.json.decode(response.content, type=dict[str, Any])
        said = body["error"]["message"]
    except (msgspec.DecodeError, LookupError, TypeError):
        body, said = {}, f"HTTP {response.status_code}, and no word of a tidegate daemon"
    said = " ".join(str(said).split())
    address = shown(str(response.url.copy_with(path="/")))
    words = f"the daemon at {address} says: {said}"
    if response.status_code == 404 and turn:
        words += f": {turn!r:.100}; `tidegate ps --all` lists those there are"
    if response.status_code == 401:
        words += "; give it with --key env:NAME, or in TIDEGATE_KEY"
    return DaemonError(words, response.status_code, body)

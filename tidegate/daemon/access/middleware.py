"""The door: every request is judged here, in plain ASGI, before anything else sees it."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any, Protocol, TypeAlias

import msgspec

from tidegate.daemon.access import routes
from tidegate.daemon.access.body import Receive
from tidegate.daemon.access.rate import RateLimit
from tidegate.daemon.access.rules import Allowed, Denied, Facts, Preflight, Rules, decide


Scope: TypeAlias = MutableMapping[str, Any]
Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]


class Reply(Protocol):
    """An error as it is answered, whoever has put it into its words."""

    @property
    def status(self) -> int: ...  # noqa: D102
    @property
    def headers(self) -> Mapping[str, str]: ...  # noqa: D102
    @property
    def body(self) -> Mapping[str, Any]: ...  # noqa: D102


class OwnReply(msgspec.Struct, frozen=True):
    """An error in our own shape."""

    status: int
    headers: dict[str, str]
    body: dict[str, Any]


Refusal: TypeAlias = Callable[[routes.Api, int, str, str, Mapping[str, str]], Reply]
"""Put a refusal into the words of an API: api, status, kind, message, headers."""


def own_refusal(
    api: routes.Api, status: int, kind: str, message: str, headers: Mapping[str, str]
) -> Reply:
    """Put a refusal into our own shape, whichever API was asked."""
    del api
    return OwnReply(status, dict(headers), {"error": {"type": kind, "message": message}})


class Access:
    """Judges requests, and hands on those that are let in, with ``state.owner`` set.

    ``rules`` and ``rate`` may be replaced at any time: the next request is judged by them.

    Args:
        app: what is asked behind the door.
        rules: what the configuration says.
        rate: the buckets of all keys.
        refusal: puts a refusal into the words of the API that was asked.
        clock: monotonic seconds.
    """

    def __init__(
        self,
        app: App,
        rules: Rules,
        rate: RateLimit | None = None,
        *,
        refusal: Refusal = own_refusal,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.rules = rules
        self.rate = rate or RateLimit(0)
        self._app = app
        self._refusal = refusal
        self._clock = clock

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
            return
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        facts = Facts(scope["method"], scope["path"], scope["headers"])
        match decide(facts, self.rules, self.rate, self._clock()):
            case Allowed(owner, headers):
                scope.setdefault("state", {})["owner"] = owner
                await self._app(scope, receive, _adding(headers, send) if headers else send)
            case Preflight(headers):
                await _send(send, 204, headers, b"")
            case Denied(status, kind, message, headers):
                api = routes.api_of(facts.path, facts.headers)
                shape = own_refusal if api == "turns" else self._refusal
                reply = shape(api, status, kind, message, headers)
                await send_reply(send, reply)


async def send_reply(send: Send, reply: Reply) -> None:
    """Answer with an error."""
    headers = {"content-type": "application/json", "cache-control": "no-store", **reply.headers}
    await _send(send, reply.status, headers, msgspec.json.encode(reply.body))


async def _send(send: Send, status: int, headers: Mapping[str, str], body: bytes) -> None:
    encoded = _encoded(headers)
    if status != 204:
        encoded.append((b"content-length", str(len(body)).encode()))
    await send({"type": "http.response.start", "status": status, "headers": encoded})
    await send({"type": "http.response.body", "body": body})


def _adding(headers: Mapping[str, str], send: Send) -> Send:
    """Return a ``send`` that adds headers to the answer."""
    extra = _encoded(headers)

    def sending(message: MutableMapping[str, Any]) -> Awaitable[None]:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message.get("headers", ()), *extra]}
        return send(message)

    return sending


def _encoded(headers: Mapping[str, str]) -> list[tuple[bytes, bytes]]:
    return [
        (name.lower().encode("ascii"), value.encode("latin-1")) for name, value in headers.items()
    ]

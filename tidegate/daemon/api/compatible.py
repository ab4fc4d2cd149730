"""The providers' own APIs: a request is passed to an endpoint of its wire, and so is the answer.

Path: ``app.py`` -> this -> ``turns/registry.py``, ``fronts/``, ``stream/response.py``
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import msgspec

from tidegate.daemon.access.body import BodyRefused, ClientGone, object_from, read_body
from tidegate.daemon.access.middleware import send_reply
from tidegate.daemon.api.asking import Api, compatible_ask
from tidegate.daemon.config.endpoints import NoEndpoint
from tidegate.daemon.fronts import body_of, error_of, front_for, refusal_of
from tidegate.daemon.fronts.base import ErrorReply, Front, Item, comment
from tidegate.daemon.service import Asker, Service, client_of, owner_of
from tidegate.daemon.stream.messages import (
    Completed,
    Failed,
    Items,
    Plan,
    Reply,
    RetryComing,
    StreamMessage,
)
from tidegate.daemon.stream.response import Response
from tidegate.daemon.turns.hosted import HostedTurn, Subscription
from tidegate.daemon.turns.refusals import Refused
from tidegate.daemon.turns.registry import Told, new_turn_id
from tidegate.errors import ConfigurationError
from tidegate.protocol.answers import Answer
from tidegate.protocol.events import (
    TERMINAL,
    RetryScheduled,
    Terminal,
    TurnCompleted,
    TurnFailed,
)
from tidegate.protocol.failures import Failure, FailureKind


_UNKEPT = "the journal cannot be written, so that the turn is ended"


class StreamRenderer:
    """Renders a turn as the frames of a compatible API.

    Args:
        api: which one.
        front: for this client.
    """

    def __init__(self, api: Api, front: Front) -> None:
        self.heartbeat = front.heartbeat
        self.hosted: HostedTurn | None = None
        self._api = api
        self._front = front

    def render(self, batch: Sequence[Item]) -> list[StreamMessage]:
        """Return what the batch means for the response."""
        front = self._front
        messages: list[StreamMessage] = []
        frames: list[bytes] = []
        for item in batch:
            if isinstance(item, RetryScheduled):
                messages += self._items(frames)
                frames = []
                messages.append(self._retry(item))
            elif isinstance(item, TERMINAL):
                messages += self._items(frames)
                frames = []
                messages.append(self._end(item))
            else:
                frames.append(front.frames(item, self._look))
        return [*messages, *self._items(frames)]

    def _items(self, frames: list[bytes]) -> list[StreamMessage]:
        data = b"".join(frames)
        return [Items(data, self._front.content_sent)] if data else []

    def _retry(self, retry: RetryScheduled) -> StreamMessage:
        # Asked for what it would say, a front has ended; so it is asked only if it will.
        front = self._front
        return RetryComing(front.failed(retry.cause) if front.content_sent else b"")

    def _end(self, terminal: Terminal) -> StreamMessage:
        frames = self._front.frames(terminal, self._look)
        if isinstance(terminal, TurnCompleted):
            return Completed(frames)
        return Failed(frames, _reply(error_reply(self._api, terminal)))

    def failed(self) -> bytes:
        """Return the frames with which the stream ends if the journal fails."""
        failure = Failure(
            kind=FailureKind.INTERNAL, reason="journal_unavailable", retryable=True, detail=_UNKEPT
        )
        return self._front.failed(failure)

    def _look(self) -> Answer:
        return self.hosted.snapshot() if self.hosted is not None else Answer()


class PlainRenderer:
    """Renders a turn as one body, at its end.

    Args:
        api: of which API.
    """

    heartbeat = b""

    def __init__(self, api: Api) -> None:
        self.hosted: HostedTurn | None = None
        self._api = api

    def render(self, batch: Sequence[Item]) -> list[StreamMessage]:
        """Return what the batch means for the response."""
        terminal = batch[-1]
        if not isinstance(terminal, TERMINAL):
            return []
        if isinstance(terminal, TurnCompleted):
            body = msgspec.json.encode(body_of(self._api, terminal))
            return [Completed(reply=Reply(200, body=body))]
        return [Failed(b"", _reply(error_reply(self._api, terminal)))]

    def failed(self) -> bytes:
        """Return nothing: what is no stream has no frames."""
        return b""


class Compatible:
    """One of the compatible APIs, as an ASGI application.

    Args:
        service: the daemon.
        api: which one.
    """

    def __init__(self, service: Service, api: Api) -> None:
        self._service = service
        self._api = api

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Serve one request."""
        try:
            await self._serve(scope, receive, send)
        except ClientGone:
            return
        except (BodyRefused, Refused, ConfigurationError, NoEndpoint) as error:
            await send_reply(send, self._refusal(error))

    async def _serve(self, scope: Any, receive: Any, send: Any) -> None:
        service, api, headers = self._service, self._api, scope["headers"]
        body = object_from(
            await read_body(receive, headers, service.config.body_bytes_max), headers
        )
        ask = compatible_ask(service.config, api, headers, body, owner_of(scope))
        turn_id = new_turn_id()
        streamed = body.get("stream") is True
        renderer = self._renderer(turn_id, body) if streamed else PlainRenderer(api)
        response = Response(
            plan_of(service, streamed=streamed),
            renderer,
            Asker(service, turn_id),
            client_of(scope, send, turn_id),
        )

        def read(hosted: HostedTurn) -> None:
            renderer.hosted = hosted
            response.begin()
            response.read(
                Subscription(hosted, 0, response.wake, service.calls, end_only=not streamed)
            )

        await service.registry.admit(ask, turn_id, client=True, prepare=read)
        scope["state"]["turn"] = turn_id

        def draining(within_s: float) -> None:
            read_on = f"/v1/turns/{turn_id}/events"
            words = f"the daemon stops within {within_s:g} s; its turn can be read on at {read_on}"
            response.tell(Items(comment(words), content=False))

        def journal_fails() -> None:
            reply = refusal_of(api, 503, "journal_unavailable", _UNKEPT, {"retry-after": "5"})
            response.tell(Failed(renderer.failed(), _reply(reply)))

        with service.registry.telling(Told(draining, journal_fails)):
            await response.serve()

    def _renderer(self, turn_id: str, body: dict[str, Any]) -> StreamRenderer:
        front = front_for(
            self._api,
            turn_id,
            body,
            notices=self._service.config.notices,
            created=int(time.time()),
        )
        return StreamRenderer(self._api, front)

    def _refusal(self, error: Exception) -> ErrorReply:
        match error:
            case BodyRefused():
                return refusal_of(self._api, error.status, error.kind, error.message)
            case Refused():
                headers = {}
                if error.retry_after_s is not None:
                    headers["retry-after"] = str(error.retry_after_s)
                return refusal_of(self._api, error.status, error.kind, str(error), headers)
            case NoEndpoint():
                return refusal_of(self._api, 404, "model_not_found", str(error))
            case _:
                return refusal_of(self._api, 400, "bad_request", str(error))


def plan_of(service: Service, *, streamed: bool) -> Plan:
    """Return the plan of a response to the client that waits for a turn's answer."""
    config = service.config
    return Plan(
        streamed=streamed,
        commit_after_s=config.commit_after_s,
        heartbeat_s=config.heartbeat_s,
        queue_bytes=config.client_queue_bytes,
        slow_s=config.slow_client_timeout_s,
    )


def error_reply(api: Api, terminal: Terminal) -> ErrorReply:
    """Return the error of a turn that has ended otherwise than by its answer."""
    answer = terminal.answer
    failure = terminal.error if isinstance(terminal, TurnFailed) else answer.failure
    if failure is None:  # it was interrupted when its evidence was there already
        failure = Failure(kind=FailureKind.INTERRUPTED)
    return error_of(api, failure, attempts=len(answer.attempts))


def _reply(error: ErrorReply) -> Reply:
    return Reply(error.status, tuple(error.headers.items()), msgspec.json.encode(error.body))

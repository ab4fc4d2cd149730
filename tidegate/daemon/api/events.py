"""A turn's events as a stream that can be taken up where it was left.

Path: ``app.py`` -> this -> ``stream/response.py``, ``turns/hosted.py``, ``journal/``
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response as AsgiResponse

from tidegate.daemon.access import headers as head
from tidegate.daemon.api.failing import ApiError, error_response
from tidegate.daemon.api.turns import number, stored_record
from tidegate.daemon.fronts.base import HEARTBEAT
from tidegate.daemon.fronts.events import event_frame, stored_frame
from tidegate.daemon.journal.model import StoredEvents, TurnRecord
from tidegate.daemon.service import Service, client_of, in_thread, owner_of, seen_by
from tidegate.daemon.stream.messages import Completed, Items, Plan, StreamMessage
from tidegate.daemon.stream.response import STREAM_HEADERS, Response
from tidegate.daemon.turns.hosted import HostedTurn, Subscription
from tidegate.daemon.turns.messages import Attached, Detached
from tidegate.daemon.turns.registry import Told
from tidegate.daemon.turns.views import expired_view
from tidegate.errors import TidegateError
from tidegate.protocol.deltas import Block
from tidegate.protocol.events import TERMINAL


CHUNK_BYTES = 256 << 10
"""How much is read of the journal at once."""

OFFSET_MAX = 1 << 53
_HEADERS = {name.decode(): value.decode() for name, value in STREAM_HEADERS}
_PREFACE = b"retry: 1000\n\n"
_LOST = b"event: daemon.trouble\ndata: %b\n\n"
_UNKEPT = "the journal cannot be written, so that nothing comes before it can: come back later"
_DRAINING = b"event: daemon.draining\ndata: %b\n\n"


class LiveRenderer:
    """Frames of a turn that is in memory."""

    heartbeat = HEARTBEAT

    def render(self, batch: Sequence[Any]) -> list[StreamMessage]:
        """Return what the batch means for the response."""
        data = b"".join([event_frame(item) for item in batch if type(item) is not Block])
        if isinstance(batch[-1], TERMINAL):
            return [Completed(data)]
        return [Items(data, content=True)] if data else []


class StoredRenderer:
    """Frames of a turn out of the journal."""

    heartbeat = HEARTBEAT

    def render(self, batch: Sequence[StoredEvents | TidegateError]) -> list[StreamMessage]:
        """Return what the batch means for the response."""
        [stored] = batch
        if isinstance(stored, TidegateError):
            words = {"type": "journal_unavailable", "message": str(stored)}
            return [Completed(_LOST % msgspec.json.encode(words))]
        data = b"".join([stored_frame(*item) for item in stored.items])
        return [Completed(data)] if stored.ended else [Items(data, content=True)]


class StoredSource:
    """Reads a turn out of the journal, a chunk at a time, beside the event loop.

    Args:
        service: the daemon.
        turn_id: the turn's.
        after: the last offset that the reader has.
        first: what was read already.
        wake: called when there is more.
    """

    lag_bytes = 0  # what is not read waits in a file

    def __init__(
        self,
        service: Service,
        turn_id: str,
        after: int,
        first: StoredEvents,
        wake: Callable[[], None],
    ) -> None:
        self._service = service
        self._turn_id = turn_id
        self._after = after
        self._ready: StoredEvents | TidegateError | None = first
        self._wake = wake
        self._reading: asyncio.Task[None] | None = None

    def take(self) -> Sequence[StoredEvents | TidegateError]:
        """Take what was read; if nothing was, ``wake`` comes when it is."""
        ready, self._ready = self._ready, None
        if ready is None:
            if self._reading is None:
                self._reading = asyncio.ensure_future(self._read())
            return []
        if isinstance(ready, StoredEvents) and ready.items:
            self._after = ready.items[-1][1]
        return [ready]

    def watch(self) -> None:
        """Nothing comes by itself."""

    def close(self) -> None:
        """Read no more."""
        if self._reading is not None:
            self._reading.cancel()

    async def _read(self) -> None:
        journal = self._service.journal
        try:
            self._ready = await in_thread(journal.events, self._turn_id, self._after, CHUNK_BYTES)
        except TidegateError as error:
            self._ready = error
        self._reading = None
        self._wake()


class Watcher:
    """A reader of events: it can leave whenever it likes, and nothing comes of it.

    Args:
        service: the daemon.
        hosted: the turn, if it is in memory.
    """

    def __init__(self, service: Service, hosted: HostedTurn | None) -> None:
        self._service = service
        self._hosted = hosted
        if hosted is not None:
            service.registry.tell(Attached(hosted.id))
        service.metrics.subscriber(1)

    def leave(self, how: str) -> None:
        """Hear how the response left the turn."""
        self._service.metrics.subscriber(-1)
        if how == "cut":
            self._service.metrics.client_cut_off()
        if self._hosted is not None:
            self._service.registry.tell(Detached(self._hosted.id))
            self._service.registry.release(self._hosted)

    def interrupt(self, reason: str) -> None:
        """Refuse: a reader of events is told of retries, and ends no turn."""
        raise AssertionError(f"events may be read without an end: {reason}")


class Events:
    """``GET /v1/turns/{turn}/events``, as an ASGI application.

    Args:
        service: the daemon.
    """

    def __init__(self, service: Service) -> None:
        self._service = service

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Serve one reader."""
        request = Request(scope, receive)
        turn_id = scope["path_params"]["turn"]
        try:
            found = await self._found(request)
        except TidegateError as error:
            await error_response(error)(scope, receive, send)
            return
        scope["state"]["turn"] = turn_id
        if scope["method"] == "HEAD":
            # A client takes it for answered with the head, and asks on the same connection again.
            await AsgiResponse(headers={**_HEADERS, "tidegate-turn": turn_id})(scope, receive, send)
            return
        response = self._response(found, _after(request), scope, send)

        def draining(within_s: float) -> None:
            data = {"within_s": within_s, "resume": f"/v1/turns/{turn_id}/events"}
            response.tell(Items(_DRAINING % msgspec.json.encode(data), content=True))

        def journal_fails() -> None:
            hosted = self._service.registry.hosted.get(turn_id)
            if hosted is None or hosted.settled:
                return  # all of it is kept
            words = {"type": "journal_unavailable", "message": _UNKEPT}
            response.tell(Completed(_LOST % msgspec.json.encode(words)))

        with self._service.registry.telling(Told(draining, journal_fails)):
            await response.serve()

    async def _found(self, request: Request) -> HostedTurn | StoredEvents:
        """Return the turn if it is in memory, else the first of its events to be sent.

        Raises:
            ApiError: there is no such turn, or no such event.
        """
        service = self._service
        turn_id, owner = request.path_params["turn"], owner_of(request.scope)
        after = _after(request)
        hosted = seen_by(service.registry.hosted.get(turn_id), owner)
        if hosted is not None:
            _check_cursor(after, hosted.offset)
            return hosted
        record = await stored_record(service, turn_id, owner)
        first: StoredEvents = await in_thread(service.journal.events, turn_id, after, CHUNK_BYTES)
        if first.expired:
            # It may have been forgotten just now, and then nothing is known of it.
            raise _expired(await stored_record(service, turn_id, owner))
        _check_stored(after, record, first)
        return first

    def _response(
        self, found: HostedTurn | StoredEvents, after: int, scope: Any, send: Any
    ) -> Response:
        service = self._service
        if isinstance(found, HostedTurn):
            response = self._begun(LiveRenderer(), found, scope, send)
            response.read(Subscription(found, after + 1, response.wake, service.calls))
            return response
        response = self._begun(StoredRenderer(), None, scope, send)
        turn_id = scope["path_params"]["turn"]
        response.read(StoredSource(service, turn_id, after, found, response.wake))
        return response

    def _begun(
        self,
        renderer: LiveRenderer | StoredRenderer,
        hosted: HostedTurn | None,
        scope: Any,
        send: Any,
    ) -> Response:
        config = self._service.config
        plan = Plan(
            streamed=True,
            commit_after_s=0,
            heartbeat_s=config.heartbeat_s,
            queue_bytes=config.client_queue_bytes,
            slow_s=config.slow_client_timeout_s,
            retractable=True,
        )
        turn_id = scope["path_params"]["turn"]
        response = Response(
            plan,
            renderer,
            Watcher(self._service, hosted),
            client_of(scope, send, turn_id),
        )
        response.begin()
        response.tell(Items(_PREFACE, content=True))
        return response


def _after(request: Request) -> int:
    """Return the offset of the last event that the reader has, -1 for none.

    A browser that comes back sends ``Last-Event-ID`` to the address that it had first.
    """
    last = head.text(request.scope["headers"], b"last-event-id")
    if last:
        return number(last, "Last-Event-ID", -1, least=-1, most=OFFSET_MAX)
    return number(request.query_params.get("after"), "after", -1, least=-1, most=OFFSET_MAX)


def _check_cursor(after: int, events: int) -> None:
    if after >= events:
        raise ApiError(
            400,
            "cursor_unknown",
            f"the turn has {events} events: no reader can have seen the one of offset {after}",
        )


def _check_stored(after: int, record: TurnRecord, first: StoredEvents) -> None:
    if first.items or after < 0:
        return
    final = expired_view(record)
    _check_cursor(after, final["events"])


def _expired(record: TurnRecord) -> ApiError:
    return ApiError(
        410,
        "cursor_expired",
        "the turn's events are no longer kept; its final state is below",
        {"turn": expired_view(record)},
    )

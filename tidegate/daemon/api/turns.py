"""Turns as resources: made, listed, looked at, interrupted and forgotten.

Path: ``app.py`` -> this -> ``turns/registry.py``, ``journal/``
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from itertools import takewhile
from typing import Any, cast, get_args

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from tidegate.daemon.access.body import object_from, read_body
from tidegate.daemon.api.asking import turn_ask
from tidegate.daemon.api.failing import ApiError, failing
from tidegate.daemon.journal.model import StoredEvents, TurnRecord, TurnState
from tidegate.daemon.service import Service, in_thread, owner_of, seen_by
from tidegate.daemon.turns.hosted import HostedTurn
from tidegate.daemon.turns.messages import InterruptAsked
from tidegate.daemon.turns.registry import Told, new_turn_id
from tidegate.daemon.turns.views import (
    final_of,
    live_summary,
    live_view,
    stored_view,
    summary_of,
)
from tidegate.errors import ConfigurationError


LIST_MAX = 1000
LIST_DEFAULT = 100
INTERRUPT_WAIT_S = 2.0
"""How long an interrupt waits for the terminal event, which takes milliseconds."""

_REASON_MAX = 500
_WHOLE = re.compile("-?[0-9]{1,20}")


class TurnRoutes:
    """The routes under ``/v1/turns``.

    Args:
        service: the daemon.
    """

    def __init__(self, service: Service) -> None:
        self._service = service

    @failing
    async def create(self, request: Request) -> Response:
        """Take on a turn: 202, also if it was asked for before."""
        service, headers = self._service, request.scope["headers"]
        body = object_from(
            await read_body(request.receive, headers, service.config.body_bytes_max), headers
        )
        ask = turn_ask(service.config, headers, body, owner_of(request.scope))
        record, replayed = await service.registry.admit(ask, new_turn_id(), client=False)
        hosted = service.registry.hosted.get(record.id)
        view = summary_of(record) if hosted is None else live_summary(hosted)
        extra = {"tidegate-turn": record.id, "location": f"/v1/turns/{record.id}"}
        if replayed:
            extra["idempotency-replayed"] = "true"
        return json_response(view, 202, extra)

    @failing
    async def index(self, request: Request) -> Response:
        """List turns, the newest first."""
        owner, query = owner_of(request.scope), request.query_params
        limit = number(query.get("limit"), "limit", LIST_DEFAULT, least=1, most=LIST_MAX)
        before, state = query.get("before"), _state(query.get("state"))
        # What is in memory counts as it is now, whatever ends while the journal is read.
        journal = self._service.journal
        hosted = [each for each in self._service.registry.hosted.values() if seen_by(each, owner)]
        if any(each.id == before for each in hosted) and not await in_thread(journal.turn, before):
            # Nothing newer is in the journal yet: older are all of it, and who was taken on before.
            hosted = list(takewhile(lambda each: each.id != before, hosted))
            before = None
        live = {each.id: live_summary(each) for each in hosted}
        states: dict[str, TurnState] = {each.id: each.record.state for each in hosted}
        stored: list[TurnRecord] = await in_thread(
            lambda: journal.turns(owner=owner, limit=limit, before=before, state=state, live=states)
        )
        if before is not None and not stored:
            await self._check_known(before, owner)
        shown = [live.pop(each.id, {}) or summary_of(each) for each in stored]
        if before is None:
            # The newest may not be in the journal yet.
            shown += [each for each in live.values() if state in (None, each["state"])]
        shown.sort(key=lambda each: -each["created_at"])
        return json_response({"turns": shown[:limit]})

    @failing
    async def show(self, request: Request) -> Response:
        """Show a turn with its answer so far."""
        return json_response(await self._view(request))

    @failing
    async def interrupt(self, request: Request) -> Response:
        """Interrupt a turn: 200 with how it ended, whoever ended it, and however often."""
        reason = await self._reason(request)
        hosted = self._hosted(request)
        if hosted is not None and hosted.terminal is None:
            ended = asyncio.Event()
            hosted.await_end(ended.set)
            self._service.registry.tell(InterruptAsked(hosted.id, reason))
            try:
                async with asyncio.timeout(INTERRUPT_WAIT_S):
                    await ended.wait()
            except TimeoutError:
                return json_response(live_summary(hosted), 202)
            return json_response(live_view(hosted))
        return json_response(await self._view(request))

    @failing
    async def forget(self, request: Request) -> Response:
        """Forget a turn that has ended: 204."""
        hosted = self._hosted(request)
        if hosted is not None and hosted.terminal is None:
            raise ApiError(409, "turn_running", "the turn runs: interrupt it first")
        if hosted is None:
            await self._record(request)
        if not self._service.registry.state.well:
            raise _unkept()
        await self._forgotten(request.path_params["turn"], owner_of(request.scope))
        return Response(status_code=204)

    async def _forgotten(self, turn_id: str, owner: str) -> None:
        """Wait until a turn is forgotten, which may be later than anybody wants to wait.

        Raises:
            ApiError: the journal cannot be written; it is forgotten once it can.
        """
        service = self._service
        forgotten: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def gone() -> None:
            service.registry.drop(turn_id)
            service.lanes.forget(turn_id, owner)
            if not forgotten.done():
                forgotten.set_result(None)

        def journal_fails() -> None:
            if not forgotten.done():
                forgotten.set_exception(_unkept())

        with service.registry.telling(Told(lambda _within_s: None, journal_fails)):
            service.journal.forget(turn_id, lambda _known: service.calls.call(gone))
            await forgotten

    def _hosted(self, request: Request) -> HostedTurn | None:
        found = self._service.registry.hosted.get(request.path_params["turn"])
        return seen_by(found, owner_of(request.scope))

    async def _record(self, request: Request) -> TurnRecord:
        turn_id = request.path_params["turn"]
        return await stored_record(self._service, turn_id, owner_of(request.scope))

    async def _view(self, request: Request) -> Mapping[str, Any]:
        hosted = self._hosted(request)
        if hosted is not None:
            return live_view(hosted)
        record = await self._record(request)
        return stored_view(record, await self._last_event(record))

    async def _last_event(self, record: TurnRecord) -> bytes:
        """Return the terminal event of a turn as JSON; empty if it is no longer kept."""
        final = final_of(record)
        if final is None:
            return b""
        stored: StoredEvents = await in_thread(
            self._service.journal.events, record.id, final.offset - 1, 1
        )
        return stored.items[0][2] if stored.items else b""

    async def _check_known(self, turn_id: str, owner: str) -> None:
        record: TurnRecord | None = await in_thread(self._service.journal.turn, turn_id)
        if record is None or record.owner != owner:
            raise ConfigurationError(f"before={turn_id!r:.60}: give the id of a turn in the list")

    async def _reason(self, request: Request) -> str:
        """Return what the body gives as a reason; there may be none."""
        headers = request.scope["headers"]
        data = await read_body(request.receive, headers, 64 << 10)
        body = object_from(data, headers) if data.strip() else {}
        reason = body.pop("reason", "")
        if not isinstance(reason, str) or len(reason) > _REASON_MAX:
            raise ConfigurationError(f"reason: give a text of at most {_REASON_MAX} characters")
        if body:
            raise ConfigurationError(f"{next(iter(body))!r:.60} means nothing here: give reason")
        return reason


async def stored_record(service: Service, turn_id: str, owner: str) -> TurnRecord:
    """Return what the journal has of a turn.

    Raises:
        ApiError: nothing, or it belongs to another key, which is the same.
    """
    record: TurnRecord | None = await in_thread(service.journal.turn, turn_id)
    if record is None or record.owner != owner:
        raise ApiError(404, "turn_unknown", "there is no such turn")
    return record


def _unkept() -> ApiError:
    return ApiError(503, "journal_unavailable", "the journal cannot be written: try later")


def _state(given: str | None) -> TurnState | None:
    """Return the state whose turns are wanted; None for all."""
    for state in get_args(TurnState):
        if given == state:
            return cast("TurnState", state)
    if given is None:
        return None
    raise ConfigurationError(f"state={given!r:.60}: give one of {', '.join(get_args(TurnState))}")


def number(given: str | None, name: str, default: int, *, least: int, most: int) -> int:
    """Return a whole number out of the query.

    Raises:
        ConfigurationError: it is none, or out of its range.
    """
    if given is None:
        return default
    value = int(given) if _WHOLE.fullmatch(given) else least - 1
    if not least <= value <= most:
        raise ConfigurationError(f"{name}={given!r:.60}: give a number from {least} to {most}")
    return value


def json_response(
    body: Mapping[str, Any], status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    """Return a body of our own."""
    return Response(
        msgspec.json.encode(body),
        status,
        {"content-type": "application/json", "cache-control": "no-store", **(headers or {})},
    )

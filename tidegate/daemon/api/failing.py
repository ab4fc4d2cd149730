"""Errors of our own routes: one form for all of them."""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from tidegate.daemon.access.body import BodyRefused, ClientGone
from tidegate.daemon.config.endpoints import NoEndpoint
from tidegate.daemon.journal.model import JournalError
from tidegate.daemon.turns.machine import JOURNAL_RETRY_S
from tidegate.daemon.turns.refusals import Refused
from tidegate.errors import ConfigurationError, TidegateError


Routes = TypeVar("Routes")


class ApiError(TidegateError):
    """A request of ours that cannot be answered otherwise.

    Attributes:
        status: of HTTP.
        kind: one word for programs.
        more: what else the body has, beside ``error``.
    """

    def __init__(
        self, status: int, kind: str, message: str, more: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.kind = kind
        self.more = dict(more or {})

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.status, self.kind, str(self), self.more)


def failing(
    route: Callable[[Routes, Request], Awaitable[Response]],
) -> Callable[[Routes, Request], Awaitable[Response]]:
    """Return a route that answers with its errors."""

    @functools.wraps(route)
    async def answered(routes: Routes, request: Request) -> Response:
        try:
            return await route(routes, request)
        except ClientGone:
            return Response(status_code=499)  # for nobody
        except TidegateError as error:
            return error_response(error)

    return answered


def error_response(error: TidegateError) -> Response:
    """Return an error as our routes answer with it.

    Raises:
        TidegateError: it is none of a request.
    """
    match error:
        case ApiError():
            return _response(error.status, error.kind, str(error), error.more)
        case BodyRefused():
            return _response(error.status, error.kind, error.message)
        case Refused():
            response = _response(error.status, error.kind, str(error))
            if error.retry_after_s is not None:
                response.headers["retry-after"] = str(error.retry_after_s)
            return response
        case NoEndpoint():
            return _response(404, "endpoint_unknown", str(error))
        case JournalError():
            return _response(503, "journal_unavailable", str(error))
        case ConfigurationError():
            return _response(400, "bad_request", str(error))
        case _:
            raise error


def _response(
    status: int, kind: str, message: str, more: Mapping[str, Any] | None = None
) -> Response:
    body = {"error": {"type": kind, "message": message}, **(more or {})}
    headers = {"retry-after": str(JOURNAL_RETRY_S)} if kind == "journal_unavailable" else {}
    return Response(msgspec.json.encode(body), status, headers, media_type="application/json")

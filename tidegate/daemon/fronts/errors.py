"""Failures and refusals as the wires' own errors: status, headers and bodies.

Official clients try again by themselves after 408, 409, 429 and everything from 500 on, and heed
``Retry-After`` and ``x-should-retry``. So the status is the provider's own wherever it sent one,
and where trying again cannot help the header says so.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from tidegate.daemon.fronts.base import Api, ErrorReply
from tidegate.protocol.failures import Failure, FailureKind


_STATUSES = {
    FailureKind.INTERRUPTED: 499,  # not tried again: somebody wanted it to end
    FailureKind.STALLED: 504,
    FailureKind.CONNECTION_LOST: 502,
    FailureKind.TRUNCATED: 502,
    FailureKind.EMPTY: 502,
    FailureKind.MALFORMED: 502,
    FailureKind.MALFORMED_TOOL_CALL: 502,
    FailureKind.RATE_LIMITED: 429,
    FailureKind.QUOTA_EXHAUSTED: 429,
    FailureKind.OVERLOADED: 503,
    FailureKind.SERVER_ERROR: 502,
    FailureKind.BAD_REQUEST: 400,
    FailureKind.AUTH: 401,
    FailureKind.CONTEXT_OVERFLOW: 400,
    FailureKind.CONTENT_REFUSED: 400,
    FailureKind.CIRCUIT_OPEN: 503,
    FailureKind.WORKER_LOST: 503,
    FailureKind.SLOW_CLIENT: 500,
    FailureKind.INTERNAL: 500,
}
"""What the failure of each kind is to a client, where its provider has sent no status."""

_PROVIDERS = {
    FailureKind.RATE_LIMITED,
    FailureKind.QUOTA_EXHAUSTED,
    FailureKind.OVERLOADED,
    FailureKind.SERVER_ERROR,
    FailureKind.BAD_REQUEST,
    FailureKind.AUTH,
    FailureKind.CONTEXT_OVERFLOW,
    FailureKind.CONTENT_REFUSED,
}
"""Kinds whose status is the provider's verdict; behind any other its answer had begun well."""

_OF_A_PROXY = 407
"""A status that asks a client for the key of a proxy of ours."""

_RETRIED = (408, 409, 429)

_OPENAI_TYPES = {
    FailureKind.RATE_LIMITED: "rate_limit_error",
    FailureKind.QUOTA_EXHAUSTED: "insufficient_quota",
    FailureKind.BAD_REQUEST: "invalid_request_error",
    FailureKind.AUTH: "authentication_error",
    FailureKind.CONTEXT_OVERFLOW: "invalid_request_error",
    FailureKind.CONTENT_REFUSED: "invalid_request_error",
}
_OPENAI_CODES = {
    FailureKind.RATE_LIMITED: "rate_limit_exceeded",
    FailureKind.AUTH: "invalid_api_key",
    FailureKind.CONTENT_REFUSED: "content_policy_violation",
}
"""What stands for a kind if the provider gave no code."""

_OPENAI_KNOWN = {
    FailureKind.QUOTA_EXHAUSTED: "insufficient_quota",
    FailureKind.CONTEXT_OVERFLOW: "context_length_exceeded",
}
"""Codes that clients look for, whatever the provider calls it."""

_OPENAI_REFUSALS = {
    401: ("authentication_error", "invalid_api_key"),
    403: ("permission_error", ""),
    429: ("rate_limit_error", "rate_limit_exceeded"),
}

_ANTHROPIC_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    503: "overloaded_error",
    504: "timeout_error",
    529: "overloaded_error",
}


def error_of(api: Api, failure: Failure, *, attempts: int | None = None) -> ErrorReply:
    """Return a failure as the answer to a request of which nothing has been answered yet.

    Args:
        api: whose form it gets.
        failure: what ended the turn.
        attempts: how many there were, if that is known.
    """
    status = status_of(api, failure)
    headers = {}
    if failure.retry_after_s is not None:
        headers["retry-after"] = str(math.ceil(max(0.0, failure.retry_after_s)))
    elif not failure.retryable and (status in _RETRIED or status >= 500):
        headers["x-should-retry"] = "false"
    if failure.request_id:
        name = "request-id" if api == "messages" else "x-request-id"
        headers[name] = "".join(c for c in failure.request_id if "!" <= c <= "~")
    return ErrorReply(status, headers, error_body(api, failure, attempts=attempts))


def status_of(api: Api, failure: Failure) -> int:
    """Return the provider's own status, or the one that says best what happened."""
    kind, told = failure.kind, failure.status
    if kind in _PROVIDERS and told is not None and 400 <= told < 600:
        return 502 if told == _OF_A_PROXY else told
    return 529 if kind is FailureKind.OVERLOADED and api == "messages" else _STATUSES[kind]


def error_body(api: Api, failure: Failure, *, attempts: int | None = None) -> dict[str, Any]:
    """Return a failure as an error object of ``api``, before a stream or in it."""
    ours: dict[str, Any] = {
        "kind": failure.kind.value,
        "reason": failure.reason,
        "retryable": failure.retryable,
    }
    if attempts is not None:
        ours["attempts"] = attempts
    message = failure.detail or str(failure)
    if api == "messages":
        return _anthropic(_anthropic_type(failure), message, ours, failure.request_id)
    kind = failure.kind
    code = _OPENAI_KNOWN.get(kind) or failure.code or _OPENAI_CODES.get(kind) or kind.value
    return _openai(_OPENAI_TYPES.get(kind, "server_error"), code, message, ours)


def refusal_of(
    api: Api, status: int, kind: str, message: str, headers: Mapping[str, str] | None = None
) -> ErrorReply:
    """Return a refusal of the daemon's own in the form of ``api``.

    Args:
        api: whose form it gets.
        status: from 400 on.
        kind: what is refused, one word for programs.
        message: what is refused, and the way out, for people.
        headers: such as ``Retry-After``.
    """
    ours = {"kind": kind, "reason": "refused", "retryable": status == 429 or status >= 500}
    if api == "messages":
        named = _ANTHROPIC_TYPES.get(status)
        named = named or ("invalid_request_error" if status < 500 else "api_error")
        body = _anthropic(named, message, ours, None)
    else:
        usual = ("invalid_request_error", "") if status < 500 else ("server_error", "")
        named, code = _OPENAI_REFUSALS.get(status, usual)
        param = "model" if kind == "model_not_found" else None
        body = _openai(named, code or kind, message, ours, param)
    return ErrorReply(status, dict(headers or {}), body)


def _openai(
    named: str, code: str, message: str, ours: dict[str, Any], param: str | None = None
) -> dict[str, Any]:
    told = {"message": message, "type": named, "param": param, "code": code, "tidegate": ours}
    return {"error": told}


def _anthropic(
    named: str, message: str, ours: dict[str, Any], request_id: str | None
) -> dict[str, Any]:
    error = {"type": named, "message": message, "tidegate": ours}
    return {"type": "error", "error": error, "request_id": request_id}


def _anthropic_type(failure: Failure) -> str:
    if failure.code in _ANTHROPIC_TYPES.values():
        return failure.code or ""
    status = status_of("messages", failure)
    named = _ANTHROPIC_TYPES.get(status)
    return named or ("api_error" if status >= 500 or status == 499 else "invalid_request_error")

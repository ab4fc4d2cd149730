"""What Bedrock's errors mean, before a stream and in it.

Its exceptions have names, and those decide; the status decides for what has no known name. In a
stream there is no status, so that a name stands for the one with which AWS models it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from tidegate.actors.provider.dialects import faults
from tidegate.protocol.failures import Failure, FailureKind


class _Known(NamedTuple):
    """What a modelled exception is."""

    status: int
    kind: FailureKind
    retryable: bool = True


_EXCEPTIONS: Mapping[str, _Known] = {
    "accessdenied": _Known(403, FailureKind.AUTH, retryable=False),
    "internalserver": _Known(500, FailureKind.SERVER_ERROR),
    "modelerror": _Known(424, FailureKind.SERVER_ERROR),
    "modelnotready": _Known(429, FailureKind.OVERLOADED),
    "modelstreamerror": _Known(424, FailureKind.SERVER_ERROR),
    "modeltimeout": _Known(408, FailureKind.SERVER_ERROR),
    "resourcenotfound": _Known(404, FailureKind.BAD_REQUEST, retryable=False),
    "servicequotaexceeded": _Known(400, FailureKind.QUOTA_EXHAUSTED, retryable=False),
    "serviceunavailable": _Known(503, FailureKind.SERVER_ERROR),
    "throttling": _Known(429, FailureKind.RATE_LIMITED),
    "validation": _Known(400, FailureKind.BAD_REQUEST, retryable=False),
}
"""By name in lower case, without ``exception`` behind it."""

_STREAMING_ACTION = "InvokeModelWithResponseStream"
_REQUEST_ID = "x-amzn-requestid"


def failure_from_answer(
    status: int | None, body: Any, headers: Mapping[str, str], *, now_s: float
) -> Failure:
    """Make the failure of an error answer; the arguments are those of ``failure_from_error_body``.

    The name of the exception is in a header, in front of a colon and an address.
    """
    lower = {name.lower(): value for name, value in headers.items()}
    value = _object_from(body)
    named = lower.get("x-amzn-errortype") or value.get("__type") or value.get("code")
    # A name space may stand in front of it, behind a hash.
    name = named.partition(":")[0].rpartition("#")[2].strip() if isinstance(named, str) else ""
    plain = faults.failure_from_error_body(status, _worded(value) or body, lower, now_s=now_s)
    return msgspec.structs.replace(
        _known_by(name, plain), request_id=lower.get(_REQUEST_ID) or plain.request_id
    )


def failure_from_exception(name: str, payload: bytes, message: str = "") -> Failure:
    """Make the failure of an exception in a stream.

    Args:
        name: its type, or the code of an error that is not modelled.
        payload: of the frame.
        message: what a header says, for a frame without a payload.
    """
    value = _object_from(payload)
    worded = _worded(value) or {"message": message or payload.decode("utf-8", "replace")}
    known = _EXCEPTIONS.get(_key(name))
    # With the status, free text about the context counts as it does before the stream.
    body = {**worded, "code": name} | ({"status": known.status} if known else {})
    return _known_by(name, faults.failure_from_frame(body))


def refused_from(status: int | None, body: Any) -> str:
    """Say which compatibility retry would help after this error.

    Whoever may call a model may not always stream from it: that is another action to be granted.
    """
    value = _object_from(body)
    if status == 403 and _STREAMING_ACTION in str(_worded(value) or body):
        return "streaming"
    return faults.refused_from(status, body)


def _known_by(name: str, plain: Failure) -> Failure:
    """Return ``plain`` with what the name of an exception says beyond the status."""
    code = name[:200] or plain.code
    known = _EXCEPTIONS.get(_key(name))
    if known is None or plain.kind is FailureKind.CONTEXT_OVERFLOW:
        return msgspec.structs.replace(plain, code=code)
    return msgspec.structs.replace(
        plain,
        code=code,
        kind=known.kind,
        retryable=known.retryable,
        status=plain.status or known.status,
    )


def _key(name: str) -> str:
    return name.lower().removesuffix("exception")


def _object_from(body: Any) -> dict[str, Any]:
    if isinstance(body, bytes | bytearray | str):
        try:
            body = msgspec.json.decode(body)
        except (msgspec.DecodeError, ValueError, RecursionError):
            return {}
    return body if isinstance(body, dict) else {}


def _worded(value: dict[str, Any]) -> dict[str, str]:
    """Return the words of an exception in the one field where the rest looks for them."""
    words = [value.get(key) for key in ("message", "Message", "originalMessage")]
    told = dict.fromkeys(each for each in words if isinstance(each, str) and each)
    return {"message": ": ".join(told)} if told else {}

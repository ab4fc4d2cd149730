"""What a provider's error means, be it an HTTP answer or a frame inside a stream.

Exact machine codes decide, then the status; free text decides nothing that a retry depends on,
because providers word their per-minute limits like an empty account. The two exceptions have no
code to go by: a connection that was lost behind the provider, and a compatibility refusal.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from email.utils import parsedate_to_datetime
from typing import Any, TypeGuard

import msgspec

from tidegate.actors.provider.dialects.fault_codes import DECISIVE_CODES, PLAIN_CODES
from tidegate.actors.provider.dialects.fault_details import (
    asked_delay_s,
    is_spent_for_the_day,
    reasons_of,
)
from tidegate.protocol.failures import DETAIL_CHARS_MAX, Failure, FailureKind


_RETRYABLE = (FailureKind.OVERLOADED, FailureKind.RATE_LIMITED, FailureKind.TRUNCATED)
_RETRYABLE_STATUS = {408, 409, 500, 502, 503, 504, *range(520, 530)}
_AUTH_STATUS = (401, 403, 407)
_STATUS = re.compile(r"[45][0-9]{2}")
_CODE = re.compile(r"[A-Za-z0-9_.\-]+")
_CONTEXT = re.compile(r"context (?:length|window|size)|(?:prompt|input) is too long", re.IGNORECASE)
_LOST = re.compile(
    r"connection (?:was |has been )?(?:lost|reset|closed|terminated)|network (?:error|connection)"
    r"|terminated|peer closed|broken pipe|upstream connect error",
    re.IGNORECASE,
)
_NO_STREAM_OPTIONS = re.compile(
    r"extra|unknown|unsupported|unexpected|unrecogni[sz]ed"
    r"|not (?:supported|permitted|allowed)|(?:does|do)(?: not|n't) support",
    re.IGNORECASE,
)
_NO_STREAMING = re.compile(
    r"\bstream(?:ing|ed)?\b[^.]{0,60}(?:not|n't|un)[ -]?(?:yet |currently )?"
    r"(?:supported|available|allowed|enabled|permitted|implemented)"
    r"|(?:not|n't) (?:yet |currently )?(?:support|allow)\b[^.]{0,40}\bstream(?:ing|ed)?\b"
    r"|\bunsupported\b[^.]{0,40}\bstream(?:ing|ed)?\b"
    r"|\bcannot stream\b|\bstream\b[^.]{0,20}\bmust be false\b",
    re.IGNORECASE,
)


def failure_from_error_body(
    status: int | None, body: Any, headers: Mapping[str, str], *, now_s: float
) -> Failure:
    """Make the failure of an error answer, or of a success that holds an error.

    Args:
        status: the HTTP status; None for an error inside a stream.
        body: bytes or text of any kind, or decoded JSON.
        headers: of the response, in any case of letters.
        now_s: seconds since the epoch, to which a date in ``Retry-After`` is compared.
    """
    lower = {name.lower(): value for name, value in headers.items()}
    failure = _failure_from(status, _decoded(body))
    request_id = lower.get("x-request-id") or lower.get("request-id") or failure.request_id
    asked_s = retry_after_from(lower, now_s=now_s)
    return msgspec.structs.replace(
        failure,
        request_id=request_id,
        retry_after_s=failure.retry_after_s if asked_s is None else asked_s,
    )


def failure_from_frame(body: Any) -> Failure:
    """Make the failure of an error that came inside a stream: bytes, text or decoded JSON."""
    return _failure_from(None, _decoded(body))


def retry_after_from(headers: Mapping[str, str], *, now_s: float) -> float | None:
    """Return the seconds that the provider asks to wait, 0.0 for a date in the past.

    The header in milliseconds is the finer one and wins. What is negative, not finite or no
    number is as good as absent.

    Args:
        headers: with names in lower case.
        now_s: seconds since the epoch.
    """
    milliseconds = _seconds_from(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    value = headers.get("retry-after")
    seconds = _seconds_from(value)
    if seconds is not None or value is None:
        return seconds
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - now_s)
    except (ValueError, OverflowError):
        return None


def refused_from(status: int | None, body: Any) -> str:
    """Say which compatibility retry would help after this error.

    Returns:
        ``stream_options`` if the endpoint does not take that field, ``streaming`` if it does not
        stream, else an empty string.
    """
    value = _decoded(body)
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    if status in (400, 422) and "stream_options" in text and _NO_STREAM_OPTIONS.search(text):
        return "stream_options"
    if status in (401, 429):
        return ""
    error = _error_in(value)
    if error.get("param") == "stream" and error.get("code") == "unsupported_value":
        return "streaming"
    return "streaming" if _NO_STREAMING.search(text) else ""


def is_error(frame: Any) -> bool:
    """Say whether a frame's decoded payload is an error, whatever form that has."""
    if isinstance(frame, list):
        # Google's servers have a list around it, and that of their errors alone.
        return bool(frame) and isinstance(frame[0], dict) and bool(frame[0].get("error"))
    if not isinstance(frame, dict):
        return False
    if frame.get("error") or "error" in (frame.get("type"), frame.get("object")):
        return True
    if frame.get("choices"):
        return False
    if any(frame.get(key) for key in ("error_type", "error_message", "error_code", "error_msg")):
        return True
    if not isinstance(frame.get("message") or frame.get("detail"), str):
        return False
    code = frame.get("code")
    return (
        frame.keys() <= {"message", "detail"}
        or _status_in(frame) is not None
        or (isinstance(code, str) and code.lower() not in ("", "ok", "success"))
        or "error" in str(frame.get("type")).lower()
    )


def _failure_from(status: int | None, body: Any) -> Failure:
    error = _error_in(body)
    outer = body if isinstance(body, dict) else {}
    if status is None or status < 400:
        status = _status_in(error) or _status_in(outer)
    codes = [*_codes_in(error), *_codes_in(outer)]
    detail = _detail_from(error, outer, body)
    kind = _kind_of(status, codes, detail)
    if kind is FailureKind.RATE_LIMITED and is_spent_for_the_day(error):
        kind = FailureKind.QUOTA_EXHAUSTED
    retryable = kind in _RETRYABLE or (
        kind is FailureKind.SERVER_ERROR and (status is None or status in _RETRYABLE_STATUS)
    )
    request_id = outer.get("request_id")
    return Failure(
        kind=kind,
        retryable=retryable,
        status=status,
        code=next((code[:200] for code in codes if _as_status(code) is None), None),
        detail=detail[:DETAIL_CHARS_MAX],
        request_id=request_id if isinstance(request_id, str) else None,
        retry_after_s=asked_delay_s(error),
    )


def _kind_of(status: int | None, codes: list[str], detail: str) -> FailureKind:
    known = [re.sub(r"[_.\-]", "", code).lower() for code in codes]
    for code in known:
        if code in DECISIVE_CODES:
            return DECISIVE_CODES[code]
    if status is not None:
        kind = _kind_of_status(status)
    else:
        # The response had begun, so what was lost of a connection is the rest of it.
        unknown = FailureKind.TRUNCATED if _LOST.search(detail) else FailureKind.SERVER_ERROR
        kind = next((PLAIN_CODES[code] for code in known if code in PLAIN_CODES), unknown)
    # Neither is ever retried, so that words may tell them apart.
    if kind is FailureKind.BAD_REQUEST and _CONTEXT.search(detail):
        return FailureKind.CONTEXT_OVERFLOW
    return kind


def _kind_of_status(status: int) -> FailureKind:
    if status in _AUTH_STATUS:
        return FailureKind.AUTH
    if status == 402:
        return FailureKind.QUOTA_EXHAUSTED
    if status == 429:
        return FailureKind.RATE_LIMITED
    if status == 529:
        return FailureKind.OVERLOADED
    if status >= 500 or status in _RETRYABLE_STATUS:
        return FailureKind.SERVER_ERROR
    return FailureKind.BAD_REQUEST


def _decoded(body: Any) -> Any:
    """Return the JSON in ``body`` if it is bytes or text of JSON, else the text."""
    if not isinstance(body, bytes | bytearray | str):
        return body
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError):
        return body if isinstance(body, str) else body.decode("utf-8", "replace").strip()


def _error_in(body: Any) -> dict[str, Any]:
    """Return the object that describes the error; empty if there is none."""
    if isinstance(body, list) and body:
        body = body[0]
    if not isinstance(body, dict):
        return {}
    error = body.get("error")
    return error if isinstance(error, dict) else body


def _codes_in(error: dict[str, Any]) -> Iterator[str]:
    """Yield what may be machine codes, the most exact first."""
    values = [error.get("code")]
    inner = [part for part in (error.get("innererror"), error.get("metadata")) if _is_object(part)]
    values += [part.get("code") or part.get("error_type") for part in inner]
    values += [error.get(key) for key in ("error_code", "error_type", "type", "status", "error")]
    values += reasons_of(error)
    for value in values:
        if isinstance(value, str) and value != "error" and _CODE.fullmatch(value):
            yield value


def _is_object(value: Any) -> TypeGuard[dict[str, Any]]:
    return isinstance(value, dict)


def _status_in(error: dict[str, Any]) -> int | None:
    for key in ("status", "status_code", "http_status", "code", "error_code"):
        status = _as_status(error.get(key))
        if status is not None:
            return status
    return None


def _as_status(value: Any) -> int | None:
    if isinstance(value, str) and _STATUS.fullmatch(value):
        value = int(value)
    return value if isinstance(value, int) and 400 <= value < 600 else None


def _detail_from(error: dict[str, Any], outer: dict[str, Any], body: Any) -> str:
    """Return the words of an error: its own, those beside it, and those of whoever is behind."""
    keys = ("message", "msg", "detail", "error_message", "error_msg", "error_description", "error")
    found = [part.get(key) for part in (error, outer) for key in keys]
    metadata = error.get("metadata")
    if isinstance(metadata, dict):
        found.append(metadata.get("raw"))
    words = dict.fromkeys(each for each in found if isinstance(each, str) and each)
    if words:
        return ": ".join(words)
    return body if isinstance(body, str) else msgspec.json.encode(body).decode()


def _seconds_from(value: str | None) -> float | None:
    try:
        seconds = float(value or "")
    except ValueError:
        return None
    return seconds if math.isfinite(seconds) and seconds >= 0 else None

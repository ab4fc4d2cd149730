"""What an exception of a custom stream means: whatever SDK raised it, nothing is imported for it.

Path: ``provider/stream_run.py`` -> this -> ``provider/exceptions.py``
"""

from __future__ import annotations

import errno
import time
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from tidegate.actors.causes import chain_of
from tidegate.actors.provider.dialects.faults import failure_from_error_body, failure_from_frame
from tidegate.actors.provider.exceptions import failure_from, names_of, said_in
from tidegate.actors.provider.wording import words_of
from tidegate.protocol.failures import Failure, FailureKind


_SPOKEN = frozenset({"openai.APIError", "anthropic.APIError"})
"""Errors that an SDK found in a stream: without a status, and with a body or words."""

_OWN_REASONS = ("verify", "header")
"""What files and texts mean for a client of ours; in a user's own code they can be anything."""

_NETWORK_ERRNOS = frozenset(
    {errno.ENETDOWN, errno.ENETUNREACH, errno.EHOSTDOWN, errno.EHOSTUNREACH, errno.EADDRNOTAVAIL}
)


def failure_from_stream(error: BaseException) -> Failure:
    """Say what an exception of a user's own stream means for its attempt.

    An error of tidegate says it itself, an HTTP status as on the built-in wires, and a lost
    connection is known by the class. What is left is the stream's own defect: ``internal``.
    """
    chain = tuple(chain_of(error))
    for each in chain:
        if isinstance(failure := getattr(each, "failure", None), Failure):
            return failure
    for each in chain:
        if (status := _status_of(each)) is not None:
            return _with_words(_failure_of_status(status, each), each)
    failure = failure_from(error)
    if failure.kind is FailureKind.INTERNAL:
        spoken = next((each for each in chain if not _SPOKEN.isdisjoint(names_of((each,)))), None)
        if spoken is not None:
            said = failure_from_frame(getattr(spoken, "body", None) or {"message": str(spoken)})
            return _with_words(said, spoken)
    elif failure.reason in _OWN_REASONS or _is_plain(chain, failure):
        failure = Failure(kind=FailureKind.INTERNAL, cause=failure.cause)
    if failure.kind is FailureKind.INTERNAL:
        words = f"the custom stream raised {failure.cause}: {said_in(chain)}".removesuffix(": ")
        return msgspec.structs.replace(failure, detail=words)
    return failure


def unclear_failure(error: BaseException, trouble: Exception) -> Failure:
    """Say that a stream raised something which itself raises when it is looked at."""
    kind = type(error).__name__
    return Failure(
        kind=FailureKind.INTERNAL,
        detail=f"the custom stream raised {kind}, which itself raises {type(trouble).__name__}",
        cause=kind,
    )


def _status_of(error: BaseException) -> int | None:
    response = getattr(error, "response", None)
    found = [getattr(error, "status_code", None), getattr(response, "status_code", None)]
    if isinstance(response, dict):  # botocore's
        found.append(_mapping(response.get("ResponseMetadata")).get("HTTPStatusCode"))
    found += [getattr(error, name, None) for name in ("status", "code")]
    for status in found:
        if isinstance(status, int) and 400 <= status < 600:
            return status
    return None


def _failure_of_status(status: int, error: BaseException) -> Failure:
    response: Any = getattr(error, "response", None)
    if isinstance(response, dict):
        said: Any = {key.lower(): value for key, value in _mapping(response.get("Error")).items()}
        headers = _mapping(response.get("ResponseMetadata")).get("HTTPHeaders")
    else:
        said = getattr(error, "body", None) or _text_of(response)
        headers = getattr(response, "headers", None) or getattr(error, "headers", None)
    texts = {str(name): str(value) for name, value in _mapping(headers).items()}
    try:
        return failure_from_error_body(status, said or words_of(error), texts, now_s=time.time())
    except TypeError:  # a body of a kind that JSON does not have
        return failure_from_error_body(status, words_of(error), texts, now_s=time.time())


def _text_of(response: Any) -> str:
    try:
        return str(response.text) if response is not None else ""
    except Exception:  # noqa: BLE001 - it was never read, or cannot be
        return ""


def _with_words(failure: Failure, error: BaseException) -> Failure:
    detail = failure.detail or words_of(error)
    return msgspec.structs.replace(failure, detail=detail, cause=type(error).__name__)


def _is_plain(chain: Iterable[BaseException], failure: Failure) -> bool:
    """Say whether only ``OSError`` speaks for a lost connection: a file can be its cause as well.

    What the system says of a network has an errno of its own, or a class.
    """
    if (failure.kind, failure.reason) != (FailureKind.CONNECTION_LOST, "connect"):
        return False
    plain = [each for each in chain if isinstance(each, OSError)]
    return bool(plain) and all(
        type(each).__module__ == "builtins"
        and not isinstance(each, ConnectionError | TimeoutError)
        and (each.filename is not None or each.errno not in _NETWORK_ERRNOS)
        for each in plain
    )


def _mapping(value: Any) -> Mapping[Any, Any]:
    return value if isinstance(value, Mapping) else {}

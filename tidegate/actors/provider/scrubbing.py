"""Takes a target's secrets out of what is said of its attempts; pure.

Path: ``provider/actor.py``, ``provider/stream_run.py`` and ``provider/masks.py`` -> this
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from urllib.parse import quote

import msgspec

from tidegate.protocol.attempts import Target
from tidegate.protocol.failures import DETAIL_CHARS_MAX, Failure


MASK = "***"
_LOGIN = re.compile(r"(?<=//)[^/@\s]+(?=@)")
_SECRET_OPTION = re.compile("SECRET|TOKEN")
TARGETS_MAX = 64
"""Of how many targets the secrets are known by heart; each attempt asks for them."""

SECRET_CHARS_MIN = 4
"""Shorter header values are no secrets, and masking them would spoil the text."""


@lru_cache(maxsize=TARGETS_MAX)
def secrets_of(target: Target) -> tuple[str, ...]:
    """List what of a target must not be seen in a text, the longest first."""
    values = [target.api_key, *(value for _, value in (*target.headers, *target.query))]
    values += [value for name, value in target.options if _SECRET_OPTION.search(name)]
    # A bearer token is known by its last word too, a proxy's password by what is before the host.
    values += [value.rpartition(" ")[2] for value in values]
    values += target.proxy.rpartition("@")[0].rpartition("//")[2].rpartition(":")[2:]
    values += [quote(value, safe="") for value in values]
    return tuple(
        sorted({each for each in values if len(each) >= SECRET_CHARS_MIN}, key=len, reverse=True)
    )


def scrubbed(failure: Failure, secrets: Iterable[str]) -> Failure:
    """Mask ``secrets`` in a failure's texts, and cut them to their greatest length.

    Who logs in to an address is masked too, for the environment's proxies are in no list.
    """
    secrets = tuple(secrets)
    return msgspec.structs.replace(
        failure,
        detail=masked(failure.detail, secrets),
        raw_text=masked(failure.raw_text, secrets),
        code=failure.code and masked(failure.code, secrets),
        request_id=failure.request_id and masked(failure.request_id, secrets),
    )


def masked(text: str, secrets: tuple[str, ...]) -> str:
    """Return a text without secrets, cut to its greatest length."""
    text = _LOGIN.sub(MASK, text)
    for secret in secrets:
        text = text.replace(secret, MASK)
        if len(text) >= DETAIL_CHARS_MAX:
            text = _without_beginning_of(secret, text)
    return text[:DETAIL_CHARS_MAX]


def _without_beginning_of(secret: str, text: str) -> str:
    """Mask the part of a secret with which a text ends that was cut before it came here."""
    for length in range(len(secret) - 1, SECRET_CHARS_MIN - 1, -1):
        if text.endswith(secret[:length]):
            return text[:-length] + MASK
    return text

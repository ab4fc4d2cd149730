"""What Google's errors say in a list of typed details, where others use headers and codes.

Path: ``dialects/faults.py`` -> this
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any


_SECONDS = re.compile(r"(\d+(?:\.\d*)?)s")


def asked_delay_s(error: Mapping[str, Any]) -> float | None:
    """Return the seconds that an error asks to wait, None if it does not say."""
    for detail in _details(error):
        delay = detail.get("retryDelay")
        if isinstance(delay, str) and (seconds := _SECONDS.fullmatch(delay)):
            return float(seconds[1])
    return None


def reasons_of(error: Mapping[str, Any]) -> list[Any]:
    """Return what may be machine codes of an error."""
    return [detail.get("reason") for detail in _details(error)]


def is_spent_for_the_day(error: Mapping[str, Any]) -> bool:
    """Say whether the quota that was exceeded is one that fills up once a day."""
    violations = [
        each
        for detail in _details(error)
        if isinstance(found := detail.get("violations"), list)
        for each in found
    ]
    return any(
        isinstance(each, dict) and "PerDay" in str(each.get("quotaId")) for each in violations
    )


def _details(error: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    details = error.get("details")
    for detail in details if isinstance(details, list) else ():
        if isinstance(detail, dict):
            yield detail

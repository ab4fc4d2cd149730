"""Checks of what callers give to a method, where a wrong type would show itself too late.

Path: ``turn.py``, ``runtime.py`` -> this
"""

from __future__ import annotations

import math
from numbers import Real

from tidegate.errors import ConfigurationError


def seconds(name: str, value: object) -> float:
    """Return a number of seconds, from minus infinity to infinity.

    Args:
        name: what the caller calls it.
        value: whatever was given.

    Raises:
        ConfigurationError: it is no number.
    """
    if not isinstance(value, bool) and isinstance(value, Real) and not math.isnan(value):
        return float(value)
    raise ConfigurationError(f"{name} {value!r} is no number of seconds: give one such as 1.5")


def text(name: str, value: object) -> str:
    """Return a text.

    Args:
        name: what the caller calls it.
        value: whatever was given.

    Raises:
        ConfigurationError: it is none.
    """
    if isinstance(value, str):
        return value
    raise ConfigurationError(f"{name} {value!r} is no text: give a str, or leave it out")

"""Each setting's range, in words and as a check, and the environment variables that set it."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from tidegate.errors import ConfigurationError
from tidegate.protocol.budget import FirstEventRules
from tidegate.protocol.wires import WIRES


WHOLE_MAX = 1 << 53
"""The largest whole number that every part of a runtime can tell another; as good as endless."""


EVENT_BYTES_MAX = 1 << 26
"""What an event becomes must go through the pipe of a worker in one piece, structure and all."""


class Form(NamedTuple):
    """What a setting must look like.

    Attributes:
        wanted: in words, to follow "give".
        accepts: whether a value is of this form.
        parse: turns a variable's text into a value; raises ValueError.
    """

    wanted: str
    accepts: Callable[[Any], bool]
    parse: Callable[[str], Any]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _whole(low: int, high: int = WHOLE_MAX) -> Form:
    def fits(value: int) -> bool:
        return low <= value <= high

    return Form(
        f"a whole number of at least {low}, and at most {high}",
        lambda value: isinstance(value, int) and not isinstance(value, bool) and fits(value),
        int,
    )


def _seconds_from_zero() -> Form:
    return Form(
        "a number of seconds of at least 0",
        lambda value: _is_number(value) and 0 <= value < math.inf,
        float,
    )


def _seconds_over_zero(*, endless: bool = False) -> Form:
    return Form(
        "a number of seconds above 0" + (", inf for none" if endless else ""),
        lambda value: _is_number(value) and (0 < value < math.inf or (endless and value > 0)),
        float,
    )


def _is_backoff(value: Any) -> bool:
    return (
        isinstance(value, tuple)
        and len(value) > 0
        and all(_is_number(item) and 0 <= item < math.inf for item in value)
    )


_BACKOFF = Form(
    "seconds of at least 0, as a tuple such as (1, 2, 4) or in a variable 1,2,4",
    _is_backoff,
    lambda text: tuple(float(item) for item in text.split(",")),
)
_PART = Form("a number from 0 to 1", lambda value: _is_number(value) and 0 <= value <= 1, float)
_AFTER_VISIBLE_TEXT = Form("'stop' or 'restart'", lambda value: value in ("stop", "restart"), str)

_WIRES = Form(
    f"a tuple of wires, which are {', '.join(WIRES)}",
    lambda value: isinstance(value, tuple) and all(wire in (*WIRES,) for wire in value),
    lambda text: tuple(text.split(",")),
)

FORMS: dict[str, Form] = {
    "retries": _whole(0),
    "backoff_s": _BACKOFF,
    "backoff_jitter": _PART,
    "retry_after_cap_s": _seconds_from_zero(),
    "connect_timeout_s": _seconds_over_zero(),
    "first_event_timeout_s": _seconds_over_zero(),
    "stale_after_s": _seconds_over_zero(),
    "alive_timeout_s": _seconds_over_zero(),
    "deadline_s": _seconds_over_zero(endless=True),
    "finish_grace_s": _seconds_from_zero(),
    "kill_grace_s": _seconds_from_zero(),
    "stale_giveup": _whole(0),
    "giveup_cooldown_s": _seconds_from_zero(),
    "after_visible_text": _AFTER_VISIBLE_TEXT,
    "window_bytes": _whole(1),
    "event_bytes_max": _whole(1, EVENT_BYTES_MAX),
}
"""The fields of a policy, in the order in which they are shown."""

SETTINGS_FORMS: dict[str, Form] = {
    "workers": _whole(1),
    "worker_restarts_max": _whole(0),
    "worker_restarts_period_s": _seconds_over_zero(),
    "preload": _WIRES,
}

PREFIX = "TIDEGATE_"
"""With which all our variables begin."""

_FIRST_EVENT = "TIDEGATE_CODEX_TTFB"
_FIRST_EVENT_FORMS = {
    "TIMEOUT_SECONDS": _seconds_from_zero(),
    "DISABLE_ABOVE_TOKENS": _whole(0),
    "STRICT": Form("0 or 1", lambda value: value in (0, 1), int),
    "MAX_SECONDS": _seconds_from_zero(),
}
"""By the tails of their names, the variables about the first event of the responses wire."""

_STRONGER = {
    "retries": "TIDEGATE_STREAM_RETRIES",
    "stale_after_s": "TIDEGATE_STREAM_STALE_TIMEOUT",
    "alive_timeout_s": "TIDEGATE_STREAM_READ_TIMEOUT",
    "stale_giveup": "TIDEGATE_STREAM_STALE_GIVEUP",
}
_LOCAL_STALE = "TIDEGATE_LOCAL_STREAM_STALE_TIMEOUT"
_PLAIN_STALE = "TIDEGATE_API_CALL_STALE_TIMEOUT"


def names_of(field: str) -> tuple[str, ...]:
    """Return the environment variables that set a field everywhere, the strongest first."""
    own = f"{PREFIX}{field.upper()}"
    return (_STRONGER[field], own) if field in _STRONGER else (own,)


PLAIN_STALE_VARIABLES = (_PLAIN_STALE, names_of("stale_after_s")[-1])
"""Those of ``stale_after_s`` for an attempt that does not stream."""

VARIABLES: dict[str, Form] = {
    **{variable: form for field, form in FORMS.items() for variable in names_of(field)},
    **dict.fromkeys((_LOCAL_STALE, _PLAIN_STALE), FORMS["stale_after_s"]),
    **{f"{_FIRST_EVENT}_{tail}": form for tail, form in _FIRST_EVENT_FORMS.items()},
}
"""Every variable that the start of a turn may read, and what it must look like."""


def said_in(environ: Mapping[str, str]) -> dict[str, str]:
    """Return our variables that are set: asked for one by one, those that are not cost most."""
    return {name: environ[name] for name in environ if name.startswith(PREFIX)}


@functools.cache
def variables(name: str, *, wire: str, local: bool) -> tuple[str, ...]:
    """Return the environment variables that may set the field ``name``, the strongest first."""
    usual = names_of(name)
    if name == "stale_after_s" and local and wire != "converse":
        return *usual, _LOCAL_STALE
    return usual


def first_event_rules(environ: Mapping[str, str], *, wire: str) -> FirstEventRules:
    """Return the rules about the first event of ``responses``, as the environment changes them.

    Raises:
        ConfigurationError: a variable has a value that cannot be used.
    """
    rules = FirstEventRules()
    if wire != "responses":
        return rules
    found = {
        tail: read(environ, f"{_FIRST_EVENT}_{tail}", form)
        for tail, form in _FIRST_EVENT_FORMS.items()
    }
    if (seconds := found["TIMEOUT_SECONDS"]) is not None:
        rules = rules._replace(seconds=seconds, origin=f"{_FIRST_EVENT}_TIMEOUT_SECONDS")
    if (context := found["DISABLE_ABOVE_TOKENS"]) is not None:
        rules = rules._replace(long_context=context)
    if found["STRICT"]:
        rules = rules._replace(long_context=0)
    return rules._replace(ceiling_s=found["MAX_SECONDS"] or 0.0)


def read(environ: Mapping[str, str], variable: str, form: Form) -> Any:
    """Return the value that ``variable`` gives, None if it is unset or blank.

    Raises:
        ConfigurationError: the text is not of that form.
    """
    text = environ.get(variable, "").strip()
    if not text:
        return None
    try:
        value = form.parse(text)
    except ValueError:
        value = None
    if value is None or not form.accepts(value):
        raise ConfigurationError(f"{variable}={text!r}: give {form.wanted}, or unset it")
    return value


def shown(value: Any) -> str:
    """Write a value as it stands in a table."""
    if value is None:
        return "none"
    if isinstance(value, tuple):
        return ", ".join(shown(item) for item in value)
    return f"{value:g}" if isinstance(value, float) else str(value)

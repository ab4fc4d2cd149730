"""What holds for a request once all who may say something were asked, and who said it.

Path: ``policy.py`` -> this -> ``knobs.py``, ``budget.py``
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from tidegate.protocol import budget, knobs
from tidegate.protocol.base import Record


if TYPE_CHECKING:
    from tidegate.protocol.policy import Policy
    from tidegate.protocol.requests import Request

AfterVisibleText: TypeAlias = Literal["stop", "restart"]

_RETRIES = {"chat": 2, "messages": 2, "responses": 1, "converse": 0, "custom": 0}
_FALLBACKS: dict[str, Any] = {
    "backoff_s": (1.0, 2.0, 4.0),
    "backoff_jitter": 0.1,
    "retry_after_cap_s": 60.0,
    "connect_timeout_s": 30.0,
    "deadline_s": None,
    "finish_grace_s": 2.0,
    "kill_grace_s": 0.25,
    "stale_giveup": 5,
    "giveup_cooldown_s": 60.0,
    "after_visible_text": "stop",
    "window_bytes": 256 << 10,
    "event_bytes_max": 8 << 20,
}
_GIVEN_MAX = 256
"""How many different settings of policies are known by heart."""


class Value(NamedTuple):
    """A value that holds, and where it comes from."""

    value: Any
    origin: str


class Resolved(Record, frozen=True, kw_only=True):
    """The fields of a policy with a value each; see there for what they mean.

    Attributes:
        deadline_s: None for none.
        plain_stale_after_s: how long an attempt without streaming may take; None for ever.
        plain_first_event_timeout_s: the same up to its first event.
        origins: the origin of each field, by its name.
    """

    retries: int
    backoff_s: tuple[float, ...]
    backoff_jitter: float
    retry_after_cap_s: float
    connect_timeout_s: float
    first_event_timeout_s: float
    stale_after_s: float
    alive_timeout_s: float
    deadline_s: float | None
    finish_grace_s: float
    kill_grace_s: float
    stale_giveup: int
    giveup_cooldown_s: float
    after_visible_text: AfterVisibleText
    window_bytes: int
    event_bytes_max: int
    plain_stale_after_s: float | None
    plain_first_event_timeout_s: float | None
    origins: tuple[tuple[str, str], ...] = ()

    def limits(self, *, stream: bool) -> Limits:
        """Return the limits of an attempt that streams, or of one that does not."""
        if stream:
            return Limits(self.first_event_timeout_s, self.stale_after_s, self.alive_timeout_s)
        # An answer without streaming shows nothing at all before it is there.
        plain_s = self.plain_stale_after_s
        return Limits(self.plain_first_event_timeout_s, plain_s, plain_s)


class Limits(NamedTuple):
    """How long each silence may last, in seconds; None for ever."""

    first_event_s: float | None
    progress_s: float | None
    alive_s: float | None


class Resolution:
    """Every value that holds for a request, by name, with its origin; prints as a table."""

    def __init__(self, values: Mapping[str, Value]) -> None:
        self._values = dict(values)

    def __getitem__(self, name: str) -> Value:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __str__(self) -> str:
        rows = [(name, knobs.shown(value), why) for name, (value, why) in self._values.items()]
        wide, wider = (max(len(row[column]) for row in rows) for column in (0, 1))
        return "\n".join(f"{name:{wide}}  {value:{wider}}  {why}" for name, value, why in rows)

    def values(self) -> Resolved:
        """Return the values without their origins, which are beside them in ``origins``."""
        origins = tuple((name, value.origin) for name, value in self._values.items())
        return Resolved(
            **{name: value.value for name, value in self._values.items()}, origins=origins
        )


class Given(NamedTuple):
    """What was said by somebody, before the built-in values are asked.

    Attributes:
        policies: the strongest first, each with its origin.
        said: the environment variables of ours that are set.
    """

    policies: tuple[tuple[Policy | None, str], ...]
    said: tuple[tuple[str, str], ...]
    wire: str
    local: bool

    def value(self, name: str) -> Value | None:
        """Return what the strongest who said something says of a field."""
        variables = knobs.variables(name, wire=self.wire, local=self.local)
        return self._in_policies(name) or self._in_variables(name, variables)

    def plain_stale(self) -> Value | None:
        """Return the same of ``stale_after_s``, for an attempt that does not stream."""
        variables = knobs.PLAIN_STALE_VARIABLES
        return self._in_policies("stale_after_s") or self._in_variables("stale_after_s", variables)

    def _in_policies(self, name: str) -> Value | None:
        for policy, origin in self.policies:
            if policy is not None and (value := getattr(policy, name)) is not None:
                return Value(value, origin)
        return None

    def _in_variables(self, name: str, variables: tuple[str, ...]) -> Value | None:
        if not self.said:
            return None
        environ = dict(self.said)
        for variable in variables:
            value = knobs.read(environ, variable, knobs.FORMS[name])
            if value is not None:
                return Value(value, variable)
        return None


@lru_cache(maxsize=_GIVEN_MAX)
def said_by(given: Given) -> dict[str, Value]:
    """Return what does not hang on the request; the same for nearly all turns of a program."""
    fallbacks = _FALLBACKS | {"retries": _RETRIES[given.wire]}
    values = {
        name: given.value(name) or Value(fallback, "built-in")
        for name, fallback in fallbacks.items()
    }
    deadline = values["deadline_s"]
    if deadline.value == math.inf:
        values["deadline_s"] = deadline._replace(value=None)
    return values


def limits_from(given: Given, request: Request) -> dict[str, Value]:
    """Return the limits of silence, which hang on the request and on one another."""
    facts: dict[str, Any] = {"wire": given.wire, "local": given.local}
    facts["context"] = request.context_tokens
    budgets = facts | {"model": request.model}
    stale = given.value("stale_after_s") or Value(*budget.stale_budget(**budgets))
    plain = given.plain_stale() or Value(*budget.plain_stale_budget(**budgets))
    as_budget = budget.Budget(stale.value, stale.origin)
    first = given.value("first_event_timeout_s")
    rules = knobs.first_event_rules(dict(given.said), wire=given.wire)
    return {
        "first_event_timeout_s": first
        or Value(*budget.first_event_budget(**facts, stale=as_budget, rules=rules)),
        "stale_after_s": stale,
        "alive_timeout_s": given.value("alive_timeout_s") or Value(*budget.alive_budget(as_budget)),
        "plain_stale_after_s": plain,
        # A first-event limit is meant for streams, unless the request asks for none.
        "plain_first_event_timeout_s": (None if request.stream else first) or plain,
    }

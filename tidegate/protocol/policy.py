"""How patient and stubborn a turn is: what may be set; ``resolution.py`` says what holds then."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from tidegate.errors import ConfigurationError
from tidegate.protocol import knobs
from tidegate.protocol.base import Record
from tidegate.protocol.resolution import (
    AfterVisibleText,
    Given,
    Resolution,
    limits_from,
    said_by,
)
from tidegate.protocol.wires import Wire
from tidegate.settings import environment


if TYPE_CHECKING:
    from tidegate.protocol.requests import Request


class Policy(Record, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a caller wants otherwise than it is; None leaves a field to the next source.

    The sources, the first that says something wins: this, the endpoint's policy, the settings, the
    environment, the built-in value.

    Attributes:
        retries: further attempts after a failed one, 0 or more.
        backoff_s: seconds before the first retry, the second and so on; the last one stays.
        backoff_jitter: the part of a back-off, 0 to 1, that chance may add to it.
        retry_after_cap_s: the longest wait, in seconds, that a provider may ask for.
        connect_timeout_s: for name look-up, connect and TLS together.
        first_event_timeout_s: from the request to the first event.
        stale_after_s: without progress; a number given is used exactly.
        alive_timeout_s: without a single byte.
        deadline_s: for the whole turn, from its start; ``math.inf`` for none.
        finish_grace_s: from the evidence to the end of the body.
        kill_grace_s: that a worker has to acknowledge a cancel.
        stale_giveup: stale kills in a row that open the breaker; 0 for never.
        giveup_cooldown_s: until the open breaker lets one turn through.
        after_visible_text: whether a failure after visible text was taken ends the turn (``stop``)
            or is retried like any other (``restart``).
        window_bytes: bytes of events that may wait for a reader.
        event_bytes_max: bytes of the largest event or JSON body that is taken, at most 64 MiB.

    Raises:
        ConfigurationError: a value of the wrong type or out of its range.
    """

    retries: int | None = None
    backoff_s: tuple[float, ...] | None = None
    backoff_jitter: float | None = None
    retry_after_cap_s: float | None = None
    connect_timeout_s: float | None = None
    first_event_timeout_s: float | None = None
    stale_after_s: float | None = None
    alive_timeout_s: float | None = None
    deadline_s: float | None = None
    finish_grace_s: float | None = None
    kill_grace_s: float | None = None
    stale_giveup: int | None = None
    giveup_cooldown_s: float | None = None
    after_visible_text: AfterVisibleText | None = None
    window_bytes: int | None = None
    event_bytes_max: int | None = None

    def __post_init__(self) -> None:
        for name, form in knobs.FORMS.items():
            value = getattr(self, name)
            if value is not None and not form.accepts(value):
                raise ConfigurationError(f"{name}={value!r}: give {form.wanted}, or leave it out")

    def resolved(
        self,
        request: Request,
        settings: Settings | None = None,
        *,
        environ: Mapping[str, str] | None = None,
    ) -> Resolution:
        """Return what holds for ``request``, each value with its origin.

        Args:
            request: the request that this policy goes with.
            settings: those of the runtime.
            environ: the environment, by default the one of the process.

        Raises:
            ConfigurationError: an environment variable has a value that cannot be used.
        """
        environ = environment() if environ is None else environ
        endpoint = request.endpoint.located(environ)
        given = Given(
            (
                (self, "Policy"),
                (endpoint.policy, "endpoint's policy"),
                (settings.policy if settings else None, "Settings"),
            ),
            tuple(knobs.said_in(environ).items()),
            wire=endpoint.wire,
            local=endpoint.is_local,
        )
        values = said_by(given) | limits_from(given, request)
        # In the order of the fields, the derived ones last.
        names = [*knobs.FORMS, *(name for name in values if name not in knobs.FORMS)]
        return Resolution({name: values[name] for name in names})


class Settings(Record, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What holds for a whole runtime.

    Attributes:
        policy: stands in for what a request and its endpoint leave out.
        workers: worker processes for the built-in wires, 1 or more; None for one per core.
        worker_restarts_max: restarts of workers, 0 or more, that are put up with in a period.
        worker_restarts_period_s: the length of that period in seconds.
        preload: the wires whose SDKs all workers have from the start.

    Raises:
        ConfigurationError: a value of the wrong type or out of its range.
    """

    policy: Policy = Policy()
    workers: int | None = None
    worker_restarts_max: int = 5
    worker_restarts_period_s: float = 30.0
    preload: tuple[Wire, ...] = ("chat",)

    def __post_init__(self) -> None:
        if not isinstance(self.policy, Policy):
            raise ConfigurationError(f"policy={self.policy!r}: give a tidegate.Policy")
        for name, form in knobs.SETTINGS_FORMS.items():
            value = getattr(self, name)
            if not form.accepts(value) and (name, value) != ("workers", None):
                raise ConfigurationError(f"{name}={value!r}: give {form.wanted}")

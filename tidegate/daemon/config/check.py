"""What the configuration is, value by value, with its meaning and its origin, as data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from tidegate.daemon.config.endpoints import hidden_by
from tidegate.daemon.config.keys import DAEMON_KEYS, ENDPOINT_KEYS, POLICY_KEYS, Key
from tidegate.daemon.config.load import Loaded
from tidegate.daemon.config.model import EndpointConfig
from tidegate.daemon.config.places import Place
from tidegate.daemon.config.references import resolve
from tidegate.daemon.config.schema import BUILT_IN, dotted
from tidegate.daemon.config.sources import policy_variables
from tidegate.daemon.config.troubles import troubles_of
from tidegate.protocol import addresses
from tidegate.protocol.knobs import shown as shown_plainly
from tidegate.protocol.policy import Policy
from tidegate.protocol.secrets import MissingKey
from tidegate.settings import environment


ALWAYS_SHOWN = ("wire", "models")
NOTHING = "-"
HIDDEN = "***"


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """A value that holds.

    Attributes:
        key: its dotted name.
        value: as text, and never a secret.
        origin: where it was given.
        meaning: in few words.
    """

    key: str
    value: str
    origin: str
    meaning: str


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """All that is to be said about a configuration.

    Attributes:
        path: of the file; None if there is none.
        rows: every value that holds; of endpoints and policies those that were given.
        notes: what will go wrong, or not as somebody wants it, though nothing is wrong yet.
    """

    path: str | None
    rows: tuple[Row, ...]
    notes: tuple[str, ...]


def explain(loaded: Loaded, environ: Mapping[str, str] | None = None) -> Report:
    """Return what the configuration is; it may look whether key files can be read.

    Args:
        loaded: the configuration.
        environ: the environment, by default the one of the process.
    """
    environ = environment() if environ is None else environ
    return Report(
        path=None if loaded.path is None else str(loaded.path),
        rows=tuple(_rows(loaded, environ)),
        notes=(*_notes(loaded, environ), *loaded.notices),
    )


def shown(name: str, key: Key, value: Any) -> str:
    """Write a value as text; what may be a secret is hidden, except for references."""
    if value is None or value in ((), {}):
        return NOTHING
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Mapping):
        return ", ".join(f"{each}={HIDDEN}" for each in value)
    if name == "proxy":
        return addresses.shown(value)
    assert not key.hidden or name in ("keys", "api_key"), "only references may be shown"
    # A float that is whole is a number of seconds that somebody wrote as such.
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return shown_plainly(value)


def _rows(loaded: Loaded, environ: Mapping[str, str]) -> Iterator[Row]:
    config = loaded.config
    for name, key in DAEMON_KEYS.items():
        yield _row(loaded, (name,), key, getattr(config, name))
    for name, endpoint in config.endpoints.items():
        yield from _endpoint_rows(loaded, ("endpoints", name), endpoint)
    yield from _policy_rows(loaded, ("policy",), config.policy)
    yield from _variable_rows(config.policy, environ)


def _endpoint_rows(loaded: Loaded, table: Place, endpoint: EndpointConfig) -> Iterator[Row]:
    shown_too = (*ALWAYS_SHOWN, *(("local_model",) if endpoint.wire == "local" else ()))
    for name, key in ENDPOINT_KEYS.items():
        if name in shown_too or dotted((*table, name)) in loaded.origins:
            yield _row(loaded, (*table, name), key, getattr(endpoint, name))
    yield from _policy_rows(loaded, (*table, "policy"), endpoint.policy)


def _policy_rows(loaded: Loaded, table: Place, policy: Policy) -> Iterator[Row]:
    for name, key in POLICY_KEYS.items():
        if (value := getattr(policy, name)) is not None:
            yield _row(loaded, (*table, name), key, value)


def _row(loaded: Loaded, place: Place, key: Key, value: Any) -> Row:
    name = dotted(place)
    origin = loaded.origins.get(name, BUILT_IN)
    return Row(key=name, value=shown(place[-1], key, value), origin=origin, meaning=key.meaning)


def _variable_rows(policy: Policy, environ: Mapping[str, str]) -> Iterator[Row]:
    """Tell of the variables that stand in for a policy, each read at the start of a turn."""
    for field, variables in policy_variables(environ).items():
        if variables and getattr(policy, field) is None:
            strongest = variables[0]
            value, meaning = environ[strongest].strip(), POLICY_KEYS[field].meaning
            yield Row(key=dotted(("policy", field)), value=value, origin=strongest, meaning=meaning)


def _notes(loaded: Loaded, environ: Mapping[str, str]) -> Iterator[str]:
    config = loaded.config
    yield from _notes_of_keys(config.keys, environ)
    for name, endpoint in config.endpoints.items():
        where = dotted(("endpoints", name))
        yield from (f"{where}: {note}" for note in troubles_of(endpoint, environ))
        if hiding := hidden_by(config, name):
            yield (
                f"{where}: no model's name leads here, for all of its models go to "
                f"{' and '.join(hiding)}, further up in the file: move it up, or give models there"
            )
    yield from _overruled(config.policy, environ)


def _overruled(policy: Policy, environ: Mapping[str, str]) -> Iterator[str]:
    for field, variables in policy_variables(environ).items():
        if getattr(policy, field) is not None:
            for variable in variables:
                yield f"{variable} is set, but [policy] gives {field}, which is stronger"
        else:
            for variable in variables[1:]:
                yield f"{variable} is set, but so is {variables[0]}, which is stronger"


def _notes_of_keys(references: tuple[str, ...], environ: Mapping[str, str]) -> Iterator[str]:
    """Tell of keys that are not there, or not somebody's own."""
    known: dict[str, str] = {}
    for reference in references:
        try:
            key = resolve(reference, environ)
        except MissingKey as missing:
            yield f"keys: {missing}"
        else:
            if (other := known.setdefault(key, reference)) != reference:
                yield f"keys: {other} and {reference} are one key, whose users share all turns"

"""What each source says: a file, the environment and the command line, key by key.

All that is wrong is collected, so that whoever mends a file needs to be told once.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from tidegate.daemon.config.keys import DAEMON_KEYS, Key, read, refusal
from tidegate.daemon.config.model import check_name
from tidegate.daemon.config.places import Place
from tidegate.daemon.config.schema import dotted, is_table, keys_in, nearest, unknown
from tidegate.errors import ConfigurationError
from tidegate.protocol import knobs


PREFIX = "TIDEGATE_"

_ENDPOINTS = f"{PREFIX}ENDPOINTS__"
_POLICY = f"{PREFIX}POLICY__"
_FILE, _ENVIRONMENT, _POLICIES, _OPTIONS = range(4)
_UNSET = ", or unset it"


class Given(NamedTuple):
    """A value that was given.

    Attributes:
        origin: where, as it is shown.
        where: the same as the beginning of a complaint.
        order: the place of such a complaint among others.
    """

    value: Any
    origin: str
    where: str
    order: tuple[int, int]


class Found:
    """What was found so far; a later source takes the place of an earlier one."""

    def __init__(self) -> None:
        self.values: dict[Place, Given] = {}
        self.endpoints: dict[str, Given] = {}
        self.refused: set[Place] = set()
        self._problems: list[tuple[tuple[int, int], str]] = []

    @property
    def problems(self) -> tuple[str, ...]:
        """What is wrong, sorted by its place."""
        return tuple(text for _, text in sorted(self._problems, key=lambda each: each[0]))

    def complain(self, order: tuple[int, int], text: str) -> None:
        """Note what is wrong."""
        self._problems.append((order, text))

    def take(self, place: Place, key: Key, given: Given, label: str) -> None:
        """Note a value, or what is wrong with it.

        Args:
            place: where it belongs.
            key: what it must look like.
            given: the value as the source has it.
            label: the name of the value in a complaint.
        """
        try:
            value = read(label, key, given.value)
        except ConfigurationError as error:
            self.refuse(place, given, str(error))
        else:
            self.values[place] = given._replace(value=value)

    def refuse(self, place: Place, given: Given, text: str) -> None:
        """Note that no use can be made of what was given."""
        self.refused.add(place)
        inside = given.order[0] == _FILE
        self.complain(given.order, f"{given.where}{text}" if inside else text)


def from_file(
    found: Found, tables: Mapping[str, Any], lines: Mapping[Place, int], name: str
) -> None:
    """Take what a file says.

    Args:
        found: takes it.
        tables: what was read.
        lines: the line of each place.
        name: of the file, as it is shown.
    """

    def given(place: Place, value: Any) -> Given:
        line = lines.get(place, 0)
        table = f"[{dotted(place[:-1])}] " if len(place) > 1 else ""
        origin = f"{name}:{line}"
        return Given(value, origin, f"{origin}: {table}", (_FILE, line))

    def walk(table: Mapping[str, Any], above: Place) -> None:
        for key_name, value in table.items():
            place = (*above, key_name)
            here = given(place, value)
            if is_table(place):
                enter(place, here)
            elif (key := keys_in(above).get(key_name)) is not None:
                found.take(place, key, here, key_name)
            else:
                line = f"{here.origin}: {unknown(key_name, above)}"
                found.complain(here.order, line)

    def enter(place: Place, here: Given) -> None:
        if not isinstance(here.value, dict):
            table = "endpoints.main" if place == ("endpoints",) else dotted(place)
            found.refuse(place, here, f"{place[-1]} is a table: give it as [{table}]")
            return
        if place[0] == "endpoints" and len(place) == 2:
            try:
                check_name(place[1])
            except ConfigurationError as error:
                found.complain(here.order, f"{here.origin}: {error}")
                return
            table_where = f"{here.origin}: [{dotted(place)}] "
            found.endpoints[place[1]] = here._replace(where=table_where)
        walk(here.value, place)

    walk(tables, ())


def from_environment(found: Found, environ: Mapping[str, str]) -> None:
    """Take what the variables ``TIDEGATE_*`` say; blank ones say nothing.

    Those of policies are read at the start of each turn, and here only looked at.
    """
    places = {f"{PREFIX}{name.upper()}": (name,) for name in DAEMON_KEYS}
    nested = sorted(name for name in environ if name.startswith((_ENDPOINTS, _POLICY)))
    for number, variable in enumerate((*places, *nested)):
        text = environ.get(variable, "").strip()
        if not text:
            continue
        given = Given(text, variable, f"{variable}: ", (_ENVIRONMENT, number))
        place = places.get(variable) or _nested(found, variable, given)
        if place is not None:
            _take_text(found, place, given)
    for number, (variable, form) in enumerate(knobs.VARIABLES.items()):
        try:
            knobs.read(environ, variable, form)
        except ConfigurationError as error:  # no turn could start
            found.complain((_POLICIES, number), str(error))


def _take_text(found: Found, place: Place, given: Given) -> None:
    key = keys_in(place[:-1])[place[-1]]
    label = given.origin
    try:
        value = read(label, key, key.kind.parse(given.value))
    except ConfigurationError as error:
        found.refuse(place, given, f"{error}{_UNSET}")
    except ValueError:
        found.refuse(place, given, f"{refusal(label, key, given.value)}{_UNSET}")
    else:
        found.values[place] = given._replace(value=value)


def _nested(found: Found, variable: str, given: Given) -> Place | None:
    """Return the place that a variable with double underscores names."""
    if variable.startswith(_POLICY):
        field = variable.removeprefix(_POLICY).lower()
        usual = f": set {knobs.names_of(field)[0]}" if field in knobs.FORMS else ""
        found.complain(given.order, f"{variable} is no setting{usual}, or give it in [policy]")
        return None
    parts = variable.removeprefix(_ENDPOINTS).split("__")
    if len(parts) not in (2, 3) or not all(parts) or parts[1:-1] not in ([], ["POLICY"]):
        wanted = f"{_ENDPOINTS}NAME__KEY or {_ENDPOINTS}NAME__POLICY__KEY"
        found.complain(given.order, f"{variable} is no setting: name it {wanted}")
        return None
    name = _endpoint_named(found, parts[0])
    table = ("endpoints", name, *(part.lower() for part in parts[1:-1]))
    key_name = parts[-1].lower()
    if key_name not in keys_in(table):
        found.complain(given.order, f"{variable}: {unknown(key_name, table)}")
        return None
    found.endpoints.setdefault(name, given)
    return (*table, key_name)


def _endpoint_named(found: Found, name: str) -> str:
    """Return the endpoint that a variable means, in whose name all but letters became ``_``."""
    written = {re.sub(r"\W", "_", each).upper(): each for each in found.endpoints}
    return written.get(name.upper(), name.lower())


def from_options(found: Found, options: Mapping[str, Any]) -> None:
    """Take what the command line says, by the names of the keys; None says nothing."""
    for number, (name, value) in enumerate(options.items()):
        option = f"--{name.replace('_', '-')}"
        key = DAEMON_KEYS[name]
        if value is not None:
            given = Given(value, option, f"{option}: ", (_OPTIONS, number))
            found.take((name,), key, given, option)


def policy_variables(environ: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """Return the variables that are set for each field of a policy, the strongest first.

    All of them are weaker than any table.
    """
    return {
        field: tuple(each for each in knobs.names_of(field) if environ.get(each, "").strip())
        for field in knobs.FORMS
    }


_OTHERS = (
    "TIDEGATE_CACHE_DIR",
    "TIDEGATE_START_METHOD",
    "TIDEGATE_URL",  # these two are for the commands that talk to a daemon
    "TIDEGATE_KEY",
)
_VARIABLE_LIKENESS = 0.7


def misspelt(environ: Mapping[str, str], referred: frozenset[str]) -> tuple[str, ...]:
    """Say of which variables somebody may think that they are read.

    Only those that look like one of ours: there are systems that set ``TIDEGATE_PORT`` and the
    like wherever a service has our name.

    Args:
        environ: the environment.
        referred: the variables that hold keys.
    """
    known = {f"{PREFIX}{name.upper()}" for name in DAEMON_KEYS}
    known |= {*knobs.VARIABLES, *_OTHERS}
    tails = sorted(name.removeprefix(PREFIX) for name in known)
    tables = [each.removeprefix(PREFIX).removesuffix("__") for each in (_ENDPOINTS, _POLICY)]
    notes = []
    for variable in sorted(environ):
        ours = variable.startswith(PREFIX) and not variable.startswith((_ENDPOINTS, _POLICY))
        if not ours or variable in known or variable in referred:
            continue
        head, joint, rest = variable.removeprefix(PREFIX).partition("__")
        if near := nearest(head, tables if joint else tails, _VARIABLE_LIKENESS):
            meant = f"{PREFIX}{near}{joint}{rest}"
            notes.append(f"{variable} is set and nobody reads it: did you mean {meant}?")
    return tuple(notes)

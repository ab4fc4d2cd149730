"""Where each key may stand, how its place is written, and what somebody meant who got it wrong."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping

from tidegate.daemon.config.keys import DAEMON_KEYS, ENDPOINT_KEYS, POLICY_KEYS, Key
from tidegate.daemon.config.places import Place


BUILT_IN = "built-in"

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_LIKENESS = 0.6


def keys_in(table: Place) -> Mapping[str, Key]:
    """Return the keys that a table may hold."""
    match table:
        case ():
            return DAEMON_KEYS
        case ("policy",) | ("endpoints", _, "policy"):
            return POLICY_KEYS
        case ("endpoints", _):
            return ENDPOINT_KEYS
        case _:
            return {}


def is_table(place: Place) -> bool:
    """Whether a table stands there, and no value."""
    match place:
        case ("policy" | "endpoints",) | ("endpoints", _) | ("endpoints", _, "policy"):
            return True
        case _:
            return False


def dotted(place: Place) -> str:
    """Write a place as TOML does."""
    return ".".join(name if _BARE.fullmatch(name) else f'"{name}"' for name in place)


def unknown(name: str, table: Place) -> str:
    """Say that a table knows no such key, and what was meant; the value is not shown."""
    where = f"[{dotted(table)}]" if table else "the top of the file"
    return f"{where} has no key {name!r:.100}: {_advice(name, table)}"


def _advice(name: str, table: Place) -> str:
    here = (*keys_in(table), *(("policy",) if len(table) == 2 else ()))
    here = (*here, "policy", "endpoints") if not table else here
    meant = name.lower().replace("-", "_")
    for place, keys in _elsewhere(table):
        if meant in keys:
            return f"it belongs {place}"
    if near := nearest(meant, here):
        return f"did you mean {near!r}?"
    for place, keys in _elsewhere(table):
        if near := nearest(meant, keys):
            return f"did you mean {near!r}, which belongs {place}?"
    return f"it may have {', '.join(here)}"


def _elsewhere(table: Place) -> Iterable[tuple[str, Iterable[str]]]:
    """Name the other tables in which a key may have been meant to stand, the nearest first."""
    policy = (*table, "policy") if len(table) == 2 else ("policy",)
    if keys_in(table) is not POLICY_KEYS:
        yield f"in [{dotted(policy)}]", POLICY_KEYS
    if len(table) == 3:
        yield f"in [{dotted(table[:2])}]", ENDPOINT_KEYS
    if table:
        yield "at the top of the file, above the first [table]", DAEMON_KEYS
    if len(table) < 2:
        yield "in a table such as [endpoints.main]", ENDPOINT_KEYS


def nearest(name: str, names: Iterable[str], likeness: float = _LIKENESS) -> str | None:
    """Return the one of ``names`` that is most like ``name``, if one is."""
    found = difflib.get_close_matches(name, [*names], n=1, cutoff=likeness)
    return found[0] if found else None

"""What changes when the configuration is loaded again, and what has to wait for a restart."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

from tidegate.daemon.config.keys import DAEMON_KEYS
from tidegate.daemon.config.model import DaemonConfig
from tidegate.daemon.config.schema import dotted
from tidegate.protocol.policy import Policy


class Changes(NamedTuple):
    """The dotted names of what differs, in the order of the keys.

    Attributes:
        applied: holds from now on, for what starts from now on.
        needs_restart: stays as it was until the daemon is started again.
    """

    applied: tuple[str, ...]
    needs_restart: tuple[str, ...]


def changes(old: DaemonConfig, new: DaemonConfig) -> Changes:
    """Return what differs between the configuration that holds and one that was loaded."""
    differing = [name for name in DAEMON_KEYS if getattr(old, name) != getattr(new, name)]
    live = [name for name in differing if DAEMON_KEYS[name].live]
    return Changes(
        (*live, *_endpoints(old, new), *_policy(("policy",), old.policy, new.policy)),
        tuple(name for name in differing if name not in live),
    )


def reloaded(old: DaemonConfig, new: DaemonConfig) -> tuple[DaemonConfig, Changes]:
    """Return the configuration that holds from now on, and what that changes.

    It is ``new`` with what needs a restart as it was, so that a daemon that goes on listening where
    others can reach it does not lose its keys.

    Args:
        old: what holds.
        new: what was loaded.

    Raises:
        ConfigurationError: the two do not go together; the old one goes on to hold.
    """
    kept = {name: getattr(old, name) for name, key in DAEMON_KEYS.items() if not key.live}
    return msgspec.structs.replace(new, **kept), changes(old, new)


def _endpoints(old: DaemonConfig, new: DaemonConfig) -> Iterator[str]:
    for name in dict.fromkeys((*old.endpoints, *new.endpoints)):
        table = ("endpoints", name)
        before, after = old.endpoints.get(name), new.endpoints.get(name)
        if before is None or after is None:
            yield dotted(table)
            continue
        for field in before.__struct_fields__:
            if field == "policy":
                yield from _policy((*table, "policy"), before.policy, after.policy)
            elif getattr(before, field) != getattr(after, field):
                yield dotted((*table, field))
    stayed = [name for name in old.endpoints if name in new.endpoints]
    if stayed != [name for name in new.endpoints if name in old.endpoints]:
        yield "endpoints"  # the first match may be another one


def _policy(table: tuple[str, ...], old: Policy, new: Policy) -> Iterator[str]:
    for field in old.__struct_fields__:
        before: Any = getattr(old, field)
        if before != getattr(new, field):
            yield dotted((*table, field))

"""Which endpoint takes a request: by its wire and its model, or by its name."""

from __future__ import annotations

from fnmatch import fnmatchcase

from tidegate.daemon.config.model import DaemonConfig
from tidegate.errors import TidegateError
from tidegate.protocol.endpoints import Endpoint
from tidegate.protocol.wires import Wire


SHOWN_CHARACTERS_MAX = 100


class NoEndpoint(TidegateError, LookupError):
    """No endpoint of the configuration takes this; the text lists those there are."""


def choose(config: DaemonConfig, wire: Wire, model: str) -> tuple[str, Endpoint]:
    """Return the first endpoint of the wire with a pattern that the model's name matches.

    Args:
        config: has the endpoints.
        wire: of the request.
        model: as the request names it, upper and lower case told apart; empty if it does not.

    Returns:
        The endpoint's name and the endpoint, with its policy over the one for all endpoints.

    Raises:
        NoEndpoint: there is none.
    """
    for name, each in config.endpoints.items():
        if wire in each.wires and any(fnmatchcase(model, given) for given in each.models):
            return name, config.made[name, wire]
    asked = f"the model {_short(model)}" if model else "a request without a model"
    raise NoEndpoint(f"no endpoint of the wire {wire!r} takes {asked}: {_listed(config)}")


def by_name(config: DaemonConfig, name: str, wire: Wire | None = None) -> Endpoint:
    """Return the endpoint of that name, whatever the model, as ``choose`` does.

    Args:
        config: has the endpoints.
        name: as the configuration has it.
        wire: of the request; None for the endpoint's own, which is chat for a local model.

    Raises:
        NoEndpoint: there is none, or it does not speak that wire.
    """
    if (found := config.endpoints.get(name)) is None:
        raise NoEndpoint(f"there is no endpoint {_short(name)}: {_listed(config)}")
    if wire is not None and wire not in found.wires:
        raise NoEndpoint(
            f"the endpoint {name!r} does not speak the wire {wire!r}: {_listed(config)}"
        )
    return config.made[name, wire or found.wires[0]]


def hidden_by(config: DaemonConfig, name: str) -> list[str]:
    """Return the endpoints before this one that take each model it names, on each of its wires.

    Args:
        config: has the endpoints.
        name: of one of them.

    Returns:
        Their names in the file's order; none if a model's name can choose this endpoint, or if it
        is meant to be reached by its own name alone.
    """
    found = config.endpoints[name]
    before = list(config.endpoints.items())[: list(config.endpoints).index(name)]
    hiding: set[str] = set()
    for wire in found.wires:
        for pattern in found.models:
            by = next(
                (
                    other
                    for other, each in before
                    if wire in each.wires and any(_covers(wide, pattern) for wide in each.models)
                ),
                None,
            )
            if by is None:
                return []
            hiding.add(by)
    return [other for other, _ in before if other in hiding]


def _covers(wide: str, pattern: str) -> bool:
    """Say whether ``wide`` surely matches all that ``pattern`` does; in doubt it does not."""
    if wide in ("*", pattern):
        return True
    if "[" in pattern or (("?" in wide or "[" in wide) and ("*" in pattern or "?" in pattern)):
        return False
    # A wildcard in the pattern can only be met by a star, which meets whatever it stands for.
    return fnmatchcase(pattern, wide)


def _listed(config: DaemonConfig) -> str:
    each = (
        f"{name} ({', '.join(found.wires)}: {', '.join(found.models) or 'by name alone'})"
        for name, found in config.endpoints.items()
    )
    return f"there are {'; '.join(each)}"


def _short(text: str) -> str:
    return (
        repr(text) if len(text) <= SHOWN_CHARACTERS_MAX else f"{text[:SHOWN_CHARACTERS_MAX]!r}..."
    )

"""From a file, the environment and the command line to a configuration that is whole."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from tidegate.daemon.config.aws import check_region
from tidegate.daemon.config.files import content_of
from tidegate.daemon.config.keys import DAEMON_KEYS, WIRE_NAMES
from tidegate.daemon.config.model import DaemonConfig, EndpointConfig, check_reach
from tidegate.daemon.config.places import Place, lines_of
from tidegate.daemon.config.references import variable_of
from tidegate.daemon.config.schema import BUILT_IN, dotted
from tidegate.daemon.config.sources import (
    Found,
    Given,
    from_environment,
    from_file,
    from_options,
    misspelt,
)
from tidegate.errors import ConfigurationError
from tidegate.protocol.policy import Policy
from tidegate.settings import environment


FILE_NAME = "tidegate.toml"
FILE_BYTES_MAX = 1 << 20

_FIRST_NAME = re.compile(r"\w+")


class InvalidConfig(ConfigurationError):
    """The configuration cannot be used; the text has one line for each thing that is wrong.

    Attributes:
        problems: these lines, sorted by their place.
    """

    def __init__(self, problems: tuple[str, ...]) -> None:
        self.problems = problems
        lines = "\n  ".join(problems)
        many = f"{len(problems)} errors in the configuration:\n  {lines}"
        super().__init__(many if len(problems) > 1 else lines)

    def __reduce__(self) -> tuple[Any, ...]:
        return InvalidConfig, (self.problems,)


class Loaded(NamedTuple):
    """A configuration and where it came from.

    Attributes:
        config: the whole of it.
        origins: by the dotted name of a key, where its value was given: a line of the file, a
            variable, an option; ``built-in`` for a default.
        path: the file; None if there was none.
        notices: what is no error, and still not what somebody wanted.
    """

    config: DaemonConfig
    origins: Mapping[str, str]
    path: Path | None
    notices: tuple[str, ...]


def load(
    path: str | Path | None = None,
    *,
    environ: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    overrides: Mapping[str, Any] | None = None,
    user_folder: Path | None = None,
) -> Loaded:
    """Load the configuration.

    Args:
        path: the file; None for ``tidegate.toml`` in ``cwd``, then in the user's folder, then
            none at all.
        environ: the environment, by default the one of the process.
        cwd: by default the current folder.
        overrides: values from the command line by the names of their keys; None for what was not
            given.
        user_folder: by default that of the platform.

    Raises:
        InvalidConfig: the file cannot be read, or something in any source cannot be used; the
            text has all of it, sorted by its place.
    """
    environ = environment() if environ is None else environ
    found = Found()
    file, shown = _found(path, cwd, user_folder)
    if file is not None:
        text, tables = _read(file, shown)
        from_file(found, tables, lines_of(text), shown)
    from_environment(found, environ)
    from_options(found, overrides or {})
    config = _config(found, environ)
    if config is None:
        raise InvalidConfig(found.problems)
    return Loaded(config, _origins(found, config), file, misspelt(environ, referred(config)))


def referred(config: DaemonConfig) -> frozenset[str]:
    """Return the names of the variables that hold keys."""
    keys = [*config.keys]
    for endpoint in config.endpoints.values():
        keys += endpoint.references
    return frozenset(name for key in keys if (name := variable_of(key)) is not None)


def _found(
    path: str | Path | None, cwd: Path | None, user_folder: Path | None
) -> tuple[Path | None, str]:
    try:
        return _find(path, Path.cwd() if cwd is None else cwd, user_folder)
    except ConfigurationError:
        raise  # without the extra it is not the file that is wrong
    except (OSError, RuntimeError, ValueError) as error:  # no folder, no right to it, no such user
        raise _unreadable(str(path or FILE_NAME), error) from error


def _unreadable(shown: str, error: Exception) -> InvalidConfig:
    reason = getattr(error, "strerror", None) or error
    return InvalidConfig((f"{shown}: cannot be read ({reason})",))


def _find(path: str | Path | None, cwd: Path, user_folder: Path | None) -> tuple[Path | None, str]:
    """Return the file, and how it is shown."""
    if path is not None:
        return cwd / Path(path).expanduser(), str(path)
    if (cwd / FILE_NAME).exists():
        return cwd / FILE_NAME, FILE_NAME
    file = (_user_folder() if user_folder is None else user_folder) / FILE_NAME
    return (file, str(file)) if file.exists() else (None, "")


def _user_folder() -> Path:
    try:
        import platformdirs  # noqa: PLC0415 - it is in the extra
    except ImportError as error:
        raise ConfigurationError(
            "the daemon needs platformdirs, which is not installed: run "
            "`pip install 'tidegate[daemon]'`"
        ) from error
    return platformdirs.user_config_path("tidegate", appauthor=False)


def _read(file: Path, shown: str) -> tuple[str, dict[str, Any]]:
    try:
        content = content_of(file, FILE_BYTES_MAX)
    except (OSError, ValueError) as error:
        raise _unreadable(shown, error) from error
    try:
        text = content.decode("utf-8-sig")
        return text, tomllib.loads(text)
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise InvalidConfig((f"{shown}:{line}: is not UTF-8",)) from error
    except (ValueError, RecursionError) as error:
        raise InvalidConfig((f"{shown}: is no TOML: {error}",)) from error


def _config(found: Found, environ: Mapping[str, str]) -> DaemonConfig | None:
    """Return the whole; None if something is wrong with a part."""
    endpoints = {
        name: endpoint
        for name in found.endpoints
        if (endpoint := _endpoint(found, name, environ)) is not None
    }
    own: dict[str, Any] = {
        place[0]: given.value for place, given in found.values.items() if len(place) == 1
    }
    if "listen" in own and ("keys",) not in found.refused:
        try:
            check_reach(own["listen"], own.get("keys", ()))
        except ConfigurationError as error:
            _complain(found, found.values[("listen",)], error)
    if found.problems:
        return None
    if endpoints:
        own["endpoints"] = endpoints
    return DaemonConfig(**own, policy=_policy(found, ("policy",)))


def _endpoint(found: Found, name: str, environ: Mapping[str, str]) -> EndpointConfig | None:
    table = ("endpoints", name)
    if any(place[:2] == table for place in found.refused):
        return None  # what else is wrong with it cannot be said yet
    own = {place[-1]: given for place, given in _inside(found, table)}
    if "wire" not in own:
        wanted = f"wire is missing: give one of {', '.join(WIRE_NAMES)}"
        _complain(found, found.endpoints[name], wanted)
        return None
    values = {key: given.value for key, given in own.items()}
    try:
        endpoint = EndpointConfig(**values, policy=_policy(found, (*table, "policy")))
        if endpoint.wire == "converse":
            check_region(endpoint.region, endpoint.profile, environ)
    except ConfigurationError as error:
        named = _FIRST_NAME.match(str(error))
        at = own.get(named[0]) if named else None
        _complain(found, at or found.endpoints[name], error)
        return None
    return endpoint


def _policy(found: Found, table: Place) -> Policy:
    return Policy(**{place[-1]: given.value for place, given in _inside(found, table)})


def _inside(found: Found, table: Place) -> Iterator[tuple[Place, Given]]:
    for place, given in found.values.items():
        if place[:-1] == table:
            yield place, given


def _complain(found: Found, given: Given, what: object) -> None:
    found.complain(given.order, f"{given.where}{what}")


def _origins(found: Found, config: DaemonConfig) -> dict[str, str]:
    origins = dict.fromkeys(DAEMON_KEYS, BUILT_IN)
    for name in config.endpoints:
        for key in ("wire", "models"):
            origins[dotted(("endpoints", name, key))] = BUILT_IN
    return origins | {dotted(place): given.origin for place, given in found.values.items()}

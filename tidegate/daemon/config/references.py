"""Secrets by reference, ``env:NAME`` and ``file:PATH``: read when needed and never shown."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tidegate.daemon.config.files import content_of
from tidegate.errors import ConfigurationError
from tidegate.protocol.secrets import MissingKey, Secret, holds_reference, names_variable
from tidegate.settings import environment


FILE_BYTES_MAX = 1 << 16

_FILE = "file:"
_VARIABLE = "env:"
_FILE_REFERENCE = re.compile(r"file:[^\x00-\x1f]+")
_LOOK_ALIKE = re.compile(
    r"\s*(?:env\s*:\s*[\w.-]*|file\s*:\s*[^\x00-\x1f,;]*|\$\w+|\$\{[^{}]*\}|\{\{[^{}]*\}\})\s*",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class KeyFile:
    """A file that holds a key; calling it reads the key, each time anew.

    Args:
        path: from the current folder on, or from the user's with ``~``.
    """

    path: str

    def __call__(self) -> str:
        """Return the key, without white space around it.

        Raises:
            MissingKey: there is no such file, it cannot be read at once, or it holds no key.
        """
        try:
            content = content_of(Path(self.path).expanduser(), FILE_BYTES_MAX)
        except (OSError, RuntimeError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise MissingKey(
                f"the key file {self.path!r} cannot be read ({reason}): put the key into it"
            ) from error
        key = content.decode(errors="replace").strip()
        if not key:
            raise MissingKey(f"the key file {self.path!r} is empty: put the key into it")
        if not key.isascii() or not key.isprintable():
            raise MissingKey(
                f"the key file {self.path!r} has more in it than a key: put the key into it as one "
                "line of ASCII"
            )
        if holds_reference(key):
            raise MissingKey(
                f"the key file {self.path!r} holds a reference and no key: put the key into it"
            )
        return key


def is_reference(text: str) -> bool:
    """Whether a text says where a secret is; any other is itself what is meant."""
    return names_variable(text) or _FILE_REFERENCE.fullmatch(text) is not None


def looks_like_reference(text: str) -> bool:
    """Whether somebody may have meant a reference, though it is written as none."""
    return not is_reference(text) and _LOOK_ALIKE.fullmatch(text) is not None


def header_given(value: str) -> str | Secret:
    """Return what an endpoint takes for the value of a header, which may be a reference."""
    return key_given(value) if is_reference(value) else value


def key_given(reference: str) -> str | Secret:
    """Return what an endpoint takes for a reference; it is read at each start of a turn."""
    return Secret(KeyFile(_path(reference))) if _is_file(reference) else reference


def resolve(reference: str, environ: Mapping[str, str]) -> str:
    """Return the key in clear text.

    Raises:
        MissingKey: the variable is not set, the file is not there, or what is there is no key.
    """
    given = key_given(reference)
    return (given if isinstance(given, Secret) else Secret(given)).reveal(environ)


def resolve_keys(
    references: tuple[str, ...], environ: Mapping[str, str] | None = None
) -> tuple[Secret, ...]:
    """Return the keys of those who may call, in the order of the references.

    Args:
        references: ``keys`` of the configuration.
        environ: the environment, by default the one of the process.

    Raises:
        ConfigurationError: one of them cannot be had; the text names every such reference.
    """
    environ = environment() if environ is None else environ
    keys: list[Secret] = []
    missing: list[str] = []
    for reference in references:
        try:
            keys.append(Secret(resolve(reference, environ)))
        except MissingKey as error:
            missing.append(str(error))
    if missing:
        raise ConfigurationError(f"keys: {'; '.join(missing)}")
    return tuple(keys)


def variable_of(reference: str) -> str | None:
    """Return the name of the variable that a reference names; None if it names a file."""
    return None if _is_file(reference) else reference.removeprefix(_VARIABLE)


def _is_file(reference: str) -> bool:
    return reference.startswith(_FILE)


def _path(reference: str) -> str:
    return reference.removeprefix(_FILE)

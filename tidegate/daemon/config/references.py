"""Secrets by reference, ``env:NAME`` and ``file:PATH``: read when needed and never shown."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tidegate.errors import ConfigurationError
from tidegate.protocol.secrets import MissingKey, Secret, names_variable
from tidegate.settings import environment


FILE_BYTES_MAX = 1 << 16

_FILE = "file:"
_VARIABLE = "env:"
_FILE_REFERENCE = re.compile(r"file:[^\x00-\x1f]+")


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
            MissingKey: there is no such file, it cannot be read, or it holds no key.
        """
        try:
            with Path(self.path).expanduser().open("rb") as file:
                content = file.read(FILE_BYTES_MAX)
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
        return key


def is_reference(text: str) -> bool:
    """Whether a text says where a secret is; any other is itself what is meant."""
    return names_variable(text) or _FILE_REFERENCE.fullmatch(text) is not None


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
    source = KeyFile(_path(reference)) if _is_file(reference) else reference
    key = Secret(source).reveal(environ)
    if key.startswith((_FILE, _VARIABLE)):
        raise MissingKey(f"{reference} holds a reference and no key: put the key there")
    return key


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

"""Keys that do not show themselves: not printed, not encoded, not pickled."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Self

from tidegate.errors import ConfigurationError


_VARIABLE_REFERENCE = re.compile(r"env:[A-Za-z_][A-Za-z0-9_]*")
_FILE_REFERENCE = re.compile(r"file:.+")
_SECRET_NAME = re.compile(
    r"(?:^|[-_.])(?:auth\w*|bearer|\w*(?:api|access|account|subscription)[-_]?key|key|\w*token|"
    r"\w*secrets?|\w*cookie|sig|signature|credentials?|passw\w*)(?:$|[-_.])",
    re.IGNORECASE,
)
_REFERENCE = "env:"
_WAY_OUT = "give it as 'env:NAME' instead, which is read from the environment at each start"


class MissingKey(Exception):
    """No key could be found where one is needed; the text says what to do."""


@dataclasses.dataclass(frozen=True, init=False, repr=False, eq=False)
class Secret:
    """A key, or with ``env:NAME`` the name of the variable that holds it, or who knows it.

    Two are equal if they were made from the same text or function. A key given as text or by a
    function can be neither encoded nor pickled; a reference can.

    Args:
        source: the key, ``env:NAME``, or a function without arguments that returns the key; it is
            called at each start, by the thread that starts, and may raise ``MissingKey``.

    Raises:
        ConfigurationError: the text is empty or could not stand in a header.
    """

    __slots__ = ("_source",)
    _source: ClassVar[Any]  # a slot: only so that it is no field

    def _encoded(self) -> str:
        if not self.is_reference:
            raise ConfigurationError(
                f"a key given as text or by a function cannot be encoded or pickled: {_WAY_OUT}"
            )
        return str(self._source)

    # An encoder takes this for a data class and reads its one field, which refuses.
    encoded: str = property(_encoded)  # type: ignore[assignment]

    def __init__(self, source: Any) -> None:
        if not isinstance(source, str):
            if callable(source):
                object.__setattr__(self, "_source", source)
                return
            kind = type(source).__name__
            raise ConfigurationError(f"a key is text, 'env:NAME' or a function, not {kind}")
        if not source or source == _REFERENCE:
            raise ConfigurationError(f"an empty key: leave it out, or {_WAY_OUT}")
        if (trouble := _trouble_with(source)) is not None:
            raise ConfigurationError(f"the key has {trouble}: give it without")
        object.__setattr__(self, "_source", source)

    @property
    def is_reference(self) -> bool:
        """Whether this only names the variable."""
        return isinstance(self._source, str) and self._source.startswith(_REFERENCE)

    def reveal(self, environ: Mapping[str, str]) -> str:
        """Return the key in clear text.

        Raises:
            MissingKey: the variable is not set, empty, holds a reference once more or what could
                not stand in a header, or the function failed or returned nothing of use.
        """
        if callable(self._source):
            return _asked(self._source)
        if not self.is_reference:
            return str(self._source)
        name = self._source.removeprefix(_REFERENCE)
        key = environ.get(name, "").strip()
        if not key:
            raise MissingKey(f"the environment variable {name} is not set: set it to the key")
        if (trouble := _trouble_with(key)) is not None:
            raise MissingKey(f"the environment variable {name} has {trouble}: set it to the key")
        if holds_reference(key):
            raise MissingKey(
                f"the environment variable {name} holds a reference and no key: set it to the key"
            )
        return key

    def __repr__(self) -> str:
        return f"Secret({self._source!r})" if self.is_reference else "Secret('***')"

    def __str__(self) -> str:
        return str(self._source) if self.is_reference else "***"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and self._source == other._source

    def __hash__(self) -> int:
        return hash((Secret, self._source))

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: Any) -> Self:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return Secret, (self._encoded(),)


def names_variable(text: str) -> bool:
    """Whether a text is wholly an ``env:NAME``, where it may as well be anything else."""
    return _VARIABLE_REFERENCE.fullmatch(text) is not None


def holds_reference(key: str) -> bool:
    """Whether what was found in the place of a key says again where one is."""
    return names_variable(key) or _FILE_REFERENCE.fullmatch(key) is not None


def is_secret_name(name: str) -> bool:
    """Whether a header or a parameter is called like a secret, such as ``x-api-key``."""
    return _SECRET_NAME.search(name) is not None


def _asked(provider: Callable[[], str]) -> str:
    name = getattr(provider, "__qualname__", type(provider).__name__)
    try:
        key = provider()
    except MissingKey:
        raise  # it says all there is to say
    except Exception as error:
        raise MissingKey(f"{name}() gave no key: {type(error).__name__}: {error}") from error
    if not isinstance(key, str) or not key:
        raise MissingKey(f"{name}() gave a {type(key).__name__} and no key: return it as text")
    if (trouble := _trouble_with(key)) is not None:
        raise MissingKey(f"{name}() gave a key with {trouble}")
    return key


def _trouble_with(text: str) -> str | None:
    """Say what keeps ``text`` out of a header's value, without showing it."""
    if any(ord(character) < 32 or ord(character) == 127 for character in text):
        return "a control character, such as a line break"
    if not text.isascii():
        return "a character that is not ASCII"
    return None

"""Which line of a TOML file says what; the reader of the standard library does not tell."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias


Place: TypeAlias = tuple[str, ...]
"""The names of the tables and of the key, from the top."""


def lines_of(text: str) -> dict[Place, int]:
    """Return the line, from 1, in which each key and table is first named.

    Each statement is read by itself below the header of its table, so that what is a statement is
    decided by the one reader.

    Args:
        text: TOML that can be read.
    """
    lines: dict[Place, int] = {}
    header = ""
    statement: list[str] = []
    begun = 1
    for number, line in enumerate(text.replace("\r\n", "\n").split("\n"), 1):
        if not statement:
            begun = number
        statement.append(line)
        whole = "\n".join(statement)
        is_header = whole.lstrip(" \t").startswith("[")
        try:
            table = tomllib.loads(whole if is_header else f"{header}\n{whole}")
        except tomllib.TOMLDecodeError:
            continue  # it goes on in the next line
        header = whole if is_header else header
        statement = []
        for place in _places(table, ()):
            lines.setdefault(place, begun)
    return lines


def _places(table: Mapping[str, Any], above: Place) -> Iterator[Place]:
    for name, value in table.items():
        yield (*above, name)
        if isinstance(value, dict):
            yield from _places(value, (*above, name))

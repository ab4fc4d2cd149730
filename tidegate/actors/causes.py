"""Exceptions with their causes, and what may be said of them in a log."""

from __future__ import annotations

from collections.abc import Iterator
from traceback import format_tb


def chain_of(error: BaseException) -> Iterator[BaseException]:
    """Yield an exception and its causes, as a traceback would show them."""
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        yield current
        current = current.__cause__ or (
            None if current.__suppress_context__ else current.__context__
        )


def places_of(error: BaseException) -> str:
    """Return where an exception and its causes were raised, the first of them first.

    Without their words, which may be a prompt's or an answer's.
    """
    chain = reversed(tuple(chain_of(error)))
    return "\n".join(
        f"{type(each).__name__} at\n{''.join(format_tb(each.__traceback__))}".rstrip()
        for each in chain
    )

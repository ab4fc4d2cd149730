"""Exceptions with their causes, and what may be said of them in a log.

Where they were raised, but none of their words: these may be a prompt's or an answer's, and of a
defect they often are the message that could not be handled.
"""

from __future__ import annotations

import logging
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
    """Return where an exception and its causes were raised, the first of them first."""
    chain = reversed(tuple(chain_of(error)))
    return "\n".join(
        f"{type(each).__name__} at\n{''.join(format_tb(each.__traceback__))}".rstrip()
        for each in chain
    )


def log_fault(logger: logging.Logger, what: str, fault: BaseException) -> None:
    """Log what ``fault`` has led to, and where it was raised."""
    logger.error("%s:\n%s", what, places_of(fault))

"""What becomes of a turn whose client has left: said in the file, in a header or in a body."""

from __future__ import annotations

import math
import re
from decimal import Decimal
from typing import Any, Literal

from tidegate.errors import ConfigurationError
from tidegate.protocol.base import Record


WANTED = "'interrupt', 'continue' or 'continue:SECONDS', such as 'continue:30'"
SHOWN_CHARACTERS_MAX = 60

_SECONDS = re.compile(r"[0-9]+(\.[0-9]+)?")


class OnDisconnect(Record, frozen=True):
    """What is done with a turn when its client leaves.

    Attributes:
        kind: ``interrupt`` ends the turn at once, ``continue`` lets it go on.
        seconds: how long it may go on, above 0; None for as long as it takes.
    """

    kind: Literal["interrupt", "continue"]
    seconds: float | None = None

    def __str__(self) -> str:
        if self.seconds is None:
            return self.kind
        # As digits alone, however large or small: what is written can be read again.
        digits = format(Decimal(repr(self.seconds)), "f").removesuffix(".0")
        return f"{self.kind}:{digits}"


INTERRUPT = OnDisconnect(kind="interrupt")
CONTINUE = OnDisconnect(kind="continue")


def parse_on_disconnect(text: Any, *, name: str = "on_disconnect") -> OnDisconnect:
    """Return what ``text`` says.

    Args:
        text: ``interrupt``, ``continue`` or ``continue:SECONDS``.
        name: what it is the value of, for the error: a key, a header, a field of a body.

    Raises:
        ConfigurationError: it says none of these; the text names it and what may be said.
    """
    if isinstance(text, str):
        words = text.strip()
        if words == "interrupt":
            return INTERRUPT
        if words == "continue":
            return CONTINUE
        head, _, tail = words.partition(":")
        if head == "continue" and _SECONDS.fullmatch(tail):
            seconds = float(tail)
            if 0 < seconds < math.inf:
                return OnDisconnect(kind="continue", seconds=seconds)
            if seconds == 0:
                raise ConfigurationError(
                    f"{name}={words!r}: give seconds above 0, or say 'interrupt'"
                )
    shown = repr(text)
    if len(shown) > SHOWN_CHARACTERS_MAX:
        shown = f"{shown[:SHOWN_CHARACTERS_MAX]}..."
    raise ConfigurationError(f"{name}={shown}: give {WANTED}")

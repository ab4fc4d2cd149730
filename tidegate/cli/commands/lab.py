"""``tidegate lab``: a scripted provider to try programs against."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from cyclopts.validators import Number

from tidegate.cli.usage import UsageError
from tidegate.lab.serve import serve


def lab(
    file: Path | None = None,
    /,
    *,
    port: Annotated[int, Parameter(validator=Number(gte=0, lte=65535))] = 0,
    speed: float | None = None,
) -> None:
    """Serve a scripted provider on loopback, until Ctrl-C.

    Each line printed is a base URL for a client of the chat wire.

    Args:
        file: A capture of tidegate run --capture, a script, or a file with one script a line;
            without it, a few paced words.
        port: Where to listen; 0 is a free port.
        speed: How many times faster than it was a capture is played; inf leaves out every silence.
    """
    try:
        serve(file, port, speed)
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot serve {file or 'the lab'}: {error}") from error

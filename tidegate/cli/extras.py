"""What an extra brings: which packages, and what to say if they are not there.

A command imports them when it runs, so that its help and the words about a mistyped command need
none of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tidegate.errors import ConfigurationError


EXTRAS = {
    "local": ("xllamacpp",),
    "daemon": (
        "httptools",
        "httpx",
        "platformdirs",
        "prometheus-client",
        "starlette",
        "textual",
        "uvicorn",
        "uvloop",
    ),
}
"""The packages of each extra, as an index calls them."""


@contextmanager
def daemon_extra() -> Iterator[None]:
    """Let what stands below import from the extra ``daemon``.

    Raises:
        ConfigurationError: a package is missing; the text names it and the way out.
    """
    try:
        yield
    except ImportError as error:
        package = (error.name or "tidegate").partition(".")[0]
        if package == "tidegate":
            raise  # a fault of ours, which no installing mends
        raise ConfigurationError(
            f"the daemon and its commands need {package}, which is not installed: run "
            "`pip install 'tidegate[daemon]'`"
        ) from error

"""An actor runtime for LLM provider streams: one answer, one writer, nothing late gets in.

Its names are those of ``tidegate.public`` and are loaded when the first of them is used, so that
worker processes, which need none, come up sooner.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any


if TYPE_CHECKING:
    from tidegate.public import *  # noqa: F403

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    public = import_module("tidegate.public")
    if name != "__all__" and name not in public.__all__:
        raise AttributeError(f"module 'tidegate' has no attribute {name!r}")
    value = globals()[name] = getattr(public, name)
    return value


def __dir__() -> list[str]:
    return [*import_module("tidegate.public").__all__, "__version__"]

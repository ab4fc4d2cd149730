"""The process's environment, read here and nowhere else; it may import nothing but errors."""

from __future__ import annotations

import os
from collections.abc import Mapping


def environment() -> Mapping[str, str]:
    """Return the environment variables: a live view, so that each start sees what holds then."""
    return os.environ

"""What a process forked by the user must let go of: the copies of the host's descriptors.

Without this the copies would keep sockets open behind the host's back: a worker would not see
that the host is gone, nor the host that a worker is.
"""

from __future__ import annotations

import os
import threading
import weakref
from typing import Protocol


class Forked(Protocol):
    """Somebody with descriptors that must not live on in a forked process."""

    def after_fork_in_child(self) -> None:
        """Close the copies; runs in the child, where no other thread is left."""


gate = threading.RLock()
"""Held while descriptors are made and noted, or forgotten and closed: no fork comes between."""

_watched: weakref.WeakSet[Forked] = weakref.WeakSet()


def watch(forked: Forked) -> None:
    """Tell ``forked`` of every fork, for as long as it lives."""
    with gate:
        _watched.add(forked)


def _in_child() -> None:
    for forked in list(_watched):
        forked.after_fork_in_child()
    _watched.clear()
    gate.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=gate.acquire, after_in_parent=gate.release, after_in_child=_in_child)

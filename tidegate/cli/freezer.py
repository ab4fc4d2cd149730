"""Finds the processes that read from a port of this machine, and makes them stand still."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from pathlib import Path


PROC = Path("/proc")
ESTABLISHED = "01"
NOBODY: tuple[int, ...] = ()


def readers_of(port: int) -> tuple[int, ...]:
    """Return the processes with a connection to ``port`` of loopback; none without ``/proc``."""
    try:
        _, *rows = (PROC / "net/tcp").read_text().splitlines()
    except OSError:
        return NOBODY
    sockets = {
        f"socket:[{fields[9]}]"
        for fields in map(str.split, rows)
        if fields[3] == ESTABLISHED and int(fields[2].partition(":")[2], 16) == port
    }
    found = set()
    for descriptor in PROC.glob("[0-9]*/fd/*"):
        with suppress(OSError):  # it was closed meanwhile, or belongs to somebody else
            if str(descriptor.readlink()) in sockets:
                found.add(int(descriptor.parts[2]))
    return tuple(sorted(found))


class Freezer:
    """Processes that stand still until they are thawed."""

    def __init__(self) -> None:
        self._frozen = NOBODY

    @property
    def holds(self) -> bool:
        """Whether anybody stands still."""
        return bool(self._frozen)

    def freeze(self, processes: tuple[int, ...]) -> None:
        """Stop them where they are; they cannot notice."""
        self._frozen = processes
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let them go on."""
        self._signal(signal.SIGCONT)
        self._frozen = NOBODY

    def _signal(self, number: signal.Signals) -> None:
        for process in self._frozen:
            with suppress(ProcessLookupError):
                os.kill(process, number)

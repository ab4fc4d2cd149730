"""Whether a process was given a processor: one that waits for it is slow, not stuck."""

from __future__ import annotations

import os
from typing import NamedTuple


CPU_NS_MIN = 5_000_000
"""Less than this in a whole grace is no chance to answer a ping."""

_READ_BYTES = 4096
_TICK_NS = 10_000_000


class CpuUse(NamedTuple):
    """How much a process had run at an instant, and whether it wanted to."""

    run_ns: int
    runnable: bool


def cpu_use(pid: int) -> CpuUse | None:
    """Look at the process's first thread, the one that runs its loop.

    Returns:
        None if it is gone, or where there is no ``/proc``.
    """
    try:
        state, *numbers = _read(f"/proc/{pid}/stat").rpartition(b") ")[2].split()
    except OSError:
        return None
    try:  # exact where the kernel keeps it; the ticks are 10 ms
        run_ns = int(_read(f"/proc/{pid}/schedstat").split()[0])
    except OSError:
        run_ns = sum(int(ticks) for ticks in numbers[10:12]) * _TICK_NS
    return CpuUse(run_ns, runnable=state == b"R")


def was_starved(before: CpuUse | None, after: CpuUse | None) -> bool:
    """Return whether a process wanted to run between two looks at it, and could not."""
    if before is None or after is None:
        return False
    return after.runnable and after.run_ns - before.run_ns < CPU_NS_MIN


def _read(path: str) -> bytes:
    # Not by pathlib, which takes five times as long: a thousand cancels are a thousand looks.
    descriptor = os.open(path, os.O_RDONLY)
    try:
        return os.read(descriptor, _READ_BYTES)
    finally:
        os.close(descriptor)

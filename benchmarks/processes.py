"""What the kernel knows of a process and of all that it has started.

Linux only: processor time comes from each process's own clock, which counts user and system time
of all its threads in nanoseconds; memory is the proportional set size.
"""

from __future__ import annotations

import os
import time
from collections import defaultdict
from pathlib import Path


_PROC = Path("/proc")
_SCHED_CLOCK = 2
_ESTABLISHED = "01"


def family(pid: int) -> list[int]:
    """Return ``pid`` and all its descendants."""
    children: defaultdict[int, list[int]] = defaultdict(list)
    for entry in _PROC.iterdir():
        if not entry.name.isdigit():
            continue
        try:
            stat = (entry / "stat").read_text()
        except (FileNotFoundError, ProcessLookupError):
            continue  # it ended while this looked
        state, parent = stat.rpartition(")")[2].split()[:2]
        if state != "Z":
            children[int(parent)].append(int(entry.name))
    found = [pid]
    for each in found:
        found += children[each]
    return found


def cpu_s(pid: int) -> float:
    """Return the user and system time that ``pid`` has had so far."""
    return time.clock_gettime((~pid << 3) | _SCHED_CLOCK)


def family_cpu_s(pid: int) -> float:
    """Return the user and system time of ``pid`` and all its descendants, without the dead."""
    total_s = 0.0
    for each in family(pid):
        try:
            total_s += cpu_s(each)
        except OSError:
            if each == pid:
                raise
    return total_s


def pin(pids: list[int], *, first: bool) -> None:
    """Let processes with all their threads use the first core alone, or all but the first."""
    core, *others = sorted(os.sched_getaffinity(1))
    for pid in pids:
        for task in (_PROC / str(pid) / "task").iterdir():
            os.sched_setaffinity(int(task.name), [core] if first else others or [core])


def family_pss_bytes(pid: int) -> int:
    """Return the proportional set size of ``pid`` and all its descendants."""
    return sum(_pss_bytes(each) for each in family(pid))


def connected(pids: list[int], port: int) -> list[int]:
    """Return those of ``pids`` that have a connection to a local ``port``."""
    sockets = _sockets_to(port)
    return [pid for pid in pids if sockets & _links_of(pid)]


def _pss_bytes(pid: int) -> int:
    for line in (_PROC / str(pid) / "smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) << 10
    raise ValueError(f"process {pid} has no proportional set size")


def _sockets_to(port: int) -> set[str]:
    lines = (_PROC / "net/tcp").read_text().splitlines()[1:]
    rows = [line.split() for line in lines]
    return {
        f"socket:[{row[9]}]"
        for row in rows
        if row[3] == _ESTABLISHED and int(row[2].rpartition(":")[2], 16) == port
    }


def _links_of(pid: int) -> set[str]:
    links = set()
    for entry in (_PROC / str(pid) / "fd").iterdir():
        try:
            links.add(str(entry.readlink()))
        except FileNotFoundError:
            continue
    return links

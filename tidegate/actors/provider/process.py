"""What a zygote and a worker do first: become processes that nobody has to look after."""

from __future__ import annotations

import ctypes
import os
import signal
import sys


_PR_SET_PDEATHSIG = 1
_PR_SET_NAME = 15


def settle(name: str, parent_pid: int) -> str:
    """Leave Ctrl-C to the host, die with the parent, and take a name.

    Must run in the main thread, early: what the host's thread had ignored or blocked is put
    back to what a worker needs.

    Args:
        name: for ``ps`` and ``top``; 15 characters are shown.
        parent_pid: the process to die with. If it is gone already, this one ends at once.

    Returns:
        Why dying with the parent cannot be had here; empty if it can.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # The default action ends even a process whose interpreter is stuck; a handler would not run.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # ignored, it would lose the exit codes
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    complaint = _die_with_parent(name)
    if os.getppid() != parent_pid:
        os._exit(0)  # it died before the line above could help
    return complaint


def _die_with_parent(name: str) -> str:
    if sys.platform != "linux":
        return "no parent-death signal on this system"
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_PR_SET_NAME, name.encode(), 0, 0, 0)
    if libc.prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0):
        return f"no parent-death signal: {os.strerror(ctypes.get_errno())}"
    return ""

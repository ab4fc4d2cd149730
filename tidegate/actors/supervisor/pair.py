"""The two ends of a new worker: one for the host, one to send on its way."""

from __future__ import annotations

import os
import socket

from tidegate.actors.supervisor.link import WorkerLink
from tidegate.actors.supervisor.zygote_link import Launch
from tidegate.protocol.base import Generation


def make_pair(generation: Generation, providers: str) -> tuple[WorkerLink, Launch]:
    """Make the sockets and the pipe of a worker.

    Raises:
        OSError: there are no descriptors left.
    """
    ours, theirs = socket.socketpair()
    try:
        ours.setblocking(False)
        read_fd, write_fd = os.pipe()
    except OSError:
        ours.close()
        theirs.close()
        raise
    os.set_blocking(read_fd, False)
    os.set_blocking(write_fd, False)  # a worker must not hang by its own last words
    return WorkerLink(generation, ours, read_fd), Launch(generation, providers, theirs, write_fd)

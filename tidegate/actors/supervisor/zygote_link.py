"""The zygote as the host sees it: a packet socket, and a child to reap."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from tidegate.actors.supervisor import forks
from tidegate.actors.supervisor.process import python_command, worker_environment
from tidegate.errors import ConfigurationError
from tidegate.protocol.base import Generation
from tidegate.protocol.workers import (
    CONTROL_BYTES_MAX,
    Fork,
    FromZygote,
    decode_from_zygote,
    packet_from,
)


START_METHODS = ("zygote", "exec")
END_S = 0.5


class Launch(NamedTuple):
    """A worker to start: its end of the socket pair, and of the pipe for its last words."""

    generation: Generation
    providers: str
    sock: socket.socket
    words_fd: int

    def close(self) -> None:
        """Close the host's copies, once the worker has its own."""
        self.sock.close()
        os.close(self.words_fd)


def method_from(given: str | None) -> str:
    """Return how workers are started: as told, as ``TIDEGATE_START_METHOD`` says, or as it works.

    Raises:
        ConfigurationError: there is no such way.
    """
    method = given or os.environ.get("TIDEGATE_START_METHOD") or ""
    if not method:
        return "zygote" if _can_fork() else "exec"
    if method not in START_METHODS:
        raise ConfigurationError(f"start method {method!r} is none of {', '.join(START_METHODS)}")
    return method


def _can_fork() -> bool:
    """Return whether a zygote can work here: Linux, with pidfds and ``/proc``."""
    if sys.platform != "linux" or not Path("/proc/self/fd").is_dir():
        return False
    try:
        os.close(os.pidfd_open(os.getpid()))
    except (AttributeError, OSError):
        return False
    return True


class ZygoteLink:
    """Starts a zygote, which ends when this end of the socket is closed or shut down.

    Must be made in the thread that lives as long as the workers shall: the zygote dies with it.

    Args:
        preload: what the zygote imports before it forks.

    Raises:
        OSError: it cannot be started.
    """

    def __init__(self, preload: tuple[str, ...]) -> None:
        with forks.gate:
            ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            self.control = ours
            try:
                self.popen = subprocess.Popen(
                    python_command(
                        "tidegate.actors.provider.zygote",
                        "main",
                        theirs.fileno(),
                        os.getpid(),
                        preload,
                    ),
                    stdin=subprocess.DEVNULL,
                    env=worker_environment(),
                    pass_fds=(theirs.fileno(),),
                    start_new_session=True,
                )
            except OSError:
                ours.close()
                raise
            finally:
                theirs.close()
        ours.setblocking(False)

    def fork(self, launch: Launch) -> None:
        """Ask for a worker.

        Raises:
            OSError: the zygote is gone.
        """
        packet = packet_from(Fork(launch.generation, launch.providers))
        socket.send_fds(self.control, [packet], [launch.sock.fileno(), launch.words_fd])

    def receive(self) -> tuple[FromZygote, int | None] | None:
        """Return the next message and the descriptor that came along, None if there is none.

        Raises:
            EOFError: the zygote is gone.
        """
        try:
            packet, descriptors, _, _ = socket.recv_fds(
                self.control, CONTROL_BYTES_MAX, 1, socket.MSG_CMSG_CLOEXEC
            )
        except BlockingIOError:
            return None
        except OSError as error:
            raise EOFError from error
        if not packet:
            raise EOFError
        return decode_from_zygote(packet), descriptors[0] if descriptors else None

    def end(self) -> None:
        """Have it kill and reap its workers and end; half a second is what it gets for that.

        What it says meanwhile can still be received.
        """
        with contextlib.suppress(OSError):  # it is gone
            # Unlike a close, this is seen though another process holds a copy of the socket.
            self.control.shutdown(socket.SHUT_WR)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.popen.wait(END_S)

    def after_fork_in_child(self) -> None:
        """Close the copy, and forget the child that is the parent's."""
        self.control.close()
        self.popen.returncode = 0

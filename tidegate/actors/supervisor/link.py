"""One worker as the I/O thread sees it: frames in, frames out, and last words.

Path: ``provider/worker.py`` -> this -> ``supervisor/workers.py``.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
from collections.abc import Callable

from tidegate.actors.supervisor.cpu import CpuUse, cpu_use, was_starved
from tidegate.actors.supervisor.process import WorkerProcess
from tidegate.actors.supervisor.unsent import Unsent
from tidegate.protocol.base import Generation
from tidegate.protocol.codec import FrameBuffer, decode_from_worker


READ_BYTES = 256 << 10
WORDS_BYTES = 64 << 10


class WorkerLink:
    """The host's end of a worker's socket.

    Attributes:
        unsent: what the socket has not taken yet.
        process: None until it is known.
        ended: why nothing more comes, in words; empty while something may.
        garbage: whether that is because the worker sent what is no frame.
        exited: exit code and detail, if the process's end is known; None while it is not.
        watched: what the selector looks for, 0 for nothing.
    """

    def __init__(self, generation: Generation, sock: socket.socket, words_fd: int) -> None:
        self.generation = generation
        self.sock = sock
        self.unsent = Unsent()
        self.process: WorkerProcess | None = None
        self.ended = ""
        self.garbage = False
        self.exited: tuple[int | None, str] | None = None
        self.watched = 0
        self._words_fd = words_fd
        self._read_bytes = 0
        self._frames = FrameBuffer()

    def read(self, space: memoryview) -> list[object]:
        """Read once, into ``space``, and return the messages of the frames that are whole.

        Bytes that are no frame end the link as its worker's end does.
        """
        messages: list[object] = []
        try:
            count_bytes = self.sock.recv_into(space)
        except BlockingIOError:
            return messages
        except OSError:
            count_bytes = 0  # a reset: the worker left without reading all it was sent
        self._read_bytes += count_bytes
        if not count_bytes:
            self.ended = "its socket was closed"
            return messages
        try:
            for body in self._frames.feed(space[:count_bytes]):
                messages += decode_from_worker(body)
        except ValueError as error:
            self.ended = f"it sent what is no frame: {error}"
            self.garbage = True
        return messages

    def signs(self) -> Callable[[], tuple[bool, bool]]:
        """Return what says later whether anything was read, and if not, whether it was starved."""
        read_bytes, before = self._read_bytes, self._cpu_use()

        def look() -> tuple[bool, bool]:
            heard = self._read_bytes > read_bytes
            return heard, not heard and was_starved(before, self._cpu_use())

        return look

    def write(self) -> None:
        """Send what the socket takes."""
        try:
            while self.unsent:
                self.unsent.sent(self.sock.sendmsg(self.unsent.buffers()))
        except BlockingIOError:
            return
        except OSError:
            # The worker's end is closed. What it had sent before comes first, then its end.
            self.unsent.clear()

    def last_words(self) -> str:
        """Return what the worker has left in its pipe."""
        with contextlib.suppress(BlockingIOError):
            return os.read(self._words_fd, WORDS_BYTES).decode("utf-8", "replace").strip()
        return ""

    def close(self) -> None:
        """Close the descriptors."""
        self.sock.close()
        os.close(self._words_fd)

    def after_fork_in_child(self) -> None:
        """Close the copies."""
        self.close()
        if self.process is not None:
            self.process.after_fork_in_child()

    def _cpu_use(self) -> CpuUse | None:
        # One whose process is not made yet has had no processor, and wants it.
        return CpuUse(0, runnable=True) if self.process is None else cpu_use(self.process.pid)


def innermost_frame(dump: str) -> str:
    """Return the line of a stack dump that says where the interpreter is, empty if none."""
    _, _, current = dump.rpartition("Current thread")
    frames = [line.strip() for line in current.splitlines() if line.startswith("  File ")]
    return frames[0] if frames else ""


def end_from(exitcode: int) -> str:
    """Say in words how a process ended."""
    if exitcode >= 0:
        return f"it exited with code {exitcode}"
    try:
        return f"it was ended by {signal.Signals(-exitcode).name}"
    except ValueError:
        return f"it was ended by signal {-exitcode}"

"""The two ends of a line to a client that runs in a process of its own.

A side answers one JSON line of its standard input with one line on its standard output; what it
costs is measured from outside.
"""

from __future__ import annotations

import subprocess
import sys
from types import TracebackType
from typing import Any, Self

import msgspec

from benchmarks.processes import family_cpu_s, family_pss_bytes


class Side:
    """A client, by the name of its module; ``with`` starts and ends it."""

    def __init__(self, module: str) -> None:
        self.name = module
        self._process: subprocess.Popen[bytes]

    def ask(self, command: str, **arguments: Any) -> Any:
        """Have it do something, and return what it says."""
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(msgspec.json.encode([command, arguments]) + b"\n")
        process.stdin.flush()
        line = process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self.name} ended during {command!r}; its error is above")
        return msgspec.json.decode(line)

    def cpu_s(self) -> float:
        """Return user and system time of all its processes."""
        return family_cpu_s(self._process.pid)

    def pss_bytes(self) -> int:
        """Return the proportional set size of all its processes."""
        return family_pss_bytes(self._process.pid)

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            [sys.executable, "-m", f"benchmarks.{self.name}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(15)
        except subprocess.TimeoutExpired:
            self._process.kill()
            raise


def serve(client: object) -> None:
    """Call the methods of ``client`` that the other end names, until it has no more."""
    for line in sys.stdin.buffer:
        command, arguments = msgspec.json.decode(line)
        answer = getattr(client, command)(**arguments)
        sys.stdout.buffer.write(msgspec.json.encode(answer) + b"\n")
        sys.stdout.buffer.flush()

"""The lab in a process of its own, so that its work is not counted as anybody's."""

from __future__ import annotations

import subprocess
import sys
from types import TracebackType
from typing import Any, Self
from urllib.request import urlopen

import msgspec

from benchmarks.answers import answer_from
from tidegate.lab import Answer, Lab, Request


class Provider:
    """The handle on that process; ``with`` starts and ends it."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str]
        self.base = ""

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self.base.rpartition(":")[2])

    def url(self, name: str, *numbers: int) -> str:
        """Return the base URL of a stream; ``answers.py`` has the names."""
        return "/".join([self.base, name, *map(str, numbers), "v1"])

    def report(self) -> dict[str, dict[str, Any]]:
        """Return for each request's ``user`` when it was read and when its connection closed."""
        with urlopen(f"{self.base}/report") as response:
            report: dict[str, dict[str, Any]] = msgspec.json.decode(response.read())
        return report

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.provider"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        self.base = self._process.stdout.readline().strip()
        if not self.base:
            raise RuntimeError("the provider did not start")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(10)


def main() -> None:
    """Serve until standard input ends."""

    def route(request: Request) -> Answer | None:
        return Answer.json(_seen(lab)) if request.path == "/report" else answer_from(request)

    lab = Lab(route=route)
    with lab:
        print(lab.base, flush=True)
        sys.stdin.read()


def _seen(lab: Lab) -> dict[str, dict[str, Any]]:
    seen = {}
    for request in lab.requests:
        payload = request.json() if request.body else {}
        user = payload.get("user") or payload.get("requestMetadata", {}).get("user")
        if user is not None:
            closed = request.closed
            seen[user] = {
                "read_at_s": request.at_s,
                "closed_at_s": closed.at_s if closed else None,
                "closed_how": closed.how if closed else None,
            }
    return seen


if __name__ == "__main__":
    main()

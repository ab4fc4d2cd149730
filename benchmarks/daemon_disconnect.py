"""How soon the provider sees its connection closed once the daemon's client has left.

Both processes read the same monotonic clock of the kernel.
"""

from __future__ import annotations

import time
from statistics import median

from benchmarks.daemon_process import Connection, Daemon
from benchmarks.figures import Effort, Figure, percentile, shown, spread
from benchmarks.provider import Provider


PATH = "/v1/chat/completions"
LOOK_S = 10.0


def run(effort: Effort) -> list[Figure]:
    """Measure."""
    times = effort.of(300, 20)
    with Provider() as provider, Daemon(provider.url("stall")) as daemon:
        left_s = {}
        for number in range(-10, times):
            user = f"u{number}"
            connection = Connection(daemon.port, PATH)
            connection.ask(user=user)
            connection.until(b'"content":" gate"')
            left_s[user] = time.monotonic()
            connection.close()
            _await_close(provider, user, looks=number in (-1, times - 1))
        seen = provider.report()
    closed_s = [seen[user]["closed_at_s"] - left_s[user] for user in left_s if "-" not in user]
    p50_ms, p99_ms = median(closed_s) * 1e3, percentile(closed_s, 99) * 1e3
    behind = spread(closed_s)
    return [
        Figure("daemon: client gone to socket closed, p50", p50_ms, "ms", 5.0, behind=behind),
        Figure(
            "daemon: the same, p99",
            p99_ms,
            "ms",
            100.0,
            behind=f"max {shown(max(closed_s) * 1e3)} ms",
        ),
    ]


def _await_close(provider: Provider, user: str, *, looks: bool) -> None:
    """Let one close be done before the next one is measured; the last is waited for."""
    until_s = time.monotonic() + LOOK_S
    while looks and provider.report()[user]["closed_at_s"] is None:
        if time.monotonic() > until_s:
            raise TimeoutError(f"the provider's connection of {user} is still open")
        time.sleep(0.01)
    time.sleep(0.02)

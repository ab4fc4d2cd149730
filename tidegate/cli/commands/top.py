"""``tidegate top``: a daemon's turns as lanes in the terminal."""

from __future__ import annotations

import sys

from tidegate.cli.extras import daemon_extra
from tidegate.cli.usage import UsageError


def top(*, url: str | None = None, key: str | None = None) -> int:
    """Watch the turns of a daemon: q quits, i interrupts the chosen one, w changes the time shown.

    Exit codes: 0 left by q, 1 the daemon cannot be reached or refuses, 2 wrong use.

    Args:
        url: The daemon's address; by default TIDEGATE_URL, then where the configuration listens.
        key: Where the key is, as env:NAME; by default env:TIDEGATE_KEY.
    """
    with daemon_extra():
        from tidegate.cli.board import Board  # noqa: PLC0415
        from tidegate.cli.daemon_client import DaemonClient, address_from  # noqa: PLC0415
    with DaemonClient(address_from(url, key)) as client:
        client.overview()  # what is wrong is said before the screen is taken
        if not (sys.stdin.isatty() and sys.stdout.isatty()):
            raise UsageError(
                "`tidegate top` draws on a terminal, and there is none: `tidegate ps` writes a list"
            )
        Board(client).run()
    return 0

"""``tidegate stop``: interrupts turns of a daemon."""

from __future__ import annotations

import sys

from tidegate.cli.extras import daemon_extra
from tidegate.cli.render import harmless
from tidegate.cli.usage import UsageError


REASON = "tidegate stop"
NOT_FOUND = 404


def stop(*turns: str, reason: str = REASON, url: str | None = None, key: str | None = None) -> int:
    """Interrupt turns, and say how each ended; one that has ended already stays as it is.

    Exit codes: 0 all have ended, 1 one has not, or there is no such turn or no daemon, 2 wrong use.

    Args:
        turns: Their ids, as `tidegate ps` shows them; `tidegate ps --quiet` writes nothing else.
        reason: What their readers are told.
        url: The daemon's address; by default TIDEGATE_URL, then where the configuration listens.
        key: Where the key is, as env:NAME; by default env:TIDEGATE_KEY.
    """
    # In a shell's quotes all that `tidegate ps --quiet` writes is one word.
    ids = [turn for words in turns for turn in words.split()]
    if not ids:
        raise UsageError("no turn is named, and perhaps none runs: see `tidegate ps`")
    with daemon_extra():
        from tidegate.cli.daemon_client import (  # noqa: PLC0415
            DaemonClient,
            DaemonError,
            address_from,
            turn_id,
        )
    ids = [turn_id(each) for each in ids]
    status = 0
    with DaemonClient(address_from(url, key)) as client:
        for turn in ids:
            try:
                found = client.interrupt(turn, reason)
            except DaemonError as error:
                if error.status != NOT_FOUND:
                    raise
                print(f"tidegate: {harmless(str(error))}", file=sys.stderr)
                status = 1
                continue
            print(harmless(f"{found['id']}: {found['state']}"), flush=True)
            if found["state"] in {"running", "queued"}:
                status = 1
    return status

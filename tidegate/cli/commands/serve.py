"""``tidegate serve``: the daemon, in the foreground."""

from __future__ import annotations

import functools
import logging
from pathlib import Path

from tidegate.cli.extras import daemon_extra
from tidegate.cli.usage import UsageError


_log = logging.getLogger("tidegate.daemon")


def serve(
    *, config: Path | None = None, listen: str | None = None, journal: str | None = None
) -> int:
    """Serve the providers' own APIs, with turns that survive their clients, until SIGTERM.

    The first Ctrl-C or SIGTERM drains: no turn is taken on, those that run may end. The second one
    interrupts them. SIGHUP reads the configuration again.

    Exit codes: 0 ended in good order, 1 failed, as when another process has the address, 2 the
    configuration cannot be used.

    Args:
        config: The file; by default ./tidegate.toml, then the one in the user's config folder.
            Without any, the local model is served.
        listen: HOST:PORT; port 0 is any free one.
        journal: The file in which turns are kept, or "none".
    """
    with daemon_extra():
        from tidegate.daemon.config.check import explain  # noqa: PLC0415
        from tidegate.daemon.config.load import InvalidConfig, load  # noqa: PLC0415
        from tidegate.daemon.config.starting import check_start  # noqa: PLC0415
        from tidegate.daemon.serve import Daemon, run  # noqa: PLC0415
    read = functools.partial(load, config, overrides={"listen": listen, "journal": journal})
    try:
        loaded = read()
        check_start(loaded)
    except InvalidConfig as error:
        raise UsageError(str(error)) from error

    def ready(address: str) -> None:
        print(f"tidegate: {address}", flush=True)
        for note in explain(loaded).notes:
            _log.warning("configuration: %s", note)

    run(Daemon(loaded, read, ready))
    return 0

"""Tells systemd how the daemon stands, if systemd has started it.

The protocol is a datagram of lines to the socket that ``NOTIFY_SOCKET`` names; without the
variable all of this does nothing. Nothing here waits, and nothing that goes wrong here matters to
anybody but systemd.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import time
from collections.abc import Mapping

from tidegate.settings import environment


_log = logging.getLogger("tidegate.daemon.notify")

_GRACE_S = 10.0
"""What an end may take beyond the drain, before systemd loses patience."""


class Notifier:
    """Speaks to the service manager of this process.

    Args:
        environ: where its address is; the process's own environment by default.
    """

    def __init__(self, environ: Mapping[str, str] | None = None) -> None:
        environ = environment() if environ is None else environ
        self._address = _address_from(environ.get("NOTIFY_SOCKET", ""))
        self._has_complained = False
        self.watchdog_every_s = _watchdog_from(environ)

    def ready(self, status: str = "serving") -> None:
        """Say that requests are served, for the first time or after a reload."""
        self._say("READY=1", f"STATUS={_line(status)}")

    def reloading(self) -> None:
        """Say that the configuration is read again; ``ready`` must follow."""
        now_us = time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000
        self._say("RELOADING=1", f"MONOTONIC_USEC={now_us}", "STATUS=reading the configuration")

    def stopping(self, within_s: float | None = None) -> None:
        """Say that the daemon ends.

        Args:
            within_s: how long it may take; systemd then waits for as long, and a little longer.
        """
        lines = ["STOPPING=1", "STATUS=draining"]
        if within_s is not None:
            lines.append(f"EXTEND_TIMEOUT_USEC={int((within_s + _GRACE_S) * 1e6)}")
        self._say(*lines)

    def status(self, text: str) -> None:
        """Show a line in ``systemctl status``."""
        self._say(f"STATUS={_line(text)}")

    async def watchdog(self) -> None:
        """Say again and again that the event loop turns; returns at once if nobody wants to know.

        It is cancelled to end it.
        """
        if self.watchdog_every_s is None:
            return
        while True:
            self._say("WATCHDOG=1")
            await asyncio.sleep(self.watchdog_every_s)

    def _say(self, *lines: str) -> None:
        if self._address is None:
            return
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as out:
                out.setblocking(False)
                out.sendto("\n".join(lines).encode(), self._address)
        except OSError as error:
            if not self._has_complained:
                self._has_complained = True
                _log.warning("systemd cannot be told how the daemon stands: %s", error.strerror)


def _address_from(text: str) -> str | None:
    """Return the address of a UNIX socket: a path, or an abstract name with its leading zero."""
    if text.startswith("@"):
        return "\0" + text[1:]
    if text and not text.startswith("/"):
        _log.warning(
            "NOTIFY_SOCKET is neither a path nor an abstract name: systemd is told nothing"
        )
    return text if text.startswith("/") else None


def _watchdog_from(environ: Mapping[str, str]) -> float | None:
    """Return half of the time after which systemd takes the process for hung, in seconds."""
    every_us, pid = environ.get("WATCHDOG_USEC", ""), environ.get("WATCHDOG_PID", "")
    if not every_us.isascii() or not every_us.isdigit() or not int(every_us):
        return None
    if pid and pid != str(os.getpid()):
        return None  # it was meant for the process that has started this one
    return int(every_us) / 2e6


def _line(text: str) -> str:
    return " ".join(text.split())

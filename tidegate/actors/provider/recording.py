"""Writes the capture of one attempt, line by line, so that a killed worker leaves what it had.

It never changes the attempt: a file that cannot be written is given up, with a warning.

Path: ``provider/capture.py`` -> this -> ``protocol/captures.py``
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

from tidegate.actors.causes import chain_of
from tidegate.actors.provider.masks import BodyMask, Masks
from tidegate.protocol.attempts import Order
from tidegate.protocol.captures import (
    PART,
    VERSION,
    Began,
    Came,
    Headed,
    How,
    Line,
    Over,
    Requested,
    line_from,
    written,
)


CAPTURE_BYTES_MAX = 64 << 20
"""Where the record of a body ends."""

OWNER_ONLY = 0o600
_log = logging.getLogger("tidegate.capture")


class Recording:
    """One file, from the attempt's beginning to its end.

    Args:
        order: the attempt's; ``order.capture`` is the path.
    """

    def __init__(self, order: Order) -> None:
        self._path = order.capture
        self._masks = Masks(order.target)
        self._mask: BodyMask = self._masks.body()
        self._began_s = time.monotonic()
        self._size_bytes = 0
        self._open = False  # whether an exchange is
        self._file: int | None = None
        try:
            flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | getattr(os, "O_CLOEXEC", 0)
            self._file = os.open(self._path + PART, flags, OWNER_ONLY)
        except OSError as error:
            self._give_up(error)
        began = datetime.now(UTC).isoformat(timespec="milliseconds")
        self._write(Began(version=VERSION, began=began, wire=order.target.wire))

    def request(
        self, method: str, url: str, headers: Iterable[tuple[str, str]], body: bytes
    ) -> None:
        """Note that a request is sent."""
        self.end(How.LEFT)
        self._open = True
        self._mask = self._masks.body()
        self._write(
            Requested(
                at_s=self._at_s(),
                method=method,
                url=self._masks.url(url),
                headers=self._masks.headers(headers),
                **written(self._masks.whole(body)),
            )
        )

    def head(self, status: int, headers: Iterable[tuple[bytes, bytes]]) -> None:
        """Note the head of a response."""
        texts = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in headers]
        self._write(Headed(at_s=self._at_s(), status=status, headers=self._masks.headers(texts)))

    def body(self, data: bytes) -> None:
        """Note what came of a body."""
        if not self._open:
            return
        if self._size_bytes >= CAPTURE_BYTES_MAX:
            self.end(How.FULL)
        elif masked := self._mask.feed(data):
            self._write(Came(at_s=self._at_s(), **written(masked)))

    def end(self, how: How, error: BaseException | None = None) -> None:
        """Note how an exchange ended; the first end counts."""
        if not self._open:
            return
        self._open = False
        if rest := self._mask.rest():
            self._write(Came(at_s=self._at_s(), **written(rest)))
        said = "" if error is None else self._masks.text(f"{type(error).__name__}: {error}")
        self._write(Over(at_s=self._at_s(), how=how, error=said))

    def close(self) -> None:
        """End the file, and give it its name."""
        self.end(How.LEFT)
        file, self._file = self._file, None
        if file is None:
            return
        try:
            os.close(file)
            Path(self._path + PART).rename(self._path)
        except OSError as error:
            self._give_up(error)

    def _at_s(self) -> float:
        return round(time.monotonic() - self._began_s, 6)

    def _write(self, line: Line) -> None:
        if self._file is None:
            return
        data = line_from(line)
        try:
            while data:
                done = os.write(self._file, data)
                self._size_bytes += done
                data = data[done:]
        except OSError as error:
            os.close(self._file)
            self._file = None
            self._give_up(error)

    def _give_up(self, error: OSError) -> None:
        _log.warning("the attempt goes on, but not its capture %s: %s", self._path, error)


def how_of(error: BaseException) -> How:
    """Say how a body ended that broke."""
    # aiohttp keeps what the socket said as text only, where it finds the body incomplete.
    resets = (
        isinstance(each, ConnectionResetError) or ConnectionResetError.__name__ in str(each)
        for each in chain_of(error)
    )
    return How.RESET if any(resets) else How.CUT

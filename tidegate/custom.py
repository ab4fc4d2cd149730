"""What a stream of your own is made of: for ``Endpoint.custom``; see ``docs/custom.md``.

>>> from tidegate.custom import Finish, Text, Tool, Usage
>>> class Streams:
...     def stream(self, payload):
...         yield "It is "
...         yield Text("sunny.")
...         yield Tool(0, id="call_1", name="weather", arguments='{"in": "Bern"}')
...         yield Usage(input_tokens=3, output_tokens=9)
...         yield Finish("tool_calls")
...
...     def close(self):
...         pass
>>> len([*Streams().stream({})])
5
"""

from __future__ import annotations

import contextlib
import inspect
import socket
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Self

from tidegate.protocol.custom import (
    Finish,
    Piece,
    Reasoning,
    Refusal,
    Response,
    Stream,
    Streams,
    Text,
    Tool,
    Usage,
)


__all__ = [
    "Finish",
    "Interruptible",
    "Piece",
    "Reasoning",
    "Refusal",
    "Response",
    "Stream",
    "Streams",
    "Text",
    "Tool",
    "Usage",
    "hang_up",
]


class Interruptible(Iterator[Piece]):
    """Pieces, and what makes a read of them return that waits in another thread.

    A generator alone cannot be closed while it waits for its next piece.

    Args:
        pieces: read one at a time.
        unblock: called once, from any thread, when nobody wants more; such as ``hang_up`` for the
            response that ``pieces`` reads.
    """

    def __init__(self, pieces: Iterable[Piece], unblock: Callable[[], object]) -> None:
        self._pieces = iter(pieces)
        self._unblock = unblock

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Piece:
        return next(self._pieces)

    def close(self) -> None:
        """Unblock the read, and close the pieces if none is under way."""
        try:
            self._unblock()
        finally:
            if inspect.isgenerator(self._pieces):
                with contextlib.suppress(ValueError):  # it runs, and ends by what was done to it
                    self._pieces.close()


def hang_up(response: Any) -> None:
    """Shut down the socket under a response, so that a read which waits for it ends at once.

    From any thread. It closes nothing: the response must still be closed by its reader.

    Args:
        response: of ``httpx``, ``httpx2``, ``requests``, ``urllib3`` or ``urllib``, or a socket.

    Raises:
        TypeError: it is something else.
    """
    if not any(hasattr(response, name) for name in _MARKS):
        kind = type(response)
        raise TypeError(f"{kind.__module__}.{kind.__qualname__} is no response that is known")
    found = _socket_of(response)
    if found is not None:  # else it is closed, or was never open
        with contextlib.suppress(OSError):  # likewise, or the other side has gone
            # Not the method of a TLS socket: it would take the encryption from under the read.
            socket.socket.shutdown(found, socket.SHUT_RDWR)


def _socket_of(response: Any) -> socket.socket | None:
    extensions = getattr(response, "extensions", None)
    stream = extensions.get("network_stream") if isinstance(extensions, dict) else None
    candidates = [
        response,
        stream.get_extra_info("socket") if stream is not None else None,
        *(_reached(response, path) for path in _PATHS),
    ]
    return next((each for each in candidates if isinstance(each, socket.socket)), None)


_MARKS = ("extensions", "fp", "_fp", "raw", "detach")
"""What one of each kind has: httpx, ``http.client``, ``urllib3``, ``requests``, a socket."""

_PATHS = ("fp.raw._sock", "_fp.fp.raw._sock", "raw._fp.fp.raw._sock")
"""Where ``http.client``, ``urllib3`` and ``requests`` have it."""


def _reached(start: Any, path: str) -> Any:
    for name in path.split("."):
        start = getattr(start, name, None)
    return start

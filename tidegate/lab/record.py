"""What the lab saw: requests, gates, and how each connection was closed.

Written by the lab's thread and read by the test's; one condition guards all of it.

Path: ``tidegate.lab.connection`` -> this -> the test
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Condition
from typing import Literal, NamedTuple, TypeAlias

from tidegate.lab.request import RawRequest


CloseKind: TypeAlias = Literal["eof", "reset", "server"]


class Closed(NamedTuple):
    """The end of a connection.

    Attributes:
        how: ``eof`` and ``reset`` are the client's doing, ``server`` the script's or the lab's.
        at_s: the monotonic instant at which the lab noticed.
    """

    how: CloseKind
    at_s: float


@dataclass(eq=False, slots=True)
class ConnectionRecord:
    """One accepted connection; ``number`` counts from 1."""

    number: int
    opened_at_s: float
    closed: Closed | None = None


@dataclass(frozen=True, eq=False, slots=True)
class Request(RawRequest):
    """One request, as it arrived.

    Attributes:
        at_s: the monotonic instant at which it had been read whole.
    """

    at_s: float
    connection_record: ConnectionRecord = field(repr=False)

    @property
    def connection(self) -> int:
        """Number of its connection, counted from 1."""
        return self.connection_record.number

    @property
    def closed(self) -> Closed | None:
        """How and when its connection was closed; None while it is open."""
        return self.connection_record.closed


class Record:
    """Everything the lab saw, and the waiting for it."""

    def __init__(self) -> None:
        self._changed = Condition()
        self._requests: list[Request] = []
        self._unexpected: list[Request] = []
        self._malformed: list[str] = []
        self._connections: list[ConnectionRecord] = []
        self._reached: Counter[str] = Counter()

    @property
    def requests(self) -> list[Request]:
        """A copy, in the order in which they had been read whole."""
        with self._changed:
            return list(self._requests)

    @property
    def unexpected(self) -> list[Request]:
        """A copy of those for which there was no answer."""
        with self._changed:
            return list(self._unexpected)

    @property
    def malformed(self) -> list[str]:
        """A copy of what was wrong with bytes that were no request."""
        with self._changed:
            return list(self._malformed)

    @property
    def connections(self) -> list[ConnectionRecord]:
        """A copy, in the order in which they were accepted."""
        with self._changed:
            return list(self._connections)

    def add_connection(self, now_s: float) -> ConnectionRecord:
        """Note a connection."""
        with self._changed:
            record = ConnectionRecord(len(self._connections) + 1, now_s)
            self._connections.append(record)
            self._changed.notify_all()
            return record

    def add_request(self, request: Request, *, unexpected: bool) -> None:
        """Note a request, and whether there was no answer for it."""
        with self._changed:
            self._requests.append(request)
            if unexpected:
                self._unexpected.append(request)
            self._changed.notify_all()

    def add_malformed(self, what: str) -> None:
        """Note bytes that were no request."""
        with self._changed:
            self._malformed.append(what)
            self._changed.notify_all()

    def add_closed(self, connection: ConnectionRecord, how: CloseKind, now_s: float) -> None:
        """Note the end of a connection; only its first is kept."""
        with self._changed:
            if connection.closed is None:
                connection.closed = Closed(how, now_s)
                self._changed.notify_all()

    def add_reached(self, gate: str) -> None:
        """Note that a script stands at a gate."""
        with self._changed:
            self._reached[gate] += 1
            self._changed.notify_all()

    def wait_requests(self, count: int, timeout_s: float) -> list[Request]:
        """Wait until ``count`` requests have been read whole, and return all there are."""
        self._wait(lambda: len(self._requests) >= count, timeout_s, f"{count} requests")
        return self.requests

    def wait_closed(self, index: int, timeout_s: float) -> Closed:
        """Wait until the connection of request ``index`` is closed, and return how."""
        self._wait(
            lambda: len(self._requests) > index and self._requests[index].closed is not None,
            timeout_s,
            f"the close of request {index}",
        )
        closed = self.requests[index].closed
        assert closed is not None
        return closed

    def wait_reached(self, gate: str, times: int, timeout_s: float) -> None:
        """Wait until scripts have stood at a gate so many times."""
        self._wait(lambda: self._reached[gate] >= times, timeout_s, f"{times} at gate {gate!r}")

    def _wait(self, condition: Callable[[], bool], timeout_s: float, what: str) -> None:
        with self._changed:
            if not self._changed.wait_for(condition, timeout_s):
                reached = dict(self._reached)
                raise TimeoutError(
                    f"no {what} in {timeout_s:g} s: {len(self._requests)} requests, gates {reached}"
                )

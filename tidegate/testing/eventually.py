"""Waits for what happens in another thread or process, without a sleep in the test."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic, sleep
from typing import TypeVar


ResultT = TypeVar("ResultT")

POLL_S = 0.005


def eventually(condition: Callable[[], ResultT | None], within_s: float = 10.0) -> ResultT:
    """Ask until ``condition`` holds, and return what it said.

    Args:
        condition: called again and again, in the caller's thread; true ends the wait.
        within_s: a guard against a hang and not a measurement, in seconds.

    Returns:
        The first true value that ``condition`` returned.

    Raises:
        AssertionError: nothing true came in time; names the last value seen.
    """
    deadline_s = monotonic() + within_s
    while True:
        # The clock is read first: a test that was paused still gets its last look.
        late = monotonic() > deadline_s
        value = condition()
        if value:
            return value
        if late:
            raise AssertionError(f"still {value!r} after {within_s:g} s")
        sleep(POLL_S)

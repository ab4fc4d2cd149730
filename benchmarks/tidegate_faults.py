"""Turns that are ended: by an interrupt, by silence, with a worker that does not answer."""

from __future__ import annotations

import os
import select
import signal
import threading
import time
from collections.abc import Callable
from typing import Any

import tidegate as tg
from benchmarks.processes import connected, family


Make = Callable[..., tg.Request]


class _Watched:
    """A turn with a thread that reads it, and when that thread took the terminal event."""

    def __init__(self, turn: tg.Turn, user: str = "") -> None:
        self.turn = turn
        self.user = user
        self.deltas: list[tg.TextDelta] = []
        self.flows = threading.Event()
        self.last: tg.AnyEvent
        self.ended_at_s = 0.0
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def join(self) -> None:
        """Wait for the terminal event."""
        self._thread.join()

    def _read(self) -> None:
        for event in self.turn:
            self.ended_at_s = time.monotonic()
            self.last = event
            if isinstance(event, tg.TextDelta):
                self.deltas.append(event)
                self.flows.set()


def interrupt_many(
    runtime: tg.Runtime, make: Make, *, url: str, turns: int, samples: int
) -> list[dict[str, Any]]:
    """Interrupt one turn after the other while ``turns`` of them stream.

    Returns:
        The ``user`` of each request, when it was interrupted, and how long it then took until
        the terminal event was taken.
    """

    def begin(number: int) -> _Watched:
        user = f"interrupt-{number}"
        return _Watched(runtime.start(make(url, user=user)), user)

    streaming = [begin(number) for number in range(turns)]
    found = []
    for number in range(turns, turns + samples):
        for each in streaming:
            each.flows.wait()
        chosen = streaming.pop(0)
        at_s = time.monotonic()
        chosen.turn.interrupt("enough")
        chosen.join()
        assert isinstance(chosen.last, tg.TurnInterrupted)
        found.append({"user": chosen.user, "at_s": at_s, "taken_s": chosen.ended_at_s - at_s})
        streaming.append(begin(number))
    for each in streaming:
        each.turn.interrupt("over")
        each.join()
    return found


def kill_stale(
    runtime: tg.Runtime, make: Make, *, url: str, kills: int, budget_s: float
) -> list[dict[str, float]]:
    """Let streams fall silent, and return how long after their budget each was fenced.

    Returns:
        ``fenced_s`` by the sink's own instants; ``taken_s`` when a reader had the terminal event.
    """
    policy = tg.Policy(retries=0, first_event_timeout_s=30, stale_after_s=budget_s, stale_giveup=0)
    epoch_s = time.time() - time.monotonic()
    found = []
    for _ in range(kills):
        asked = make(url)
        watched = _Watched(runtime.start(tg.Request(asked.endpoint, asked.payload, policy=policy)))
        watched.join()
        last = watched.last
        assert isinstance(last, tg.TurnFailed), last
        assert last.error.kind == "stalled", last.error
        (attempt,) = last.answer.attempts
        assert attempt.ended_s is not None
        due_s = watched.deltas[-1].at_s + budget_s
        found.append(
            {
                "fenced_s": attempt.started_at_s + attempt.ended_s - due_s,
                "taken_s": watched.ended_at_s + epoch_s - due_s,
            }
        )
    return found


def stop_workers(
    runtime: tg.Runtime, make: Make, *, url: str, samples: int, port: int
) -> list[dict[str, float]]:
    """Stop the worker of a turn with SIGSTOP, interrupt the turn, and wait for the worker's end."""
    found = []
    for _ in range(samples):
        watched = _Watched(runtime.start(make(url)))
        watched.flows.wait()
        (pid,) = connected(family(os.getpid()), port)
        pidfd = os.pidfd_open(pid)
        gone = select.poll()
        gone.register(pidfd, select.POLLIN)
        os.kill(pid, signal.SIGSTOP)
        at_s = time.monotonic()
        watched.turn.interrupt("enough")
        gone.poll()
        gone_s = time.monotonic() - at_s
        os.close(pidfd)
        watched.join()
        assert isinstance(watched.last, tg.TurnInterrupted)
        found.append({"taken_s": watched.ended_at_s - at_s, "gone_s": gone_s})
    return found

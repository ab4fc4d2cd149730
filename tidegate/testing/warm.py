"""Workers that have served before the test begins, so that its small budgets measure no start."""

from __future__ import annotations

from tidegate.lab import Answer, Lab, chat, gate
from tidegate.protocol.endpoints import Endpoint
from tidegate.protocol.requests import Request
from tidegate.runtime import Runtime


def warm(runtime: Runtime, workers: int) -> None:
    """Run as many turns at the same time as there are workers, and wait for their answers.

    Args:
        runtime: a runtime without turns.
        workers: how many it was made with.

    Raises:
        TurnError: a worker cannot even do this.
    """
    held = Answer([chat.role(), gate("all are there"), *chat.answer("warm").steps], repeat=True)
    with Lab([held]) as lab:
        request = Request(Endpoint.chat(lab.url, "warm"), {"model": "warm", "messages": []})
        turns = [runtime.start(request) for _ in range(workers)]
        lab.reached("all are there", timeout=30.0, times=workers)
        lab.open("all are there")
        for turn in turns:
            turn.result()

"""Hundreds of Bedrock streams at once: sockets in one loop, and no thread for any of them."""

from pathlib import Path

import pytest

import tidegate as tg
from tidegate.lab import Lab, converse, gate
from tidegate.testing.reading import Reading


STREAMS = 500
THREADS_MAX = 16
"""The loop, those who sign, and those who import and look names up; however many streams."""


@pytest.mark.timeout(180)
def test_no_stream_has_a_thread(monkeypatch, pids_of):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDMANY")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "a-secret-for-many")
    monkeypatch.delenv("AWS_BEARER_TOKEN_BEDROCK", raising=False)
    held = converse.stream(
        converse.message_start(),
        converse.text("Hel"),
        gate("go on"),
        converse.text("lo"),
        converse.message_stop(),
        converse.metadata(3, 2),
        repeat=True,
    )
    payload = {"modelId": "m", "messages": [{"role": "user", "content": [{"text": "Hello"}]}]}
    settings = tg.Settings(preload=("converse",))
    with Lab([held]) as lab, tg.Runtime(workers=1, settings=settings) as runtime:
        request = tg.Request(tg.Endpoint.converse("us-east-1", lab.base), payload)
        _, workers = pids_of(runtime, 2)  # with the standby
        readings = [Reading(runtime.start(request)) for _ in range(STREAMS)]
        for reading in readings:
            reading.until(tg.TextDelta)
        threads = [len([*Path(f"/proc/{pid}/task").iterdir()]) for pid in workers]
        lab.open("go on")
        answers = [reading.to_end().answer for reading in readings]

    assert max(threads) <= THREADS_MAX
    assert {(answer.text, answer.finish) for answer in answers} == {("Hello", "stop")}
    assert len(lab.requests) == STREAMS

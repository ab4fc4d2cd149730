"""Procedures about what a runtime stands in: event loops, a process that is killed, botocore."""

import asyncio
import dataclasses
import os
import threading
import time
from pathlib import Path

import pytest

import tidegate as tg
from tests.cases import served
from tests.cases.stage import PAYLOADS, Play, seen
from tests.daemon.sockets import Client
from tidegate.lab import End, converse
from tidegate.testing import Answer, chat
from tidegate.testing.eventually import eventually


def several_loops(case, stage):
    """PRC-02."""
    lab = stage.lab_for(case)
    calls = []

    async def one_call():
        began_s = time.monotonic()
        turn = stage.runtime.start(stage.request(case, lab))
        events = [event async for event in turn]
        answer = await turn
        calls.append(seen(events, began_s, lambda: answer))

    for _ in range(2):
        asyncio.run(one_call())
    threads = [threading.Thread(target=lambda: asyncio.run(one_call())) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    return Play(stage, case, lab, calls)


def killed_host(case, stage):
    """PRC-04."""
    lab = stage.lab([Answer([chat.text("on and on"), End.HOLD])])
    with served.daemon_before(lab) as daemon, Client(daemon.port) as client:
        client.ask("POST", served.CHAT, PAYLOADS["chat"] | {"stream": True})
        client.until(b"on and on")
        workers = descendants(daemon.process.pid)
        assert lab.open_connections_count == 1
        killed_s = time.monotonic()
        daemon.process.kill()
        daemon.process.wait(30)
        closed = lab.wait_closed(0, timeout=30)
        eventually(lambda: not _running(workers), within_s=30)
    facts = {
        "workers": workers,
        "workers_left": _running(workers),
        "closed": closed,
        "closed_after_s": closed.at_s - killed_s,
    }
    return Play(stage, case, lab, [], facts)


def limits_of_bedrock(case, stage):
    """BED-07: what a configuration of botocore says, a policy says here."""
    given = [None, tg.Policy(), tg.Policy(connect_timeout_s=5), tg.Policy(alive_timeout_s=900)]
    busy = converse.error_answer(503, "ServiceUnavailableException", "busy")
    facts = {"read_limits_s": [], "requests": [], "reported": []}
    for policy in given:
        lab = stage.lab([dataclasses.replace(busy, repeat=True)])
        request = tg.Request(stage.endpoint("converse", lab), PAYLOADS["converse"], policy=policy)
        resolution = (policy or tg.Policy()).resolved(request)
        facts["read_limits_s"].append(resolution.values().alive_timeout_s)
        # Who tells botocore itself to try again has nobody try again.
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("AWS_MAX_ATTEMPTS", "5")
            call = stage.call(request)
        facts["reported"].append(len(call.answer.attempts))
        facts["requests"].append(len(lab.requests))
    lab = stage.lab([converse.answer("so it is")])
    return Play(stage, case, lab, [stage.call(stage.request(case, lab))], facts)


def descendants(pid):
    """Return the processes that stem from one, without itself."""
    children = [
        int(child)
        for task in Path(f"/proc/{pid}/task").iterdir()
        for child in (task / "children").read_text().split()
    ]
    return children + [each for child in children for each in descendants(child)]


def cpu_s(pid):
    """Return the processor time that a process has had."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _running(pids):
    return [pid for pid in pids if _state(pid) not in ("", "Z", "X")]


def _state(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][:1]
    except OSError:
        return ""

"""Procedures of callers that end turns: from another task, by leaving, one of several."""

import asyncio
import contextlib
import os
import sys
import time

import tidegate as tg
from tests.cases.processes import cpu_s, descendants
from tests.cases.stage import Call, Play, seen


def many_from_another_task(case, stage):
    """CAN-05."""
    lab = stage.lab_for(case)
    facts = {"loop_errors": []}
    calls, interrupted_s = asyncio.run(_interrupt_all(case, stage, lab, facts))
    closed = [lab.wait_closed(index) for index in range(len(calls))]
    facts["closed"] = [(each, each.at_s - interrupted_s) for each in closed]
    facts["cpu_s"] = _cpu_s_of_a_second()
    return Play(stage, case, lab, calls, facts)


async def _interrupt_all(case, stage, lab, facts):
    _keep_errors(facts)
    began_s = time.monotonic()
    turns = [stage.runtime.start(stage.request(case, lab)) for _ in range(20)]
    readers = [aiter(turn) for turn in turns]
    begun = [asyncio.Event() for _ in turns]
    tasks = [
        asyncio.create_task(_read(turn, reader, first, began_s))
        for turn, reader, first in zip(turns, readers, begun, strict=True)
    ]
    for each in begun:
        await each.wait()
    interrupted_s = time.monotonic()
    for turn in turns:
        assert turn.interrupt("stop")
    for reader in readers:
        await reader.aclose()
    return await asyncio.gather(*tasks), interrupted_s


async def _read(turn, reader, first, began_s):
    events = []
    async for event in reader:
        events.append(event)
        if isinstance(event, tg.TextDelta):
            first.set()
    with contextlib.suppress(tg.TurnError):
        await turn
    return seen(events, began_s, turn.result)


def wrapped_in_generators(case, stage):
    """CAN-07."""
    lab = stage.lab_for(case)
    facts = {"loop_errors": []}
    call, left_s = asyncio.run(_leave(case, stage, lab, facts))
    closed = lab.wait_closed(0)
    facts["closed"] = [(closed, closed.at_s - left_s)]
    return Play(stage, case, lab, [call], facts)


async def _leave(case, stage, lab, facts):
    _keep_errors(facts)
    # Whatever the finalizer of a generator would do, it does not: nothing may depend on it.
    sys.set_asyncgen_hooks(finalizer=lambda _generator: None)
    began_s = time.monotonic()
    events = []
    async with stage.runtime.start(stage.request(case, lab)) as turn:
        outer = _passed_on(_passed_on(turn))
        while sum(isinstance(event, tg.TextDelta) for event in events) < 2:
            events.append(await anext(outer))
        await outer.aclose()
    left_s = time.monotonic()
    await asyncio.sleep(0.5)  # what the loop has to do, it does
    return Call(turn.snapshot(), None, events, began_s, left_s), left_s


async def _passed_on(events):
    async for event in events:
        yield event


def the_turn_before(case, stage):
    """SES-03."""
    lab = stage.lab_for(case)
    began_s = time.monotonic()
    first = stage.runtime.start(stage.request(case, lab))
    next(first.text())
    interrupted_s = time.monotonic()
    assert first.interrupt()
    second = stage.runtime.start(stage.request(case, lab))
    lab.wait_requests(2)
    assert not first.interrupt()
    calls = [seen([*turn], began_s, turn.result) for turn in (first, second)]
    facts = {"closed_after_s": lab.wait_closed(0).at_s - interrupted_s}
    return Play(stage, case, lab, calls, facts)


def _keep_errors(facts):
    def keep(_loop, context):
        facts["loop_errors"].append(repr(context))

    asyncio.get_running_loop().set_exception_handler(keep)


def _cpu_s_of_a_second():
    """Return what this process and its workers use of the next second."""
    pids = [os.getpid(), *descendants(os.getpid())]
    before_s = sum(map(cpu_s, pids))
    time.sleep(1)
    return sum(map(cpu_s, pids)) - before_s

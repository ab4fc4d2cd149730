"""However often the daemon is killed, whatever a client saw is so, and no turn is left open.

Daemons are killed one after the other, at moments that a seed draws, while their turns stream and
their clients come back to their cursors. ``TIDEGATE_CRASH_TURNS`` says how many turns each has.
"""

import asyncio
import itertools
import json
import math
import os
import random

import pytest

from tests.daemon.crash.clients import ENDS, Reader, Turn
from tests.daemon.crash.house import House
from tests.daemon.crash.provider import Provider, words_of
from tidegate.lab import Lab


ROUNDS = 20
TURNS = int(os.environ.get("TIDEGATE_CRASH_TURNS", "24"))
SEED = 20_261_130


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_nothing_that_a_client_saw_is_lost_by_kills(tmp_path):
    asyncio.run(_kill_and_check(tmp_path))


async def _kill_and_check(folder):
    dice = random.Random(SEED)
    with Lab(route=Provider(SEED).answer) as lab:
        house = House(folder, lab, TURNS)
        try:
            turns = await _rounds(house, dice)
            stored = {turn["id"]: turn for turn in await house.turns()}
            events = await _all_events(house, stored)
            await house.end()
        finally:
            house.clear()
        assert lab.unexpected == []
    for turn_id, turn in stored.items():
        _check_turn(turn, events[turn_id])
    for turn in turns:
        _check_client(turn, stored, events)
    _check_tokens(turns, events)
    keys = [turn.name for turn in turns if turn.id is not None]
    assert len({turn.id for turn in turns if turn.id is not None}) == len(keys)


async def _rounds(house, dice):
    turns = []
    async with asyncio.TaskGroup() as clients:
        for number in range(ROUNDS):
            # As many early moments as late ones: much happens at once when turns begin.
            most = TURNS * 15
            house.kill_at(round(math.exp(dice.uniform(0, math.log(most)))))
            await house.start()
            new = [
                Turn(house, f"r{number}t{place}", random.Random(f"{SEED} {number} {place}"))
                for place in range(TURNS)
            ]
            turns += new
            for turn in new:
                clients.create_task(turn.live())
            await house.killed()
        house.kill_at(0)
        await house.start()
    return turns


async def _all_events(house, stored):
    """Read each turn from its beginning, as somebody who never saw it."""
    found = {}
    for turn_id in stored:
        reader = Reader(house, turn_id)
        await reader.read()
        found[turn_id] = reader.events
    return found


def _check_turn(turn, events):
    """Look that a turn is whole in itself: what it says at its end is what it said."""
    kinds = [kind for kind, _ in events]
    assert [kind for kind in kinds if kind in ENDS] == kinds[-1:]
    records = [json.loads(data) for _, data in events]
    assert [record["offset"] for record in records] == list(range(len(records)))
    assert kinds[-1] == f"turn.{turn['state']}"
    texts = {}
    for record in records:
        if record["type"] == "text.delta":
            texts.setdefault(record["attempt"], []).append(record["text"])
    for words in texts.values():
        said = "".join(words)
        assert "".join(words_of(turn["model"], said.count(">"))) == said
    answer = records[-1]["answer"].get("text", "")
    assert answer == "".join(texts[max(texts)] if texts else "")


def _check_client(turn, stored, events):
    """Look that all is kept that this client saw."""
    if turn.id is None:
        return
    kept = events[turn.id]
    assert stored[turn.id]["model"] == turn.name
    for reader in turn.readers:
        assert reader.events == kept[reader.first :]
    answer = json.loads(kept[-1][1])["answer"].get("text", "")
    assert answer.startswith(turn.text)
    if turn.whole:
        assert (stored[turn.id]["state"], turn.text) == ("completed", answer)


def _check_tokens(turns, events):
    """Look that each run of the daemon has larger tokens than all before it."""
    tokens = {}
    for turn in turns:
        if turn.run:
            records = [json.loads(data) for _, data in events[turn.id]]
            given = [each["token"] for each in records if each["type"] == "attempt.started"]
            tokens.setdefault(turn.run, []).extend(given)
    runs = [given for _, given in sorted(tokens.items()) if given]
    assert len(runs) > ROUNDS / 2
    assert all(max(one) < min(two) for one, two in itertools.pairwise(runs))

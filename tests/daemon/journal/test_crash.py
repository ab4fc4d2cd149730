"""Whatever was said to be done before a kill is there after it, once."""

import json
import random
import re
import subprocess
import sys

import pytest

from tests.daemon.journal.conftest import GUARD_S
from tidegate.testing.eventually import eventually


ROUNDS = 20
TURNS = 24
WRITER = """
import os, random, sys, threading
from tidegate.daemon.journal import Entry, Journal, TurnRecord
from tidegate.protocol.answers import Answer
from tidegate.protocol.events import AttemptStarted, TextDelta, TurnInterrupted

path, name, seed, turns = sys.argv[1:]
journal = Journal.open(path, keep_s=1e12, bytes_max=1 << 40, idempotency_keep_s=1e12,
                       on_trouble=print)
def say(*words):
    # One write is whole or not there, whatever ends the process meanwhile.
    os.write(1, (" ".join(map(str, words)) + "\\n").encode())

say("epoch", journal.epoch)
def write(number):
    dice = random.Random(f"{seed}/{number}")
    turn_id = f"{name}_{number}"
    journal.begin(TurnRecord(id=turn_id, wire="chat"), lambda _: say("begun", turn_id))
    credit = threading.Semaphore(50)
    def put(first, events, *words):
        def done():
            say(turn_id, first, len(events), *words)
            credit.release()
        credit.acquire()
        journal.write(Entry(turn_id, first, events, done))
    put(0, [AttemptStarted(turn_id, 1, 0, 1.0, token=journal.epoch << 32)])
    offset = 1
    while True:
        count = dice.choice((1, 1, 1, 1, 7, 40))
        offsets = range(offset, offset + count)
        put(offset, [TextDelta(turn_id, 1, each, 2.0, f"<{each}>") for each in offsets])
        offset += count
        if number % 4 == 0 and offset > 200:
            put(offset, [TurnInterrupted(turn_id, 1, offset, 3.0, reason="end", answer=Answer())],
                "ended")
            return
threads = [threading.Thread(target=write, args=(number,)) for number in range(int(turns))]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""


class Said:
    """What a writer said before it was killed."""

    def __init__(self, output):
        # The last line may be cut, and then it was never said.
        lines = [line.split() for line in output.split("\n")[:-1]]
        self.epoch = int(lines[0][1])
        self.begun = {words[1] for words in lines[1:] if words[0] == "begun"}
        self.next = {}
        self.ended = set()
        for words in lines[1:]:
            if words[0] != "begun":
                turn_id, first, count = words[0], int(words[1]), int(words[2])
                assert first == self.next.get(turn_id, 0), "done out of order"
                self.next[turn_id] = first + count
                self.ended |= {turn_id} if words[3:] == ["ended"] else set()


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_nothing_that_was_done_is_lost_by_a_kill(path, open_journal):
    dice = random.Random(7)
    epochs = []
    for number in range(ROUNDS):
        said = _killed(path, f"turn_{number}", dice.randrange(1000, 60_000))
        journal = open_journal()
        epochs += [said.epoch, journal.epoch]
        _check(journal, said, f"turn_{number}")
        journal.close()

    assert epochs == list(range(1, 2 * ROUNDS + 1))


def _killed(path, name, size):
    """Kill a writer once it has said so many bytes; returns what they said."""
    output = path.with_name(f"{name}.said")
    command = [sys.executable, "-c", WRITER, str(path), name, name, str(TURNS)]
    with output.open("wb") as file, subprocess.Popen(command, stdout=file) as writer:
        try:
            # A file, so that it never waits for us: the kill comes at whatever it is about.
            eventually(lambda: output.stat().st_size >= size, within_s=GUARD_S)
        finally:
            writer.kill()
    return Said(output.read_text())


def _check(journal, said, name):
    turns = {turn.id: turn for turn in journal.turns(limit=1000) if turn.id.startswith(f"{name}_")}
    assert said.begun <= set(turns)
    recovered = {turn.id for turn in journal.recovered()}
    for turn_id, turn in turns.items():
        events = _events(journal, turn_id)
        # Every offset once, and each with the text that belongs there.
        assert [event["offset"] for event in events] == list(range(len(events)))
        texts = [event["text"] for event in events if event["type"] == "text.delta"]
        assert texts == [f"<{offset}>" for offset in range(1, len(texts) + 1)]
        assert len(events) >= said.next.get(turn_id, 0)
        ends = [event for event in events if re.match(r"turn\.", event["type"])]
        assert ends == events[-1:]
        if turn_id in recovered:
            assert turn_id not in said.ended
            assert (turn.state, ends[0]["error"]["reason"]) == ("failed", "daemon_lost")
            assert ends[0]["answer"].get("text", "") == "".join(texts)
        else:
            assert turn.state == "interrupted"


def _events(journal, turn_id):
    events, after = [], -1
    while True:
        stored = journal.events(turn_id, after, 1 << 20)
        events += [json.loads(line) for _, _, line in stored.items]
        if stored.ended:
            return events
        after = stored.items[-1][1]

"""Turns of a daemon for the commands that watch and stop them."""

import os

from tests.daemon.hosting import PROMPT
from tidegate.lab import Answer, End, chat, gate
from tidegate.testing.eventually import eventually


GUARD_S = 50
ENVIRON = {name: text for name, text in os.environ.items() if not name.startswith("TIDEGATE_")}


def held(*words):
    """Some words, and then silence until the gate is opened."""
    return Answer([chat.role(), *map(chat.text, words), gate("shown"), chat.finish(), chat.done()])


def silent(*words):
    return Answer([chat.role(), *map(chat.text, words), End.HOLD])


def ask(daemon, model="test-model", **more):
    """Begin a turn, and return its id."""
    body = {"endpoint": "main", "payload": {**PROMPT, "model": model}, **more}
    with daemon.client() as client:
        return client.post("/v1/turns", json=body).raise_for_status().json()["id"]


def until(daemon, turn, events):
    """Wait until a turn has so many events."""
    with daemon.client() as client:

        def look():
            return client.get(f"/v1/turns/{turn}").json().get("events", 0) >= events

        eventually(look, within_s=30)


def ended(process):
    output, errors = process.communicate(timeout=GUARD_S)
    return process.returncode, output, errors

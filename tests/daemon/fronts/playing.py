"""How tests of the fronts come by what a turn is made of, and render all of it."""

import json
import threading

import tidegate as tg
from tidegate.daemon.fronts import front_for
from tidegate.engine import Engine, Recording
from tidegate.lab import Lab
from tidegate.protocol.answers import Answer
from tidegate.protocol.deltas import Block
from tidegate.protocol.events import (
    AttemptStarted,
    ReasoningDelta,
    RefusalDelta,
    TextDelta,
    ToolCallDelta,
    TurnCompleted,
    TurnFailed,
    TurnInterrupted,
)
from tidegate.protocol.failures import Failure, FailureKind
from tidegate.runtime import Runtime


TURN = "turn_1"
GUARD_S = 30
PAYLOADS = {
    "chat": {"model": "asked", "messages": [{"role": "user", "content": "Hello"}]},
    "responses": {"model": "asked", "input": "Hello"},
    "messages": {
        "model": "asked",
        "max_tokens": 99,
        "messages": [{"role": "user", "content": "Hello"}],
    },
}


class Following(Runtime):
    """A runtime whose readers get the blocks too."""

    def __init__(self, workers=1):
        settings = tg.Settings(preload=("chat", "messages"))
        Engine.__init__(self, workers, settings, (), None, recording=Recording())


def payload_for(api, **fields):
    return {**PAYLOADS[api], "stream": True, **fields}


def play(runtime, api, answers, *, plain=False, retries=0, interrupt_after=None, **fields):
    """Play a script to a turn, and return all that a reader gets of it.

    Args:
        plain: whether it is not streamed.
        retries: how many.
        interrupt_after: the text with which the reader has had enough.
    """
    with Lab(answers) as lab:
        base = lab.base if api == "messages" else lab.url
        endpoint = getattr(tg.Endpoint, api)(base, "test-key", headers={"x-test": TURN})
        policy = tg.Policy(backoff_s=(0.01,), backoff_jitter=0.0, retries=retries)
        # What the wire sets itself is no part of a request to it.
        payload = {**PAYLOADS[api], **fields}
        payload.pop("stream_options", None)
        turn = runtime.start(tg.Request(endpoint, payload, policy=policy, stream=not plain))
        return items_of(turn, interrupt_after)


def items_of(turn, interrupt_after=None):
    feed, items = turn._feed(), []
    while not feed.drained:
        more = threading.Event()
        taken = feed.take(more.set)
        items += taken
        if interrupt_after and any(getattr(each, "text", "") == interrupt_after for each in taken):
            turn.interrupt("enough")
        assert taken or feed.drained or more.wait(GUARD_S)
    feed.close()
    return items


class Looks:
    """Counts how often a front looks at the answer so far."""

    def __init__(self, answer=None):
        self.count = 0
        self._answer = answer or Answer()

    def __call__(self):
        self.count += 1
        return self._answer


def new_front(api, *, notices=True, created=7, **fields):
    return front_for(api, TURN, payload_for(api, **fields), notices=notices, created=created)


def render(api, items, answer=None, **more):
    """Render all items, and return the bytes."""
    front = new_front(api, **more)
    looks = Looks(answer or items[-1].answer)
    body = b"".join(front.frames(item, looks) for item in items)
    assert looks.count <= 1
    return body


def frames_of(body):
    """Return (name, data) of each frame; the data decoded, if it is JSON."""
    assert not body or body.endswith(b"\n\n")
    found = []
    for frame in body.decode().removesuffix("\n\n").split("\n\n") if body else ():
        name, data = "", None
        for line in frame.split("\n"):
            field, _, value = line.partition(": ")
            if not field:
                data = data or f": {value}"
            name = value if field == "event" else name
            data = value if field == "data" else data
        found.append((name, json.loads(data) if data.startswith("{") else data))
    return found


def data_of(body):
    return [data for _, data in frames_of(body)]


class Events:
    """Makes the events of one turn."""

    def __init__(self):
        self._offset = 0

    def _place(self, attempt=1):
        self._offset += 1
        return TURN, attempt, self._offset - 1, 5.5

    def started(self, attempt=1, token=None):
        return AttemptStarted(*self._place(attempt), token=token or attempt)

    def text(self, text, choice=0):
        return TextDelta(*self._place(), text, choice)

    def reasoning(self, text, choice=0):
        return ReasoningDelta(*self._place(), text, choice)

    def refusal(self, text, choice=0):
        return RefusalDelta(*self._place(), text, choice)

    def tool(self, index=0, call_id=None, name=None, arguments="", **more):
        return ToolCallDelta(*self._place(), index, call_id, name, arguments, **more)

    def notice(self, kind, text):
        return tg.Notice(*self._place(), kind, text)

    def other(self, kind, attempt=1, **fields):
        return kind(*self._place(attempt), **fields)

    def completed(self, **fields):
        return TurnCompleted(*self._place(), answer=Answer(**({"finish": "stop"} | fields)))

    def failed(self, kind=FailureKind.TRUNCATED, **fields):
        failure = Failure(kind=kind, detail="it broke off")
        return TurnFailed(*self._place(), error=failure, answer=Answer(**fields))

    def interrupted(self, reason="enough"):
        return TurnInterrupted(*self._place(), reason=reason, answer=Answer())


def block(index, **data):
    return Block(index, json.dumps(data).encode() if data else b"")

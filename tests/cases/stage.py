"""Plays a case against a lab over the public API, and keeps all that it showed."""

import threading
import time
from dataclasses import dataclass, field
from typing import Any

import msgspec

import tidegate as tg
from tests.cases.records import Case
from tidegate.lab import End, Lab, answers_from, converse
from tidegate.testing.eventually import eventually


WORDS = [{"role": "user", "content": "Hello"}]
BLOCKS = [{"role": "user", "content": [{"text": "Hello"}]}]
PAYLOADS = {
    "chat": {"model": "m1", "messages": WORDS},
    "responses": {"model": "m1", "input": "Hello"},
    "messages": {"model": "m1", "max_tokens": 99, "messages": WORDS},
    "converse": {"modelId": "m1", "messages": BLOCKS},
}
WIRES = {
    "chat": "chat",
    "responses": "responses",
    "anthropic": "messages",
    "bedrock": "converse",
    "runtime": "chat",
}


@dataclass
class Call:
    """One turn, as its caller saw it."""

    answer: tg.Answer
    failure: tg.Failure | None
    events: list[Any]
    began_s: float
    ended_s: float

    @property
    def finish(self):
        """How the answer ended."""
        return self.answer.finish

    @property
    def shown(self):
        """Everything that a consumer was told, as text."""
        return msgspec.json.encode([self.events, self.answer, self.failure]).decode()

    @property
    def visible(self):
        """The text that was taken and not superseded."""
        pieces = [event for event in self.events if isinstance(event, tg.TextDelta)]
        voided = {each.attempt for each in self.events if isinstance(each, tg.AttemptSuperseded)}
        return "".join(event.text for event in pieces if event.attempt not in voided)


@dataclass
class Play:
    """A case that was played; ``facts`` are what its procedure saw beside the calls."""

    stage: "Stage"
    case: Case
    lab: Lab | None
    calls: list[Call]
    facts: dict[str, Any] = field(default_factory=dict)
    variants: dict[str, "Play"] = field(default_factory=dict)


class Stage:
    """Makes labs and requests for one test; what it made is closed by ``closing``."""

    def __init__(self, runtime, capture, closing, name, log):
        self.runtime = runtime
        self.capture = capture
        self.log = log
        self.threads = {*threading.enumerate()}
        self._closing = closing
        self._name = name
        self._labs = []

    @property
    def unexpected(self):
        """The requests for which no answer was left."""
        return [request for lab in self._labs for request in lab.unexpected]

    def idle(self):
        """Wait until no attempt and no thread is left of what was started."""
        supervision = self.runtime._supervisor.supervision
        eventually(lambda: not supervision.turns)
        assert self.runtime.statistics().running == 0
        eventually(lambda: not self._threads())

    def _threads(self):
        new = {*threading.enumerate()} - self.threads
        return [each.name for each in new if each.name != "lab"]

    def lab(self, answers):
        lab = self._closing.enter_context(Lab(answers))
        self._labs.append(lab)
        return lab

    def lab_for(self, case):
        return self.lab(answers_of(case))

    def request(self, case, lab, *, payload=None, **policy):
        """Make the request of a case; ``policy`` has what differs from its settings."""
        wire = WIRES[case.provider_wire]
        settings = case.given.settings
        payload = payload or PAYLOADS[wire]
        if settings.tools:
            assert wire == "chat", f"tools are offered on {wire}"
            payload = payload | {"tools": [_tool(name) for name in settings.tools]}
        given = msgspec.structs.replace(settings.policy(), **policy)
        return tg.Request(self.endpoint(wire, lab), payload, policy=given)

    def endpoint(self, wire, lab):
        return endpoint(wire, lab, self._name)

    def call(self, request):
        """Run a turn as a reader does who takes each event as it comes."""
        began_s = time.monotonic()
        turn = self.runtime.start(request)
        events = [*turn]
        return seen(events, began_s, turn.result)


def endpoint(wire, lab, name):
    """Return where a lab is; a header with ``name`` keeps apart what is learned of it."""
    own = {"api_key": "test-key", "headers": {"x-test": name}}
    if wire == "converse":
        return tg.Endpoint.converse("us-east-1", lab.base, **own)
    make = getattr(tg.Endpoint, wire)
    return make(lab.base if wire == "messages" else lab.url, **own)


def seen(events, began_s, result):
    """Return what a caller saw of a turn that has ended; ``result`` gives or raises its end."""
    try:
        answer = result()
    except tg.TurnError as error:
        return Call(error.answer, error.failure, events, began_s, time.monotonic())
    return Call(answer, answer.failure, events, began_s, time.monotonic())


def answers_of(case):
    """Return what the lab answers: a script as it is, events of Bedrock as real frames."""
    given = case.given
    return [*answers_from([*given.script, *given.upstream]), *map(_event_stream, given.event_calls)]


def _event_stream(call):
    return converse.stream(*map(_frame, call["events"]), End(call["end"]))


def _frame(event):
    [(kind, value)] = event.items()
    if kind == "exception":
        return converse.exception(value["type"], value["message"])
    return converse.event(kind, value)


def _tool(name):
    parameters = {"type": "object", "properties": {}}
    return {"type": "function", "function": {"name": name, "parameters": parameters}}

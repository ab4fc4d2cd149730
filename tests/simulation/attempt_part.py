"""The provider actors' machine and what its stream brings, as a part of the model."""

from __future__ import annotations

from functools import reduce

from tests.simulation.tables import Table
from tidegate.actors.provider import machine as provider
from tidegate.actors.provider.dialects.batch import Batch
from tidegate.actors.provider.facts import (
    AttemptFailed,
    BatchCame,
    BodyEnded,
    HeadersCame,
    PreparingBegan,
    PreparingOver,
    Send,
    SendNow,
)
from tidegate.protocol.deltas import Text
from tidegate.protocol.failures import Failure, FailureKind


LOST = Failure(kind=FailureKind.CONNECTION_LOST, retryable=True)
FATAL = Failure(kind=FailureKind.AUTH, status=401)


class AttemptPart:
    """The provider's machine and what its stream brings."""

    def __init__(self, messages):
        self.states = Table()
        self._messages = messages
        self._steps = {}

    def begin(self, start):
        """Return the state of an attempt that was just started."""
        state = provider.AttemptState(start.turn, start.token, start.limit_bytes)
        return self.states.number(state)

    def take(self, number, thing, now_s):
        """Return the next state and the messages of the frame that leaves; empty for none.

        Args:
            number: the state.
            thing: what happens, as ``came`` knows it, or a message of the machine.
            now_s: when.
        """
        key = (number, thing, now_s)
        step = self._steps.get(key)
        if step is None:
            state = self.states.things[number]
            message = came(state, thing) if isinstance(thing, str) else thing
            events, effects = provider.decide(state, message, now_s)
            sent = [each.message for each in effects if isinstance(each, Send | SendNow)]
            reached = self.states.number(reduce(provider.evolve, events, state))
            step = self._steps[key] = (reached, tuple(map(self._messages.number, sent)))
        return step


def came(state, thing):
    """Return what the machine is told when ``thing`` comes out of the provider's socket."""
    text = Text(f"{state.token}.{state.seq} ")
    match thing:
        case "waking":
            return PreparingBegan()
        case "woken":
            return PreparingOver()
        case "headers":
            return HeadersCame()
        case "text":
            return BatchCame(Batch(deltas=[text], events=1))
        case "blank":
            return BatchCame(Batch(deltas=[Text(" ")], events=1))
        case "comment":
            return BatchCame(Batch())
        case "event":
            return BatchCame(Batch(events=1))
        case "finish":
            return BatchCame(Batch(finishes=("stop",), events=1))
        case "whole":
            return BatchCame(Batch(deltas=[text], finishes=("stop",), events=2, done=True))
        case "end":
            return BodyEnded(Batch())
        case "fatal":
            return AttemptFailed(FATAL)
    assert thing == "lost", thing
    return AttemptFailed(LOST)

"""What the supervisor's machine orders, what it is told, and the facts from outside it needs."""

from __future__ import annotations

import dataclasses
from typing import TypeAlias

import msgspec

from tidegate.actors.decision import Decision
from tidegate.actors.supervisor.pool import Kill, Spawn
from tidegate.actors.supervisor.retry import Asked
from tidegate.actors.supervisor.state import TurnFact
from tidegate.protocol.attempts import Ended, StartAttempt, Target, Waking, Woken
from tidegate.protocol.base import Generation, Token, TurnNumber
from tidegate.protocol.endpoints import Endpoint
from tidegate.protocol.failures import Failure
from tidegate.protocol.sink import (
    Admit,
    Announce,
    Conclude,
    EvidenceTaken,
    Fence,
    Fenced,
    FenceIfIdle,
    Forget,
    NotIdle,
    Seal,
    TurnClosed,
)
from tidegate.protocol.supervisor import Interrupt, TimerName


class Memory(msgspec.Struct, frozen=True):
    """What is remembered of an endpoint.

    Attributes:
        stream: whether it is worth asking for a stream.
        usage_options: whether it takes ``stream_options``.
    """

    stream: bool = True
    usage_options: bool = True

    def limit(self, asked: Asked) -> Asked:
        """Return ``asked`` without what the endpoint is known to refuse."""
        stream = asked.stream and self.stream
        usage_options = asked.usage_options and self.usage_options and stream
        return dataclasses.replace(asked, stream=stream, usage_options=usage_options)


class Context(msgspec.Struct, frozen=True):
    """What a decision needs of the world.

    Attributes:
        now_s: monotonic time.
        token: the token of the next attempt, should there be one.
        generation: the worker for it; None if there is none.
        back_in_s: in how many seconds there can be one, if there is none; None if never.
        ready: whether that worker's loop runs already.
        memory: what is remembered of the turn's endpoint.
        chance: a random number from 0 to 1.
    """

    now_s: float
    token: Token
    generation: Generation | None
    back_in_s: int | None = None
    ready: bool = True
    memory: Memory = Memory()
    chance: float = 0.0


class Begin(msgspec.Struct, frozen=True):
    """The turn's target is known, or it fails without an attempt."""

    target: Target | None
    failure: Failure | None = None


class Fired(msgspec.Struct, frozen=True):
    """One of the turn's timers is due."""

    name: TimerName
    heard: bool = False
    starved: bool = False


class WorkerUp(msgspec.Struct, frozen=True):
    """A worker's loop runs; what was placed there before begins only now."""

    generation: Generation


class Ponged(msgspec.Struct, frozen=True):
    """The worker of a cancelled attempt has answered the latest ping on its behalf."""

    token: Token


class Lost(msgspec.Struct, frozen=True):
    """A worker is no more."""

    generation: Generation


TurnMessage: TypeAlias = (
    Begin
    | Interrupt
    | Fenced
    | Ended
    | NotIdle
    | EvidenceTaken
    | TurnClosed
    | Fired
    | WorkerUp
    | Waking
    | Woken
    | Ponged
    | Lost
)


class ToSink(msgspec.Struct, frozen=True):
    """Tell the sink."""

    message: Admit | Announce | Conclude | Fence | Forget | Seal


class ToWorker(msgspec.Struct, frozen=True):
    """Start an attempt."""

    generation: Generation
    message: StartAttempt


class Locate(msgspec.Struct, frozen=True):
    """Find out where the endpoint is now; the answer is a ``Prepared``."""

    turn: TurnNumber
    endpoint: Endpoint


class CancelWorker(msgspec.Struct, frozen=True):
    """Tell a worker to end an attempt, and ping it; the ping's number is the token."""

    generation: Generation
    turn: TurnNumber
    token: Token


class PingWorker(msgspec.Struct, frozen=True):
    """Ping a worker on behalf of an attempt that was cancelled, whose token is the number."""

    generation: Generation
    token: Token


class AskIdle(msgspec.Struct, frozen=True):
    """Put the question behind what the worker's socket holds."""

    generation: Generation
    question: FenceIfIdle


class StartTimer(msgspec.Struct, frozen=True):
    """Fire at an instant; with a worker, say whether that was heard, or starved, meanwhile."""

    name: TimerName
    at_s: float
    generation: Generation | None = None


class CancelTimer(msgspec.Struct, frozen=True):
    """Do not fire, if it has not yet."""

    name: TimerName


class Quarantine(msgspec.Struct, frozen=True):
    """An attempt does not end, but its worker's loop turns: let the others there finish."""

    generation: Generation


class WorkerWedged(msgspec.Struct, frozen=True):
    """The worker answers nothing: end it."""

    generation: Generation


class Settled(msgspec.Struct, frozen=True):
    """An attempt has left its worker."""

    generation: Generation
    cancelled: bool


class Learn(msgspec.Struct, frozen=True):
    """An attempt failed; the breaker and the memory of the endpoint may want to know."""

    failure: Failure
    refused: str
    learned: str
    started_s: float


class Known(msgspec.Struct, frozen=True):
    """The turn has ended; the breaker and the memory of the endpoint may want to know."""

    closed: TurnClosed
    started_s: float
    single_interrupt: bool


TurnEffect: TypeAlias = (
    ToSink
    | ToWorker
    | Locate
    | CancelWorker
    | PingWorker
    | AskIdle
    | StartTimer
    | CancelTimer
    | Quarantine
    | WorkerWedged
    | Settled
    | Learn
    | Known
)
TurnDecision: TypeAlias = Decision[TurnFact, TurnEffect]

ShellOrder: TypeAlias = (
    ToSink
    | ToWorker
    | Locate
    | CancelWorker
    | PingWorker
    | AskIdle
    | StartTimer
    | CancelTimer
    | Spawn
    | Kill
)

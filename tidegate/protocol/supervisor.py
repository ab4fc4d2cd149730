"""What the supervisor is told besides the sink's reports; ``Interrupt`` takes the fast lane."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TypeAlias

from tidegate.protocol.attempts import Target
from tidegate.protocol.base import Message, TurnNumber
from tidegate.protocol.endpoints import Endpoint
from tidegate.protocol.failures import Failure
from tidegate.protocol.resolution import Resolved


TimerName: TypeAlias = tuple[str, int]
"""What a timer is for, and the turn or token that it is about."""


class TurnPlan(Message, frozen=True, array_like=True):
    """All that the supervisor needs to make attempts at a turn.

    Attributes:
        label: wire and address, for reports.
        memory: what is learned about streaming is remembered under this key.
        circuit: stale kills are counted under this key.
        body: the payload as JSON without ``stream`` and ``stream_options``.
        stream: whether the caller wants a stream.
        stream_options: as in ``Order``.
        choices: how many choices must show evidence.
        moving: the endpoint, if its address may be another one at the next attempt.
        factory: of a custom stream, which has a worker to itself; else empty.
        inline: whether the stream is read in its caller's thread instead.
        capture: how the names of the files begin that note the attempts; empty for none.
        irrevocable: whether a reader cannot be told that what it has taken is void.
    """

    label: str
    memory: Hashable
    circuit: Hashable
    body: bytes
    stream: bool
    stream_options: bytes
    choices: int
    policy: Resolved
    moving: Endpoint | None = None
    factory: str = ""
    inline: bool = False
    capture: str = ""
    irrevocable: bool = False


class Start(Message, frozen=True, array_like=True):
    """Make attempts at a turn once its target is known.

    Attributes:
        target: where to; None if a ``Prepared`` follows.
        failure: why the turn fails without an attempt.
    """

    turn: TurnNumber
    plan: TurnPlan
    target: Target | None = None
    failure: Failure | None = None


class Prepared(Message, frozen=True, array_like=True):
    """The target of a turn's next attempt is known, or cannot be had."""

    turn: TurnNumber
    target: Target | None = None
    failure: Failure | None = None


class Interrupt(Message, frozen=True, array_like=True):
    """Somebody ends a turn.

    Attributes:
        single: whether it was meant for this turn alone, so that its wait may count as stale.
    """

    turn: TurnNumber
    reason: str = ""
    single: bool = True


class TimerFired(Message, frozen=True, array_like=True):
    """A timer is due.

    Attributes:
        heard: whether anything came from the worker of a kill timer, behind what it had sent when
            the timer was started.
        starved: whether nothing came, and it was runnable and got no processor.
    """

    name: TimerName
    heard: bool = False
    starved: bool = False

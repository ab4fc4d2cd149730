"""What the sink's machine orders, and all that it is told."""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from tidegate.actors.decision import Decision
from tidegate.actors.sink.state import SinkFact
from tidegate.protocol.attempts import (
    Deltas,
    Described,
    Ended,
    Finished,
    Life,
    Opened,
    UsageSeen,
    Waking,
    Woken,
)
from tidegate.protocol.base import Token
from tidegate.protocol.failures import Failure
from tidegate.protocol.sink import (
    Admit,
    Announce,
    Conclude,
    EvidenceTaken,
    Fence,
    FenceIfIdle,
    NotIdle,
    OpenTurn,
    Seal,
)


class BeginAttempt(msgspec.Struct, frozen=True):
    """Start the attempt's assembly and report, and publish that it started."""

    admit: Admit


class Supersede(msgspec.Struct, frozen=True):
    """Void the attempt that was the answer; the current one is the answer now."""


class Write(msgspec.Struct, frozen=True):
    """Assemble and publish accepted deltas."""

    deltas: Deltas


class Note(msgspec.Struct, frozen=True):
    """Keep a fact about the current attempt for its report and answer."""

    fact: Opened | Described | UsageSeen | Finished


class Freeze(msgspec.Struct, frozen=True):
    """Freeze the outbox, and report the fence with the snapshot of this instant."""

    token: Token
    failure: Failure
    refused: str = ""
    learned: str = ""


class Publish(msgspec.Struct, frozen=True):
    """Publish an announcement."""

    announce: Announce


class Close(msgspec.Struct, frozen=True):
    """Release what is frozen, publish the terminal event, report it."""

    kind: str
    failure: Failure | None = None
    reason: str = ""


class Report(msgspec.Struct, frozen=True):
    """Tell the supervisor."""

    message: EvidenceTaken | NotIdle | Ended | Waking | Woken


class Grant(msgspec.Struct, frozen=True):
    """Tell the worker how far it may send."""

    token: Token
    limit_bytes: int


class Refuse(msgspec.Struct, frozen=True):
    """Count a message that changed nothing, by its reason."""

    why: str


SinkEffect: TypeAlias = (
    BeginAttempt | Supersede | Write | Note | Freeze | Publish | Close | Report | Grant | Refuse
)
SinkDecision: TypeAlias = Decision[SinkFact, SinkEffect]


class CreditReviewed(msgspec.Struct, frozen=True):
    """What the outbox says of its readers.

    Attributes:
        taken_bytes: what the slowest attached reader has taken of the current attempt.
        waiting: whether somebody waits for the answer or has a callback.
    """

    taken_bytes: int
    waiting: bool


WriterMessage: TypeAlias = (
    OpenTurn
    | Admit
    | Fence
    | FenceIfIdle
    | Announce
    | Conclude
    | Seal
    | CreditReviewed
    | Opened
    | Life
    | Deltas
    | Described
    | UsageSeen
    | Finished
    | Ended
    | Waking
    | Woken
)

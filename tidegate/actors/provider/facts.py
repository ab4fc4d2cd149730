"""What can happen to an attempt, what becomes true of it, and what its shell is told to do.

Path: ``provider/actor.py`` -> this -> ``provider/machine.py``, and back.
"""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from tidegate.actors.provider.dialects.batch import Batch
from tidegate.protocol.attempts import FromWorker
from tidegate.protocol.base import Seq
from tidegate.protocol.failures import Failure


class PreparingBegan(msgspec.Struct, frozen=True):
    """The SDK or its client is not there yet, and is imported or made beside the loop."""


class PreparingOver(msgspec.Struct, frozen=True):
    """Both are there, so that the request can be sent."""


class HeadersCame(msgspec.Struct, frozen=True):
    """The headers of a success are in."""

    request_id: str | None = None


class BatchCame(msgspec.Struct, frozen=True):
    """A read was decoded; a batch without events is bytes that held none."""

    batch: Batch


class BodyEnded(msgspec.Struct, frozen=True):
    """The body is over; ``failure`` says how, unless it was clean.

    Attributes:
        batch: what the decoder made of the rest.
        learned: what this answer showed about the endpoint, if the batch is an answer.
    """

    batch: Batch
    failure: Failure | None = None
    learned: str = ""


class AttemptFailed(msgspec.Struct, frozen=True):
    """Nothing more can come; ``refused`` names a compatibility retry that would help."""

    failure: Failure
    refused: str = ""


class CancelCame(msgspec.Struct, frozen=True):
    """The supervisor ends the attempt."""


class CreditCame(msgspec.Struct, frozen=True):
    """The deltas may reach ``limit_bytes`` in all."""

    limit_bytes: int


AttemptMessage: TypeAlias = (
    PreparingBegan
    | PreparingOver
    | HeadersCame
    | BatchCame
    | BodyEnded
    | AttemptFailed
    | CancelCame
    | CreditCame
)


class HeadersTaken(msgspec.Struct, frozen=True):
    """The attempt streams."""


class DeltasSent(msgspec.Struct, frozen=True):
    """So many more deltas went out."""

    seq: Seq
    count: int
    size_bytes: int


class LifeSent(msgspec.Struct, frozen=True):
    """Life was reported at this instant."""

    at_s: float
    event: bool


class EvidenceSent(msgspec.Struct, frozen=True):
    """The answer is complete."""


class ReadingPaused(msgspec.Struct, frozen=True):
    """The socket rests."""


class CreditTaken(msgspec.Struct, frozen=True):
    """The limit rose, and the socket does not rest any more if it is above what was sent."""

    limit_bytes: int


class AttemptEnded(msgspec.Struct, frozen=True):
    """The end was reported."""


AttemptEvent: TypeAlias = (
    HeadersTaken | DeltasSent | LifeSent | EvidenceSent | ReadingPaused | CreditTaken | AttemptEnded
)


class Send(msgspec.Struct, frozen=True):
    """Send at the end of the loop's turn, together with what else there is."""

    message: FromWorker


class SendNow(msgspec.Struct, frozen=True):
    """Send at once, behind what is queued."""

    message: FromWorker


class PauseReading(msgspec.Struct, frozen=True):
    """Leave the bytes in this socket."""


class ResumeReading(msgspec.Struct, frozen=True):
    """Take bytes again."""


class CloseSocket(msgspec.Struct, frozen=True):
    """Close at once, and go on when it is closed."""


class DrainSocket(msgspec.Struct, frozen=True):
    """Read the little that is left, so that the connection serves again."""


AttemptEffect: TypeAlias = Send | SendNow | PauseReading | ResumeReading | CloseSocket | DrainSocket

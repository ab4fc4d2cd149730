"""What the machine of all turns is told, and what it orders.

A turn is named by its id, which is told apart from all others for ever.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from tidegate.daemon.config.disconnect import OnDisconnect


class Limits(msgspec.Struct, frozen=True):
    """How much the daemon takes on.

    Attributes:
        max_running: turns that may run at once, at least 1.
        max_queued: turns that may wait for that, at least 0; of several owners, more may.
    """

    max_running: int
    max_queued: int


class Asked(msgspec.Struct, frozen=True):
    """Somebody wants a turn, and it is known that it is a new one.

    Attributes:
        owner: whose it is; owners take turns in the queue.
        on_disconnect: what becomes of it when its client leaves; None if that changes nothing.
        client: whether a client waits for its answer, so that it can leave.
    """

    turn: str
    owner: str
    on_disconnect: OnDisconnect | None
    client: bool


class ClientLeft(msgspec.Struct, frozen=True):
    """The client that asked for the turn has left by itself, possibly before ``Asked``."""

    turn: str


class ClientCut(msgspec.Struct, frozen=True):
    """The client that asked for the turn was cut off by the daemon: it did not leave."""

    turn: str


class Attached(msgspec.Struct, frozen=True):
    """One more subscriber reads the turn's events."""

    turn: str


class Detached(msgspec.Struct, frozen=True):
    """A subscriber that was attached is gone, for whatever reason."""

    turn: str


class GraceOver(msgspec.Struct, frozen=True):
    """A timer that ``SetTimer`` asked for has run out."""

    turn: str
    number: int


class InterruptAsked(msgspec.Struct, frozen=True):
    """Somebody wants the turn to end, possibly before ``Asked``."""

    turn: str
    reason: str


class Started(msgspec.Struct, frozen=True):
    """The runtime has taken the turn."""

    turn: str


class StartFailed(msgspec.Struct, frozen=True):
    """The runtime has not taken the turn, and never will.

    Attributes:
        reason: why, for whoever reads how the turn ended.
    """

    turn: str
    reason: str


class Ended(msgspec.Struct, frozen=True):
    """The turn's terminal event is out, whatever it says."""

    turn: str


class Drain(msgspec.Struct, frozen=True):
    """The daemon is to stop; what runs may go on for ``within_s`` seconds from now."""

    within_s: float


class DrainOver(msgspec.Struct, frozen=True):
    """The timer that ``SetDrainTimer`` asked for has run out."""


class JournalTrouble(msgspec.Struct, frozen=True):
    """Nothing can be kept any more."""


class JournalWell(msgspec.Struct, frozen=True):
    """What is written is kept again."""


class LimitsChanged(msgspec.Struct, frozen=True):
    """The configuration was read again."""

    limits: Limits


class Forget(msgspec.Struct, frozen=True):
    """Nobody will speak of this turn any more; a turn that has not ended is not forgotten."""

    turn: str


TurnsMessage: TypeAlias = (
    Asked
    | ClientLeft
    | ClientCut
    | Attached
    | Detached
    | GraceOver
    | InterruptAsked
    | Started
    | StartFailed
    | Ended
    | Drain
    | DrainOver
    | JournalTrouble
    | JournalWell
    | LimitsChanged
    | Forget
)


class Start(msgspec.Struct, frozen=True):
    """Give the turn to the runtime, and tell ``Started`` or ``StartFailed``."""

    turn: str


class Interrupt(msgspec.Struct, frozen=True):
    """Interrupt the turn, which was started.

    It may come before the runtime has taken the turn. Then it holds for the turn that the runtime
    is about to take.
    """

    turn: str
    reason: str


class Refuse(msgspec.Struct, frozen=True):
    """Answer whoever asked that there will be no such turn.

    Attributes:
        status: of HTTP.
        kind: for programs.
        retry_after_s: when it is worth another try, at least 1.
    """

    turn: str
    status: int
    kind: Literal["queue_full", "draining", "journal_unavailable"]
    retry_after_s: int


class EndUnstarted(msgspec.Struct, frozen=True):
    """Publish the end of a turn that the runtime never took: it has sent no request (R7)."""

    turn: str
    how: Literal["interrupted", "failed"]
    reason: str


class SetTimer(msgspec.Struct, frozen=True):
    """Tell ``GraceOver`` with this number after ``delay_s`` seconds."""

    turn: str
    number: int
    delay_s: float


class CancelTimer(msgspec.Struct, frozen=True):
    """Forget that timer; should it have run out already, ``GraceOver`` changes nothing."""

    turn: str
    number: int


class SetDrainTimer(msgspec.Struct, frozen=True):
    """Tell ``DrainOver`` after ``delay_s`` seconds, and no longer when it was asked for before."""

    delay_s: float


class AnnounceDrain(msgspec.Struct, frozen=True):
    """Tell all readers that the daemon stops, and where to go on reading afterwards.

    Attributes:
        within_s: how long what runs may go on.
    """

    within_s: float


class Drained(msgspec.Struct, frozen=True):
    """Nothing runs any more, and nothing ever will: the daemon may stop."""


TurnsEffect: TypeAlias = (
    Start
    | Interrupt
    | Refuse
    | EndUnstarted
    | SetTimer
    | CancelTimer
    | SetDrainTimer
    | AnnounceDrain
    | Drained
)

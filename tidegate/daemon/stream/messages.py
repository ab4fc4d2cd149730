"""What the machine of one response is told, and what it orders."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec


Timer: TypeAlias = Literal["commit", "heartbeat", "slow"]


class Plan(msgspec.Struct, frozen=True):
    """What kind of response it is.

    Attributes:
        streamed: whether it is a stream of frames; if not, it is one reply when the turn is over.
        commit_after_s: how long a stream's status may be held back for the provider's first
            outcome; 0 sends it at once, as for a turn's events.
        heartbeat_s: the silence after which a heartbeat is written, above 0.
        queue_bytes: how much may wait behind a write that the client does not take.
        slow_s: how long a client may leave a write untaken, above 0.
        retractable: whether its reader is told when an attempt is void, so that another one may
            follow what it has read. The providers' own APIs cannot say that.
    """

    streamed: bool
    commit_after_s: float
    heartbeat_s: float
    queue_bytes: int
    slow_s: float
    retractable: bool = False


class Reply(msgspec.Struct, frozen=True):
    """A whole response in one piece."""

    status: int
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""


class Began(msgspec.Struct, frozen=True):
    """The turn is asked for. The first message, once."""


class Items(msgspec.Struct, frozen=True):
    """There is something to read.

    Attributes:
        data: whole frames, or nothing.
        content: whether the provider has shown a first outcome by it: text, reasoning, a tool
            call, a refusal. What comes before that waits for the status.
    """

    data: bytes
    content: bool


class Completed(msgspec.Struct, frozen=True):
    """The turn is complete; or all of its events were read, whatever the last one says.

    Attributes:
        frames: the last ones of a stream, with its normal end mark.
        reply: what it is if it is no stream.
    """

    frames: bytes = b""
    reply: Reply | None = None


class Failed(msgspec.Struct, frozen=True):
    """The turn ended otherwise, or was refused.

    Attributes:
        frames: the wire's error frame, for a stream that has begun.
        reply: the wire's error with its true status, for all that has not.
    """

    frames: bytes
    reply: Reply


class RetryComing(msgspec.Struct, frozen=True):
    """An attempt failed, and another one is to follow.

    Attributes:
        frames: the wire's error frame for the failure of the attempt.
    """

    frames: bytes


class WriteTaken(msgspec.Struct, frozen=True):
    """The client's socket took what was last ordered to be written."""


class Lag(msgspec.Struct, frozen=True):
    """So many bytes wait elsewhere for this client, besides those the machine was handed."""

    waiting_bytes: int


class TimerFired(msgspec.Struct, frozen=True):
    """A timer that ``SetTimer`` asked for has run out."""

    timer: Timer


class ClientLeft(msgspec.Struct, frozen=True):
    """The connection is gone."""


StreamMessage: TypeAlias = (
    Began | Items | Completed | Failed | RetryComing | WriteTaken | Lag | TimerFired | ClientLeft
)


class SendHead(msgspec.Struct, frozen=True):
    """Write status 200 and the head of a stream."""


class Send(msgspec.Struct, frozen=True):
    """Write this, and tell ``WriteTaken`` once the socket has taken it."""

    data: bytes


class SendHeartbeat(msgspec.Struct, frozen=True):
    """Write a heartbeat, and tell ``WriteTaken`` likewise."""


class Answer(msgspec.Struct, frozen=True):
    """Write a whole response, its end included, and tell ``WriteTaken`` likewise."""

    reply: Reply


class End(msgspec.Struct, frozen=True):
    """End the body of the stream.

    Attributes:
        ok: whether its last frames were its normal end.
    """

    ok: bool


class Abort(msgspec.Struct, frozen=True):
    """Close the socket at once, whatever it has not sent."""


class LeaveTurn(msgspec.Struct, frozen=True):
    """Hand nothing of the turn to this response any more; comes once for every response.

    Attributes:
        how: ``ended`` if all was handed over, ``left`` if the client left by itself before that,
            ``cut`` if it was cut off, which does not count as leaving.
    """

    how: Literal["ended", "left", "cut"]


class InterruptTurn(msgspec.Struct, frozen=True):
    """Interrupt the turn, whose next attempt nobody could read."""

    reason: str


class SetTimer(msgspec.Struct, frozen=True):
    """Tell ``TimerFired`` after ``delay_s`` seconds; each timer runs once at a time."""

    timer: Timer
    delay_s: float


class CancelTimers(msgspec.Struct, frozen=True):
    """Forget all timers: the response is over, and nothing more is to be told."""


StreamEffect: TypeAlias = (
    SendHead
    | Send
    | SendHeartbeat
    | Answer
    | End
    | Abort
    | LeaveTurn
    | InterruptTurn
    | SetTimer
    | CancelTimers
)

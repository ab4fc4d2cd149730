"""What the sink is told, besides what workers send, and what it reports to the supervisor.

Commands are imperatives, reports are past participles. ``Seal`` alone takes the fast lane.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TypeAlias

from tidegate.protocol.base import Generation, Message, Token, TurnNumber
from tidegate.protocol.events import NoticeKind
from tidegate.protocol.failures import Failure


class Limit(StrEnum):
    """Which silence a stale alarm asks about."""

    FIRST_EVENT = "first_event"
    PROGRESS = "progress"
    ALIVE = "alive"


class OpenTurn(Message, frozen=True, array_like=True):
    """Expect attempts at this turn; its outbox is registered under its number.

    Attributes:
        turn_id: the name by which readers know the turn.
        wire: the wire of its endpoint.
        window_bytes: the window of each of its attempts.
    """

    turn: TurnNumber
    turn_id: str
    wire: str
    window_bytes: int


class Admit(Message, frozen=True, array_like=True):
    """Give ``token`` the right to write, and end that of every smaller one.

    Attributes:
        number: the attempt's place in its turn, from 1.
        free: whether it does not count against the retries.
        endpoint: wire and address, for the attempt's report.
        generation: the worker that will run it.
    """

    turn: TurnNumber
    token: Token
    number: int
    free: bool
    endpoint: str
    generation: Generation


class Fence(Message, frozen=True, array_like=True):
    """Accept no more from ``token``; after evidence, complete the turn with what there is."""

    turn: TurnNumber
    token: Token
    failure: Failure


class FenceIfIdle(Message, frozen=True, array_like=True):
    """Fence ``token`` if it has shown nothing that ``limit`` waits for since ``idle_since_s``."""

    turn: TurnNumber
    token: Token
    limit: Limit
    idle_since_s: float


class Announce(Message, frozen=True, array_like=True):
    """Tell the readers that ``cause`` ended an attempt and that another follows in ``delay_s``.

    Attributes:
        notices: kinds and texts of the notices that go before.
    """

    turn: TurnNumber
    cause: Failure
    delay_s: float
    notices: tuple[tuple[NoticeKind, str], ...] = ()


class Conclude(Message, frozen=True, array_like=True):
    """End the turn as failed."""

    turn: TurnNumber
    failure: Failure


class Seal(Message, frozen=True, array_like=True):
    """End the turn as interrupted, before everything that was sent earlier."""

    turn: TurnNumber
    reason: str


class Forget(Message, frozen=True, array_like=True):
    """No more will be said of this turn, which has ended."""

    turn: TurnNumber


class ReviewCredit(Message, frozen=True, array_like=True):
    """A reader took enough, came, left, or began or ceased to wait for the answer."""

    turn: TurnNumber


class Snapshot(Message, frozen=True, array_like=True):
    """One attempt, and nothing of any other, at the instant of its fence.

    Attributes:
        text_chars: characters of text accepted.
        sent_any: whether any delta was accepted.
        taken_any: whether any of its deltas or usage was taken.
        visible_taken: whether text that is not only white space was taken.
        words_taken: whether any word was taken: of text, reasoning, a refusal or arguments.
        tools_in_flight: the names of the tool calls seen, complete or not.
        life: whether anything at all came from the provider.
    """

    text_chars: int = 0
    sent_any: bool = False
    taken_any: bool = False
    visible_taken: bool = False
    words_taken: bool = False
    tools_in_flight: tuple[str, ...] = ()
    life: bool = False


class Fenced(Message, frozen=True, array_like=True):
    """``token`` was current and has lost its right to write.

    Attributes:
        refused: as in ``Ended``.
        learned: as in ``Ended``.
    """

    turn: TurnNumber
    token: Token
    failure: Failure
    snapshot: Snapshot
    refused: str = ""
    learned: str = ""


class NotIdle(Message, frozen=True, array_like=True):
    """The stale alarm was false.

    Attributes:
        count_from_s: the instant from which to count again; None if this limit no longer matters.
    """

    turn: TurnNumber
    token: Token
    limit: Limit
    count_from_s: float | None


class EvidenceTaken(Message, frozen=True, array_like=True):
    """``token`` has shown evidence; its end or the end of the grace completes the turn."""

    turn: TurnNumber
    token: Token


class TurnClosed(Message, frozen=True, array_like=True):
    """The terminal event of the turn is published.

    Attributes:
        kind: ``completed``, ``failed`` or ``interrupted``.
        received: whether the attempt current then had received anything.
        visible: whether the answer has visible text.
    """

    turn: TurnNumber
    kind: str
    received: bool = False
    visible: bool = False


SinkReport: TypeAlias = Fenced | NotIdle | EvidenceTaken | TurnClosed
SinkCommand: TypeAlias = (
    OpenTurn | Admit | Fence | FenceIfIdle | Announce | Conclude | Seal | Forget | ReviewCredit
)

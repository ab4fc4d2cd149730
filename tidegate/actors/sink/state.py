"""What the sink's machine knows of a turn, and the facts that change it.

Invariants (asserted in ``evolve``, explored in the simulation tests)
  I1  the token of a turn never falls
  I2  the accepted deltas of an attempt are a gapless prefix of what its worker sent
  I3  nothing is accepted once the turn is closed, and it closes once
  I4  a turn closes as completed if and only if evidence was accepted from the current token
"""

from __future__ import annotations

from typing import TypeAlias, assert_never

import msgspec

from tidegate.protocol.answers import Finish
from tidegate.protocol.base import Seq, Token


class TurnState(msgspec.Struct, frozen=True):
    """All that decides what may be written to one turn.

    Attributes:
        seal: the reason of a seal that came before the turn was opened.
        token: the largest token admitted.
        current: whether ``token`` still has the right to write.
        next_seq: the seq that is accepted next.
        progressed: whether ``token`` has made progress.
        finishes: its evidence.
        closed: how the turn ended; empty while it runs.
        sent_bytes: size of the deltas accepted from ``token``.
        limit_bytes: how far its worker may send.
        waiting: whether somebody waits for the answer, so that the window is not enforced.
        excused_until_s: until when the silence of ``token`` is its worker's, not the provider's.
    """

    opened: bool = False
    seal: str | None = None
    token: Token = Token(0)
    current: bool = False
    next_seq: Seq = Seq(0)
    progressed: bool = False
    finishes: tuple[Finish, ...] | None = None
    closed: str = ""
    window_bytes: int = 0
    sent_bytes: int = 0
    limit_bytes: int = 0
    waiting: bool = False
    event_s: float | None = None
    life_s: float | None = None
    progress_s: float | None = None
    credit_s: float = 0.0
    excused_until_s: float = 0.0


class TurnOpened(msgspec.Struct, frozen=True):
    """The turn can be written to."""

    window_bytes: int


class SealRemembered(msgspec.Struct, frozen=True):
    """The turn will be closed as soon as it is opened."""

    reason: str


class AttemptAdmitted(msgspec.Struct, frozen=True):
    """``token`` alone may write."""

    token: Token
    at_s: float


class DeltasAccepted(msgspec.Struct, frozen=True):
    """``count`` more deltas are part of the attempt."""

    count: int
    size: int
    at_s: float


class LifeTaken(msgspec.Struct, frozen=True):
    """The provider lives; ``event`` says whether by an event."""

    event: bool
    at_s: float


class SilenceExcused(msgspec.Struct, frozen=True):
    """No request of the current attempt can have left before that."""

    until_s: float


class EvidenceAccepted(msgspec.Struct, frozen=True):
    """The current attempt is complete by its wire's rules."""

    finishes: tuple[Finish, ...]
    at_s: float


class AttemptFenced(msgspec.Struct, frozen=True):
    """Nobody may write until the next admission."""


class TurnEnded(msgspec.Struct, frozen=True):
    """Nobody may ever write again."""

    kind: str


class CreditSettled(msgspec.Struct, frozen=True):
    """The worker may send up to ``limit_bytes``.

    Attributes:
        resumed_s: when a worker that had to stop may go on; None if it had not stopped.
    """

    limit_bytes: int
    waiting: bool
    resumed_s: float | None = None


SinkFact: TypeAlias = (
    TurnOpened
    | SealRemembered
    | AttemptAdmitted
    | DeltasAccepted
    | LifeTaken
    | SilenceExcused
    | EvidenceAccepted
    | AttemptFenced
    | TurnEnded
    | CreditSettled
)


def evolve(state: TurnState, fact: SinkFact) -> TurnState:
    """Apply one fact. Never refuses: the fact has happened."""
    assert not state.closed, "I3: a fact after the end"
    match fact:
        case DeltasAccepted(count=count, size=size, at_s=at_s):
            assert state.current, "I2: a write beyond the fence"
            assert state.finishes is None, "I2: a write after evidence"
            return _with(
                state,
                next_seq=Seq(state.next_seq + count),
                sent_bytes=state.sent_bytes + size,
                progressed=True,
                progress_s=at_s,
                life_s=at_s,
                event_s=at_s if state.event_s is None else state.event_s,
            )
        case LifeTaken(event=event, at_s=at_s):
            first = at_s if event and state.event_s is None else state.event_s
            return _with(state, life_s=at_s, event_s=first)
        case SilenceExcused(until_s=until_s):
            return _with(state, excused_until_s=until_s)
        case EvidenceAccepted(finishes=finishes):
            return _with(state, finishes=finishes, progressed=True)
        case CreditSettled(limit_bytes=limit_bytes, waiting=waiting, resumed_s=resumed_s):
            credit_s = state.credit_s if resumed_s is None else resumed_s
            return _with(state, limit_bytes=limit_bytes, waiting=waiting, credit_s=credit_s)
        case TurnOpened(window_bytes=window_bytes):
            return _with(state, opened=True, window_bytes=window_bytes)
        case SealRemembered(reason=reason):
            return _with(state, seal=reason)
        case AttemptAdmitted(token=token, at_s=at_s):
            assert token > state.token, "I1: the token fell"
            return TurnState(
                opened=True,
                token=token,
                current=True,
                window_bytes=state.window_bytes,
                limit_bytes=state.window_bytes,
                waiting=state.waiting,
                credit_s=at_s,
            )
        case AttemptFenced():
            assert state.current, "I2: fenced twice"
            return _with(state, current=False)
        case TurnEnded(kind=kind):
            if kind == "completed":
                assert state.finishes is not None, "I4: completed without evidence"
            return _with(state, closed=kind, current=False)
        case _:
            assert_never(fact)


_with = msgspec.structs.replace

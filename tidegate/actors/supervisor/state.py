"""What the supervisor's machine knows of a turn, and the facts that change it.

Invariants (asserted in ``evolve``, explored in the simulation tests)
  S1  attempts are numbered without gaps, and their tokens grow
  S2  after the end of the turn no attempt is placed
  S3  an attempt leaves ``live`` once: by its own end or by the loss of its worker
"""

from __future__ import annotations

from typing import Literal, TypeAlias, assert_never

import msgspec

from tidegate.actors.supervisor.retry import Asked
from tidegate.protocol.attempts import Target
from tidegate.protocol.base import Generation, Token, TurnNumber
from tidegate.protocol.supervisor import TurnPlan


Phase: TypeAlias = Literal["preparing", "running", "backing_off", "ending", "ended"]


class LiveAttempt(msgspec.Struct, frozen=True):
    """An attempt that its worker has not ended yet.

    Attributes:
        cancelled: whether it was told to end.
        ponged: whether its worker has answered the latest ping.
        rounds: pings that were answered before that one.
        graces: how often its worker was heard in a grace and had not answered.
        starved: whether its worker got a grace because it had no processor.
        up: whether its request can be sent: its worker's loop runs, and imports nothing for it.
    """

    token: Token
    generation: Generation
    cancelled: bool = False
    ponged: bool = False
    rounds: int = 0
    graces: int = 0
    starved: bool = False
    up: bool = True


class TurnState(msgspec.Struct, frozen=True):
    """All that decides about the attempts at one turn.

    Attributes:
        phase: ``preparing`` until the target is known, ``running`` from the placing of an attempt
            to the report of its fence, ``backing_off`` before the next attempt, ``ending`` once an
            end was ordered, ``ended`` once the sink has closed the turn.
        number: attempts so far.
        used: those that count against the retries.
        token: of the latest.
        started_s: when the latest was placed.
        asked: what the latest asks for beside the payload, and the next one would.
        live: attempts whose end has not been reported.
        free_next: whether the next attempt does not count against the retries.
        single_interrupt: whether somebody ended this turn alone, so that its wait may count.
        overdue: whether the deadline has passed.
    """

    turn: TurnNumber
    plan: TurnPlan
    target: Target | None = None
    phase: Phase = "preparing"
    number: int = 0
    used: int = 0
    token: Token = Token(0)
    started_s: float = 0.0
    asked: Asked = Asked()
    live: tuple[LiveAttempt, ...] = ()
    free_next: bool = False
    single_interrupt: bool = False
    overdue: bool = False

    def attempt(self, token: int) -> LiveAttempt | None:
        """Return a live attempt by its token."""
        return next((attempt for attempt in self.live if attempt.token == token), None)


class TargetKnown(msgspec.Struct, frozen=True):
    """Attempts can be made."""

    target: Target


class AttemptPlaced(msgspec.Struct, frozen=True):
    """An attempt was sent to a worker."""

    token: Token
    generation: Generation
    free: bool
    asked: Asked
    at_s: float
    up: bool = True


class PhaseChanged(msgspec.Struct, frozen=True):
    """The turn has come to another phase."""

    phase: Phase
    asked: Asked | None = None
    free: bool = False


class InterruptTaken(msgspec.Struct, frozen=True):
    """Somebody ended the turn."""

    single: bool


class DeadlinePassed(msgspec.Struct, frozen=True):
    """No attempt may follow."""


class AttemptChanged(msgspec.Struct, frozen=True):
    """A live attempt was cancelled, or its worker has come up, imports, ponged, got a grace."""

    attempt: LiveAttempt


class AttemptGone(msgspec.Struct, frozen=True):
    """An attempt has ended in its worker, or with it."""

    token: Token


TurnFact: TypeAlias = (
    TargetKnown
    | AttemptPlaced
    | PhaseChanged
    | InterruptTaken
    | DeadlinePassed
    | AttemptChanged
    | AttemptGone
)


def evolve(state: TurnState, fact: TurnFact) -> TurnState:
    """Apply one fact. Never refuses: the fact has happened."""
    match fact:
        case TargetKnown(target=target):
            return _with(state, target=target)
        case AttemptPlaced(token=token, free=free, asked=asked, at_s=at_s):
            assert token > state.token, "S1: the token fell"
            assert state.phase not in ("ending", "ended"), "S2: placed after the end"
            return _with(
                state,
                phase="running",
                number=state.number + 1,
                used=state.used + (not free),
                token=token,
                started_s=at_s,
                asked=asked,
                live=(*state.live, LiveAttempt(token, fact.generation, up=fact.up)),
            )
        case PhaseChanged(phase=phase, asked=asked):
            assert state.phase != "ended", "S2: a change after the end"
            return _with(state, phase=phase, asked=asked or state.asked, free_next=fact.free)
        case InterruptTaken(single=single):
            return _with(state, phase="ending", single_interrupt=single)
        case DeadlinePassed():
            return _with(state, overdue=True)
        case AttemptChanged(attempt=changed):
            live = tuple(changed if a.token == changed.token else a for a in state.live)
            return _with(state, live=live)
        case AttemptGone(token=token):
            assert state.attempt(token), "S3: gone twice"
            return _with(state, live=tuple(a for a in state.live if a.token != token))
        case _:
            assert_never(fact)


_with = msgspec.structs.replace

"""What the machine of all turns knows, and the facts that change it.

Invariants (asserted in ``evolve``, explored in the tests)
  T1  a turn ends once, and nothing is decided about it afterwards
  T2  a turn is started once, out of the queue, and never after its interrupt was decided
  T3  a turn is interrupted once
  T4  no turn is started while ``max_running`` turns run
  T5  nobody waits while there is room, and nobody waits while the daemon drains or cannot keep
      what it is told
  T6  whoever waits had a place in the queue, or one of its owner's share
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias, assert_never

import msgspec

from tidegate.daemon.config.disconnect import OnDisconnect
from tidegate.daemon.turns.messages import Limits


Phase: TypeAlias = Literal["awaited", "queued", "starting", "running", "ended"]


class Hosted(msgspec.Struct, frozen=True):
    """What is known of one turn.

    Attributes:
        phase: ``awaited`` if there was word of it before it was asked for, ``starting`` from the
            order to start it until the runtime has taken it.
        client: ``none`` if nobody waits for its answer who could leave, ``cut`` if the daemon
            closed that connection itself.
        watchers: how many read its events.
        reason: of its interrupt, once that is decided.
        clock: number of the timer that runs because its client left; 0 if none does.
        clocks: how many such timers there were.
    """

    phase: Phase = "awaited"
    owner: str = ""
    on_disconnect: OnDisconnect | None = None
    client: Literal["none", "here", "left", "cut"] = "none"
    watchers: int = 0
    reason: str | None = None
    clock: int = 0
    clocks: int = 0

    @property
    def occupies(self) -> bool:
        """Whether it takes one of the places of those that run."""
        return self.phase in ("starting", "running")


class TurnsState(msgspec.Struct, frozen=True):
    """All turns of the daemon that somebody may still speak of.

    Attributes:
        turns: by their ids; those that ended stay until they are forgotten.
        waiting: by owner, in the order in which owners are served; the ids of each in theirs.
        running: how many turns occupy a place.
        until_s: when a drain is over.
        well: whether the journal keeps what is written.
    """

    limits: Limits
    turns: Mapping[str, Hosted] = {}
    waiting: Mapping[str, tuple[str, ...]] = {}
    running: int = 0
    mode: Literal["open", "draining", "drained"] = "open"
    until_s: float = 0.0
    well: bool = True

    @property
    def queued(self) -> int:
        """How many turns wait."""
        return sum(map(len, self.waiting.values()))

    def has_place(self, owner: str) -> bool:
        """Say whether one more turn of ``owner`` may wait; ``machine.py`` says why."""
        places = self.limits.max_queued
        if self.queued < places:
            return True
        share = min(places, max(1, places // len({*self.waiting, owner})))
        return len(self.waiting.get(owner, ())) < share


class TurnQueued(msgspec.Struct, frozen=True):
    """The turn is the last of its owner's."""

    turn: str
    owner: str
    on_disconnect: OnDisconnect | None
    client: bool


class TurnPlaced(msgspec.Struct, frozen=True):
    """The first turn of the owner whose turn it is will be started."""

    turn: str


class TurnTaken(msgspec.Struct, frozen=True):
    """The runtime has it."""

    turn: str


class TurnInterrupted(msgspec.Struct, frozen=True):
    """Its end is ordered, or will be as soon as it is asked for."""

    turn: str
    reason: str


class TurnOver(msgspec.Struct, frozen=True):
    """It has ended, or was refused."""

    turn: str


class TurnForgotten(msgspec.Struct, frozen=True):
    """Nothing is known of it."""

    turn: str


class ClientGone(msgspec.Struct, frozen=True):
    """Its client is not there any more, and that is how."""

    turn: str
    how: Literal["left", "cut"]


class WatchersChanged(msgspec.Struct, frozen=True):
    """So many read its events."""

    turn: str
    watchers: int


class ClockStarted(msgspec.Struct, frozen=True):
    """When this timer runs out, the turn is interrupted."""

    turn: str


class ClockStopped(msgspec.Struct, frozen=True):
    """The timer has run out, or counts no longer."""

    turn: str


class DrainBegan(msgspec.Struct, frozen=True):
    """No turn is begun any more."""

    until_s: float


class DrainDone(msgspec.Struct, frozen=True):
    """The last turn has ended."""


class JournalChanged(msgspec.Struct, frozen=True):
    """Whether what is written is kept."""

    well: bool


class LimitsSet(msgspec.Struct, frozen=True):
    """They hold from now on; what runs and waits beyond them stays."""

    limits: Limits


AboutAll: TypeAlias = DrainBegan | DrainDone | JournalChanged | LimitsSet
AboutOne: TypeAlias = (
    TurnQueued
    | TurnPlaced
    | TurnTaken
    | TurnInterrupted
    | TurnOver
    | TurnForgotten
    | ClientGone
    | WatchersChanged
    | ClockStarted
    | ClockStopped
)
TurnsFact: TypeAlias = AboutAll | AboutOne


def evolve(state: TurnsState, fact: TurnsFact) -> TurnsState:
    """Apply one fact. Never refuses: the fact has happened."""
    match fact:
        case DrainBegan(until_s=until_s):
            return _with(state, mode="draining", until_s=until_s)
        case DrainDone():
            assert state.mode == "draining", "drained twice"
            return _with(state, mode="drained")
        case JournalChanged(well=well):
            return _with(state, well=well)
        case LimitsSet(limits=limits):
            return _with(state, limits=limits)
        case _:
            return _evolve_one(state, fact)


def _evolve_one(state: TurnsState, fact: AboutOne) -> TurnsState:
    turn = fact.turn
    hosted = state.turns.get(turn, Hosted())
    if isinstance(fact, TurnForgotten):
        assert not hosted.occupies, "T1: forgotten before its end"
        turns = {each: state.turns[each] for each in state.turns if each != turn}
        return _with(state, turns=turns)
    changed = _evolve_hosted(hosted, fact)
    waiting = state.waiting
    if isinstance(fact, TurnQueued):
        has_room = state.running < state.limits.max_running
        assert has_room or state.has_place(fact.owner), "T6: it waits without a place"
        waiting = {**waiting, fact.owner: (*waiting.get(fact.owner, ()), turn)}
    elif isinstance(fact, TurnPlaced):
        assert state.running < state.limits.max_running, "T4: started without room"
        waiting = _served(waiting, hosted.owner, turn)
    elif isinstance(fact, TurnOver) and hosted.phase == "queued":
        waiting = _left_out(waiting, hosted.owner, turn)
    running = state.running + changed.occupies - hosted.occupies
    return _with(state, turns={**state.turns, turn: changed}, waiting=waiting, running=running)


def _evolve_hosted(hosted: Hosted, fact: AboutOne) -> Hosted:
    assert hosted.phase != "ended" or isinstance(fact, ClockStopped), "T1: a fact after the end"
    match fact:
        case TurnQueued(owner=owner, on_disconnect=on_disconnect, client=client):
            assert hosted.phase == "awaited", "T2: asked for twice"
            gone = hosted.client if client else "none"
            here = "here" if client and gone == "none" else gone
            return _with(
                hosted, phase="queued", owner=owner, on_disconnect=on_disconnect, client=here
            )
        case TurnPlaced():
            assert hosted.phase == "queued", "T2: started out of the queue"
            assert hosted.reason is None, "T2: started after its interrupt"
            return _with(hosted, phase="starting")
        case TurnTaken():
            assert hosted.phase == "starting", "T2: taken without a start"
            return _with(hosted, phase="running")
        case TurnInterrupted(reason=reason):
            assert hosted.reason is None, "T3: interrupted twice"
            return _with(hosted, reason=reason)
        case TurnOver():
            return _with(hosted, phase="ended")
        case ClientGone(how=how):
            return _with(hosted, client=how)
        case WatchersChanged(watchers=watchers):
            assert watchers >= 0, "more left than came"
            return _with(hosted, watchers=watchers)
        case ClockStarted():
            return _with(hosted, clock=hosted.clocks + 1, clocks=hosted.clocks + 1)
        case ClockStopped():
            return _with(hosted, clock=0)
        case TurnForgotten():
            return Hosted()
        case _:
            assert_never(fact)


def _served(
    waiting: Mapping[str, tuple[str, ...]], owner: str, turn: str
) -> dict[str, tuple[str, ...]]:
    """Take out the turn that is started, and let all other owners go before its owner."""
    first, *rest = waiting[owner]
    assert first == turn, "T2: started before its owner's elder turns"
    others = {each: waiting[each] for each in waiting if each != owner}
    return {**others, owner: tuple(rest)} if rest else others


def _left_out(
    waiting: Mapping[str, tuple[str, ...]], owner: str, turn: str
) -> dict[str, tuple[str, ...]]:
    """Take out a turn that ended as it waited; its owner keeps its place if it has others."""
    rest = tuple(each for each in waiting[owner] if each != turn)
    return {
        each: rest if each == owner else waiting[each] for each in waiting if each != owner or rest
    }


_with = msgspec.structs.replace

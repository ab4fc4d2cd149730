"""All turns of the daemon: carries out what the machine of all turns decides.

Used in the event loop's thread alone; the journal's thread and the I/O thread come in by
``LoopCalls``.

Path: ``api/`` -> this -> ``turns/machine.py``, ``runtime.py``, ``journal/``.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
import secrets
import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import NamedTuple, Protocol

from tidegate.daemon.calls import LoopCalls
from tidegate.daemon.hosting import HostedRuntime
from tidegate.daemon.journal.journal import Journal
from tidegate.daemon.journal.model import Entry, Reserved, TurnRecord, state_of
from tidegate.daemon.turns import machine
from tidegate.daemon.turns.admission import Admission, Admitted, record_of
from tidegate.daemon.turns.hosted import Ask, HostedTurn
from tidegate.daemon.turns.messages import (
    AnnounceDrain,
    Asked,
    CancelTimer,
    Drained,
    DrainOver,
    Ended,
    EndUnstarted,
    Forget,
    GraceOver,
    Interrupt,
    JournalTrouble,
    Limits,
    Refuse,
    SetDrainTimer,
    SetTimer,
    Start,
    Started,
    StartFailed,
    TurnsEffect,
    TurnsMessage,
)
from tidegate.daemon.turns.refusals import Refused, refusal_from
from tidegate.daemon.turns.state import TurnsState, evolve
from tidegate.daemon.turns.unstarted import ending_from
from tidegate.errors import TidegateError


_log = logging.getLogger("tidegate.daemon")


class Listener(Protocol):
    """Hears what has become of turns, for metrics and logs."""

    def interrupt_asked(self, turn_id: str) -> None:
        """It is being interrupted."""

    def turn_ended(self, hosted: HostedTurn) -> None:
        """It has ended, for all to read."""


class Told(NamedTuple):
    """How a response hears what happens to the daemon.

    Attributes:
        draining: called with the seconds within which the daemon stops.
        journal_fails: called when nothing is kept any more, so that no turn can go on.
    """

    draining: Callable[[float], None]
    journal_fails: Callable[[], None]


class Registry:
    """The turns that are asked for, wait, run, or are read.

    Args:
        runtime: runs them.
        journal: keeps them.
        calls: the way into the event loop.
        limits: how many at once.
        listener: hears of ends.
    """

    def __init__(
        self,
        runtime: HostedRuntime,
        journal: Journal,
        calls: LoopCalls,
        limits: Limits,
        listener: Listener,
    ) -> None:
        self.runtime = runtime
        self.journal = journal
        self.calls = calls
        self.hosted: dict[str, HostedTurn] = {}
        self.state = TurnsState(limits)
        self.drained = asyncio.Event()
        self._readers: set[Told] = set()
        self._admission = Admission(journal, calls)
        self._listener = listener
        self._told: deque[TurnsMessage] = deque()
        self._deciding = False
        self._refused: dict[str, Refuse] = {}
        self._timers: dict[tuple[str, int], asyncio.TimerHandle] = {}
        self._drain_timer: asyncio.TimerHandle | None = None

    async def admit(
        self,
        ask: Ask,
        turn_id: str,
        *,
        client: bool,
        prepare: Callable[[HostedTurn], None] = lambda _hosted: None,
    ) -> Admitted:
        """Take on a turn, or find the one that was asked for before with the same key.

        Args:
            ask: what is wanted.
            turn_id: the name of the turn, if it is a new one.
            client: whether a client waits for its answer.
            prepare: gets a new turn before anything can happen to it.

        Returns:
            The turn's record, and whether it was there before. A new one is in ``hosted``.

        Raises:
            Refused: there is no room, or the key was used for something else.
        """
        record = record_of(ask, turn_id)
        take_on = functools.partial(self._take_on, record, ask, client, prepare)
        try:
            self._check(ask, turn_id)
            if ask.key or not client:
                # Its name is told before anything of it, so that it is kept before it is told.
                unheard = Refuse(turn_id, 503, "journal_unavailable", machine.JOURNAL_RETRY_S)
                admitted = await self._admission.reserve(record, take_on, unheard)
            else:
                self.journal.begin(record, _take_for_granted, soon=False)
                refuse = take_on()
                assert refuse is None, "nothing has happened since it was checked"
                admitted = record, False
        except Refused:
            self.tell(Forget(turn_id))  # its client may have left by now
            raise
        if admitted[1]:
            self.tell(Forget(turn_id))
        return admitted

    def _check(self, ask: Ask, turn_id: str) -> None:
        """Refuse what is hopeless, unless it may have been asked for before."""
        refuse = machine.refusal(self.state, turn_id, ask.owner, time.monotonic())
        if refuse is not None and (not ask.key or refuse.kind == "journal_unavailable"):
            raise refusal_from(refuse)

    def _take_on(
        self,
        record: TurnRecord,
        ask: Ask,
        client: bool,
        prepare: Callable[[HostedTurn], None],
    ) -> Refuse | None:
        hosted = self.hosted[record.id] = HostedTurn(record, ask, self.calls)
        prepare(hosted)
        self.tell(Asked(record.id, ask.owner, ask.on_disconnect, client))
        refuse = self._refused.pop(record.id, None)
        if refuse is not None:
            del self.hosted[record.id]
            self.tell(Forget(record.id))
        return refuse

    def tell(self, message: TurnsMessage) -> None:
        """Decide, and carry out; what that brings about is decided after it."""
        self._told.append(message)
        if self._deciding:
            return  # whoever is at it comes to it
        self._deciding = True
        try:
            while self._told:
                self._decide(self._told.popleft())
        finally:
            self._deciding = False

    def _decide(self, message: TurnsMessage) -> None:
        decision = machine.decide(self.state, message, time.monotonic())
        for fact in decision.events:
            self.state = evolve(self.state, fact)
        for effect in decision.effects:
            self._perform(effect)
        if not self.state.well and self.state.mode != "open":
            # All is interrupted, and the ends of it wait for a disk that may never be mended.
            self.drained.set()

    def journal_fails(self) -> None:
        """End what runs, and tell it to all who wait: the ends themselves cannot be kept."""
        self.tell(JournalTrouble())
        why = Refuse("", 503, "journal_unavailable", machine.JOURNAL_RETRY_S)
        self._admission.refuse_all(lambda: refusal_from(why))
        for reader in tuple(self._readers):
            reader.journal_fails()

    def release(self, hosted: HostedTurn) -> None:
        """Keep an ended turn that nobody reads in the journal alone."""
        if hosted.settled and not hosted.subscriptions:
            self.drop(hosted.id)

    def drop(self, turn_id: str) -> None:
        """Know no more of an ended turn; whoever reads it reads on."""
        self.hosted.pop(turn_id, None)
        self.tell(Forget(turn_id))

    @contextlib.contextmanager
    def telling(self, reader: Told) -> Iterator[None]:
        """Tell a reader, meanwhile, what happens to the daemon."""
        self._readers.add(reader)
        try:
            yield
        finally:
            self._readers.discard(reader)

    def _perform(self, effect: TurnsEffect) -> None:
        loop = asyncio.get_running_loop()
        match effect:
            case Start(turn):
                self._start(self.hosted[turn])
            case Interrupt(turn, reason):
                runs = self.hosted[turn].turn
                assert runs is not None, "a turn is taken in the step that starts it"
                self._listener.interrupt_asked(turn)
                runs.interrupt(reason)
            case Refuse():
                self._refused[effect.turn] = effect
            case EndUnstarted():
                self._end_unstarted(self.hosted[effect.turn], effect)
            case SetTimer(turn, number, delay_s):
                self._timers[turn, number] = loop.call_later(delay_s, self._run_out, turn, number)
            case CancelTimer(turn, number):
                self._timers.pop((turn, number)).cancel()
            case SetDrainTimer(delay_s):
                if self._drain_timer is not None:
                    self._drain_timer.cancel()
                self._drain_timer = loop.call_later(delay_s, self.tell, DrainOver())
            case AnnounceDrain(within_s):
                for reader in tuple(self._readers):
                    reader.draining(within_s)
            case Drained():
                self.drained.set()

    def _run_out(self, turn: str, number: int) -> None:
        self._timers.pop((turn, number), None)
        self.tell(GraceOver(turn, number))

    def _start(self, hosted: HostedTurn) -> None:
        try:
            turn = hosted.begin(self.runtime)
        except TidegateError as error:
            self.tell(StartFailed(hosted.id, str(error)))
            return
        hosted.change(state="running")
        self.tell(Started(hosted.id))
        end = functools.partial(self._end, hosted)
        if turn._channel.await_terminal(lambda: self.calls.call(end)) is not None:  # noqa: SLF001
            self.calls.call(end)

    def _end_unstarted(self, hosted: HostedTurn, effect: EndUnstarted) -> None:
        terminal = hosted.ending = ending_from(hosted.id, effect, time.time())
        end = functools.partial(self._end, hosted)
        self.journal.write(Entry(hosted.id, 0, [terminal], lambda: self.calls.call(end)))

    def _end(self, hosted: HostedTurn) -> None:
        """The terminal event is kept, and may be read."""
        terminal = hosted.terminal or hosted.ending
        assert terminal is not None, "called at the end"
        state = state_of(terminal)
        hosted.change(state=state, ended_at=terminal.at_s, attempt=terminal.attempt)
        hosted.settle()
        self._listener.turn_ended(hosted)
        self.tell(Ended(hosted.id))
        self.release(hosted)


def new_turn_id() -> str:
    """Return the name of a new turn, told apart from all others for ever."""
    return f"turn_{secrets.token_hex(12)}"


def _take_for_granted(reserved: Reserved) -> None:
    assert not reserved.replayed, "it has no key"
    assert not reserved.conflict, "its name is new"

"""Joins the machines of all turns with what they share: workers, breakers, memory; pure.

``handle`` takes one message and returns the orders for the shell, in the order in which they must
be carried out. What is said of a turn that is not known is remembered (an interrupt that overtook
its start) or counted (what came after its end); nothing is dropped silently.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from typing import Any

from tidegate.actors.supervisor.breaker import Breaker, Refused, is_answer
from tidegate.actors.supervisor.machine import decide
from tidegate.actors.supervisor.orders import (
    Begin,
    CancelWorker,
    Context,
    Fired,
    Known,
    Learn,
    Lost,
    Memory,
    Ponged,
    Quarantine,
    Settled,
    ShellOrder,
    StartTimer,
    ToSink,
    ToWorker,
    TurnMessage,
    WorkerUp,
    WorkerWedged,
)
from tidegate.actors.supervisor.pool import Pool, PoolEffect, TryAgain
from tidegate.actors.supervisor.retry import Asked
from tidegate.actors.supervisor.state import TurnState, evolve
from tidegate.protocol.attempts import Ended, Pong, WorkerReady
from tidegate.protocol.base import Generation, Token, TurnNumber
from tidegate.protocol.failures import Failure, FailureKind
from tidegate.protocol.sink import Conclude, Forget
from tidegate.protocol.supervisor import Interrupt, Prepared, Start, TimerFired
from tidegate.protocol.workers import WorkerLost


STREAMING_MEMORY_S = 600.0
"""How long it is remembered that an endpoint does not stream."""

_REPLENISH = ("replenish", 0)
FAULT = Failure(kind=FailureKind.INTERNAL, detail="a defect in the supervisor; see the log")


class Supervision:
    """All turns of one runtime, from the supervisor's side.

    Args:
        pool: the workers, before they are started.
        newest_token: no attempt gets a token that is not larger.

    Attributes:
        faults: what failed in the machine, by turn, for whoever has a log; each ends its turn.
    """

    def __init__(self, pool: Pool, newest_token: int = 0) -> None:
        self.pool = pool
        self.turns: dict[TurnNumber, TurnState] = {}
        self.counts: Counter[str] = Counter()
        self._token = newest_token
        self._token_turns: dict[int, TurnNumber] = {}
        self._tokens: dict[TurnNumber, list[int]] = {}
        self._early: dict[TurnNumber, Interrupt] = {}
        self._newest_turn = 0
        self._breakers: dict[Hashable, Breaker] = {}
        self._plain_until_s: dict[Hashable, float] = {}
        self._no_options: set[Hashable] = set()
        self.faults: list[tuple[TurnNumber, Exception]] = []
        self._orders: list[ShellOrder] = []

    def boot(self) -> list[ShellOrder]:
        """Start the workers."""
        self._apply_pool(self.pool.boot())
        return self._flush()

    def handle(self, message: Any, now_s: float, chance: float = 0.0) -> list[ShellOrder]:
        """Take one message and return what it leads to.

        Args:
            message: from the sink, a caller, or by way of the sink from the I/O thread.
            now_s: monotonic time.
            chance: a random number from 0 to 1, for the jitter.
        """
        match message:
            case Start():
                self._start(message, now_s, chance)
            case Prepared(turn=turn, target=target, failure=failure):
                self._turn(turn, Begin(target, failure), now_s, chance)
            case Interrupt():
                self._interrupt(message, now_s, chance)
            case TimerFired():
                self._fired(message, now_s, chance)
            case WorkerReady(generation=generation):
                self.pool = self.pool.ready(generation)
                self._turns_of(generation, WorkerUp(generation), now_s, chance)
            case WorkerLost():
                self._lost(message, now_s, chance)
            case Pong(number=number):
                if (turn_of := self._token_turns.get(number)) is not None:
                    self._turn(turn_of, Ponged(Token(number)), now_s, chance)
            case Ended(turn=turn):
                self._ended(message, now_s)
                self._turn(turn, message, now_s, chance)
            case _:
                self._turn(message.turn, message, now_s, chance)
        return self._flush()

    def _start(self, start: Start, now_s: float, chance: float) -> None:
        turn, plan = start.turn, start.plan
        if turn <= self._newest_turn:
            self.counts["told_twice"] += 1
            return
        self._newest_turn = turn
        self.counts["turns"] += 1
        asked = Asked(plan.stream, plan.stream and bool(plan.stream_options))
        self.turns[turn] = TurnState(turn=turn, plan=plan, asked=asked)
        if (early := self._early.pop(turn, None)) is not None:
            self._turn(turn, early, now_s, chance)
            return
        if plan.policy.deadline_s is not None:
            self._orders.append(StartTimer(("deadline", turn), now_s + plan.policy.deadline_s))
        breaker, admission = self._breaker(plan.circuit).admit(turn, plan.policy, now_s)
        self._breakers[plan.circuit] = breaker
        if isinstance(admission, Refused):
            self._turn(turn, Begin(None, admission.failure), now_s, chance)
        elif start.target is not None or start.failure is not None:
            self._turn(turn, Begin(start.target, start.failure), now_s, chance)

    def _interrupt(self, message: Interrupt, now_s: float, chance: float) -> None:
        if message.turn in self.turns:
            self._turn(message.turn, message, now_s, chance)
        elif message.turn > self._newest_turn:
            self._early[message.turn] = message
        else:
            self.counts["late_interrupts"] += 1

    def _fired(self, message: TimerFired, now_s: float, chance: float) -> None:
        kind, about = message.name
        if message.name == _REPLENISH:
            self._apply_pool(self.pool.replenish(now_s))
            return
        by_turn = kind in ("backoff", "deadline")
        turn = TurnNumber(about) if by_turn else self._token_turns.get(about)
        if turn is None:
            self.counts["late_timers"] += 1
        else:
            self._turn(turn, Fired(message.name, message.heard, message.starved), now_s, chance)

    def _lost(self, message: WorkerLost, now_s: float, chance: float) -> None:
        """Replace the worker first, so that a retry finds a place."""
        self.counts["workers_lost"] += message.generation > 0
        self._apply_pool(self.pool.lost(message.generation, now_s))
        self._turns_of(message.generation, Lost(message.generation), now_s, chance)

    def _turns_of(
        self, generation: Generation, message: TurnMessage, now_s: float, chance: float
    ) -> None:
        """Tell every turn that has an attempt on a worker."""
        for turn, state in list(self.turns.items()):
            if any(attempt.generation == generation for attempt in state.live):
                self._turn(turn, message, now_s, chance)

    def _ended(self, message: Ended, now_s: float) -> None:
        state = self.turns.get(message.turn)
        if state is not None and message.learned == "streaming_ignored":
            self._plain_until_s[state.plan.memory] = now_s + STREAMING_MEMORY_S

    def _turn(self, turn: TurnNumber, message: TurnMessage, now_s: float, chance: float) -> None:
        state = self.turns.get(turn)
        if state is None:
            self.counts["late_reports"] += 1
            return
        try:
            self._decide(turn, state, message, now_s, chance)
        except Exception as fault:  # noqa: BLE001 - R12: it ends its own turn; the shell logs it
            self.faults.append((turn, fault))
            self._orders.append(ToSink(Conclude(turn, FAULT)))

    def _decide(
        self, turn: TurnNumber, state: TurnState, message: TurnMessage, now_s: float, chance: float
    ) -> None:
        place = self.pool.choose(state.plan.factory)
        if place is None and self.pool.back_in_s(now_s) == 0:
            # Whoever comes when he was told to must not be too early for the timer.
            self._apply_pool(self.pool.replenish(now_s))
            place = self.pool.choose(state.plan.factory)
        context = Context(
            now_s=now_s,
            token=Token(self._token + 1),
            generation=place.generation if place else None,
            back_in_s=self.pool.back_in_s(now_s) if place is None else 0,
            ready=place is not None and place.ready,
            memory=self._memory(state.plan.memory, now_s),
            chance=chance,
        )
        decision = decide(state, message, context)
        for fact in decision.events:
            state = evolve(state, fact)
        self.turns[turn] = state
        for effect in decision.effects:
            self._carry_out(state, effect, now_s)

    def _carry_out(self, state: TurnState, effect: Any, now_s: float) -> None:
        match effect:
            case ToWorker(generation=generation, message=message):
                self._token = max(self._token, message.token)
                self._token_turns[message.token] = state.turn
                self._tokens.setdefault(state.turn, []).append(message.token)
                self._apply_pool(self.pool.dedicate(generation, state.plan.factory))
                self.pool = self.pool.placed(generation)
                self.counts["attempts"] += 1
                self._orders.append(effect)
            case CancelWorker(generation=generation):
                self._orders.append(effect)
                self._apply_pool(self.pool.cancelling(generation))
            case Settled(generation=generation, cancelled=cancelled):
                self._apply_pool(self.pool.ended(generation, cancelled=cancelled))
            case Quarantine(generation=generation):
                self._withdraw("workers_quarantined", self.pool.quarantine(generation, now_s))
            case WorkerWedged(generation=generation):
                self._withdraw("workers_killed", self.pool.kill(generation, now_s))
            case Learn():
                self._learn(state, effect, now_s)
            case Known():
                self._know(state, effect, now_s)
            case ToSink(message=Forget()):
                self._orders.append(effect)
                self._drop(state.turn)
            case _:
                self._orders.append(effect)

    def _drop(self, turn: TurnNumber) -> None:
        del self.turns[turn]
        for token in self._tokens.pop(turn, ()):
            del self._token_turns[token]

    def _learn(self, state: TurnState, learn: Learn, now_s: float) -> None:
        plan, failure = state.plan, learn.failure
        self.counts[f"failed.{failure.kind.value}"] += 1
        if learn.refused == "stream_options":
            self._no_options.add(plan.memory)
        elif learn.refused == "streaming" or learn.learned == "contentless":
            self._plain_until_s[plan.memory] = now_s + STREAMING_MEMORY_S
        breaker = self._breaker(plan.circuit)
        if failure.kind is FailureKind.STALLED and failure.reason != "deadline":
            self.counts["stale_kills"] += 1
            self._breakers[plan.circuit] = breaker.stale_killed(learn.started_s, now_s)
        elif is_answer(failure):
            self._breakers[plan.circuit] = breaker.answered(now_s)

    def _know(self, state: TurnState, known: Known, now_s: float) -> None:
        closed, circuit = known.closed, state.plan.circuit
        breaker = self._breaker(circuit)
        if closed.kind == "completed" or (closed.kind == "failed" and closed.visible):
            breaker = breaker.answered(now_s)
        elif closed.kind == "interrupted" and known.single_interrupt:
            breaker = breaker.interrupted(known.started_s, now_s, received=closed.received)
        breaker = breaker.ended(state.turn)
        if breaker == Breaker():
            self._breakers.pop(circuit, None)
        else:
            self._breakers[circuit] = breaker

    def _breaker(self, circuit: Hashable) -> Breaker:
        return self._breakers.get(circuit, Breaker())

    def _memory(self, memory: Hashable, now_s: float) -> Memory:
        plain_until_s = self._plain_until_s.get(memory)
        if plain_until_s is not None and plain_until_s <= now_s:
            del self._plain_until_s[memory]
            plain_until_s = None
        return Memory(plain_until_s is None, memory not in self._no_options)

    def _apply_pool(self, change: tuple[Pool, tuple[PoolEffect, ...]]) -> None:
        self.pool, effects = change
        for effect in effects:
            if isinstance(effect, TryAgain):
                self._orders.append(StartTimer(_REPLENISH, effect.at_s))
            else:
                self._orders.append(effect)

    def _withdraw(self, name: str, change: tuple[Pool, tuple[PoolEffect, ...]]) -> None:
        """Count workers: many attempts may ask the same of one."""
        self.counts[name] += change[0] is not self.pool
        self._apply_pool(change)

    def _flush(self) -> list[ShellOrder]:
        orders, self._orders = self._orders, []
        return orders

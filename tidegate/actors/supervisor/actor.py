"""The supervisor as a pykka actor: a mailbox around the supervision, and nothing to decide."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, ClassVar, Protocol, assert_never

from tidegate.actors.causes import log_fault
from tidegate.actors.mailbox import Shell
from tidegate.actors.supervisor.orders import (
    AskIdle,
    CancelTimer,
    CancelWorker,
    Locate,
    PingWorker,
    ShellOrder,
    StartTimer,
    ToSink,
    ToWorker,
)
from tidegate.actors.supervisor.pool import Kill, Pool, Spawn
from tidegate.actors.supervisor.supervision import FAULT, Supervision
from tidegate.protocol.attempts import Ended, Ping, StartAttempt
from tidegate.protocol.attempts import ToWorker as ToWorkerMessage
from tidegate.protocol.base import Generation, Token, TurnNumber
from tidegate.protocol.endpoints import Endpoint
from tidegate.protocol.failures import Failure, FailureKind
from tidegate.protocol.sink import Conclude
from tidegate.protocol.supervisor import Interrupt, TimerFired, TimerName
from tidegate.protocol.workers import CUSTOM_PROVIDERS


_log = logging.getLogger("tidegate.supervisor")


class Workers(Protocol):
    """What the supervisor needs of the I/O thread; each call returns at once."""

    def spawn(self, generation: Generation, *, providers: str = "") -> None:
        """Start a worker that runs ``providers``, or what all workers run."""

    def send(self, generation: Generation, message: ToWorkerMessage) -> None:
        """Queue a message for a worker."""

    def cancel(self, generation: Generation, turn: TurnNumber, token: Token, ping: int) -> None:
        """Queue a cancel and a ping in front of what is queued for other attempts."""

    def ask(self, generation: Generation, question: object) -> None:
        """Put a question behind what the worker's socket holds."""

    def kill(self, generation: Generation, *, dump: bool) -> None:
        """Kill a worker."""

    def start_timer(self, name: TimerName, at_s: float, message: object) -> None:
        """Deliver ``message`` at an instant."""

    def start_kill_timer(
        self,
        name: TimerName,
        grace_s: float,
        generation: Generation,
        make_message: Callable[[bool, bool], object],
    ) -> None:
        """Deliver what is made of whether the worker was heard, or starved, in its grace."""

    def cancel_timer(self, name: TimerName) -> None:
        """Do not deliver."""


class SupervisorActor(Shell):
    """Starts, watches and ends attempts.

    Args:
        pool: the workers, before they are started.
        newest_token: no attempt gets a token that is not larger.
        workers: the I/O thread.
        to_sink: tells the sink.
        locate: finds out where an endpoint is, and tells this actor; returns at once.
        down: hears that the actor has ended.
        clock: monotonic seconds.
        chance: a random number from 0 to 1.
    """

    FAST: ClassVar[tuple[type, ...]] = (Interrupt,)

    def __init__(  # noqa: PLR0913 - each collaborator comes in as a plain callable
        self,
        *,
        pool: Pool,
        workers: Workers,
        to_sink: Callable[[Any], None],
        locate: Callable[[TurnNumber, Endpoint], None],
        down: Callable[[BaseException | None], None],
        clock: Callable[[], float],
        chance: Callable[[], float],
        newest_token: int = 0,
    ) -> None:
        super().__init__()
        self.supervision = Supervision(pool, newest_token)
        self._workers = workers
        self._to_sink = to_sink
        self._locate = locate
        self._down = down
        self._clock = clock
        self._chance = chance

    def on_start(self) -> None:
        """Start the workers."""
        self._carry_out(self.supervision.boot(), self._clock())

    def on_message(self, message: Any) -> None:
        """Decide, and carry out; a fault ends the turn that the message is about (R12)."""
        now_s = self._clock()
        try:
            orders = self.supervision.handle(message, now_s, self._chance())
        except Exception as fault:
            turn = getattr(message, "turn", None)
            if turn is None:
                raise  # it is about no turn, so the runtime cannot be trusted any more
            log_fault(_log, f"turn {turn}: a message could not be handled; the turn ends", fault)
            self._to_sink(Conclude(turn, FAULT))
            return
        faults = self.supervision.faults
        while faults:
            turn, defect = faults.pop()
            log_fault(_log, f"turn {turn}: it ends by a defect in its machine", defect)
        self._carry_out(orders, now_s)

    def down(self, error: BaseException | None) -> None:
        """Pass on that the actor has ended."""
        self._down(error)

    def _carry_out(self, orders: list[ShellOrder], now_s: float) -> None:
        workers = self._workers
        for order in orders:
            match order:
                case ToSink(message=message):
                    self._to_sink(message)
                case ToWorker(generation=generation, message=message):
                    self._send(generation, message)
                case Locate(turn=turn, endpoint=endpoint):
                    self._locate(turn, endpoint)
                case CancelWorker(generation=generation, turn=turn, token=token):
                    workers.cancel(generation, turn, token, ping=token)
                case PingWorker(generation=generation, token=token):
                    workers.send(generation, Ping(token))
                case AskIdle(generation=generation, question=question):
                    workers.ask(generation, question)
                case StartTimer(name=name, at_s=at_s, generation=generation):
                    if generation is None:
                        workers.start_timer(name, at_s, TimerFired(name))
                    else:
                        workers.start_kill_timer(name, at_s - now_s, generation, _fired(name))
                case CancelTimer(name=name):
                    workers.cancel_timer(name)
                case Spawn(generation=generation, dedicated=dedicated):
                    workers.spawn(generation, providers=CUSTOM_PROVIDERS if dedicated else "")
                case Kill(generation=generation, dump=dump):
                    workers.kill(generation, dump=dump)
                case _:
                    assert_never(order)

    def _send(self, generation: Generation, message: ToWorkerMessage) -> None:
        try:
            self._workers.send(generation, message)
        except ValueError as error:
            # A request may hold anything, so a start that cannot be written ends its attempt.
            if not isinstance(message, StartAttempt):
                raise
            failure = Failure(
                kind=FailureKind.BAD_REQUEST,
                reason="unsendable",
                detail=f"the request cannot be sent to a worker: {error}",
                cause=type(error).__name__,
            )
            self._to_sink(Ended(message.turn, message.token, failure=failure))


def _fired(name: TimerName) -> Callable[[bool, bool], TimerFired]:
    return lambda heard, starved: TimerFired(name, heard, starved)

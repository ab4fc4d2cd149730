"""The actors of a runtime, what they share, and how they end: all but its public face.

Path: ``runtime.py`` -> this -> ``supervisor/actor.py``, ``sink/actor.py``, ``supervisor/io.py``.
"""

from __future__ import annotations

import logging
import random
import secrets
import threading
import time
from collections.abc import Callable, Iterable
from os import PathLike
from typing import Any, NamedTuple

import tidegate.planning as planning  # noqa: PLR0402 - "from tidegate" would load all of it
from tidegate.actors.sink.actor import SinkActor
from tidegate.actors.sink.channel import Record, TurnChannel, end_all, fail_all
from tidegate.actors.sink.effects import Grant
from tidegate.actors.supervisor.actor import SupervisorActor
from tidegate.actors.supervisor.io import WorkerIo
from tidegate.errors import ForkedRuntime, RuntimeStopped
from tidegate.inline import InlineStreams, Places
from tidegate.observing import Observer, Observing
from tidegate.protocol.attempts import Credit
from tidegate.protocol.base import Generation, TurnNumber
from tidegate.protocol.policy import Settings
from tidegate.protocol.requests import Request
from tidegate.protocol.sink import OpenTurn, ReviewCredit
from tidegate.protocol.supervisor import Interrupt, Start, TurnPlan
from tidegate.protocol.wires import preload_of
from tidegate.settings import environment
from tidegate.turn import Turn


_log = logging.getLogger("tidegate.runtime")

_FAILED = "the runtime has failed as a whole; the log has the cause"
_CLOSE_S = 5.0
"""How long ``stop`` waits for the sink and for the threads; a sound runtime takes milliseconds."""


class Recording(NamedTuple):
    """How a host keeps the turns of its runtime.

    Attributes:
        record: writes each event before a reader can take it; None keeps nothing.
        recorded: called when a turn of the I/O thread is over in which something may have been
            handed to ``record``, so that what comes together is written together.
        newest_token: no attempt has a token that is not larger.
    """

    record: Record | None = None
    recorded: Callable[[], None] | None = None
    newest_token: int = 0


def _nothing(_turn: Turn) -> None:
    """Prepare nothing."""


class Engine:
    """One supervisor, one sink, one I/O thread, and worker processes.

    Args:
        workers: worker processes; by default ``settings``, else one per core.
        settings: what holds for all turns.
        observers: look on at every attempt.
        capture: a folder for what goes over the wire.
        recording: how a host keeps the turns; None if there is no such host.

    Raises:
        ConfigurationError: a value that makes no sense.
    """

    def __init__(
        self,
        workers: int | None,
        settings: Settings | None,
        observers: Iterable[Observer],
        capture: str | PathLike[str] | None,
        *,
        recording: Recording | None = None,
    ) -> None:
        self._settings = planning.settings_from(settings)
        pool = planning.pool_from(workers, self._settings)
        self._recording = recording
        self._tag = secrets.token_hex(4)
        self._captures = planning.captures_in(capture, self._tag)
        self._observing = Observing(observers)
        self._epoch_s = time.time() - time.monotonic()
        self._channels: dict[TurnNumber, TurnChannel] = {}
        self._locals = planning.LocalAddresses(self._to_supervisor)
        self._lock = threading.Lock()
        self._closing = threading.RLock()
        self._newest = 0
        self._state = "running"
        self._sink = SinkActor(
            channels=self._channels,
            report=self._to_supervisor,
            grant=self._grant,
            down=self._fail,
            clock=time.monotonic,
            epoch_s=self._epoch_s,
            watch=self._observing if self._observing.any else None,
        )
        self._io = self._new_io()
        self._inline = InlineStreams(self._to_sink, self._in_io_thread)
        self._places = Places(self._io, self._inline)
        self._supervisor = SupervisorActor(
            pool=pool,
            newest_token=recording.newest_token if recording else 0,
            workers=self._places,
            to_sink=self._to_sink,
            locate=self._locals.locate,
            down=self._fail,
            clock=time.monotonic,
            chance=random.random,
        )
        self._launch()

    def _new_io(self) -> WorkerIo:
        return WorkerIo(
            deliver=self._sink.deliver,
            crashed=self._lose_io,
            turned=self._recording.recorded if self._recording else None,
            preload=preload_of(self._settings.preload),
        )

    def _launch(self) -> None:
        try:
            # Both actors run in the I/O thread: what comes alone wakes no thread on its way.
            self._sink.launch_on(self._in_io_thread)
            self._supervisor.launch_on(self._in_io_thread)
            self._io.start()
        except BaseException:  # Ctrl-C, or no thread is to be had: nobody could stop it later
            self._end(0)
            raise

    def _begin(
        self,
        request: Request,
        *,
        turn_id: str | None = None,
        prepare: Callable[[Turn], None] = _nothing,
        irrevocable: bool = False,
    ) -> Turn:
        """Start a turn.

        Args:
            request: what to ask, and where.
            turn_id: the turn's name, if the caller has given it one.
            prepare: gets the turn before anything can happen to it.
            irrevocable: whether its readers pass on what they take to somebody who cannot be told
                that it is void, so that no attempt may follow one of which words were taken.
        """
        self._check()
        environ = environment()
        plan = planning.plan_from(
            request, self._settings, environ, self._captures, irrevocable=irrevocable
        )
        address = self._locals.address(request.endpoint)
        target, failure = planning.target_from(request.endpoint, environ, address)
        with self._lock:
            self._check()
            turn = self._new_turn(plan, turn_id)
            prepare(turn)
            self._announce(turn, request, Start(turn.number, plan, target, failure))
        if target is None and failure is None:
            self._locals.locate(turn.number, request.endpoint)
        return turn

    def _new_turn(self, plan: TurnPlan, turn_id: str | None) -> Turn:
        self._newest += 1
        number = TurnNumber(self._newest)
        recording = self._recording
        channel = TurnChannel(
            number,
            turn_id or f"turn_{self._tag}_{number}",
            self._review,
            record=recording.record if recording else None,
            follow_blocks=recording is not None,
        )
        desk = self._inline.desk(channel) if plan.inline else None
        return Turn(channel, self._interrupt(number), forked=self._is_forked, desk=desk)

    def _announce(self, turn: Turn, request: Request, start: Start) -> None:
        """Tell the actors, in the order of the numbers."""
        opened = OpenTurn(
            turn.number, turn.id, request.endpoint.wire, start.plan.policy.window_bytes
        )
        self._channels[turn.number] = turn._channel  # noqa: SLF001 - one thing with this
        try:
            self._to_sink(opened)
            self._to_supervisor(start)
        except BaseException:  # Ctrl-C
            # Nobody knows what was told before it. What is told twice is taken once.
            self._to_sink(opened)
            turn.interrupt("start did not return")
            self._to_supervisor(start)
            raise

    def _check_process(self) -> None:
        if self._is_forked():
            raise ForkedRuntime(
                "this runtime belongs to the process that this one was forked from: "
                "make a Runtime after the fork"
            )

    def _check(self) -> None:
        self._check_process()
        if self._state == "failed":
            raise RuntimeStopped(_FAILED)
        if self._state != "running":
            raise RuntimeStopped("the runtime has been stopped: make another one")

    def _is_forked(self) -> bool:
        return self._io.forked

    def _in_io_thread(self, command: Callable[[], None]) -> None:
        if not self._io.forked:
            self._io.call(command)

    def _to_sink(self, message: Any) -> None:
        self._sink.mailbox.tell(message)

    def _to_supervisor(self, message: Any) -> None:
        self._supervisor.mailbox.tell(message)

    def _review(self, turn: TurnNumber) -> None:
        self._to_sink(ReviewCredit(turn))

    def _grant(self, generation: Generation, grant: Grant) -> None:
        self._places.send(generation, Credit(grant.token, grant.limit_bytes))

    def _interrupt(self, turn: TurnNumber) -> Callable[[str, bool], None]:
        # Not a method of the turn's, or a dropped turn would keep itself alive.
        tell = self._to_supervisor
        return lambda reason, single: tell(Interrupt(turn, reason, single))

    def _fail(self, error: BaseException | None) -> None:
        """R12: without one of its threads the runtime is no runtime; called in that thread."""
        with self._lock:
            if self._state != "running":
                return
            self._state = "failed"
        _log.critical("the runtime has failed as a whole", exc_info=error)
        self._fail_all(_FAILED)
        self._sink.end()  # first, or the I/O thread would not come to them any more
        self._supervisor.end()
        self._io.stop()

    def _fail_all(self, why: str) -> None:
        fail_all(self._channels, why, self._epoch_s)
        if self._recording is not None and self._recording.recorded is not None:
            self._recording.recorded()

    def _lose_io(self, error: BaseException) -> None:
        self._fail(error)
        self._end_actors()  # this is their thread, and who asks them must get an answer

    def _end_actors(self) -> None:
        for actor in (self._supervisor, self._sink):
            actor.end()
            actor.pump()

    def _end(self, drain_s: float) -> None:
        """End all turns, those that still run after ``drain_s`` by an interrupt, and all else."""
        if self._is_forked():
            return
        with self._lock:
            if self._state == "running":
                self._state = "stopping"
        # Each does it all, for a Ctrl-C may have ended the one before; signal handlers come again.
        with self._closing:
            if self._state != "stopped":
                until_s = time.monotonic() + max(0.0, drain_s)
                end_all(self._channels, until_s, self._to_supervisor, _CLOSE_S)
                self._close()

    def _close(self) -> None:
        self._io.stop()
        if self._io.ident is not None:
            self._io.join(_CLOSE_S)
        if not self._io.is_alive():
            self._end_actors()  # their thread is no more
        self._inline.close()
        self._locals.close()
        self._fail_all("the runtime was stopped")
        self._observing.close()
        self._state = "stopped"

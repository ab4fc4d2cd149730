"""Runs one attempt at a custom stream: it is read in the thread that takes its steps.

The same machine decides as for every other attempt. Credit and a cancel come from other threads;
a stream that waits is unblocked from yet another one, because what a user's ``close`` does may
take time.

Path: ``provider/readings.py`` -> this -> ``provider/custom_worker.py`` or ``tidegate/inline.py``
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import assert_never

import msgspec

from tidegate.actors.causes import log_fault
from tidegate.actors.provider.dialects.custom import CustomReader
from tidegate.actors.provider.facts import (
    AttemptEffect,
    AttemptFailed,
    AttemptMessage,
    BatchCame,
    BodyEnded,
    CancelCame,
    CloseSocket,
    CreditCame,
    DrainSocket,
    HeadersCame,
    PauseReading,
    ResumeReading,
    Send,
    SendNow,
)
from tidegate.actors.provider.machine import AttemptState, decide, evolve
from tidegate.actors.provider.readings import END, Home, Reading
from tidegate.actors.provider.scrubbing import scrubbed, secrets_of
from tidegate.actors.provider.stream_errors import failure_from_stream, unclear_failure
from tidegate.protocol.attempts import Ended, FromWorker, StartAttempt
from tidegate.protocol.failures import FailureKind


logger = logging.getLogger("tidegate.custom")


class StreamRun:
    """One attempt, from its start until its stream is closed.

    Args:
        start: what to do.
        home: of the thread that reads.
        send: takes messages to the host; called in the thread that reads.

    Attributes:
        reading_since_s: since when a read has waited for the stream; None while none does.
    """

    def __init__(self, start: StartAttempt, home: Home, send: Callable[[FromWorker], None]) -> None:
        self.turn, self.token = start.turn, start.token
        self.reading_since_s: float | None = None
        self._orders = [start.order]  # until the stream has it, for it holds the prompt
        self._secrets = secrets_of(start.order.target)
        self._factory = dict(start.order.target.options)["factory"]
        self._home = home
        self._send = send
        self._pieces = CustomReader()
        self._reading: Reading | None = None
        self._began = False
        self._cancelled = False
        self._deciding = threading.Lock()
        self._may_read = threading.Event()
        self._may_read.set()
        self._state = AttemptState(
            start.turn,
            start.token,
            start.limit_bytes,
            life_every_s=start.order.life_every_s,
        )

    @property
    def over(self) -> bool:
        """Whether its end was told."""
        return self._state.phase == "ended"

    def step(self) -> bool:
        """Wait for credit, then for one piece, and tell the host; False if that was the end.

        Not to be called by two threads at once.
        """
        self._may_read.wait()
        with self._home.busy:
            if not self.over:
                self._take(self._next())
        return not self.over

    def fail(self, error: BaseException) -> None:
        """End the attempt by what came out of a step."""
        with self._home.busy:
            if not self.over:
                self._take(self._failed(error))

    def credit(self, limit_bytes: int) -> None:
        """Raise the limit; from any thread."""
        for effect in self._decided(CreditCame(limit_bytes)):
            assert isinstance(effect, ResumeReading), "credit only ends a rest"
            self._may_read.set()

    def cancel(self) -> None:
        """Have the next step end the attempt, and a read that waits return; from any thread."""
        if self._cancelled:
            return
        self._cancelled = True
        self._may_read.set()
        # A stream that is just being made finds the mark when it is.
        if (reading := self._reading) is not None:
            threading.Thread(target=reading.unblock, name="tidegate-unblock", daemon=True).start()

    def _next(self) -> AttemptMessage:
        """Read; whatever a cancelled stream brings or raises, it was our own doing."""
        try:
            piece = END if self._cancelled else self._read()
        except Exception as error:  # noqa: BLE001 - the rim: it becomes the attempt's end
            return CancelCame() if self._cancelled else self._failed(error)
        if self._cancelled:
            return CancelCame()
        if piece is END:
            self._close()  # before the host hears of the end, for it may start the next here
            return BodyEnded(self._pieces.end())
        if not self._began:
            self._began = True
            self._take(HeadersCame())
        return BatchCame(self._pieces.take(piece))

    def _read(self) -> object:
        self.reading_since_s = time.monotonic()
        try:
            if self._reading is None:
                order = self._orders.pop()
                payload = msgspec.json.decode(order.body)
                self._reading = self._home.open(self._factory, payload)
                del order, payload
            return END if self._cancelled else self._reading.read()
        finally:
            self.reading_since_s = None

    def _failed(self, error: BaseException) -> AttemptFailed:
        try:
            failure = failure_from_stream(error)
        except Exception as trouble:  # noqa: BLE001 - the error's own properties may raise
            failure = unclear_failure(error, trouble)
        if failure.kind is FailureKind.INTERNAL:
            what = f"turn {self.turn}, token {self.token}: the stream of {self._factory} failed"
            log_fault(logger, what, error)
        return AttemptFailed(failure)

    def _take(self, message: AttemptMessage) -> None:
        for effect in self._decided(message):
            match effect:
                case Send(message=said) | SendNow(message=said):
                    self._send(self._scrubbed(said))
                case PauseReading():
                    self._rest()
                case CloseSocket():
                    self._close()
                case ResumeReading() | DrainSocket():
                    pass  # evidence ends a rest, in which nothing is read; and there is no socket
                case _:
                    assert_never(effect)

    def _decided(self, message: AttemptMessage) -> tuple[AttemptEffect, ...]:
        with self._deciding:
            events, effects = decide(self._state, message, time.monotonic())
            for event in events:
                self._state = evolve(self._state, event)
        return effects

    def _rest(self) -> None:
        self._may_read.clear()
        # Credit or a cancel that came in between has found nothing to wake.
        if self._cancelled or not self._state.paused:
            self._may_read.set()

    def _close(self) -> None:
        if self._reading is not None:
            self._reading.close()

    def _scrubbed(self, message: FromWorker) -> FromWorker:
        if not isinstance(message, Ended) or message.failure is None:
            return message
        failure = scrubbed(message.failure, self._secrets)
        return msgspec.structs.replace(message, failure=failure)

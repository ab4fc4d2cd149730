"""The sink as a pykka actor: a mailbox and the readers' locks around the writers.

Path: ``supervisor/io.py`` -> this -> ``sink/writer.py``.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, MutableMapping
from typing import Any, ClassVar

from tidegate.actors.causes import log_fault
from tidegate.actors.mailbox import Shell
from tidegate.actors.sink.channel import TurnChannel
from tidegate.actors.sink.effects import CreditReviewed, Grant
from tidegate.actors.sink.watch import Watch
from tidegate.actors.sink.writer import ToSupervisor, TurnWriter
from tidegate.protocol.attempts import (
    Deltas,
    Described,
    Ended,
    Finished,
    Life,
    Opened,
    UsageSeen,
    Waking,
    Woken,
)
from tidegate.protocol.base import Generation, TurnNumber
from tidegate.protocol.failures import Failure, FailureKind
from tidegate.protocol.sink import (
    Admit,
    Announce,
    Conclude,
    Fence,
    FenceIfIdle,
    Forget,
    OpenTurn,
    ReviewCredit,
    Seal,
    TurnClosed,
)


_log = logging.getLogger("tidegate.sink")

_FOR_WRITERS = frozenset(
    {
        Deltas,
        Finished,
        Ended,
        Opened,
        Described,
        UsageSeen,
        Life,
        Waking,
        Woken,
        OpenTurn,
        Admit,
        Fence,
        FenceIfIdle,
        Announce,
        Conclude,
        Seal,
    }
)


class SinkActor(Shell):
    """The one writer of every turn of this runtime.

    Whatever the I/O thread says comes through here, in order; what is not about an answer is passed
    on to the supervisor, so that no report overtakes the deltas before it.

    Args:
        channels: what the turns share with their readers; a turn's entry is there before its
            ``OpenTurn`` is told, and is removed here when the turn is forgotten.
        report: tells the supervisor.
        grant: tells a worker how far it may send.
        down: hears that the actor has ended.
        clock: monotonic seconds.
        epoch_s: what to add to the clock for seconds since the epoch.
        watch: looks on, if somebody does.
    """

    FAST: ClassVar[tuple[type, ...]] = (Seal,)

    def __init__(  # noqa: PLR0913 - each collaborator comes in as a plain callable
        self,
        *,
        channels: MutableMapping[TurnNumber, TurnChannel],
        report: Callable[[Any], None],
        grant: Callable[[Generation, Grant], None],
        down: Callable[[BaseException | None], None],
        clock: Callable[[], float],
        epoch_s: float,
        watch: Watch | None = None,
    ) -> None:
        super().__init__()
        self._channels = channels
        self._report = report
        self._grant = grant
        self._down = down
        self._clock = clock
        self._epoch_s = epoch_s
        self._watch = watch
        self._writers: dict[TurnNumber, TurnWriter] = {}
        self.refused: Counter[str] = Counter()
        self.closed: Counter[str] = Counter()
        self.accepted = 0

    def on_message(self, message: Any) -> None:
        """Handle one message, or the list of one frame."""
        now_s = self._clock()
        if type(message) is list:
            for part in message:
                self._handle(part, now_s)
        else:
            self._handle(message, now_s)
        if self._watch is not None:
            self._watch.wake()  # last: the readers come first

    def down(self, error: BaseException | None) -> None:
        """Pass on that the actor has ended."""
        self._down(error)

    def _handle(self, message: Any, now_s: float) -> None:
        kind = type(message)
        if kind in _FOR_WRITERS:
            self._write(message.turn, message, now_s)
        elif kind is ReviewCredit:
            self._review(message.turn, now_s)
        elif kind is Forget:
            self._writers.pop(message.turn, None)
            self._channels.pop(message.turn, None)
        else:
            self._report(message)

    def _write(self, turn: TurnNumber, message: Any, now_s: float) -> None:
        writer = self._writers.get(turn) or self._new_writer(turn)
        if writer is None:
            self.refused["turn_forgotten"] += 1
            if type(message) is Ended:
                self._report(message)  # R3: the end of every attempt is reported
            return
        channel = self._channels[turn]
        try:
            with channel.lock:
                channel.settle_dropped()
                writer.handle(message, now_s)
        except Exception as fault:  # noqa: BLE001 - R12: it ends its own turn
            log_fault(_log, f"turn {turn}: a message could not be handled; the turn ends", fault)
            self._break(writer, channel, now_s)
        if type(message) is Deltas:
            self.accepted += len(message.deltas)
        elif type(message) is Admit:
            self._review(turn, now_s)  # somebody may wait for the answer already
        channel.wake()

    def _report_of_turn(self, message: ToSupervisor) -> None:
        if isinstance(message, TurnClosed):
            self.closed[message.kind] += 1
        self._report(message)

    def _new_writer(self, turn: TurnNumber) -> TurnWriter | None:
        channel = self._channels.get(turn)
        if channel is None:
            return None
        writer = self._writers[turn] = TurnWriter(
            turn,
            channel.outbox,
            report=self._report_of_turn,
            grant=self._grant,
            refused=self.refused,
            epoch_s=self._epoch_s,
            watch=self._watch,
        )
        channel.look = writer.snapshot
        return writer

    def _break(self, writer: TurnWriter, channel: TurnChannel, now_s: float) -> None:
        """R12: a fault ends its own turn, even if the end has a fault as well."""
        failure = Failure(kind=FailureKind.INTERNAL, detail="a defect in the sink; see the log")
        try:
            with channel.lock:
                writer.handle(Conclude(writer.turn, failure), now_s)
        except Exception as fault:  # noqa: BLE001 - as above
            log_fault(_log, f"turn {writer.turn}: it could not be ended in good order", fault)
        if not channel.outbox.closed:
            channel.fail(failure, now_s + self._epoch_s)
            self._report_of_turn(TurnClosed(writer.turn, "failed"))

    def _review(self, turn: TurnNumber, now_s: float) -> None:
        writer = self._writers.get(turn)
        if writer is None:
            return  # not opened, so it has a full window; or forgotten
        channel = self._channels[turn]
        with channel.lock:
            channel.settle_dropped()
            taken_bytes = channel.outbox.review(writer.state.window_bytes)
            waiting = channel.waiting > 0
            writer.handle(CreditReviewed(taken_bytes, waiting), now_s)

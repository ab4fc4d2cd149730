"""What a runtime has done and is doing, as a frozen snapshot."""

from __future__ import annotations

import msgspec

from tidegate.actors.sink.actor import SinkActor
from tidegate.actors.supervisor.actor import SupervisorActor
from tidegate.observing import Observing


class Statistics(msgspec.Struct, frozen=True, kw_only=True):
    """Counts since the runtime was made, and a few states of this moment.

    Attributes:
        turns: started.
        running: not ended yet.
        completed: ended with evidence.
        failed: ended by a failure, partial answers included.
        interrupted: ended by somebody.
        attempts: sent to a worker.
        stale_kills: attempts ended for lack of progress.
        deltas: accepted.
        refused: messages that changed nothing, by the reason: ``stale_token``, ``fenced``,
            ``turn_closed``, ``after_evidence`` and the like.
        workers: processes that take attempts, the warm standby and those of custom streams
            included.
        workers_lost: processes that ended, for whatever reason.
        workers_killed: processes ended because they answered nothing.
        dead_letters: messages to an actor that had stopped, by their type.
        observers_dropped: what observers were not told, because too much waited for them.
        observers_errors: what observers have raised.
    """

    turns: int = 0
    running: int = 0
    completed: int = 0
    failed: int = 0
    interrupted: int = 0
    attempts: int = 0
    stale_kills: int = 0
    deltas: int = 0
    refused: dict[str, int] = {}
    workers: int = 0
    workers_lost: int = 0
    workers_killed: int = 0
    dead_letters: dict[str, int] = {}
    observers_dropped: int = 0
    observers_errors: int = 0


def statistics_from(
    sink: SinkActor,
    supervisor: SupervisorActor,
    observing: Observing,
    turns: int,
    running: int,
) -> Statistics:
    """Return what all have counted; plain reads, so figures may differ by a message."""
    counts = supervisor.supervision.counts
    return Statistics(
        turns=turns,
        running=running,
        completed=sink.closed["completed"],
        failed=sink.closed["failed"],
        interrupted=sink.closed["interrupted"],
        attempts=counts["attempts"],
        stale_kills=counts["stale_kills"],
        deltas=sink.accepted,
        refused=dict(sink.refused),
        workers=len(supervisor.supervision.pool.workers),
        workers_lost=counts["workers_lost"],
        workers_killed=counts["workers_killed"],
        observers_dropped=observing.dropped,
        observers_errors=observing.errors,
        dead_letters=dict(sink.mailbox.dead_letters + supervisor.mailbox.dead_letters),
    )

"""What the journal is given and what it gives back; pure.

Path: the turns of the daemon -> this -> ``journal/writer.py``, and back from ``journal/reader.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple, TypeAlias

from tidegate.errors import ConfigurationError
from tidegate.protocol.answers import AttemptReport, Finish, Usage
from tidegate.protocol.base import Record
from tidegate.protocol.events import AnyEvent, Terminal, TurnCompleted, TurnFailed
from tidegate.protocol.failures import Failure


TurnState: TypeAlias = Literal["queued", "running", "completed", "failed", "interrupted"]
OPEN_STATES: tuple[TurnState, ...] = ("queued", "running")

TroubleKind: TypeAlias = Literal["full", "io", "damaged", "moved", "read_only", "busy", "defect"]


class JournalError(ConfigurationError):
    """The journal cannot be used as it was meant; the text names the file and the way out."""


class JournalLost(JournalError):
    """The journal was closed while it could not write: the text says what it never held."""


class TurnRecord(Record, frozen=True, kw_only=True):
    """One turn as the journal keeps it.

    Attributes:
        owner: short digest of the key that made it; empty without keys.
        endpoint: its name in the configuration.
        created_at: seconds since the epoch, as ``ended_at`` and ``changed_at``.
        changed_at: when the journal last changed this record; set by the journal.
        attempt: the number of the latest attempt, 0 before the first.
        idempotency_key: unique per owner; empty for none, and once it has expired.
        idempotency_digest: of the request that came with the key.
        kept_bytes: what its events take; settled at its end.
        expired: whether its events were given up, so that ``final`` alone is left.
        final: a ``FinalState`` as JSON; empty while it runs.
    """

    id: str
    owner: str = ""
    endpoint: str = ""
    wire: str = ""
    model: str = ""
    api: str = ""
    on_disconnect: str = ""
    created_at: float = 0.0
    ended_at: float | None = None
    changed_at: float = 0.0
    state: TurnState = "queued"
    attempt: int = 0
    idempotency_key: str = ""
    idempotency_digest: str = ""
    kept_bytes: int = 0
    expired: bool = False
    final: bytes = b""


class FinalState(Record, frozen=True, kw_only=True):
    """What is kept of an ended turn for longer than its events: everything but the words.

    Attributes:
        offset: that of the terminal event, which was the last.
        at_s: when it ended, seconds since the epoch.
        reason: why it was interrupted.
        error: why it failed.
        text_chars: how long the answer's text was.
    """

    state: TurnState
    offset: int
    at_s: float
    reason: str = ""
    error: Failure | None = None
    finish: Finish | None = None
    partial: bool = False
    usage: Usage | None = None
    usage_all_attempts: Usage | None = None
    model: str = ""
    response_id: str = ""
    text_chars: int = 0
    lost_tools: tuple[str, ...] = ()
    attempts: tuple[AttemptReport, ...] = ()


class Entry(NamedTuple):
    """Events of one turn, to be stored from the offset ``first`` on.

    If the journal holds events from ``first`` on, this takes them back; without events of its own
    it does nothing else. ``done`` is called in the writer's thread once the entry is committed.
    """

    turn_id: str
    first: int
    events: Sequence[AnyEvent]
    done: Callable[[], None]


class Reserved(NamedTuple):
    """What became of ``Journal.begin``: at most one of the two flags is set.

    Attributes:
        record: the turn that there is now: the given one, or the one that had its key or its id.
        replayed: the key was used by the same owner for the same request.
        conflict: the key was used for another request, or the id is taken.
    """

    record: TurnRecord
    replayed: bool = False
    conflict: bool = False


class StoredEvents(NamedTuple):
    """Stored events of one turn, in order.

    Attributes:
        items: type, offset and JSON of each.
        ended: whether the turn has ended and nothing is stored behind ``items``.
        expired: whether the events are no longer kept; then there are no items.
    """

    items: list[tuple[str, int, bytes]]
    ended: bool
    expired: bool


class JournalTrouble(NamedTuple):
    """Why nothing is written at the moment; what waits is kept in order, and tried every second."""

    kind: TroubleKind
    message: str
    way_out: str


class JournalStatistics(NamedTuple):
    """Counts since the journal was opened, and how it stands.

    Attributes:
        commits: groups that were committed.
        entries: entries in them; ``events`` and ``data_bytes`` likewise.
        withdrawals: entries that took something back.
        refused: entries of turns that the journal does not know or has forgotten.
        commit_seconds: how long all the commits took together.
        commit_buckets: an upper bound in seconds, and how many commits took no longer.
        queued: what waits to be committed.
        file_bytes: the database, without its write-ahead log.
        trouble: why nothing is written, if so.
    """

    commits: int
    entries: int
    events: int
    data_bytes: int
    withdrawals: int
    refused: int
    commit_seconds: float
    commit_buckets: tuple[tuple[float, int], ...]
    queued: int
    file_bytes: int
    trouble: JournalTrouble | None


def state_of(terminal: Terminal) -> TurnState:
    """Return the state of a turn that ended by ``terminal``."""
    if isinstance(terminal, TurnCompleted):
        return "completed"
    return "failed" if isinstance(terminal, TurnFailed) else "interrupted"


def final_from(terminal: Terminal) -> FinalState:
    """Return what is kept of a turn that ended by ``terminal``."""
    answer = terminal.answer
    return FinalState(
        state=state_of(terminal),
        offset=terminal.offset,
        at_s=terminal.at_s,
        reason=getattr(terminal, "reason", ""),
        error=terminal.error if isinstance(terminal, TurnFailed) else None,
        finish=answer.finish,
        partial=answer.partial,
        usage=answer.usage,
        usage_all_attempts=answer.usage_all_attempts,
        model=answer.model,
        response_id=answer.response_id,
        text_chars=len(answer.text),
        lost_tools=answer.lost_tools,
        attempts=answer.attempts,
    )

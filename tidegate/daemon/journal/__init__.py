"""The daemon's journal: turns and their events in SQLite, written before a client sees them.

It knows neither HTTP nor the runtime: it is given events and gives them back.
"""

from __future__ import annotations

from tidegate.daemon.journal.journal import Journal
from tidegate.daemon.journal.model import (
    Entry,
    FinalState,
    JournalError,
    JournalLost,
    JournalStatistics,
    JournalTrouble,
    Reserved,
    StoredEvents,
    TurnRecord,
    TurnState,
    final_from,
    state_of,
)


__all__ = [
    "Entry",
    "FinalState",
    "Journal",
    "JournalError",
    "JournalLost",
    "JournalStatistics",
    "JournalTrouble",
    "Reserved",
    "StoredEvents",
    "TurnRecord",
    "TurnState",
    "final_from",
    "state_of",
]

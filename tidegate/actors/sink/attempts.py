"""What the sink remembers of each attempt, for its report."""

from __future__ import annotations

import msgspec

from tidegate.actors.sink.assembly import Assembly
from tidegate.protocol.answers import AttemptReport
from tidegate.protocol.base import Generation, Token
from tidegate.protocol.failures import Failure


class AttemptRecord(msgspec.Struct, kw_only=True):
    """One attempt and what it has contributed; ``voided`` once a successor has made progress."""

    number: int
    token: Token
    endpoint: str
    free: bool
    generation: Generation
    started_at_s: float
    assembly: Assembly
    request_id: str | None = None
    first_progress_s: float | None = None
    ended_s: float | None = None
    outcome: str = ""
    failure: Failure | None = None
    voided: bool = False

    def end(self, outcome: str, at_s: float, failure: Failure | None) -> bool:
        """Keep how it ended; the first end stands, and is the one for which this is true."""
        if self.outcome:
            return False
        self.outcome = outcome
        self.ended_s = at_s - self.started_at_s
        self.failure = None if outcome == "completed" else failure
        return True

    def report(self) -> AttemptReport:
        """Return what a user may know of it."""
        return AttemptReport(
            number=self.number,
            token=self.token,
            endpoint=self.endpoint,
            free=self.free,
            request_id=self.request_id,
            started_at_s=self.started_at_s,
            first_progress_s=self.first_progress_s,
            ended_s=self.ended_s,
            outcome=self.outcome,
            failure=self.failure,
            usage=self.assembly.usage,
        )

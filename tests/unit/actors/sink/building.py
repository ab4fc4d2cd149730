"""Messages to the sink in few words, and a writer with a reader, for its tests."""

from collections import Counter

from tidegate.actors.sink.outbox import Outbox
from tidegate.actors.sink.writer import TurnWriter
from tidegate.protocol.attempts import Deltas, Ended, Finished, Life, UsageSeen
from tidegate.protocol.deltas import Text
from tidegate.protocol.failures import Failure, FailureKind
from tidegate.protocol.sink import (
    Admit,
    Announce,
    Conclude,
    Fence,
    FenceIfIdle,
    Limit,
    OpenTurn,
    Seal,
)


TURN = 7
WINDOW_BYTES = 1000
LOST = Failure(kind=FailureKind.CONNECTION_LOST, retryable=True)
STALLED = Failure(kind=FailureKind.STALLED, reason="deadline")
OPEN = OpenTurn(TURN, "turn-7", "chat", WINDOW_BYTES)
SEAL = Seal(TURN, "enough")


def admit(token, number=None):
    return Admit(TURN, token, number or token, False, "chat http://host", 3)


def text(token, seq, *pieces):
    return Deltas(TURN, token, seq, tuple(map(Text, pieces or (f"{token}.{seq} ",))))


def deltas(token, seq, *pieces):
    return Deltas(TURN, token, seq, pieces)


def finished(token, seq, *finishes):
    return Finished(TURN, token, seq, finishes or ("stop",))


def ended(token, failure=LOST, **fields):
    return Ended(TURN, token, failure, **fields)


def life(token, *, event=True):
    return Life(TURN, token, event)


def usage(token, figures):
    return UsageSeen(TURN, token, figures)


def fence(token, failure=STALLED):
    return Fence(TURN, token, failure)


def question(token, idle_since_s, limit=Limit.PROGRESS):
    return FenceIfIdle(TURN, token, limit, idle_since_s)


def conclude(failure=LOST):
    return Conclude(TURN, failure)


def announce(*notices, delay_s=1.0):
    return Announce(TURN, LOST, delay_s, notices)


class Desk:
    """A writer, what it reports and grants, and a reader of its outbox.

    Args:
        told: what it is told first; a number in between is the time from there on.
    """

    def __init__(self, *told, epoch_s=0.0):
        self.reports, self.grants, self.refused = [], [], Counter()
        self.outbox = Outbox("turn-7")
        self.reader = self.outbox.attach()
        self.now_s = 0.0
        self.writer = TurnWriter(
            TURN,
            self.outbox,
            report=self.reports.append,
            grant=lambda generation, grant: self.grants.append((generation, grant)),
            refused=self.refused,
            epoch_s=epoch_s,
        )
        self.tell(*told)

    def tell(self, *told):
        """Take messages in order, and return what was reported of them."""
        before = len(self.reports)
        for message in told:
            if isinstance(message, float):
                self.now_s = message
            else:
                self.writer.handle(message, self.now_s)
        return self.reports[before:]

    def take(self, count=None):
        """Take so many events, or all there are."""
        taken = []
        while count is None or len(taken) < count:
            event = self.outbox.take(self.reader)
            if event is None:
                break
            taken.append(event)
        return taken

    def names(self):
        """Return the types of all events, taken or not."""
        return [type(event).__name__ for event in self.outbox.events]

    @property
    def terminal(self):
        return self.outbox.events[-1]

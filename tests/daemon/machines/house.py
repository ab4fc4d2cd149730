"""The machine of all turns, and messages to it in few words, for its tests."""

from tidegate.daemon.config.disconnect import INTERRUPT, OnDisconnect
from tidegate.daemon.turns.machine import decide
from tidegate.daemon.turns.messages import (
    Asked,
    InterruptAsked,
    Limits,
    Started,
)
from tidegate.daemon.turns.state import TurnsState, evolve


FOR_30_S = OnDisconnect("continue", 30.0)
ENOUGH = InterruptAsked("a", "enough")


class House:
    """The machine, and what it ordered last."""

    def __init__(self, *messages, running=1, queued=9):
        self.state = TurnsState(Limits(running, queued))
        self.now_s = 0.0
        self.tell(*messages)

    def tell(self, *messages):
        """Return what the last of the messages leads to."""
        effects = ()
        for message in messages:
            decision = decide(self.state, message, self.now_s)
            for fact in decision.events:
                self.state = evolve(self.state, fact)
            effects = decision.effects
        return list(effects)


def asked(turn, owner="owner", on_disconnect=INTERRUPT, *, client=True):
    return Asked(turn, owner, on_disconnect, client)


def running(turn="a", **fields):
    return asked(turn, **fields), Started(turn)

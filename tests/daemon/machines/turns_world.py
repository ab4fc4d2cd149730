"""What can happen to the daemon's turns, and what an onlooker knows of them."""

from __future__ import annotations

from typing import NamedTuple

from tidegate.daemon.config.disconnect import OnDisconnect
from tidegate.daemon.turns.messages import Limits


FOR_30_S = OnDisconnect("continue", 30.0)
LIMITS = Limits(max_running=1, max_queued=1)
OPTIONAL = frozenset(
    {
        *("leave", "cut", "interrupt", "attach", "detach", "time passes", "forget"),
        *("drain", "trouble", "well", "limits"),
    }
)


class Scenario(NamedTuple):
    """What may happen.

    Attributes:
        policies: of each turn; None for one without a client.
        may: the kinds of optional steps that may happen.
        interrupts: how often each turn may be interrupted.
        ends: whether a turn ends by itself; if not, only an interrupt ends it.
        new_limits: what a new configuration says.
    """

    policies: tuple[OnDisconnect | None, ...]
    may: frozenset[str]
    owners: str = "ab"
    limits: Limits = LIMITS
    interrupts: int = 1
    ends: bool = True
    new_limits: Limits = LIMITS


class Seen(NamedTuple):
    """What an onlooker knows of one turn.

    Attributes:
        told: the first interrupt that somebody asked for.
        asks: how many asked for one.
        client: as it was when the first of leaving and cutting happened.
        start: ``ordered``, and ``answered`` once that was acknowledged or failed.
        ended: how: ``refused``, ``unstarted`` or ``ran``.
        orders: the reasons with which its interrupt was ordered.
        timer: the number of the one that runs; ``fired`` are those to be heard of.
    """

    asked: bool = False
    told: str = ""
    asks: int = 0
    client: str = "here"
    attached: int = 0
    detached: int = 0
    start: str = ""
    ended: str = ""
    orders: tuple[str, ...] = ()
    timer: int = 0
    fired: tuple[int, ...] = ()
    forgotten: bool = False

    @property
    def runs(self):
        return bool(self.start) and not self.ended

    @property
    def waits(self):
        return self.asked and not self.start and not self.ended


class World(NamedTuple):
    """The machine's state, by its number, and what an onlooker knows."""

    key: int
    turns: tuple[Seen, ...]
    drain: str = ""
    announced: bool = False
    drained: bool = False
    trouble: str = ""
    limits: Limits = LIMITS
    limits_changed: bool = False

"""What a model plays: the policy, what the provider sends, and what may go wrong."""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.simulation.world import Left
from tidegate.actors.supervisor.pool import Pool
from tidegate.protocol.attempts import Target
from tidegate.protocol.resolution import Resolved
from tidegate.protocol.supervisor import Prepared, Start, TurnPlan


FAULTS = frozenset({"interrupt", "failure", "death", "stop", "alarm", "starved"})
STALE_S = 100.0
TARGET = Target("chat")
NONE_LEFT = Left(0, 0, 0, 0, 0)
ANSWER = ("text", "text", "finish", "end")


def policy(**fields):
    """Return a policy with short waits, so that the clock moves with the alarms alone."""
    values = {
        "retries": 1,
        "backoff_s": (0.0,),
        "backoff_jitter": 0.0,
        "retry_after_cap_s": 60.0,
        "connect_timeout_s": 30.0,
        "first_event_timeout_s": STALE_S,
        "stale_after_s": STALE_S,
        "alive_timeout_s": STALE_S,
        "deadline_s": None,
        "finish_grace_s": 0.0,
        "kill_grace_s": 0.0,
        "stale_giveup": 5,
        "giveup_cooldown_s": 60.0,
        "after_visible_text": "restart",
        "window_bytes": 1 << 18,
        "event_bytes_max": 1 << 20,
        "plain_stale_after_s": None,
        "plain_first_event_timeout_s": None,
    }
    return Resolved(**{**values, **fields})


@dataclass(frozen=True)
class Scenario:
    """One small world.

    Attributes:
        scripts: what each attempt's provider sends, the first attempt's first; the last one
            holds for all that follow. ``silence`` at its end sends nothing any more, ``deaf``
            does not even end when it is cancelled. From ``waking`` to ``woken`` the worker imports
            an SDK.
        prepared: whether the target comes by a message of its own.
        left: how many interrupts, failures, deaths, alarms and stops may happen.
        failure: what a failure looks like.
        alarms: kinds of timers that fire only as far as ``left`` says.
        timers: kinds of timers that fire some time.
        at_rest: kinds of timers that fire, the earliest first, when nothing else must happen.
        starves: whether a kill timer may find that its worker had no processor.
        readers_must: whether the readers take what there is, sooner or later.
        pings: whether a cancel is followed by a ping.
        prompt: whether the I/O thread does at once what it is told, and reads what comes: two
            queues in a row are one queue to both their ends, so nothing is lost but states.
        one_by_one: whether others may come between two orders of the supervisor.
        cold: whether the workers are still to say that they are up.
        restarts_max: restarts of workers that are put up with.
        irrevocable: whether the readers cannot be told that what they have taken is void.
    """

    scripts: tuple = (ANSWER,)
    policy: Resolved = field(default_factory=policy)
    prepared: bool = False
    left: Left = NONE_LEFT
    failure: str = "lost"
    alarms: frozenset = frozenset({"first_event", "progress"})
    timers: frozenset = frozenset({"backoff"})
    at_rest: frozenset = frozenset()
    starves: bool = False
    readers: int = 1
    readers_must: bool = False
    waiting: bool = False
    pings: bool = False
    one_by_one: bool = False
    prompt: bool = False
    cold: bool = False
    restarts_max: int = 5
    irrevocable: bool = False

    @property
    def pool(self):
        """One active worker, and the standby."""
        return Pool(size=1, restarts_max=self.restarts_max, period_s=1e6)

    @property
    def starts(self):
        """What the supervisor is told first."""
        plan = TurnPlan(
            "chat http://host",
            "memory",
            "circuit",
            b"{}",
            stream=True,
            stream_options=b"",
            choices=1,
            policy=self.policy,
            irrevocable=self.irrevocable,
        )
        if not self.prepared:
            return (Start(1, plan, TARGET),)
        return (Start(1, plan), Prepared(1, TARGET))

    @property
    def optional(self):
        """The kinds of steps that may never happen."""
        return FAULTS if self.readers_must else FAULTS | {"reader"}

    def script(self, token):
        """Return what the provider sends in an attempt; the tokens are the attempts' numbers."""
        return self.scripts[min(token, len(self.scripts)) - 1]

"""Whether an endpoint that has been silent too often is asked at all; pure.

One breaker stands for one session, wire, address and model. It is open while at least
``stale_giveup`` stale kills in a row have counted. Invariants:

- I1 One outage counts once: a kill counts only if its attempt began neither before the last kill
  that counted nor before the last answer.
- I2 Open, it lets one turn through, once ``giveup_cooldown_s`` have passed since the last kill
  that counted: the probe. The others fail until the probe has an answer or ends.
- I3 A probe that ends without an answer leaves its place to the next turn: at once, or if it went
  stale, when the time has passed again. No place is ever lost.
- I4 Any answer closes it, whoever got it.
"""

from __future__ import annotations

import dataclasses
import math
from typing import TypeAlias

from tidegate.protocol.base import TurnNumber
from tidegate.protocol.failures import Failure, FailureKind
from tidegate.protocol.resolution import Resolved


FRUITLESS_WAIT_S = 30.0
"""How long somebody must have waited in vain for the interrupt to count as a stale kill."""

# With these a gateway says that it got no answer itself; 529 is a provider's own word.
_NO_ANSWERS = frozenset({502, 503, 504, *range(520, 529)})


@dataclasses.dataclass(frozen=True, slots=True)
class Allowed:
    """The turn may start; ``probe`` says whether the others wait for its answer."""

    probe: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class Refused:
    """The turn fails with ``failure``, and nothing is sent."""

    failure: Failure


Admission: TypeAlias = Allowed | Refused


@dataclasses.dataclass(frozen=True, slots=True)
class Breaker:
    """What is known of one endpoint's silence; every change returns a new one.

    All times are seconds of one monotonic clock.

    Attributes:
        streak: stale kills that counted since the last answer.
        killed_at_s: when the last of them was.
        answered_at_s: when the last answer was.
        probe: the turn that was let through while open.
    """

    streak: int = 0
    killed_at_s: float = -math.inf
    answered_at_s: float = -math.inf
    probe: TurnNumber | None = None

    def admit(self, turn: TurnNumber, policy: Resolved, now_s: float) -> tuple[Breaker, Admission]:
        """Let ``turn`` start, or refuse it."""
        if policy.stale_giveup == 0 or self.streak < policy.stale_giveup:
            return self, Allowed()
        if self.probe is not None:
            return self, self._refused("one turn is asking whether it is back", None)
        wait_s = self.killed_at_s + policy.giveup_cooldown_s - now_s
        if wait_s > 0:
            return self, self._refused(f"the next turn is let through in {wait_s:.0f} s", wait_s)
        return dataclasses.replace(self, probe=turn), Allowed(probe=True)

    def stale_killed(self, started_at_s: float, now_s: float) -> Breaker:
        """Take note of a stale kill of the attempt that began at ``started_at_s``."""
        if started_at_s < self.killed_at_s or started_at_s < self.answered_at_s:
            return self
        return dataclasses.replace(self, streak=self.streak + 1, killed_at_s=now_s)

    def interrupted(self, started_at_s: float, now_s: float, *, received: bool) -> Breaker:
        """Take note of an interrupt of a single turn; of others nothing is to be learned.

        Args:
            started_at_s: when the attempt began that was current.
            now_s: when the interrupt was.
            received: whether that attempt had received anything at all.
        """
        if received or now_s - started_at_s < FRUITLESS_WAIT_S:
            return self
        return self.stale_killed(started_at_s, now_s)

    def answered(self, now_s: float) -> Breaker:
        """Take note of an answer: complete, partial with visible text, or a real HTTP error."""
        return Breaker(answered_at_s=now_s)

    def ended(self, turn: TurnNumber) -> Breaker:
        """Take note that ``turn`` is over, in whatever way, after what else is known of it."""
        return dataclasses.replace(self, probe=None) if self.probe == turn else self

    def _refused(self, until: str, wait_s: float | None) -> Refused:
        return Refused(
            Failure(
                kind=FailureKind.CIRCUIT_OPEN,
                retryable=True,
                retry_after_s=wait_s,
                detail=f"the endpoint is unresponsive: it went stale {self.streak} times in a "
                f"row, so nothing was sent; {until}",
            )
        )


def is_answer(failure: Failure) -> bool:
    """Tell whether the provider itself answered with this failure."""
    # A failure with the status of a success is a body that went wrong, or no body at all.
    status = failure.status
    return status is not None and status >= 400 and status not in _NO_ANSWERS

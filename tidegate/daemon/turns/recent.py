"""The lanes of all turns: of those that are in memory, and of the last ones that have ended.

A turn is looked at when somebody looks, and once more when it ends; nothing is done for it
meanwhile. Used in the event loop's thread alone.

Path: ``turns/registry.py`` -> this -> ``api/lanes.py``
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, Protocol
from weakref import WeakKeyDictionary

from tidegate.daemon.journal.model import OPEN_STATES, TurnRecord
from tidegate.daemon.turns.hosted import HostedTurn
from tidegate.daemon.turns.lanes import Lane
from tidegate.daemon.turns.state import TurnsState
from tidegate.daemon.turns.views import final_of
from tidegate.protocol.policy import Policy, Settings
from tidegate.protocol.resolution import Limits
from tidegate.settings import environment


RECENT_MAX = 50
"""How many ended turns are shown to each owner."""

STEP_S = 0.005
EVENTS_MAX = 8192
"""For how long, and at how many events of one turn, others wait while somebody looks."""


class Listener(Protocol):
    """Whoever else hears of turns."""

    def interrupt_asked(self, turn_id: str) -> None:
        """It is being interrupted."""

    def turn_ended(self, hosted: HostedTurn) -> None:
        """It has ended, for all to read."""


class _Look(NamedTuple):
    """What is known of a turn in memory.

    Attributes:
        era: of its outbox; another one means that events were withdrawn.
    """

    lane: Lane
    era: int
    limits: Limits | None


class Lanes:
    """The lanes of all turns.

    Args:
        listener: who hears of an end next.
        settings: of the runtime.
    """

    def __init__(self, listener: Listener, settings: Settings) -> None:
        self._listener = listener
        self._settings = settings
        self._looks: WeakKeyDictionary[HostedTurn, _Look] = WeakKeyDictionary()
        self._recent: dict[str, deque[dict[str, Any]]] = {}
        self._recalled: set[str] = set()

    def interrupt_asked(self, turn_id: str) -> None:
        """It is being interrupted."""
        self._listener.interrupt_asked(turn_id)

    def turn_ended(self, hosted: HostedTurn) -> None:
        """Keep the lane of a turn that has ended."""
        self._listener.turn_ended(hosted)
        self._recent_of(hosted.record.owner).appendleft(self._shown(hosted))
        self._looks.pop(hosted, None)

    def forget(self, turn_id: str, owner: str) -> None:
        """Keep no lane of this turn."""
        recent = self._recent_of(owner)
        for lane in [each for each in recent if each["id"] == turn_id]:
            recent.remove(lane)

    def needs(self, owner: str) -> bool:
        """Say whether it has not been told yet what ended before this daemon began."""
        return owner not in self._recalled

    def recall(self, owner: str, records: Iterable[TurnRecord]) -> None:
        """Take over turns out of the journal, the newest first."""
        self._recalled.add(owner)
        recent = self._recent_of(owner)
        known = {each["id"] for each in recent}
        for record in records:
            is_new = record.id not in known and record.state not in OPEN_STATES
            if is_new and len(recent) < RECENT_MAX:
                recent.append(_stored(record))

    async def look(self, owner: str, hosted: Iterable[HostedTurn]) -> None:
        """Look at the turns of an owner, and let the event loop do other things meanwhile."""
        due_s = time.monotonic() + STEP_S
        for each in hosted:
            more = each.record.owner == owner
            while more:
                _, more = self._look(each, EVENTS_MAX)
                if time.monotonic() > due_s:
                    await asyncio.sleep(0)
                    due_s = time.monotonic() + STEP_S

    def of(self, owner: str, hosted: Iterable[HostedTurn], turns: TurnsState) -> list[Any]:
        """Return the lanes of an owner: those that run and wait, then those that have ended.

        Quick after ``look``.

        Args:
            owner: whose.
            hosted: the turns in memory, of whomever.
            turns: what the machine of all turns knows.
        """
        recent = self._recent_of(owner)
        ended = {each["id"] for each in recent}
        places = queue_places(turns.waiting, owner)
        lanes = [
            {**self._shown(each), "queue_place": places.get(each.id)}
            for each in hosted
            if each.record.owner == owner and each.id not in ended
        ]
        return [*lanes, *recent]

    def _recent_of(self, owner: str) -> deque[dict[str, Any]]:
        if owner not in self._recent:
            self._recent[owner] = deque(maxlen=RECENT_MAX)
        return self._recent[owner]

    def _shown(self, hosted: HostedTurn) -> dict[str, Any]:
        look, _ = self._look(hosted)
        return _lane(hosted.record, look.lane, look.limits, len(hosted.subscriptions))

    def _look(self, hosted: HostedTurn, most: int = sys.maxsize) -> tuple[_Look, bool]:
        """Feed a turn's lane what readers may have by now, and say whether there is more."""
        look = self._looks.get(hosted)
        if hosted.turn is None:
            look = look or _Look(Lane(), 0, None)
            if hosted.ending is not None and not look.lane.events:
                look.lane.feed([hosted.ending])
            return look, False
        if look is None or look.limits is None:
            look = self._looks[hosted] = _Look(Lane(), 0, _limits(hosted, self._settings))
        channel = hosted.turn._channel  # noqa: SLF001 - a host's business
        outbox = channel.outbox
        with channel.lock:
            era = outbox._era  # noqa: SLF001
            first = look.lane.events if era == look.era else 0
            until = min(outbox.offered, len(outbox.events))
            new = outbox.events[first : min(until, first + most)]
        if era != look.era:
            look.lane.restart()
            look = self._looks[hosted] = look._replace(era=era)
        look.lane.feed(new)
        return look, first + len(new) < until


def queue_places(waiting: Mapping[str, tuple[str, ...]], owner: str) -> dict[str, int]:
    """Return which place in the queue each waiting turn of an owner has, from 1.

    Owners are served in turn, the first one first, and each one's turns in their order.

    >>> queue_places({"a": ("x", "y"), "b": ("z",)}, "a")
    {'x': 1, 'y': 3}
    """
    places: dict[str, int] = {}
    for index, turn in enumerate(waiting.get(owner, ())):
        before = index + 1  # in the rounds of the queue up to this one, until it is its turn
        place = 0
        for each, turns in waiting.items():
            place += min(len(turns), before)
            if each == owner:
                before = index
        places[turn] = place
    return places


def _limits(hosted: HostedTurn, settings: Settings) -> Limits:
    """Return how long this turn's silences may last, as it was planned."""
    request = hosted.ask.request
    policy = request.policy or Policy()
    resolved = policy.resolved(request, settings, environ=environment()).values()
    return resolved.limits(stream=request.stream)


def _stored(record: TurnRecord) -> dict[str, Any]:
    """Return the lane of a turn out of the journal, as far as its final state tells it."""
    lane = Lane()
    final = final_of(record)
    if final is not None:
        lane.report(final.attempts, final.at_s)
        lane.count(final.usage_all_attempts or final.usage)
        lane.ended_by = final.error.kind.value if final.error is not None else final.reason or None
        lane.events = final.offset + 1
        if lane.attempts:
            lane.attempts[-1].text_chars = final.text_chars
    return _lane(record, lane, None, 0)


def _lane(record: TurnRecord, lane: Lane, limits: Limits | None, readers: int) -> dict[str, Any]:
    return {
        "id": record.id,
        "state": record.state,
        "endpoint": record.endpoint,
        "wire": record.wire,
        "model": record.model,
        "api": record.api,
        "created_at": record.created_at,
        "ended_at": record.ended_at,
        "ended_by": lane.ended_by,
        "events": lane.events,
        "attempts": lane.attempts,
        "attempts_left_out": lane.left_out,
        "marks": lane.marks,
        "input_tokens": lane.input_tokens,
        "output_tokens": lane.output_tokens,
        **_clock(lane, limits),
        "readers": readers,
        "queue_place": None,
    }


def _clock(lane: Lane, limits: Limits | None) -> dict[str, Any]:
    """Return how long the attempt that runs has been silent, and how long it may be.

    Before its first progress the limit is that of the first event, which is the nearer one.
    """
    since_s, current = lane.quiet_since_s, lane.current
    shown: dict[str, Any] = {
        "quiet_since_s": since_s,
        "quiet_s": None if since_s is None else max(0.0, time.time() - since_s),
        "quiet_limit_s": None,
        "stale_after_s": None if limits is None else limits.progress_s,
    }
    if current is not None and limits is not None:
        began = current.first_progress_at_s is not None
        shown["quiet_limit_s"] = limits.progress_s if began else limits.first_event_s
    return shown

"""Names of turns, kept in the journal before anybody is told of them.

What an answer of the journal means is decided in the step in which it is heard. So of many who ask
with the same key at once, all hear the same, whatever becomes of the first.

Path: ``turns/registry.py`` -> this -> ``journal/``
"""

from __future__ import annotations

import asyncio
import functools
import time
from collections.abc import Callable
from typing import TypeAlias

from tidegate.daemon.calls import LoopCalls
from tidegate.daemon.journal.journal import Journal
from tidegate.daemon.journal.model import Reserved, TurnRecord
from tidegate.daemon.turns.hosted import Ask
from tidegate.daemon.turns.messages import Refuse
from tidegate.daemon.turns.refusals import CONFLICT, Refused, refusal_from


Admitted: TypeAlias = tuple[TurnRecord, bool]
"""A turn's record, and whether it was there before."""


class Admission:
    """Those who wait to hear what becomes of the turn that they want.

    Used in the event loop's thread alone.

    Args:
        journal: keeps the names.
        calls: the way into the event loop.
    """

    def __init__(self, journal: Journal, calls: LoopCalls) -> None:
        self._journal = journal
        self._calls = calls
        self._waiting: set[asyncio.Future[Admitted]] = set()
        self._turned_away: dict[str, Refuse] = {}

    async def reserve(
        self, record: TurnRecord, take_on: Callable[[], Refuse | None], unheard: Refuse
    ) -> Admitted:
        """Have a turn kept, then taken on; or find the one that has its key.

        Args:
            record: the turn.
            take_on: called once it is kept, if it is a new one; says why it is not taken on.
            unheard: why it is not, if whoever asked is not there any more.

        Raises:
            Refused: it is not taken on, or its key was used for something else.
            JournalError: it cannot be kept.
        """
        answered: asyncio.Future[Admitted] = asyncio.get_running_loop().create_future()
        settle = functools.partial(self._settle, answered, take_on, unheard)
        self._journal.begin(record, lambda reserved: self._calls.call(lambda: settle(reserved)))
        self._waiting.add(answered)
        return await answered

    def refuse_all(self, why: Callable[[], Refused]) -> None:
        """Let nobody wait any more; what is kept of theirs later is forgotten then."""
        waiting, self._waiting = self._waiting, set()
        for answered in waiting:
            if not answered.done():
                answered.set_exception(why())

    def turn_away(self, refuse: Refuse) -> None:
        """Forget a turn that is kept and was not taken on; whoever has its key hears why."""
        self._turned_away[refuse.turn] = refuse

        def forget() -> None:
            self._turned_away.pop(refuse.turn, None)

        self._journal.forget(refuse.turn, lambda _known: self._calls.call(forget))

    def _settle(
        self,
        answered: asyncio.Future[Admitted],
        take_on: Callable[[], Refuse | None],
        unheard: Refuse,
        reserved: Reserved,
    ) -> None:
        self._waiting.discard(answered)
        is_new = not (reserved.replayed or reserved.conflict)
        if answered.done():
            if is_new:
                self.turn_away(unheard)
            return
        try:
            refuse = take_on() if is_new else self._turned_away.get(reserved.record.id)
        except BaseException as error:
            answered.set_exception(error)
            raise
        if refuse is not None:
            if is_new:
                self.turn_away(refuse)
            answered.set_exception(refusal_from(refuse))
        elif reserved.conflict:
            answered.set_exception(Refused(CONFLICT, 409, "idempotency_conflict", None))
        else:
            answered.set_result((reserved.record, reserved.replayed))


def record_of(ask: Ask, turn_id: str) -> TurnRecord:
    """Return what is kept of a turn that is asked for now."""
    return TurnRecord(
        id=turn_id,
        owner=ask.owner,
        endpoint=ask.endpoint,
        wire=ask.request.endpoint.wire,
        model=ask.model,
        api=ask.api,
        on_disconnect=str(ask.on_disconnect or ""),
        created_at=time.time(),
        idempotency_key=ask.key,
        idempotency_digest=ask.digest,
    )

"""Which worker runs an attempt, and which workers there are; pure.

A worker is *active*, the one warm *standby*, *quarantined* (it takes no new attempts and ends when
its healthy ones have) or *killed* (its loss has yet to be reported). A lost or quarantined worker
is replaced by the standby, and the standby by a new one, within the restart intensity: at most so
many restarts in so long, in the sense of an OTP supervisor.

A *dedicated* worker runs the custom streams of one factory, one at a time. It is started when none
is idle, serves again after a stream that has ended, and is neither replaced nor quarantined.
"""

from __future__ import annotations

import math
from typing import Literal, TypeAlias

import msgspec

from tidegate.protocol.base import Generation


Role: TypeAlias = Literal["active", "standby", "quarantined", "killed", "dedicated"]


class WorkerState(msgspec.Struct, frozen=True):
    """One worker.

    Attributes:
        live: attempts placed on it that have not ended.
        cancelling: those of them that were told to end.
        factory: whose streams a dedicated worker runs.
    """

    generation: Generation
    role: Role
    ready: bool = False
    live: int = 0
    cancelling: int = 0
    factory: str = ""


class Spawn(msgspec.Struct, frozen=True):
    """Start a worker, for custom streams if it is ``dedicated``."""

    generation: Generation
    dedicated: bool = False


class Kill(msgspec.Struct, frozen=True):
    """Kill a worker; its loss is reported like any other.

    Attributes:
        dump: whether to ask it for its stack before.
    """

    generation: Generation
    dump: bool = False


class TryAgain(msgspec.Struct, frozen=True):
    """Call ``replenish`` when the restarts allow it."""

    at_s: float


PoolEffect: TypeAlias = Spawn | Kill | TryAgain


class Pool(msgspec.Struct, frozen=True):
    """The workers of a runtime.

    Attributes:
        size: how many active workers there should be, and how many idle dedicated ones may be.
        restarts_max: restarts within ``period_s`` seconds that are put up with.
        restarted_at_s: instants of the restarts within the last period.
    """

    size: int
    restarts_max: int
    period_s: float
    workers: tuple[WorkerState, ...] = ()
    newest: Generation = Generation(0)
    restarted_at_s: tuple[float, ...] = ()

    def boot(self) -> tuple[Pool, tuple[PoolEffect, ...]]:
        """Start the active workers and the standby."""
        pool, effects = self, list[PoolEffect]()
        for place in range(self.size + 1):
            pool, spawn = pool._spawn("active" if place < self.size else "standby")
            effects.append(spawn)
        return pool, tuple(effects)

    def choose(self, factory: str = "") -> WorkerState | None:
        """Return the worker for the next attempt: ready before starting, idle before busy.

        That for a custom stream of ``factory`` may be one that is started when it is placed.
        """
        if factory:
            idle = [w for w in self._idle() if w.factory == factory]
            new = WorkerState(Generation(self.newest + 1), "dedicated", factory=factory)
            return min(idle, key=lambda w: (not w.ready, w.generation), default=new)
        active = [worker for worker in self.workers if worker.role == "active"]
        if not active:
            return None
        return min(active, key=lambda w: (w.live, not w.ready, w.generation))

    def back_in_s(self, now_s: float) -> int | None:
        """Return in how many whole seconds the restarts allow another worker; None for never."""
        if not self.restarts_max:
            return None
        recent = self._recent(now_s)
        if len(recent) < self.restarts_max:
            return 0
        return math.ceil(self._again_at_s(recent, now_s) - now_s)

    def find(self, generation: Generation) -> WorkerState | None:
        """Return a worker that has not been lost."""
        return next((w for w in self.workers if w.generation == generation), None)

    def ready(self, generation: Generation) -> Pool:
        """Note that the worker's loop runs."""
        return self._change(generation, ready=True)

    def dedicate(self, generation: Generation, factory: str) -> tuple[Pool, tuple[PoolEffect, ...]]:
        """Start the worker that was chosen for a custom stream, if there is none such yet."""
        if not factory or generation <= self.newest:
            return self, ()
        pool, spawn = self._spawn("dedicated", factory)
        return pool, (spawn,)

    def placed(self, generation: Generation) -> Pool:
        """Note an attempt that was sent there."""
        worker = self.find(generation)
        return self._change(generation, live=worker.live + 1) if worker else self

    def cancelling(self, generation: Generation) -> tuple[Pool, tuple[PoolEffect, ...]]:
        """Note an attempt that was told to end."""
        worker = self.find(generation)
        if worker is None:
            return self, ()
        return self._change(generation, cancelling=worker.cancelling + 1)._retire(generation)

    def ended(
        self, generation: Generation, *, cancelled: bool
    ) -> tuple[Pool, tuple[PoolEffect, ...]]:
        """Note the end of an attempt; ``cancelled`` if it had been told to."""
        worker = self.find(generation)
        if worker is None:
            return self, ()
        pool = self._change(
            generation,
            live=worker.live - 1,
            cancelling=worker.cancelling - int(cancelled),
        )
        return pool._thin() if worker.role == "dedicated" else pool._retire(generation)

    def quarantine(
        self, generation: Generation, now_s: float
    ) -> tuple[Pool, tuple[PoolEffect, ...]]:
        """Give the worker nothing more, replace it, and end it when its healthy attempts have."""
        worker = self.find(generation)
        if worker is None or worker.role in ("quarantined", "killed"):
            return self, ()
        pool, effects = self._change(generation, role="quarantined").replenish(now_s)
        pool, retired = pool._retire(generation)
        return pool, (*effects, *retired)

    def kill(self, generation: Generation, now_s: float) -> tuple[Pool, tuple[PoolEffect, ...]]:
        """End a worker that answers nothing, with its stack in the log.

        What is dedicated answers, but its stream does not; the stack would be the wrong thread's.
        """
        worker = self.find(generation)
        if generation < 0:
            return self, (Kill(generation),)  # nobody can: it is the caller's own thread
        if worker is None or worker.role == "killed":
            return self, ()
        if worker.role == "dedicated":
            return self._change(generation, role="killed"), (Kill(generation),)
        pool, effects = self._change(generation, role="killed").replenish(now_s)
        return pool, (Kill(generation, dump=True), *effects)

    def lost(self, generation: Generation, now_s: float) -> tuple[Pool, tuple[PoolEffect, ...]]:
        """Forget a worker that is no more, and replace it."""
        left = tuple(w for w in self.workers if w.generation != generation)
        return msgspec.structs.replace(self, workers=left).replenish(now_s)

    def replenish(self, now_s: float) -> tuple[Pool, tuple[PoolEffect, ...]]:
        """Fill the places of lost and quarantined workers, as far as the restarts allow."""
        pool, effects = self, list[PoolEffect]()
        standby = next((w for w in pool.workers if w.role == "standby"), None)
        if standby and pool._count("active") < pool.size:
            pool = pool._change(standby.generation, role="active")
        while pool._count("active") < pool.size or not pool._count("standby"):
            recent = pool._recent(now_s)
            if len(recent) >= pool.restarts_max:
                pool = msgspec.structs.replace(pool, restarted_at_s=recent)
                return pool, (*effects, TryAgain(pool._again_at_s(recent, now_s)))
            pool = msgspec.structs.replace(pool, restarted_at_s=(*recent, now_s))
            role: Role = "active" if pool._count("active") < pool.size else "standby"
            pool, spawn = pool._spawn(role)
            effects.append(spawn)
        return pool, tuple(effects)

    def _recent(self, now_s: float) -> tuple[float, ...]:
        return tuple(at_s for at_s in self.restarted_at_s if at_s > now_s - self.period_s)

    def _again_at_s(self, recent: tuple[float, ...], now_s: float) -> float:
        oldest_s = recent[0] if recent else now_s
        return oldest_s + self.period_s

    def _count(self, role: Role) -> int:
        return sum(worker.role == role for worker in self.workers)

    def _idle(self) -> list[WorkerState]:
        return [w for w in self.workers if w.role == "dedicated" and not w.live]

    def _thin(self) -> tuple[Pool, tuple[PoolEffect, ...]]:
        """End the dedicated workers that were started last, if too many are idle."""
        pool, effects = self, list[PoolEffect]()
        for worker in self._idle()[self.size :]:
            pool = pool._change(worker.generation, role="killed")
            effects.append(Kill(worker.generation))
        return pool, tuple(effects)

    def _spawn(self, role: Role, factory: str = "") -> tuple[Pool, Spawn]:
        generation = Generation(self.newest + 1)
        workers = (*self.workers, WorkerState(generation, role, factory=factory))
        pool = msgspec.structs.replace(self, workers=workers, newest=generation)
        return pool, Spawn(generation, dedicated=role == "dedicated")

    def _change(self, generation: Generation, **fields: object) -> Pool:
        workers = tuple(
            msgspec.structs.replace(w, **fields) if w.generation == generation else w
            for w in self.workers
        )
        return msgspec.structs.replace(self, workers=workers)

    def _retire(self, generation: Generation) -> tuple[Pool, tuple[PoolEffect, ...]]:
        worker = self.find(generation)
        if worker is None or worker.role != "quarantined" or worker.live > worker.cancelling:
            return self, ()
        return self._change(generation, role="killed"), (Kill(generation),)

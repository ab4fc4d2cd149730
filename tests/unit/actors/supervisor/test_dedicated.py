"""Workers of custom streams: one stream each, served again, never replaced, killed at once."""

import msgspec
import pytest

from tests.unit.actors.supervisor.building import TARGET, TURN, plan
from tidegate.actors.supervisor.orders import (
    AskIdle,
    CancelWorker,
    PingWorker,
    StartTimer,
    ToSink,
    ToWorker,
)
from tidegate.actors.supervisor.pool import Kill, Pool, Spawn
from tidegate.actors.supervisor.supervision import Supervision
from tidegate.protocol.attempts import Ended, Pong, WorkerReady
from tidegate.protocol.sink import Admit
from tidegate.protocol.supervisor import Interrupt, Start, TimerFired
from tidegate.protocol.workers import WorkerLost


ONE, OTHER = "one:factory", "other:factory"


def booted(size=1):
    return Pool(size=size, restarts_max=3, period_s=30.0).boot()[0]


def dedicated(pool, factory=ONE):
    """Place a stream; returns the pool, its worker and what that led to."""
    generation = pool.choose(factory).generation
    pool, effects = pool.dedicate(generation, factory)
    return pool.placed(generation), generation, effects


class TestPool:
    def test_first_stream_has_a_worker_started(self):
        pool, generation, effects = dedicated(booted())

        assert effects == (Spawn(3, dedicated=True),)
        assert pool.find(generation).factory == ONE

    def test_choosing_starts_nothing(self):
        pool = booted()

        assert pool.choose(ONE).generation == pool.choose(OTHER).generation == 3
        assert pool.find(3) is None

    def test_stream_at_the_same_time_has_another(self):
        pool, one, _ = dedicated(booted())
        pool, other, effects = dedicated(pool)

        assert one != other
        assert effects == (Spawn(other, dedicated=True),)

    def test_worker_that_is_idle_serves_the_same_factory_again(self):
        pool, generation, _ = dedicated(booted())
        pool, effects = pool.ended(generation, cancelled=False)

        assert effects == ()
        assert dedicated(pool)[1:] == (generation, ())
        assert dedicated(pool, OTHER)[1] != generation

    def test_worker_whose_stream_is_told_to_end_serves_none_before_it_has(self):
        pool, generation, _ = dedicated(booted())
        pool, _ = pool.cancelling(generation)

        assert pool.choose(ONE).generation != generation
        pool, _ = pool.ended(generation, cancelled=True)
        assert pool.choose(ONE).generation == generation

    def test_worker_that_is_up_is_chosen_before_an_elder_one_that_is_not(self):
        """The elder one's stream was interrupted while the worker was still coming up."""
        pool, elder, _ = dedicated(booted(size=2))
        pool, younger, _ = dedicated(pool)
        for generation in (elder, younger):
            pool, _ = pool.ended(generation, cancelled=False)

        assert pool.choose(ONE).generation == elder
        assert pool.ready(younger).choose(ONE).generation == younger

    def test_idle_ones_are_as_many_as_shared_ones_at_most_and_the_newest_go(self):
        pool = booted(size=2)
        generations = []
        for factory in (ONE, OTHER, ONE, OTHER):
            pool, generation, _ = dedicated(pool, factory)
            generations.append(generation)
        effects = []
        for generation in reversed(generations):
            pool, more = pool.ended(generation, cancelled=False)
            effects += more

        assert effects == [Kill(generations[3]), Kill(generations[2])]
        assert pool.choose(ONE).generation == generations[0]
        assert pool.choose(OTHER).generation == generations[1]

    def test_they_take_no_other_attempts(self):
        pool, _, _ = dedicated(Pool(size=1, restarts_max=0, period_s=30.0))

        assert pool.choose() is None

    def test_one_that_is_lost_is_not_replaced_and_costs_no_restart(self):
        pool, generation, _ = dedicated(booted())

        pool, effects = pool.lost(generation, 1.0)

        assert effects == ()
        assert pool.restarted_at_s == ()
        assert pool.find(generation) is None

    def test_one_that_does_not_end_is_killed_without_a_look_at_its_stack(self):
        pool, generation, _ = dedicated(booted())

        pool, effects = pool.kill(generation, 1.0)

        assert effects == (Kill(generation),)
        assert pool.kill(generation, 1.0)[1] == ()


def custom(*, inline=False, **policy):
    return msgspec.structs.replace(plan(**policy), factory=ONE, inline=inline)


@pytest.fixture
def supervision():
    supervision = Supervision(booted())
    supervision.pool = supervision.pool.ready(1)
    return supervision


def start(supervision, now_s=0.0, **fields):
    return supervision.handle(Start(TURN, custom(**fields), TARGET), now_s)


def of(kind, orders):
    return [order for order in orders if isinstance(order, kind)]


class TestSupervision:
    def test_worker_is_started_before_its_attempt_and_that_is_admitted_before(self, supervision):
        orders = start(supervision)

        kinds = [type(o.message) if isinstance(o, ToSink) else type(o) for o in orders]
        assert kinds[:3] == [Admit, Spawn, ToWorker]
        assert of(Spawn, orders) == [Spawn(3, dedicated=True)]
        assert of(ToWorker, orders)[0].generation == 3

    @pytest.mark.parametrize("sign", ["ponged", "heard", "starved", "nothing"])
    def test_stream_that_outlasts_its_grace_costs_the_worker_whatever_that_says(
        self, supervision, sign
    ):
        start(supervision)
        supervision.handle(WorkerReady(3, 4711), 0.1)
        [cancelled] = of(CancelWorker, supervision.handle(Interrupt(TURN, "enough"), 1.0))
        if sign == "ponged":
            supervision.handle(Pong(3, cancelled.token), 1.1)

        fired = TimerFired(("kill", cancelled.token), sign == "heard", sign == "starved")
        orders = supervision.handle(fired, 1.3)

        assert of(Kill, orders) == [Kill(3)]
        assert of(PingWorker, orders) == of(StartTimer, orders) == []
        assert supervision.counts["workers_killed"] == 1

    def test_inline_attempt_has_no_worker(self, supervision):
        orders = start(supervision, inline=True)

        [sent] = of(ToWorker, orders)
        assert (sent.generation, sent.message.generation) == (-1, -1)
        assert of(Spawn, orders) == []
        assert len(supervision.pool.workers) == 2

    def test_alarms_of_an_inline_attempt_count_from_when_somebody_reads_it(self, supervision):
        waiting = start(supervision, inline=True)
        reading = supervision.handle(WorkerReady(-1, 1), 500.0)

        assert of(StartTimer, waiting) == []
        assert {order.name[0]: order.at_s for order in of(StartTimer, reading)} == {
            "first_event": 600.0,
            "progress": 580.0,
            "alive": 620.0,
        }

    def test_inline_attempt_whose_reader_does_not_come_back_is_given_up(self, supervision):
        start(supervision, inline=True)
        supervision.handle(WorkerReady(-1, 1), 0.0)
        supervision.handle(Interrupt(TURN, "enough"), 1.0)

        orders = supervision.handle(TimerFired(("kill", 1)), 2.0)
        supervision.handle(WorkerLost(-1, "its reader did not come back"), 2.0)

        assert of(Kill, orders) == [Kill(-1)]
        assert supervision.turns[TURN].live == ()
        assert supervision.counts["workers_killed"] == supervision.counts["workers_lost"] == 0

    def test_end_of_an_inline_attempt_is_taken_like_any_other(self, supervision):
        start(supervision, inline=True)
        supervision.handle(WorkerReady(-1, 1), 0.0)
        [asked] = of(AskIdle, supervision.handle(TimerFired(("progress", 1)), 80.0))

        supervision.handle(Ended(TURN, 1, cancelled=True), 81.0)

        assert asked.generation == -1
        assert supervision.turns[TURN].live == ()

"""Which workers there are and which one is next: by rule, then in every state of a small pool."""

import pytest

from tidegate.actors.supervisor.pool import Kill, Pool, Spawn, TryAgain


PERIOD_S = 30.0


def booted(size=1, restarts_max=3):
    return Pool(size=size, restarts_max=restarts_max, period_s=PERIOD_S).boot()[0]


def roles(pool):
    return [(worker.generation, worker.role) for worker in pool.workers]


def chosen(pool):
    place = pool.choose()
    return None if place is None else place.generation


def test_boot_spawns_the_active_workers_and_a_standby():
    pool, effects = Pool(size=2, restarts_max=3, period_s=PERIOD_S).boot()

    assert effects == (Spawn(1), Spawn(2), Spawn(3))
    assert roles(pool) == [(1, "active"), (2, "active"), (3, "standby")]
    assert pool.restarted_at_s == ()


def test_idle_worker_is_chosen_before_a_busy_one():
    assert chosen(booted(2).placed(1)) == 2


def test_worker_that_is_up_is_chosen_before_one_that_is_not():
    assert chosen(booted(2).ready(2)) == 2


def test_idle_worker_that_comes_up_is_chosen_before_a_busy_one_that_is_up():
    assert chosen(booted(2).ready(1).placed(1)) == 2


def test_eldest_is_chosen_among_equals():
    assert chosen(booted(3)) == 1


def test_standby_is_not_chosen():
    assert chosen(booted(1).placed(1).placed(1)) == 1


@pytest.mark.parametrize("end", ["quarantine", "kill"])
def test_worker_that_was_given_up_is_not_chosen(end):
    pool = booted(1).placed(1)
    pool, _ = getattr(pool, end)(1, 0.0)

    assert chosen(pool) == 2


def test_no_worker_is_chosen_where_there_is_none():
    pool = booted(1, restarts_max=0)
    pool, _ = pool.lost(1, 0.0)
    pool, _ = pool.lost(2, 0.0)

    assert pool.choose() is None


def test_lost_worker_is_replaced_by_the_standby_and_that_by_a_new_one():
    pool, effects = booted(1).lost(1, 0.0)

    assert roles(pool) == [(2, "active"), (3, "standby")]
    assert effects == (Spawn(3),)
    assert pool.restarted_at_s == (0.0,)


def test_lost_standby_is_replaced():
    pool, effects = booted(1).lost(2, 0.0)

    assert roles(pool) == [(1, "active"), (3, "standby")]
    assert effects == (Spawn(3),)


def test_promoted_standby_keeps_what_is_known_of_it():
    pool, _ = booted(1).ready(2).lost(1, 0.0)

    assert pool.find(2).ready


def test_active_places_are_filled_before_the_standbys():
    pool = booted(2, restarts_max=1)
    pool, _ = pool.lost(1, 0.0)
    pool, effects = pool.lost(2, 0.0)

    assert roles(pool) == [(3, "active"), (4, "active")]
    assert effects == (TryAgain(PERIOD_S),)


def test_restarts_are_bounded_within_a_period():
    pool, _ = booted(1, restarts_max=1).lost(1, 5.0)
    pool, effects = pool.lost(2, 10.0)

    assert roles(pool) == [(3, "active")]
    assert effects == (TryAgain(5.0 + PERIOD_S),)


def test_restart_leaves_the_count_when_the_period_is_over():
    pool, _ = booted(1, restarts_max=1).lost(1, 5.0)
    pool, _ = pool.lost(2, 10.0)

    assert pool.replenish(4.9 + PERIOD_S)[1] == (TryAgain(5.0 + PERIOD_S),)
    pool, effects = pool.replenish(5.0 + PERIOD_S)
    assert effects == (Spawn(4),)
    assert pool.restarted_at_s == (5.0 + PERIOD_S,)


def test_without_restarts_nothing_is_replaced():
    _, effects = booted(1, restarts_max=0).lost(1, 5.0)

    assert effects == (TryAgain(5.0 + PERIOD_S),)


def test_full_pool_needs_nothing():
    pool = booted(2)

    assert pool.replenish(0.0) == (pool, ())


def test_loss_of_an_unknown_worker_changes_nothing():
    pool = booted(1)

    assert pool.lost(9, 0.0) == (pool, ())


def test_killed_worker_is_replaced_at_once_and_not_again_when_it_is_lost():
    pool, effects = booted(1).placed(1).kill(1, 0.0)
    assert effects == (Kill(1, dump=True), Spawn(3))
    assert roles(pool) == [(1, "killed"), (2, "active"), (3, "standby")]

    pool, effects = pool.lost(1, 1.0)
    assert (roles(pool), effects) == ([(2, "active"), (3, "standby")], ())


def test_worker_is_killed_once():
    pool, _ = booted(1).kill(1, 0.0)

    assert pool.kill(1, 1.0) == (pool, ())
    assert pool.quarantine(1, 1.0) == (pool, ())


def test_quarantined_worker_is_replaced_at_once():
    pool, effects = booted(1).placed(1).quarantine(1, 0.0)

    assert effects == (Spawn(3),)
    assert roles(pool) == [(1, "quarantined"), (2, "active"), (3, "standby")]


def test_worker_is_quarantined_once():
    pool, _ = booted(1).placed(1).quarantine(1, 0.0)

    assert pool.quarantine(1, 1.0) == (pool, ())


def test_quarantined_worker_can_still_be_killed():
    pool, _ = booted(1).placed(1).quarantine(1, 0.0)

    assert pool.kill(1, 1.0)[1] == (Kill(1, dump=True),)


def test_quarantined_worker_without_sound_attempts_ends_at_once():
    pool, _ = booted(1).placed(1).cancelling(1)

    assert Kill(1) in pool.quarantine(1, 0.0)[1]


def test_quarantined_worker_ends_when_its_last_sound_attempt_has():
    pool, _ = booted(1).placed(1).placed(1).cancelling(1)
    pool, _ = pool.quarantine(1, 0.0)
    assert pool.find(1).role == "quarantined"

    pool, effects = pool.ended(1, cancelled=False)
    assert effects == (Kill(1),)
    assert pool.find(1).role == "killed"


def test_quarantined_worker_ends_when_its_last_sound_attempt_is_cancelled():
    pool, _ = booted(1).placed(1).placed(1).cancelling(1)
    pool, _ = pool.quarantine(1, 0.0)

    assert pool.cancelling(1)[1] == (Kill(1),)


def test_sound_worker_does_not_end_with_its_attempts():
    pool, effects = booted(1).placed(1).ended(1, cancelled=False)

    assert effects == ()
    assert pool.find(1).role == "active"


def test_ends_and_cancels_on_a_lost_worker_are_nothing():
    pool, _ = booted(1).placed(1).lost(1, 0.0)

    assert pool.cancelling(1) == (pool, ())
    assert pool.ended(1, cancelled=True) == (pool, ())
    assert pool.placed(1) == pool
    assert pool.kill(1, 0.0) == (pool, ())
    assert pool.quarantine(1, 0.0) == (pool, ())


def steps(pool, attempts):
    """Yield what can happen next: the pool after it, its effects, and the attempts then.

    Args:
        pool: as it is.
        attempts: generation and whether it was told to end, of each attempt.
    """
    place = chosen(pool)
    if place is not None and len(attempts) < 3:
        yield pool.placed(place), (), (*attempts, (place, False))
    for number, (generation, cancelled) in enumerate(attempts):
        others = attempts[:number] + attempts[number + 1 :]
        yield *pool.ended(generation, cancelled=cancelled), others
        if not cancelled:
            yield *pool.cancelling(generation), (*others, (generation, True))
        elif pool.find(generation).role != "killed":
            yield *pool.quarantine(generation, 0.0), attempts
            yield *pool.kill(generation, 0.0), attempts
    for worker in pool.workers:
        left = tuple(each for each in attempts if each[0] != worker.generation)
        yield *pool.lost(worker.generation, 0.0), left


def test_every_state_of_a_small_pool_is_sound():
    first = (booted(1, restarts_max=3), ())
    seen, waiting = {first}, [first]
    for pool, attempts in waiting:
        for after, effects, left in steps(pool, attempts):
            check(after, effects, left)
            state = (after, tuple(sorted(left)))
            if state not in seen:
                seen.add(state)
                waiting.append(state)

    assert len(seen) > 1_000


def check(pool, effects, attempts):
    names = [worker.role for worker in pool.workers]
    assert names.count("active") <= pool.size
    assert names.count("standby") <= 1
    full = names.count("active") == pool.size and "standby" in names
    tired = len(pool.restarted_at_s) == pool.restarts_max
    assert full or tired, "a place is free, and restarts are left"
    assert names.count("active") == pool.size or "standby" not in names, "the standby waits"
    for worker in pool.workers:
        own = [cancelled for generation, cancelled in attempts if generation == worker.generation]
        assert (worker.live, worker.cancelling) == (len(own), own.count(True))
        assert worker.role != "quarantined" or own.count(False), "it has nothing to finish"
    for effect in effects:
        if isinstance(effect, Kill):
            assert pool.find(effect.generation).role == "killed"

"""A minute's worth at once, and then one by one."""

import math

from hypothesis import given
from hypothesis import strategies as st

from tidegate.daemon.access.rate import RateLimit


def test_minute_may_be_used_up_at_once_and_then_one_comes_after_another():
    rate = RateLimit(60)

    assert [rate.take("a", 0.0) for _ in range(60)] == [0.0] * 60
    assert rate.take("a", 0.0) == 1.0
    assert rate.take("a", 0.75) == 0.25
    assert rate.take("a", 1.0) == 0.0
    assert rate.take("a", 1.0) == 1.0


def test_each_owner_has_a_bucket():
    rate = RateLimit(1)

    assert rate.take("a", 0.0) == 0.0
    assert rate.take("b", 0.0) == 0.0
    assert rate.take("a", 0.0) == 60.0


def test_none_is_no_limit():
    rate = RateLimit(0)

    assert [rate.take("a", 0.0) for _ in range(1000)] == [0.0] * 1000


def test_clock_that_falls_gives_nothing_away():
    rate = RateLimit(1)
    rate.take("a", 100.0)

    assert rate.take("a", 0.0) == 60.0
    assert rate.take("a", 160.0) == 0.0


@given(st.integers(1, 100), st.lists(st.floats(0, 30), max_size=200))
def test_no_window_has_more_than_its_share(per_minute, gaps_s):
    rate, now_s, taken_s = RateLimit(per_minute), 0.0, []
    for gap_s in gaps_s:
        now_s += gap_s
        if rate.take("a", now_s) == 0.0:
            taken_s.append(now_s)

    for first, began_s in enumerate(taken_s):
        for count, at_s in enumerate(taken_s[first:], 1):
            assert count <= per_minute + (at_s - began_s) * per_minute / 60 + 1e-6


@given(st.integers(1, 1000), st.lists(st.floats(0, 10), min_size=1, max_size=50))
def test_who_waits_as_told_is_let_in(per_minute, gaps_s):
    rate, now_s = RateLimit(per_minute), 0.0
    for gap_s in gaps_s:
        now_s += gap_s
        wait_s = rate.take("a", now_s)
        if wait_s:
            now_s += math.ceil(wait_s)
            assert rate.take("a", now_s) == 0.0

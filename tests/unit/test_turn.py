"""A turn without a runtime: what its caller may do with it."""

import math
import re
import threading
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import pytest

from tidegate.actors.sink.channel import TurnChannel
from tidegate.errors import ConfigurationError, InternalError
from tidegate.protocol.failures import Failure, FailureKind
from tidegate.turn import Turn


@pytest.fixture
def turn():
    channel = TurnChannel(1, "turn_1", lambda turn: None)
    turn = Turn(channel, interrupt=lambda reason, single: None, forked=lambda: False)
    yield turn
    turn.interrupt()


@pytest.mark.parametrize("timeout", [None, threading.TIMEOUT_MAX * 2, math.inf])
def test_result_may_be_waited_for_without_end(timeout):
    waits = threading.Event()
    channel = TurnChannel(1, "turn_1", lambda turn: waits.set())
    turn = Turn(channel, interrupt=lambda reason, single: None, forked=lambda: False)

    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(turn.result, timeout)
        assert waits.wait(10)
        channel.fail(Failure(kind=FailureKind.INTERNAL), 0.0)

        with pytest.raises(InternalError):
            waiting.result(10)


@pytest.mark.parametrize("timeout", ["1", math.nan, True, [1]])
def test_time_limit_that_is_no_number_is_refused(turn, timeout):
    with pytest.raises(ConfigurationError, match=re.escape(f"timeout {timeout!r} is no number")):
        turn.result(timeout=timeout)


@pytest.mark.parametrize("timeout", [0, -1, Fraction(1, 1000), 0.001])
def test_time_limit_may_be_any_number(turn, timeout):
    with pytest.raises(TimeoutError, match="has not ended"):
        turn.result(timeout)


@pytest.mark.parametrize("reason", [5, None, b"enough"])
def test_reason_that_is_no_text_is_refused_and_ends_nothing(turn, reason):
    with pytest.raises(ConfigurationError, match=re.escape(f"reason {reason!r} is no text")):
        turn.interrupt(reason)
    assert turn.interrupt("enough")

"""An endpoint whose address may change is located again before each further attempt."""

import msgspec

from tests.unit.actors.supervisor.building import (
    FATAL,
    TARGET,
    TURN,
    Desk,
    fenced,
    fired,
    interrupt,
    prepared,
    start,
    starts,
    to_sink,
)
from tidegate.actors.supervisor.orders import Locate
from tidegate.protocol.attempts import Target
from tidegate.protocol.endpoints import Endpoint
from tidegate.protocol.sink import Admit, Conclude, Seal


ENDPOINT = Endpoint.local()
ELSEWHERE = Target("chat", "http://127.0.0.1:4711/v1")
BACKED_OFF = fired("backoff", TURN)


def moving(target=TARGET, **fields):
    told = start(target=target, **fields)
    plan = msgspec.structs.replace(told.plan, moving=ENDPOINT)
    return msgspec.structs.replace(told, plan=plan)


def targets(orders):
    return [message.order.target for message in starts(orders)]


def test_first_attempt_goes_where_the_start_says():
    assert targets(Desk().tell(moving())) == [TARGET]


def test_first_attempt_waits_for_a_target_that_is_being_found_already():
    desk = Desk()

    assert desk.tell(moving(target=None)) == []
    assert targets(desk.tell(prepared())) == [TARGET]


def test_retry_is_located_first_and_then_goes_there():
    desk = Desk(moving(), fenced(1))

    assert desk.tell(BACKED_OFF) == [Locate(TURN, ENDPOINT)]
    assert targets(desk.tell(prepared(ELSEWHERE))) == [ELSEWHERE]


def test_each_retry_is_located():
    desk = Desk(moving(), fenced(1), BACKED_OFF, prepared(), fenced(2))

    assert desk.tell(BACKED_OFF) == [Locate(TURN, ENDPOINT)]
    assert targets(desk.tell(prepared(ELSEWHERE))) == [ELSEWHERE]


def test_retry_of_an_endpoint_that_stays_starts_at_once():
    assert targets(Desk(start(), fenced(1)).tell(BACKED_OFF)) == [TARGET]


def test_free_attempt_stays_free():
    desk = Desk(moving(), fenced(1, refused="stream_options"), BACKED_OFF)

    orders = desk.tell(prepared())

    [admit] = [each for each in to_sink(orders) if isinstance(each, Admit)]
    assert admit.free


def test_endpoint_that_is_nowhere_ends_the_turn():
    desk = Desk(moving(), fenced(1), BACKED_OFF)

    assert to_sink(desk.tell(prepared(None, FATAL))) == [Conclude(TURN, FATAL)]


def test_interrupt_while_it_is_being_located_means_no_further_attempt():
    desk = Desk(moving(), fenced(1), BACKED_OFF)

    assert to_sink(desk.tell(interrupt())) == [Seal(TURN, "enough")]
    assert desk.tell(prepared(ELSEWHERE)) == []


def test_deadline_holds_while_it_is_being_located():
    desk = Desk(moving(deadline_s=9.0), fenced(1), BACKED_OFF)

    [conclude] = to_sink(desk.tell(fired("deadline", TURN)))

    assert conclude.failure.reason == "deadline"
    assert desk.tell(prepared(ELSEWHERE)) == []

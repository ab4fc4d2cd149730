"""What becomes of a turn when its client leaves, and others read it."""

import itertools

import pytest

from tests.daemon.machines.house import ENOUGH, FOR_30_S, House, asked, running
from tidegate.daemon.config.disconnect import CONTINUE, INTERRUPT
from tidegate.daemon.turns import machine
from tidegate.daemon.turns.messages import (
    Attached,
    CancelTimer,
    ClientCut,
    ClientLeft,
    Detached,
    Ended,
    EndUnstarted,
    GraceOver,
    Interrupt,
    SetTimer,
    Start,
)


def test_client_that_leaves_interrupts_its_turn_once():
    house = House(*running())

    assert house.tell(ClientLeft("a")) == [Interrupt("a", machine.DISCONNECTED)]
    assert house.tell(ClientLeft("a")) == []
    assert machine.DISCONNECTED == "SSE client disconnected"


def test_client_that_leaves_the_queue_takes_its_turn_along():
    house = House(asked("b"), asked("a"))

    ended = EndUnstarted("a", "interrupted", machine.DISCONNECTED)
    assert house.tell(ClientLeft("a")) == [ended]


def test_client_that_left_before_its_turn_was_asked_for_never_sends_a_request():
    house = House(ClientLeft("a"), ClientLeft("a"))

    ended = EndUnstarted("a", "interrupted", machine.DISCONNECTED)
    assert house.tell(asked("a")) == [ended]
    assert house.tell(asked("b")) == [Start("b")]


def test_client_that_left_changes_nothing_about_a_turn_that_goes_on_or_has_ended():
    going_on = House(*running(on_disconnect=CONTINUE))
    unsaid = House(*running(on_disconnect=None))
    without = House(*running(client=False))
    ended = House(*running(), Ended("a"))

    for house in (going_on, unsaid, without, ended):
        assert house.tell(ClientLeft("a")) == []


def test_client_that_left_what_is_not_its_own_is_none():
    house = House(ClientLeft("a"))

    assert house.tell(asked("a", client=False)) == [Start("a")]


def test_client_that_is_cut_off_has_not_left():
    house = House(*running())

    assert house.tell(ClientCut("a")) == []
    assert house.tell(ClientLeft("a")) == []


def test_nobody_is_cut_off_before_the_turn_is_asked_for():
    house = House(ClientCut("a"), asked("a"))

    assert house.tell(ClientLeft("a")) == [Interrupt("a", machine.DISCONNECTED)]


def test_grace_ends_the_turn():
    house = House(*running(on_disconnect=FOR_30_S))

    assert house.tell(ClientLeft("a")) == [SetTimer("a", 1, 30.0)]
    assert house.tell(GraceOver("a", 1)) == [Interrupt("a", machine.DISCONNECTED)]
    assert house.tell(GraceOver("a", 1)) == []


def test_grace_of_a_turn_that_waits_counts_as_well():
    house = House(asked("b"), asked("a", on_disconnect=FOR_30_S))

    assert house.tell(ClientLeft("a")) == [SetTimer("a", 1, 30.0)]
    ended = EndUnstarted("a", "interrupted", machine.DISCONNECTED)
    assert house.tell(GraceOver("a", 1)) == [ended]


def test_grace_of_a_client_that_left_before_begins_with_the_turn():
    house = House(ClientLeft("a"))

    orders = house.tell(asked("a", on_disconnect=FOR_30_S))
    assert orders == [Start("a"), SetTimer("a", 1, 30.0)]


@pytest.mark.parametrize("end", [ENOUGH, Ended("a")])
def test_grace_is_forgotten_at_the_end(end):
    house = House(*running(on_disconnect=FOR_30_S), ClientLeft("a"))

    assert CancelTimer("a", 1) in house.tell(end)
    assert house.tell(GraceOver("a", 1)) == []


def test_subscriber_stops_the_clock_and_the_last_to_go_starts_it_anew():
    house = House(*running(on_disconnect=FOR_30_S), ClientLeft("a"))

    assert house.tell(Attached("a")) == [CancelTimer("a", 1)]
    assert house.tell(GraceOver("a", 1)) == []
    assert house.tell(Attached("a")) == []
    assert house.tell(Detached("a")) == []
    assert house.tell(Detached("a")) == [SetTimer("a", 2, 30.0)]
    assert house.tell(GraceOver("a", 1)) == []
    assert house.tell(GraceOver("a", 2)) == [Interrupt("a", machine.DISCONNECTED)]


def test_client_that_leaves_as_others_read_starts_no_clock_before_they_go():
    house = House(*running(on_disconnect=FOR_30_S), Attached("a"))

    assert house.tell(ClientLeft("a")) == []
    assert house.tell(Detached("a")) == [SetTimer("a", 1, 30.0)]


@pytest.mark.parametrize(
    "turn",
    [
        running(on_disconnect=CONTINUE),
        running(on_disconnect=INTERRUPT),
        running(on_disconnect=FOR_30_S),
        running(on_disconnect=FOR_30_S, client=False),
    ],
)
def test_leaving_the_events_ends_nothing(turn):
    house = House(*turn, Attached("a"))

    assert house.tell(Detached("a")) == []
    assert house.tell(Detached("a")) == []


def test_subscriber_that_came_before_the_turn_was_asked_for_counts():
    house = House(Attached("a"), asked("a", on_disconnect=FOR_30_S), ClientLeft("a"))

    assert house.tell(Detached("a")) == [SetTimer("a", 1, 30.0)]


def test_subscriber_of_a_turn_that_nobody_knows_leaves_nothing_behind():
    house = House(Attached("a"), Attached("a"), Detached("a"))
    assert house.state.turns

    assert house.tell(Detached("a")) == []
    assert not house.state.turns


def test_subscriber_of_a_turn_that_has_ended_changes_nothing():
    house = House(*running(on_disconnect=FOR_30_S), ClientLeft("a"), Ended("a"))

    assert house.tell(Attached("a")) == []
    assert house.tell(Detached("a")) == []


def test_order_in_which_a_client_leaves_and_is_interrupted_decides_the_reason_alone():
    for messages in itertools.permutations([ClientLeft("a"), ENOUGH]):
        house = House(*running())
        orders = [*house.tell(messages[0]), *house.tell(messages[1])]

        reason = "enough" if messages[0] is ENOUGH else machine.DISCONNECTED
        assert orders == [Interrupt("a", reason)]

"""Which turns start, wait and are refused, and what an interrupt does to them."""

import pytest

from tests.daemon.machines.house import ENOUGH, House, asked, running
from tidegate.daemon.turns.machine import refusal
from tidegate.daemon.turns.messages import (
    ClientLeft,
    Ended,
    EndUnstarted,
    Forget,
    Interrupt,
    InterruptAsked,
    Refuse,
    Start,
    Started,
    StartFailed,
)
from tidegate.daemon.turns.state import TurnPlaced, evolve


def test_turn_is_started_at_once_if_there_is_room():
    house = House(running=2)

    assert house.tell(asked("a")) == [Start("a")]
    assert house.tell(asked("b")) == [Start("b")]
    assert house.tell(asked("c")) == []


@pytest.mark.parametrize("end", [Ended("a"), StartFailed("a", "broken")])
def test_next_turn_is_started_when_one_gives_back_its_place(end):
    house = House(asked("a"), asked("b"), asked("c"))

    assert house.tell(end)[-1] == Start("b")
    assert house.tell(Ended("b")) == [Start("c")]


def test_interrupted_turn_keeps_its_place_until_it_has_ended():
    house = House(*running(), asked("b"))

    assert house.tell(ENOUGH) == [Interrupt("a", "enough")]
    assert house.tell(Ended("a")) == [Start("b")]


def test_turn_that_finds_no_place_in_the_queue_is_refused():
    house = House(asked("a"), asked("b"), queued=1)

    assert house.tell(asked("c")) == [Refuse("c", 429, "queue_full", 1)]
    assert house.tell(Ended("a"), asked("d")) == []


def test_without_a_queue_only_what_finds_no_room_is_refused():
    house = House(queued=0)

    assert house.tell(asked("a")) == [Start("a")]
    assert house.tell(asked("b")) == [Refuse("b", 429, "queue_full", 1)]


def waits(house, turn, owner):
    """Ask for a turn where no more can run, and say whether it waits or is refused."""
    effects = house.tell(asked(turn, owner))
    assert effects in ([], [Refuse(turn, 429, "queue_full", 1)])
    return not effects


def count_in(house, owner):
    """Ask until the owner is refused, and return how many of its turns wait."""
    count = len(house.state.waiting.get(owner, ()))
    while waits(house, f"{owner}{count}", owner):
        count += 1
    house.tell(Forget(f"{owner}{count}"))
    return count


def test_owner_alone_has_all_places_and_each_that_comes_later_its_share():
    house = House(asked("first"), queued=12)

    assert [count_in(house, owner) for owner in "abcd"] == [12, 6, 4, 3]
    assert house.state.queued == 25  # that is the most that four owners can come to
    assert [count_in(house, owner) for owner in "abcd"] == [12, 6, 4, 3]


def test_owner_beyond_its_share_comes_back_to_it_as_turns_are_served():
    house = House(asked("first"), queued=8)
    assert [count_in(house, "a"), count_in(house, "b")] == [8, 4]
    turn = "first"
    for round_ in range(16):
        [start] = house.tell(Ended(turn))
        turn = start.turn
        for owner in "ab":
            waits(house, f"{owner}-{round_}", owner)

    waiting = {owner: len(turns) for owner, turns in house.state.waiting.items()}
    assert waiting["b"] == 4
    assert waiting["a"] <= 5  # one more, if it is the first to ask for a place of all


def test_owner_of_whom_nothing_waits_is_never_refused_by_a_queue_of_others():
    house = House(asked("first"), queued=2)

    assert [count_in(house, owner) for owner in "abcdef"] == [2, 1, 1, 1, 1, 1]


def test_turn_that_was_asked_for_is_not_asked_for_again():
    house = House(asked("a"))

    assert house.tell(asked("a")) == []
    assert house.tell(Ended("a"), asked("a")) == []


def starts_of(house):
    """End one turn after another and return the order in which the others start."""
    order, turn = [], "first"
    while effects := house.tell(Ended(turn)):
        turn = effects[0].turn
        order.append(turn)
    return order


def test_owners_are_served_in_turn_and_each_of_them_in_order():
    waiting = [asked(turn, turn[0]) for turn in ("a1", "a2", "a3", "b1", "c1")]
    house = House(asked("first", "a"), *waiting)

    assert starts_of(house) == ["a1", "b1", "c1", "a2", "a3"]


def test_owner_whose_turn_ends_in_the_queue_keeps_its_place():
    waiting = [asked(turn, turn[0]) for turn in ("a1", "a2", "b1")]
    house = House(asked("first"), *waiting, InterruptAsked("a1", "enough"))

    assert starts_of(house) == ["a2", "b1"]


def test_nobody_waits_longer_for_what_others_ask_for_later():
    """Whatever one owner has asked for, another's turn is the second to start at the latest."""
    for count in range(1, 6):
        hog = [asked(f"hog{number}", "hog") for number in range(count)]
        house = House(asked("first", "hog"), *hog, asked("late", "other"))

        assert "late" in starts_of(house)[:2]


def test_interrupt_of_a_turn_that_waits_ends_it_without_a_request():
    house = House(asked("b"), asked("a"))

    assert house.tell(ENOUGH) == [EndUnstarted("a", "interrupted", "enough")]
    assert house.tell(ENOUGH) == []
    assert house.tell(Ended("b")) == []


def test_interrupt_before_the_turn_is_asked_for_ends_it_without_a_request():
    house = House(ENOUGH, InterruptAsked("a", "more than enough"))

    assert house.tell(asked("a")) == [EndUnstarted("a", "interrupted", "enough")]


def test_interrupt_is_ordered_once_whoever_else_wants_it():
    house = House(*running())

    assert house.tell(ENOUGH) == [Interrupt("a", "enough")]
    assert house.tell(ENOUGH) == []
    assert house.tell(ClientLeft("a")) == []
    assert house.tell(Ended("a"), ENOUGH) == []


def test_interrupt_of_a_turn_that_is_being_started_does_not_wait_for_that():
    house = House(asked("a"))

    assert house.tell(ENOUGH) == [Interrupt("a", "enough")]
    assert house.tell(Started("a")) == []


def test_start_that_fails_ends_the_turn_by_what_came_first():
    failed = House(asked("a"))
    stopped = House(asked("a"), ENOUGH)

    assert failed.tell(StartFailed("a", "broken")) == [EndUnstarted("a", "failed", "broken")]
    assert stopped.tell(StartFailed("a", "broken")) == [EndUnstarted("a", "interrupted", "enough")]


def test_start_that_is_acknowledged_behind_the_end_changes_nothing():
    house = House(asked("a"), Ended("a"))

    assert house.tell(Started("a")) == []
    assert house.tell(StartFailed("a", "broken")) == []
    assert house.tell(Ended("a")) == []
    assert house.state.running == 0


@pytest.mark.parametrize("message", [Started("a"), StartFailed("a", ""), Ended("a"), Forget("a")])
def test_word_of_a_turn_that_nobody_knows_changes_nothing(message):
    house = House()

    assert house.tell(message) == []
    assert not house.state.turns


def test_turn_that_ended_or_was_never_asked_for_is_forgotten_and_no_other():
    house = House(*running(), asked("b"))

    house.tell(Forget("a"), Forget("b"))
    assert set(house.state.turns) == {"a", "b"}
    house.tell(Ended("a"), Forget("a"), ENOUGH, Forget("a"))
    assert set(house.state.turns) == {"b"}
    assert house.tell(ENOUGH) == []


def test_it_can_be_asked_whether_a_turn_would_be_refused():
    house = House(queued=0)

    assert refusal(house.state, "a", "owner", 0.0) is None
    house.tell(asked("a"))
    assert refusal(house.state, "b", "owner", 0.0) == Refuse("b", 429, "queue_full", 1)


def test_start_without_room_is_a_defect():
    house = House(asked("a"), asked("b"))

    with pytest.raises(AssertionError, match="T4"):
        evolve(house.state, TurnPlaced("b"))

"""What a drain, a journal in trouble and new limits do to all turns."""

from tests.daemon.machines.house import ENOUGH, FOR_30_S, House, asked, running
from tidegate.daemon.turns.messages import (
    AnnounceDrain,
    Attached,
    CancelTimer,
    ClientLeft,
    Drain,
    Drained,
    DrainOver,
    Ended,
    EndUnstarted,
    Interrupt,
    JournalTrouble,
    JournalWell,
    Limits,
    LimitsChanged,
    Refuse,
    SetDrainTimer,
    Start,
)


def test_drain_lets_go_on_what_runs_ends_what_waits_and_refuses_what_comes():
    house = House(*running(), asked("b"))
    house.now_s = 100.0

    assert house.tell(Drain(30.0)) == [
        AnnounceDrain(30.0),
        SetDrainTimer(30.0),
        EndUnstarted("b", "interrupted", "daemon draining"),
    ]
    house.now_s = 109.5
    assert house.tell(asked("c")) == [Refuse("c", 503, "draining", 21)]
    house.now_s = 200.0
    assert house.tell(asked("d")) == [Refuse("d", 503, "draining", 1)]
    assert house.tell(Ended("a")) == [Drained()]


def test_drain_that_is_over_interrupts_what_still_runs():
    house = House(*running(), *running("b"), Drain(30.0), running=2)

    assert house.tell(DrainOver()) == [
        Interrupt("a", "daemon stopping"),
        Interrupt("b", "daemon stopping"),
    ]
    assert house.tell(Ended("a")) == []
    assert house.tell(Ended("b")) == [Drained()]


def test_drain_with_nothing_to_wait_for_is_done_at_once():
    house = House()

    assert house.tell(Drain(30.0)) == [AnnounceDrain(30.0), SetDrainTimer(30.0), Drained()]
    assert house.tell(Drain(0.0)) == []
    assert house.tell(DrainOver()) == []


def test_second_drain_can_only_be_sooner():
    house = House(*running(), Drain(30.0))

    assert house.tell(Drain(30.0)) == []
    assert house.tell(Drain(40.0)) == []
    assert house.tell(Drain(5.0)) == [SetDrainTimer(5.0)]
    assert house.tell(Drain(10.0)) == []


def test_timer_of_no_drain_changes_nothing():
    assert House(*running()).tell(DrainOver()) == []


def test_interrupt_before_its_turn_is_not_a_turn_that_a_drain_could_end():
    house = House(ENOUGH, Drain(30.0))

    assert house.tell(asked("a")) == [EndUnstarted("a", "interrupted", "enough")]


def test_trouble_of_the_journal_ends_all_turns_and_refuses_new_ones():
    house = House(*running(), asked("b"))

    assert house.tell(JournalTrouble()) == [
        Interrupt("a", "journal unavailable"),
        EndUnstarted("b", "interrupted", "journal unavailable"),
    ]
    assert house.tell(JournalTrouble()) == []
    assert house.tell(asked("c")) == [Refuse("c", 503, "journal_unavailable", 5)]
    assert house.tell(Ended("a"), JournalWell(), asked("d")) == [Start("d")]


def test_trouble_of_the_journal_spares_what_is_not_asked_for_yet():
    house = House(Attached("a"), JournalTrouble(), JournalWell())

    assert house.tell(asked("a")) == [Start("a")]


def test_clock_is_stopped_by_trouble_of_the_journal():
    house = House(*running(on_disconnect=FOR_30_S), ClientLeft("a"))

    orders = [Interrupt("a", "journal unavailable"), CancelTimer("a", 1)]
    assert house.tell(JournalTrouble()) == orders


def test_new_limits_hold_from_now_on():
    house = House(asked("a"), asked("b"), asked("c"))

    assert house.tell(LimitsChanged(Limits(3, 0))) == [Start("b"), Start("c")]
    assert house.tell(LimitsChanged(Limits(1, 1))) == []
    assert house.tell(asked("d")) == []
    assert house.tell(asked("e")) == [Refuse("e", 429, "queue_full", 1)]
    assert house.tell(Ended("a"), Ended("b")) == []
    assert house.tell(Ended("c")) == [Start("d")]

"""Every interleaving of turns, their clients, interrupts, starts, ends, a drain and the journal.

Goal: in every state that can be reached a turn ends once; it is never started after its interrupt;
it is interrupted at most once, and for a reason that is true; no more turns run than may, and
nobody waits while there is room; the queue is bounded, and no owner shuts another out of it; a turn
whose client left under ``interrupt`` never runs on; a drain and a journal that keeps nothing end
what they must.
Method: the machine that runs, in a model of what is around it (``turns_model.py``); all states,
each visited once. A violation prints the labels of the way there.
"""

import pytest

from tests.daemon.machines.turns_model import TurnsModel
from tests.daemon.machines.turns_world import FOR_30_S, Scenario
from tests.simulation.explorer import Exploration
from tidegate.daemon.config.disconnect import CONTINUE, INTERRUPT
from tidegate.daemon.turns import machine
from tidegate.daemon.turns.messages import Limits


CLIENTS = frozenset({"leave", "cut", "interrupt"})
TWO_AT_ONCE = Limits(max_running=2, max_queued=0)
NO_QUEUE = Limits(max_running=1, max_queued=0)

SMALL = {
    "clients leave": Scenario((INTERRUPT, INTERRUPT), CLIENTS | {"drain"}),
    "clients leave and turns go on": Scenario((CONTINUE, INTERRUPT), CLIENTS),
    "turns that nobody ends": Scenario((INTERRUPT, CONTINUE), CLIENTS | {"drain"}, ends=False),
    "interrupts without clients": Scenario(
        (None, None), frozenset({"interrupt", "drain", "forget"}), interrupts=2
    ),
    "readers stop the clock": Scenario(
        (FOR_30_S, None), frozenset({"leave", "attach", "interrupt"}), limits=TWO_AT_ONCE
    ),
    "readers of a turn that goes on": Scenario(
        (CONTINUE, FOR_30_S), frozenset({"leave", "cut", "attach"}), ends=False
    ),
    "journal that keeps nothing": Scenario(
        (FOR_30_S, None), frozenset({"leave", "interrupt", "trouble", "drain"})
    ),
    "no queue": Scenario((INTERRUPT, CONTINUE), CLIENTS | {"forget"}, limits=NO_QUEUE),
    "owner who fills the queue": Scenario(
        (None,) * 5,
        frozenset(),
        owners="aaabb",
        limits=Limits(max_running=1, max_queued=2),
        interrupts=0,
    ),
    "more owners than places": Scenario((None,) * 5, frozenset(), owners="aabbc", interrupts=0),
    "more room": Scenario(
        (INTERRUPT, None, CONTINUE),
        frozenset({"leave", "limits"}),
        owners="aab",
        new_limits=Limits(max_running=3, max_queued=0),
    ),
    "less room": Scenario(
        (INTERRUPT, None, None),
        frozenset({"leave", "limits"}),
        owners="aab",
        limits=Limits(max_running=2, max_queued=2),
        new_limits=NO_QUEUE,
    ),
}


def explored(scenario):
    model = TurnsModel(scenario)
    return Exploration(model, states_max=400_000), model


@pytest.mark.parametrize("name", SMALL)
def test_small_house(name):
    exploration, model = explored(SMALL[name])

    assert exploration.states > 1_000
    assert {"ran", "unstarted"} <= {kind for kind, *_ in model.ends}


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_two_turns_and_all_that_can_happen_to_them():
    """Every policy that ends a turn, interrupts, cuts, starts that fail, the clock, a drain."""
    may = CLIENTS | {"drain"}
    exploration, model = explored(Scenario((INTERRUPT, FOR_30_S), may))

    assert exploration.states > 50_000
    reasons = {reason for _, *orders in model.ends for reason in orders}
    assert {machine.DISCONNECTED, machine.DRAINING, machine.STOPPING, "enough 0"} <= reasons

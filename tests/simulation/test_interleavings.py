"""Every interleaving of supervisor, sink, I/O thread, worker, consumer and user.

Goal: in every state that can be reached the rules of the sink hold (``rules.py``: R1, R4, R5, R8,
R9, R11), a start is never without its admission nor behind an interrupt (R2, R6, R7), and from
every state, whatever order things take, the turn ends, its attempts leave their workers, and the
sink forgets it (R10).
Method: the machines that run, in a model of what is around them (``model.py``); all states, each
visited once. A violation prints the labels of the way there, which ``replay`` walks again.
"""

import pytest

from tests.simulation.explorer import Exploration, replay
from tests.simulation.model import Model
from tests.simulation.scenario import ANSWER, Scenario, policy
from tests.simulation.world import Left
from tidegate.actors.supervisor import ladder
from tidegate.protocol.events import TextDelta
from tidegate.protocol.sink import TurnClosed


FIRST_EVENT = frozenset({"first_event"})
PROGRESS = frozenset({"progress"})
STALE = frozenset({"first_event", "progress", "alive"})
NOTHING = Left(interrupts=0, failures=0, deaths=0, alarms=0, stops=0)
SHORT = ("text", "finish", "end")
SILENT = ("text", "silence")


def left(**fields):
    return NOTHING._replace(**fields)


def timers(*kinds):
    return frozenset({"backoff", *kinds})


def kinds_of_ends(model):
    """Return how the turn ends in at least one state."""
    return {each.kind for each in model.messages.things if isinstance(each, TurnClosed)}


def explored(scenario, *, states_max=150_000):
    model = Model(scenario)
    return Exploration(model, states_max=states_max), model


SMALL = {
    "nothing goes wrong": Scenario(),
    "interrupt": Scenario(left=left(interrupts=1)),
    "interrupt while the target is not known": Scenario(
        prepared=True, left=left(interrupts=1), one_by_one=True, alarms=PROGRESS
    ),
    "interrupt and failure": Scenario(
        scripts=(SHORT,), left=left(interrupts=1, failures=1), alarms=PROGRESS
    ),
    "interrupt and failure, order by order": Scenario(
        left=left(interrupts=1, failures=1), one_by_one=True, prompt=True
    ),
    "interrupt and death": Scenario(
        scripts=(SHORT,), left=left(interrupts=1, deaths=1), alarms=PROGRESS
    ),
    "failure and death": Scenario(
        scripts=(SHORT,), left=left(failures=1, deaths=1), one_by_one=True
    ),
    "false and true alarms": Scenario(scripts=(SHORT,), left=left(alarms=1)),
    "failure that is not retried": Scenario(
        left=left(interrupts=1, failures=1), failure="fatal", alarms=PROGRESS
    ),
    "whole answers in one frame": Scenario(
        scripts=(("whole",),), left=left(failures=1, deaths=1, alarms=1)
    ),
    "text stops a retry": Scenario(
        left=left(interrupts=1, failures=1, deaths=1),
        policy=policy(after_visible_text="stop"),
        prompt=True,
    ),
    "white space does not stop a retry": Scenario(
        scripts=(("blank", "text", "finish", "end"),),
        left=left(failures=1, deaths=1),
        policy=policy(after_visible_text="stop"),
        prompt=True,
    ),
    "two readers": Scenario(left=left(interrupts=1, failures=1), readers=2, prompt=True),
    "three attempts": Scenario(
        left=left(failures=2, deaths=1), policy=policy(retries=2), prompt=True
    ),
    "body that does not end": Scenario(
        scripts=(("text", "finish", "silence"),),
        left=left(interrupts=1, deaths=1),
        timers=timers("grace"),
    ),
    "deadline": Scenario(
        scripts=(SHORT,),
        left=left(interrupts=1, failures=1),
        timers=timers("deadline"),
        policy=policy(deadline_s=50.0),
        alarms=PROGRESS,
        prompt=True,
    ),
    "deadline while the target is not known": Scenario(
        scripts=(SILENT,),
        prepared=True,
        left=left(interrupts=1, failures=1),
        timers=timers("deadline"),
        policy=policy(deadline_s=50.0),
        alarms=PROGRESS,
        prompt=True,
    ),
    "silent provider": Scenario(
        scripts=(SILENT,), left=left(interrupts=1), at_rest=STALE, alarms=STALE
    ),
    "provider without a first event": Scenario(
        scripts=(("silence",),), left=left(interrupts=1, deaths=1), at_rest=STALE, alarms=STALE
    ),
    "provider that comments": Scenario(
        scripts=(("headers", "comment", "event", "text", "silence"),),
        left=left(alarms=1),
        at_rest=STALE,
        alarms=STALE,
        policy=policy(retries=0),
    ),
    "first event behind the other alarms": Scenario(
        scripts=(("event", "silence"),),
        left=left(alarms=2),
        at_rest=STALE,
        alarms=STALE,
        policy=policy(retries=0, first_event_timeout_s=300.0),
    ),
    "life behind the alarm of life": Scenario(
        scripts=(("comment", "silence"),),
        left=left(alarms=1),
        at_rest=STALE,
        alarms=STALE,
        policy=policy(first_event_timeout_s=300.0),
    ),
    "workers that come up": Scenario(
        scripts=(SHORT,),
        cold=True,
        left=left(interrupts=1),
        alarms=PROGRESS,
        prompt=True,
    ),
    "worker that dies as it comes up": Scenario(
        scripts=(SILENT, SHORT), cold=True, left=left(deaths=1), at_rest=STALE, prompt=True
    ),
    "import before the request": Scenario(
        scripts=(("waking", "woken", *SHORT),),
        left=left(alarms=1),
        alarms=FIRST_EVENT,
        prompt=True,
    ),
    "import before a silence": Scenario(
        scripts=(("waking", "woken", "silence"), SHORT),
        left=left(alarms=1),
        at_rest=FIRST_EVENT,
        alarms=FIRST_EVENT,
        prompt=True,
    ),
    "import that does not end": Scenario(
        scripts=(("waking", "silence"), SHORT),
        left=left(interrupts=1, deaths=1),
        at_rest=FIRST_EVENT,
        prompt=True,
    ),
}

CREDIT = {
    "used up and given back": Scenario(
        scripts=(("text", "text", "text", "finish", "end"),), left=left(alarms=1)
    ),
    "used up at an interrupt": Scenario(
        scripts=(("text", "text", "finish", "end"),), left=left(interrupts=1)
    ),
    "used up at a failure": Scenario(left=left(failures=1)),
    "used up at a death": Scenario(left=left(deaths=1)),
    "two readers": Scenario(scripts=(("text", "text", "text", "finish", "end"),), readers=2),
    "nobody reads and somebody waits": Scenario(
        scripts=(("text", "text", "text", "text", "finish", "end"),), readers=0, waiting=True
    ),
}

LADDER = {
    "attempt that does not end on a sound worker": Scenario(
        scripts=(("text", "deaf"), ANSWER),
        pings=True,
        timers=timers("kill"),
        at_rest=PROGRESS,
        alarms=PROGRESS,
        prompt=True,
    ),
    "the same, and an interrupt": Scenario(
        scripts=(("text", "deaf"), SHORT),
        left=left(interrupts=1),
        pings=True,
        timers=timers("kill"),
        at_rest=PROGRESS,
        alarms=PROGRESS,
        prompt=True,
    ),
    "stopped worker": Scenario(
        scripts=(SILENT, SHORT),
        left=left(stops=1),
        pings=True,
        timers=timers("kill"),
        starves=True,
        at_rest=PROGRESS | {"grace", "first_event"},
        alarms=PROGRESS,
        prompt=True,
    ),
    "attempt that does not end in an import": Scenario(
        scripts=(("waking", "deaf"), SHORT),
        left=left(interrupts=1),
        pings=True,
        timers=timers("kill"),
        at_rest=STALE,
        alarms=PROGRESS,
        prompt=True,
    ),
    "impatient ladder": Scenario(
        left=left(interrupts=1, failures=1),
        pings=True,
        timers=timers("kill"),
        starves=True,
        alarms=PROGRESS,
        prompt=True,
    ),
    "no restarts": Scenario(
        left=left(deaths=2), restarts_max=0, policy=policy(retries=2), alarms=PROGRESS
    ),
    "one restart": Scenario(
        scripts=(SHORT,),
        left=left(deaths=3),
        restarts_max=1,
        policy=policy(retries=3),
        prompt=True,
    ),
}


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_two_attempts_and_everything_once():
    """Two deltas each; an interrupt, a failure, a death and an alarm, all at any time."""
    scenario = Scenario(
        left=Left(interrupts=1, failures=1, deaths=1, alarms=1, stops=0),
        alarms=PROGRESS,
        prompt=True,
    )
    exploration, model = explored(scenario, states_max=600_000)

    assert exploration.states > 100_000
    assert kinds_of_ends(model) == {"completed", "failed", "interrupted"}


@pytest.mark.parametrize("name", SMALL)
def test_small_world(name):
    scenario = SMALL[name]
    _, model = explored(scenario)

    assert ("interrupted" in kinds_of_ends(model)) == bool(scenario.left.interrupts)


@pytest.mark.parametrize("readers", [1, 2])
def test_words_that_cannot_be_taken_back_are_followed_by_no_other_attempt(readers):
    """Whatever the policy says; as long as nobody has taken any, another may follow."""
    scenario = Scenario(
        scripts=(("blank", "text", "finish", "end"),),
        left=left(interrupts=1, failures=1, deaths=1),
        readers=readers,
        alarms=PROGRESS,
        prompt=True,
        irrevocable=True,
    )
    _, model = explored(scenario)

    words_of = [
        {event.attempt for event in transcript if isinstance(event, TextDelta)}
        for state in model.sink.states.things
        for transcript in state.seen
    ]
    assert max(map(len, words_of)) == 1
    assert {2} in words_of
    assert kinds_of_ends(model) == {"completed", "failed", "interrupted"}


@pytest.mark.parametrize("window_bytes", [1, 40])
@pytest.mark.parametrize("name", CREDIT)
def test_credit(name, window_bytes):
    """The readers take what there is, sooner or later; then no attempt waits for ever."""
    scenario = Scenario(
        **{
            **vars(CREDIT[name]),
            "policy": policy(window_bytes=window_bytes),
            "alarms": PROGRESS,
            "readers_must": True,
        }
    )
    _, model = explored(scenario)

    assert "completed" in kinds_of_ends(model)


@pytest.mark.parametrize("name", LADDER)
def test_ladder_and_restarts(name, monkeypatch):
    """With as few rungs as there can be; more of them only make more states."""
    monkeypatch.setattr(ladder, "ROUNDS_MAX", 1)
    _, model = explored(LADDER[name])

    assert kinds_of_ends(model) & {"completed", "interrupted", "failed"}


def test_ladder_of_more_rounds(monkeypatch):
    monkeypatch.setattr(ladder, "ROUNDS_MAX", 2)
    _, model = explored(LADDER["attempt that does not end on a sound worker"])

    assert "completed" in kinds_of_ends(model)


def test_turn_that_nobody_reads_rests_at_the_end_of_its_window():
    scenario = Scenario(
        scripts=(("text", "text", "text", "finish", "end"),),
        policy=policy(window_bytes=40, deadline_s=50.0),
        timers=timers("deadline"),
        readers=0,
    )
    _, model = explored(scenario)

    assert kinds_of_ends(model) == {"failed"}


def test_way_can_be_walked_again():
    model = Model(Scenario())
    labels = [("supervisor",), ("sink",), ("sink",), ("command",), ("down", 1), ("attempt", 1, 1)]

    *_, (label, world) = replay(model, labels)

    assert label == ("attempt", 1, 1)
    assert world.links[0].up

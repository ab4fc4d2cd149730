"""All that can happen to the daemon's turns, in every order, and what must be true after each step.

The rules here are told in terms of what the machine was told and what it ordered; nothing is taken
from its state. What is around it is free: clients leave, interrupts come, starts are acknowledged
or fail, even behind the end of the turn, and a timer may run out before it is cancelled and be
heard of afterwards.
"""

from __future__ import annotations

from collections import Counter

from tests.daemon.machines.turns_world import FOR_30_S, OPTIONAL, Seen, World
from tidegate.daemon.config.disconnect import INTERRUPT
from tidegate.daemon.turns import machine
from tidegate.daemon.turns.machine import decide
from tidegate.daemon.turns.messages import (
    AnnounceDrain,
    Asked,
    Attached,
    CancelTimer,
    ClientCut,
    ClientLeft,
    Detached,
    Drain,
    Drained,
    DrainOver,
    Ended,
    EndUnstarted,
    Forget,
    GraceOver,
    Interrupt,
    InterruptAsked,
    JournalTrouble,
    JournalWell,
    LimitsChanged,
    Refuse,
    SetDrainTimer,
    SetTimer,
    Start,
    Started,
    StartFailed,
)
from tidegate.daemon.turns.state import TurnsState, evolve


class TurnsModel:
    """The steps that lead from one world to others."""

    optional = OPTIONAL

    def __init__(self, scenario):
        self.scenario = scenario
        self.doing = None
        self.ends = set()
        self._states = []
        self._numbers = {}
        self._decisions = {}

    def first(self):
        count = len(self.scenario.policies)
        key = self._key(TurnsState(self.scenario.limits))
        return World(key, (Seen(),) * count, limits=self.scenario.limits)

    def steps(self, world):
        """Yield each step that is possible, as a label and the world after it."""
        for number, seen in enumerate(world.turns):
            for kind in self._kinds(number, seen):
                self.doing = (kind, number)
                yield self.doing, self._step(world, number, seen, kind)
        for kind in self._kinds_for_all(world):
            self.doing = (kind,)
            yield self.doing, self._step_all(world, kind)
        self.doing = None

    def check_end(self, world):
        """Say whether nothing need happen any more."""
        for seen, policy in zip(world.turns, self.scenario.policies, strict=True):
            over = bool(seen.ended)
            assert over or not self.scenario.ends, "a turn does not end"
            assert over or not seen.told, "an interrupted turn runs on"
            left = seen.client == "left" and policy is INTERRUPT
            assert over or not left, "a turn runs on without its client"
            assert over or world.drain != "over", "a turn survives the drain"
            self.ends.add((seen.ended, *seen.orders))
        assert world.drained or not world.drain or not self.scenario.ends, "it does not drain"

    def _kinds(self, number, seen):
        """Yield what can happen to one turn."""
        may, policy = self.scenario.may, self.scenario.policies[number]
        if not seen.asked:
            yield "ask"
        if "interrupt" in may and seen.asks < self.scenario.interrupts and not seen.forgotten:
            yield "interrupt"
        if policy is not None and seen.client == "here" and not seen.forgotten:
            if "leave" in may:
                yield "leave"
            if "cut" in may and seen.asked:
                yield "cut"
        if policy is not None and seen.client == "cut" and "leave" in may and not seen.forgotten:
            yield "leave"
        if "attach" in may and not seen.attached and not seen.forgotten:
            yield "attach"
        if seen.attached > seen.detached and not seen.forgotten:
            yield "detach"
        if seen.start == "ordered":
            yield "started"
            if not seen.ended:
                yield "failed"
        if seen.runs and (self.scenario.ends or seen.orders):
            yield "end"
        if seen.timer:
            yield "time passes"
        if seen.fired:
            yield "timer"
        if "forget" in may and seen.ended and seen.start != "ordered" and not seen.forgotten:
            yield "forget"

    def _kinds_for_all(self, world):
        may = self.scenario.may
        if "drain" in may and not world.drain:
            yield "drain"
        if world.drain == "timing":
            yield "drain over"
        if "trouble" in may and not world.trouble:
            yield "trouble"
        if world.trouble == "now":
            yield "well"
        if "limits" in may and not world.limits_changed:
            yield "limits"

    def _step(self, world, number, seen, kind):
        turn = str(number)
        match kind:
            case "ask":
                policy = self.scenario.policies[number]
                message = Asked(turn, self.scenario.owners[number], policy, policy is not None)
                seen = seen._replace(asked=True)
            case "interrupt":
                message = InterruptAsked(turn, f"enough {seen.asks}")
                told = seen.told or ("" if seen.ended else message.reason)
                seen = seen._replace(told=told, asks=seen.asks + 1)
            case "leave":
                message = ClientLeft(turn)
                how = "left" if seen.client == "here" else "gone"
                seen = seen._replace(client=how)
            case "cut":
                message = ClientCut(turn)
                seen = seen._replace(client="cut")
            case "attach":
                message = Attached(turn)
                seen = seen._replace(attached=seen.attached + 1)
            case "detach":
                message = Detached(turn)
                seen = seen._replace(detached=seen.detached + 1)
            case "started" | "failed" | "end":
                message, seen = self._answer(turn, seen, kind)
            case "time passes":
                seen = seen._replace(timer=0, fired=(*seen.fired, seen.timer))
                return self._with(world, number, seen)
            case "timer":
                message = GraceOver(turn, seen.fired[0])
                seen = seen._replace(fired=seen.fired[1:])
            case "forget":
                message = Forget(turn)
                seen = seen._replace(forgotten=True)
        return self._told(self._with(world, number, seen), message)

    def _answer(self, turn, seen, kind):
        """The runtime's answers; an end may be heard of before the start was acknowledged."""
        if kind == "end":
            return Ended(turn), seen._replace(ended="ran")
        seen = seen._replace(start="answered")
        return Started(turn) if kind == "started" else StartFailed(turn, "broken"), seen

    def _step_all(self, world, kind):
        match kind:
            case "drain":
                return self._told(world._replace(drain="asked"), Drain(30.0))
            case "drain over":
                return self._told(world._replace(drain="over"), DrainOver())
            case "trouble":
                return self._told(world._replace(trouble="now"), JournalTrouble())
            case "well":
                return self._told(world._replace(trouble="was"), JournalWell())
            case "limits":
                limits = self.scenario.new_limits
                changed = world._replace(limits=limits, limits_changed=True)
                return self._told(changed, LimitsChanged(limits))

    def _told(self, world, message):
        key, effects = self._decided(world.key, message)
        world = world._replace(key=key)
        for effect in effects:
            world = self._ordered(world, effect, message)
        self._check(world, message)
        return world

    def _decided(self, key, message):
        """Ask the machine, once for each state and message."""
        known = self._decisions.get((key, message))
        if known is None:
            state = self._states[key]
            decision = decide(state, message, 0.0)
            for fact in decision.events:
                state = evolve(state, fact)
            known = self._decisions[key, message] = (self._key(state), decision.effects)
        return known

    def _ordered(self, world, effect, message):
        """Take note of an order, and see that it may be given."""
        match effect:
            case AnnounceDrain() | SetDrainTimer():
                assert world.drain == "asked" or effect == AnnounceDrain(30.0)
                announced = world.announced or isinstance(effect, AnnounceDrain)
                drain = "timing" if isinstance(effect, SetDrainTimer) else world.drain
                return world._replace(announced=announced, drain=drain)
            case Drained():
                assert not world.drained, "drained twice"
                assert not any(each.runs for each in world.turns), "drained as turns run"
                return world._replace(drained=True)
        number = int(effect.turn)
        seen = world.turns[number]
        match effect:
            case Start():
                seen = self._start(world, seen)
            case Interrupt(reason=reason):
                assert seen.runs, "an interrupt of what does not run"
                assert not seen.orders, "interrupted twice"
                self._check_reason(world, number, reason, message)
                seen = seen._replace(orders=(reason,))
            case Refuse():
                assert isinstance(message, Asked), "refused without having been asked"
                assert not seen.ended, "ended twice"
                assert effect.retry_after_s >= 1, "at once is no time to try again"
                self._check_refusal(world, effect)
                seen = seen._replace(ended="refused")
            case EndUnstarted(how=how, reason=reason):
                assert not seen.ended, "ended twice"
                if how == "failed":
                    assert isinstance(message, StartFailed), "failed for no reason"
                    assert not seen.orders, "a turn that was interrupted is said to have failed"
                elif seen.start:
                    assert seen.orders == (reason,), "another reason"
                else:
                    self._check_reason(world, number, reason, message)
                seen = seen._replace(ended="unstarted", orders=(reason,))
            case SetTimer(number=timer):
                assert not seen.timer, "two clocks"
                seen = seen._replace(timer=timer)
            case CancelTimer(number=timer):
                assert timer == seen.timer or timer in seen.fired, "no such timer"
                seen = seen._replace(timer=0)
        return self._with(world, number, seen)

    def _start(self, world, seen):
        assert seen.waits, "T2: started, but not from the queue"
        assert not seen.told, "T2: started after an interrupt"
        assert not world.drain, "started while draining"
        assert world.trouble != "now", "started although nothing can be kept"
        running = sum(each.runs for each in world.turns)
        assert running < world.limits.max_running, "T4: no room"
        return seen._replace(start="ordered")

    def _check_reason(self, world, number, reason, message):
        """See that a reason is true."""
        seen, policy = world.turns[number], self.scenario.policies[number]
        match reason:
            case machine.DISCONNECTED:
                assert seen.client == "left", "nobody has left"
                grace = policy is FOR_30_S and isinstance(message, GraceOver)
                assert policy is INTERRUPT or grace, "its policy lets it go on"
                assert not grace or seen.attached == seen.detached, "somebody reads it"
            case machine.DRAINING:
                assert isinstance(message, Drain), "not draining"
                assert not seen.start, "what runs may go on"
            case machine.STOPPING:
                assert isinstance(message, DrainOver), "not stopping"
            case machine.UNKEPT:
                assert isinstance(message, JournalTrouble), "the journal is well"
            case _:
                assert reason == seen.told, "nobody has said that"

    def _check_refusal(self, world, effect):
        match effect.kind:
            case "draining":
                assert effect.status == 503
                assert world.drain, "not draining"
            case "journal_unavailable":
                assert effect.status == 503
                assert world.trouble == "now", "the journal is well"
            case "queue_full":
                assert effect.status == 429
                running = sum(each.runs for each in world.turns)
                waiting = self._waiting(world)
                asker = self.scenario.owners[int(effect.turn)]
                waiting[asker] -= 1  # it is among them itself
                places, own = world.limits.max_queued, waiting[asker]
                assert running >= world.limits.max_running, "there is room"
                assert waiting.total() >= places, "there is a place in the queue"
                assert own or not places, "others have shut its owner out"
                assert own >= places // len(waiting), "its owner has less than its share"

    def _check(self, world, message):
        """See that all is as it must be between two messages."""
        running = sum(each.runs for each in world.turns)
        waiting = self._waiting(world).total()
        if waiting:
            assert running >= world.limits.max_running, "T5: somebody waits though there is room"
            assert not world.drain, "somebody waits while it drains"
            assert world.trouble != "now", "somebody waits while nothing can be kept"
        assert waiting <= self._waiting_max(world), "the queue is too long"
        if world.drain:
            assert world.announced, "nobody knows that it drains"
            assert world.drained == (running == 0), "drained or not"
        for seen, policy in zip(world.turns, self.scenario.policies, strict=True):
            stopped = bool(seen.ended or seen.orders)
            assert stopped or not (seen.told and seen.asked), "an interrupt has no effect"
            left = seen.asked and seen.client == "left"
            assert stopped or not (left and policy is INTERRUPT), "leaving has no effect"
            must_end = world.drain == "over" or isinstance(message, JournalTrouble)
            assert stopped or not (must_end and seen.asked), "it runs on"
            clock = policy is FOR_30_S and left and not stopped
            alone = seen.attached == seen.detached
            ticks = bool(seen.timer or seen.fired)
            assert not (clock and alone) or ticks, "nothing ends the grace"
            assert (clock and alone) or not seen.timer, "a clock runs that should not"

    def _waiting(self, world):
        """Count the turns that wait, by their owners."""
        pairs = zip(self.scenario.owners, world.turns, strict=False)
        return Counter(owner for owner, seen in pairs if seen.waits)

    def _waiting_max(self, world):
        """Return how many may wait, of so many owners; what waited before a change stays."""
        limits = (self.scenario.limits, world.limits)
        places = max(each.max_queued for each in limits)
        owners = len(self._waiting(world))
        return sum(max(1, places // n) for n in range(1, owners + 1)) if places else 0

    def _with(self, world, number, seen):
        turns = (*world.turns[:number], seen, *world.turns[number + 1 :])
        return world._replace(turns=turns)

    def _key(self, state):
        """Return the number of a state; in which order turns became known changes nothing."""
        turns = tuple(sorted(state.turns.items()))
        waiting = tuple(state.waiting.items())
        key = (turns, waiting, state.running, state.mode, state.well, state.limits)
        number = self._numbers.setdefault(key, len(self._states))
        if number == len(self._states):
            self._states.append(state)
        return number

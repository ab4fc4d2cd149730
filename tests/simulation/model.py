"""The whole runtime as a model: the machines that run, and around them what is not a machine.

Faithful to the shells in what they order: two lanes in each mailbox, one first-in-first-out queue
of commands to the I/O thread, one socket per worker and direction, a loss behind the last frame, a
question behind what the socket holds, a cancel that overtakes or takes back a start that has not
left, timers that fire only when nothing is readable and no command waits. Free in all else: who
moves next, what the provider does, when a reader takes, a timer fires, a worker dies.

Two hops are one where nobody could tell: a frame leaves the host when the worker reads it, and a
timer is set or forgotten as it is ordered, because none fires before the commands are taken.
"""

from __future__ import annotations

from tests.simulation.attempt_part import AttemptPart
from tests.simulation.links import Links
from tests.simulation.sink_part import SinkPart
from tests.simulation.supervisor_part import SupervisorPart
from tests.simulation.tables import Table
from tests.simulation.world import World
from tidegate.actors.supervisor.orders import CancelTimer, StartTimer, ToSink
from tidegate.actors.supervisor.pool import Spawn
from tidegate.actors.supervisor.supervision import Supervision
from tidegate.protocol.attempts import Deltas, Ended, Finished, WorkerReady
from tidegate.protocol.sink import Conclude, Fence, FenceIfIdle, OpenTurn, ReviewCredit, Seal
from tidegate.protocol.supervisor import Interrupt, TimerFired


class Model(Links):
    """The steps that lead from one world to others.

    Attributes:
        doing: the label of the step that is being made.
        optional: the kinds of steps that may never happen.
    """

    def __init__(self, scenario):
        self.scenario = scenario
        self.optional = scenario.optional
        self.doing = None
        self.messages = Table()
        supervision = Supervision(scenario.pool)
        generations = [each.generation for each in supervision.boot()]
        for generation in generations if not scenario.cold else ():
            supervision.handle(WorkerReady(generation, 0), 0.0)
        self._links = tuple(map(self._new_link, generations))
        self.supervisor = SupervisorPart(self.messages, supervision)
        self.sink = SinkPart(
            self.messages,
            readers=scenario.readers,
            waiting=scenario.waiting,
            merge_ends=scenario.prompt,
            ask_alive="alive" in scenario.alarms | scenario.timers,
        )
        self.attempts = AttemptPart(self.messages)
        self._interrupt = self.messages.number(Interrupt(1, "enough"))
        self._review = self.messages.number(ReviewCredit(1))

    def first(self):
        """Return the world in which a turn was just asked for."""
        scenario, number = self.scenario, self.messages.number
        opened = OpenTurn(1, "turn", "chat", scenario.policy.window_bytes)
        return World(
            supervisor=self.supervisor.first,
            sink=self.sink.first,
            supervisor_fast=(),
            supervisor_lane=tuple(map(number, scenario.starts)),
            sink_fast=(),
            sink_lane=((number(opened),),),
            sink_rest=(),
            orders=(),
            commands=(),
            links=self._links,
            timers=(),
            left=scenario.left,
            now_s=0.0,
        )

    def steps(self, world):
        """Yield each step that is possible, as a label and the world after it."""
        rests, optional = True, self.optional
        for label, make in self._possible(world):
            self.doing = label
            reached = make(world, *label[1:])
            if reached is not None:
                rests = rests and label[0] in optional
                yield label, reached
        if rests:
            for label in self._due_at_rest(world):
                self.doing = label
                yield label, self._fire(world, label[1])
        self.doing = None

    def check_end(self, world):
        """R10: where nothing more must happen, the turn has ended and nothing is left of it."""
        supervision = self.supervisor.supervision(world.supervisor)
        assert not supervision.turns, f"R10: the supervisor waits: {supervision.turns}"
        assert self.sink.states.things[world.sink].writer is None, "R10: the sink remembers"
        timers = [timer for timer in world.timers if timer[0][0] != "replenish"]
        assert not timers, f"R10: timers are left: {timers}"
        for link in world.links:
            assert not link.attempts, f"R10: an attempt runs in worker {link.generation}"

    def _possible(self, world):
        if world.orders:
            yield ("order",), self._carry_out_one
        elif world.supervisor_fast or world.supervisor_lane:
            yield ("supervisor",), self._supervise
        if world.sink_rest or world.sink_fast or world.sink_lane:
            yield ("sink",), self._sink
        if world.commands:
            yield ("command",), self._command
        for link in world.links:
            yield from self._possible_of(link)
        if not world.commands and not any(link.up for link in world.links):
            for name, _, _ in world.timers:
                yield from self._possible_timers(name, world.left)
        if not self.scenario.prompt or self._looks_at_readers(world):
            for reader in range(1, self.scenario.readers + 1):
                yield ("reader", reader), self._read
        left = world.left
        if left.interrupts and not (world.orders and self.scenario.prompt):
            yield ("interrupt",), self._interrupted
        if left.deaths and world.links:
            yield ("death", world.links[0].generation), self._die
        if left.stops and world.links:
            yield ("stop", world.links[0].generation), self._stop

    def _possible_of(self, link):
        generation = link.generation
        if link.up:
            yield ("up", generation), self._up
        elif link.life == "dead":
            yield ("lose", generation), self._lose
        if link.unsent:
            yield ("down", generation), self._down
        if link.life == "runs":
            for attempt in link.attempts:
                yield ("attempt", generation, attempt.token), self._attempt
                yield ("failure", generation, attempt.token), self._fail

    def _possible_timers(self, name, left):
        kind = name[0]
        if kind in self.scenario.timers:
            yield ("timer", name), self._fire
        elif kind in self.scenario.alarms and left.alarms:
            yield ("alarm", name), self._alarm
        if kind == "kill" and "kill" in self.scenario.timers and self.scenario.starves:
            yield ("starved", name), self._fire_starved

    def _due_at_rest(self, world):
        """Yield what fires first where nothing else must happen: so much time has passed."""
        patient = [timer for timer in world.timers if timer[0][0] in self.scenario.at_rest]
        first_s = min((at_s for _, at_s, _ in patient), default=0.0)
        for name, at_s, _ in patient:
            if at_s == first_s:
                yield ("timer", name)

    def _looks_at_readers(self, world):
        """Say whether the sink's next step depends on what was taken."""
        if world.sink_rest:
            number = world.sink_rest[0]
        elif world.sink_fast:
            return True
        elif world.sink_lane:
            number = world.sink_lane[0][0]
        else:
            return False
        message = self.messages.things[number]
        if isinstance(message, Deltas | Finished):
            return message.token > 1  # it may void the one before
        return isinstance(message, Conclude | Ended | Fence | FenceIfIdle)

    def _supervise(self, world):
        fast, lane = world.supervisor_fast, world.supervisor_lane
        message, fast, lane = (fast[0], fast[1:], lane) if fast else (lane[0], fast, lane[1:])
        state, orders = self.supervisor.take(world.supervisor, message, world.now_s)
        world = world._replace(supervisor=state, supervisor_fast=fast, supervisor_lane=lane)
        if self.scenario.one_by_one:
            return world._replace(orders=orders)
        for order in orders:
            world = self._carry_out(world, order)
        return world

    def _carry_out_one(self, world):
        return self._carry_out(world._replace(orders=world.orders[1:]), world.orders[0])

    def _carry_out(self, world, order):
        match order:
            case ToSink(message=Seal() as seal):
                return world._replace(sink_fast=(*world.sink_fast, self.messages.number(seal)))
            case ToSink(message=message):
                item = (self.messages.number(message),)
                return world._replace(sink_lane=(*world.sink_lane, item))
            case StartTimer(name=name, at_s=at_s, generation=generation):
                others = tuple(timer for timer in world.timers if timer[0] != name)
                timers = tuple(sorted((*others, (name, at_s, generation or 0))))
                return world._replace(timers=timers)
            case CancelTimer(name=name):
                timers = tuple(timer for timer in world.timers if timer[0] != name)
                return world if timers == world.timers else world._replace(timers=timers)
            case Spawn(generation=generation):
                return world._replace(links=(*world.links, self._new_link(generation)))
        if self.scenario.prompt:
            return self._obey(world, order)
        return world._replace(commands=(*world.commands, order))

    def _sink(self, world):
        rest, fast, lane = world.sink_rest, world.sink_fast, world.sink_lane
        if rest:
            message, rest = rest[0], rest[1:]
        elif fast:
            message, fast = fast[0], fast[1:]
        else:
            message, rest, lane = lane[0][0], lane[0][1:], lane[1:]
        state, reports, grants = self.sink.take(world.sink, message, world.now_s)
        things = self.messages.things
        world = world._replace(
            sink=state,
            sink_rest=rest,
            sink_fast=fast,
            sink_lane=lane,
            supervisor_lane=world.supervisor_lane + reports,
        )
        for generation, credit in grants:
            world = self._carry_out(world, (generation, things[credit]))
        return world

    def _read(self, world, reader):
        step = self.sink.read(world.sink, reader)
        if step is None:
            return None
        state, due = step
        lane = (*world.sink_lane, (self._review,)) if due else world.sink_lane
        return world._replace(sink=state, sink_lane=lane)

    def _interrupted(self, world):
        left = world.left._replace(interrupts=world.left.interrupts - 1)
        fast = (*world.supervisor_fast, self._interrupt)
        world = world._replace(left=left, supervisor_fast=fast)
        return self._supervise(world) if self.scenario.prompt else world

    def _command(self, world):
        return self._obey(world._replace(commands=world.commands[1:]), world.commands[0])

    def _fire(self, world, name, *, starved=False):
        at_s = next(timer[1] for timer in world.timers if timer[0] == name)
        timers = tuple(timer for timer in world.timers if timer[0] != name)
        now_s = max(world.now_s, at_s)
        fired = self.messages.number(TimerFired(name, starved=starved))
        return self._deliver(world._replace(timers=timers, now_s=now_s), ((fired,),))

    def _fire_starved(self, world, name):
        return self._fire(world, name, starved=True)

    def _alarm(self, world, name):
        left = world.left._replace(alarms=world.left.alarms - 1)
        return self._fire(world._replace(left=left), name)

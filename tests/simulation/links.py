"""What the I/O thread and the workers do in the model."""

from __future__ import annotations

from tests.simulation.world import Link, Running, changed, find, replaced
from tidegate.actors.provider.facts import CancelCame, CreditCame
from tidegate.actors.supervisor.orders import AskIdle, CancelWorker, PingWorker, ToWorker
from tidegate.protocol.attempts import (
    CancelAttempt,
    Credit,
    Ended,
    Ping,
    Pong,
    StartAttempt,
    WorkerReady,
)
from tidegate.protocol.workers import WorkerLost


class Links:
    """The steps of the I/O thread and of the workers; the rest of the model is ``Model``."""

    def _new_link(self, generation):
        if not self.scenario.cold:
            return Link(generation)
        return Link(generation, up=((self.messages.number(WorkerReady(generation, 0)),),))

    def _obey(self, world, command):
        match command:
            case ToWorker(generation=generation, message=message):
                return self._send(world, generation, ("start", message.token), message)
            case (generation, Credit() as credit):
                return self._send(world, generation, ("credit", credit.token), credit)
            case CancelWorker():
                return self._cancel(world, command)
            case PingWorker(generation=generation, token=token):
                return self._send(world, generation, ("ping", token), Ping(token))
            case AskIdle(generation=generation, question=question):
                link = find(world, generation)
                if link is not None:
                    world = self._deliver(replaced(world, link, up=()), link.up)
                    if link.life == "dead":
                        world = self._lose(world, generation)
                return self._deliver(world, ((self.messages.number(question),),))
        link = find(world, command.generation)
        if link is None:
            return world
        world = self._deliver(replaced(world, link, up=()), link.up)
        return self._lose(world, command.generation)

    def _send(self, world, generation, name, message):
        link = find(world, generation)
        if link is None:
            return world
        unsent = tuple(item for item in link.unsent if item[0] != name)
        return replaced(world, link, unsent=(*unsent, (name, message)))

    def _cancel(self, world, order):
        link, token = find(world, order.generation), order.token
        if link is None:
            return world
        credit, start = ("credit", token), ("start", token)
        unsent = tuple(item for item in link.unsent if item[0] not in (credit, start))
        if any(item[0] == start for item in link.unsent):
            ended = self.messages.number(Ended(order.turn, token, cancelled=True))
            return self._deliver(replaced(world, link, unsent=unsent), ((ended,),))
        first = tuple(item for item in unsent if item[0][0] == "cancel")
        cancel = (("cancel", token), CancelAttempt(order.turn, token))
        return replaced(world, link, unsent=(*first, cancel, *unsent[len(first) :]))

    def _deliver(self, world, frames):
        return world._replace(sink_lane=world.sink_lane + frames)

    def _up(self, world, generation):
        link = find(world, generation)
        return self._deliver(replaced(world, link, up=link.up[1:]), link.up[:1])

    def _lose(self, world, generation):
        lost = self.messages.number(WorkerLost(generation, "it is gone"))
        links = tuple(link for link in world.links if link.generation != generation)
        return self._deliver(world._replace(links=links), ((lost,),))

    def _down(self, world, generation):
        link = find(world, generation)
        message, unsent = link.unsent[0][1], link.unsent[1:]
        if link.life != "runs":
            swallowed = link.life == "stopped"
            return replaced(world, link, unsent=unsent, swallowed=swallowed)
        attempts, frames = link.attempts, []
        running = next((each for each in attempts if each.token == named_by(message)), None)
        match message:
            case Ping(number=number):
                frames.append((self.messages.number(Pong(generation, number)),))
            case StartAttempt():
                begun = Running(message.token, self.attempts.begin(message))
                attempts = (*attempts, begun)
            case CancelAttempt(turn=turn, token=token):
                if running is None:
                    ended = Ended(turn, token, cancelled=True)
                    frames.append((self.messages.number(ended),))
                else:
                    attempts = changed(attempts, running._replace(cancelled=True))
                if self.scenario.pings:
                    frames.append((self.messages.number(Pong(generation, token)),))
            case Credit(limit_bytes=limit_bytes) if running is not None:
                came = CreditCame(limit_bytes)
                state, _ = self.attempts.take(running.state, came, world.now_s)
                attempts = changed(attempts, running._replace(state=state))
        world = replaced(world, link, unsent=unsent, attempts=attempts)
        for frame in frames:
            world = self._said(world, generation, frame)
        return world

    def _attempt(self, world, generation, token):
        link = find(world, generation)
        running = next(each for each in link.attempts if each.token == token)
        script = self.scenario.script(token)
        if running.cancelled:
            if script[-1] == "deaf":
                return None
            return self._progress(world, link, running, CancelCame())
        rests = self.attempts.states.things[running.state].paused
        thing = script[running.place]
        if rests or thing in ("silence", "deaf"):
            return None
        return self._progress(world, link, running._replace(place=running.place + 1), thing)

    def _fail(self, world, generation, token):
        link = find(world, generation)
        running = next(each for each in link.attempts if each.token == token)
        if not world.left.failures or running.cancelled:
            return None
        left = world.left._replace(failures=world.left.failures - 1)
        return self._progress(world._replace(left=left), link, running, self.scenario.failure)

    def _progress(self, world, link, running, thing):
        state, frame = self.attempts.take(running.state, thing, world.now_s)
        running = running._replace(state=state)
        attempts = changed(link.attempts, running)
        if self.attempts.states.things[state].phase == "ended":
            attempts = tuple(each for each in attempts if each.token != running.token)
        return self._said(replaced(world, link, attempts=attempts), link.generation, frame)

    def _said(self, world, generation, frame):
        if not frame:
            return world
        if self.scenario.prompt:
            return self._deliver(world, (frame,))
        link = find(world, generation)
        return replaced(world, link, up=(*link.up, frame))

    def _die(self, world, generation):
        link = find(world, generation)
        if link.life == "dead":
            return None
        left = world.left._replace(deaths=world.left.deaths - 1)
        world = world._replace(left=left)
        if self.scenario.prompt:
            return self._lose(world, generation)
        return replaced(world, link, life="dead", attempts=())

    def _stop(self, world, generation):
        link = find(world, generation)
        if link.life != "runs":
            return None
        left = world.left._replace(stops=world.left.stops - 1)
        return replaced(world._replace(left=left), link, life="stopped")


def named_by(message):
    return message.number if isinstance(message, Ping) else message.token

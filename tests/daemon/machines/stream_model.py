"""One response in every order of what can happen to it, and what must be true of what is written.

The rules are told in terms of what was ordered to be written; nothing is taken from the machine's
state. The shell is free to take its time: a write is taken sooner or later or never, timers run
out early or late, the turn goes its own way.
"""

from __future__ import annotations

from typing import NamedTuple

from msgspec.structs import replace

from tidegate.daemon.stream.machine import PATIENCE_S, decide
from tidegate.daemon.stream.messages import (
    Abort,
    Answer,
    Began,
    CancelTimers,
    ClientLeft,
    Completed,
    End,
    Failed,
    InterruptTurn,
    Items,
    Lag,
    LeaveTurn,
    Plan,
    Reply,
    RetryComing,
    Send,
    SendHead,
    SendHeartbeat,
    SetTimer,
    TimerFired,
    WriteTaken,
)
from tidegate.daemon.stream.state import StreamState, evolve


STREAM = Plan(streamed=True, commit_after_s=5, heartbeat_s=15, queue_bytes=6, slow_s=30)
EVENTS = Plan(
    streamed=True, commit_after_s=0, heartbeat_s=15, queue_bytes=6, slow_s=30, retractable=True
)
WHOLE = Plan(streamed=False, commit_after_s=5, heartbeat_s=15, queue_bytes=6, slow_s=30)
DONE, ERROR = b"<done>", b"<error>"
TRUE_ERROR, WHOLE_ANSWER = Reply(429, body=b"{error}"), Reply(200, body=b"{answer}")
HEARTBEAT = b":\n"
OPTIONAL = frozenset({"time", "leave", "lag", "lag for long"})
HEARTBEATS_MAX = 2


class World(NamedTuple):
    """What an onlooker knows of one response.

    Attributes:
        key: the number of the machine's state.
        script: what the turn is still to bring.
        shown: the frames that came of the turn and are to be written, joined.
        body: all that was ordered to be written, frames and heartbeats as they are.
        wrote_s: when that was last.
        writing: whether it is not taken.
        timers: which ones run, and when they run out.
        ended: how the body ended: ``normal``, ``error``, ``whole``.
        over: whether nothing more is to be told.
    """

    key: int
    script: tuple[str, ...]
    now_s: float = 0.0
    shown: bytes = b""
    content: bool = False
    head: bool = False
    body: bytes = b""
    wrote_s: float = 0.0
    writing: bool = False
    timers: tuple[tuple[str, float], ...] = ()
    beats: int = 0
    ended: str = ""
    left: str = ""
    aborted: bool = False
    interrupted: bool = False
    over: bool = False
    client: bool = True

    @property
    def frames(self):
        return self.body.replace(HEARTBEAT, b"")


class StreamModel:
    """The steps that lead from one world to others.

    Args:
        plan: what kind of response it is.
        script: what the turn brings, in this order: ``fact`` (frames that wait for the status),
            ``text``, ``retry``, and ``done`` or ``error`` at the end.
    """

    optional = OPTIONAL

    def __init__(self, plan, script):
        self.doing = None
        self.ends = set()
        self._plan = plan
        self._script = script
        self._states = []
        self._numbers = {}

    def first(self):
        world = World(self._number(StreamState(self._plan)), self._script)
        return self._told(world, Began())

    def steps(self, world):
        """Yield each step that is possible, as a label and the world after it."""
        for kind in self._kinds(world):
            self.doing = (kind,)
            yield self.doing, self._step(world, kind)
        self.doing = None

    def check_end(self, world):
        """Say whether nothing need happen any more."""
        assert world.over, "the response does not end"
        assert world.left, "the turn is not left"
        assert not world.timers, "a timer runs for nothing"
        if world.ended in ("normal", "error"):
            assert world.aborted or not world.client or world.frames == world.shown
        self.ends.add((world.left, world.ended, world.aborted, world.interrupted))

    def _kinds(self, world):
        if world.script:
            yield "turn"
        if world.writing:
            yield "taken"
            yield "lag"
            yield "lag for long"
        if world.timers and (world.beats < HEARTBEATS_MAX or world.left):
            yield "time"
        if world.client:
            yield "leave"

    def _step(self, world, kind):
        match kind:
            case "turn":
                return self._turn(world)
            case "taken":
                return self._told(world._replace(writing=False), WriteTaken())
            case "lag":
                return self._told(world, Lag(self._plan.queue_bytes + 1))
            case "lag for long":
                later = world._replace(now_s=max(world.now_s, world.wrote_s + PATIENCE_S))
                return self._told(later, Lag(self._plan.queue_bytes + 1))
            case "leave":
                return self._told(world._replace(client=False), ClientLeft())
            case "time":
                timer, at_s = min(world.timers, key=lambda each: each[1])
                timers = tuple(each for each in world.timers if each[0] != timer)
                later = world._replace(timers=timers, now_s=max(world.now_s, at_s))
                return self._told(later, TimerFired(timer))

    def _turn(self, world):
        what, *rest = world.script
        world = world._replace(script=tuple(rest))
        match what:
            case "fact" | "text":
                data = f"<{len(rest)}>".encode()
                message = Items(data, content=what == "text")
                if self._plan.streamed:
                    world = self._come(world, data, content=what == "text")
            case "retry":
                message = RetryComing(ERROR)
                if world.content and not self._plan.retractable:
                    world = self._come(world, ERROR)
            case "done":
                message = Completed(DONE, WHOLE_ANSWER)
                world = self._come(world, DONE)
            case "error":
                message = Failed(ERROR, TRUE_ERROR)
                world = self._come(world, ERROR)
        return self._told(world, message)

    def _come(self, world, data, *, content=False):
        if world.left:
            return world
        return world._replace(shown=world.shown + data, content=world.content or content)

    def _told(self, world, message):
        before, state = world, self._states[world.key]
        decision = decide(state, message, world.now_s)
        for fact in decision.events:
            state = evolve(state, fact)
        for effect in decision.effects:
            assert not world.over, "something is ordered after the end"
            world = self._ordered(world, effect, message, before)
        self._check(world, before, message)
        return self._as_of_now(world, state)

    def _ordered(self, world, effect, message, before):
        match effect:
            case SendHead() | Send() | SendHeartbeat() | Answer() | End():
                assert not before.writing, "W2: two writes at a time"
                assert not world.ended, "W3: written after the end"
                assert not world.over, "W3: written after the end"
                world = self._written(world, effect, message, before)
                return world._replace(writing=True, wrote_s=world.now_s)
            case Abort():
                untaken_s = world.now_s - world.wrote_s
                slow = untaken_s >= self._plan.slow_s and message == TimerFired("slow")
                lags = untaken_s >= PATIENCE_S and isinstance(message, Lag | Items)
                assert world.writing, "cut off with nothing to take"
                assert slow or (lags and not world.left), "cut off for nothing"
                return world._replace(aborted=True, writing=False)
            case LeaveTurn(how=how):
                assert not world.left, "W3: left twice"
                assert (how == "cut") == world.aborted
                assert (how == "left") == isinstance(message, ClientLeft)
                return world._replace(left=how)
            case InterruptTurn():
                assert isinstance(message, RetryComing), "interrupted for nothing"
                assert before.content, "a retry nobody would have noticed"
                assert not self._plan.retractable, "its reader can be told"
                return world._replace(interrupted=True)
            case SetTimer(timer=timer, delay_s=delay_s):
                assert timer not in dict(world.timers), "two timers of a name"
                assert delay_s > 0
                timers = (*world.timers, (timer, world.now_s + delay_s))
                return world._replace(timers=tuple(sorted(timers)))
            case CancelTimers():
                return world._replace(over=True, timers=(), writing=False)

    def _written(self, world, effect, message, before):
        """Take note of what is written, and see that it may be."""
        match effect:
            case SendHead():
                assert not world.head, "W1: a second head"
                assert self._plan.streamed, "a head without its body"
                shows = isinstance(message, Items) and message.content
                due = message == TimerFired("commit") or self._plan.commit_after_s == 0
                assert shows or due or isinstance(message, Completed), "too early"
                return world._replace(head=True)
            case Send(data=data):
                assert world.head, "W1: a body before its head"
                assert data, "nothing is written"
                world = world._replace(body=world.body + data)
                assert world.shown.startswith(world.frames), "W4: frames that never came"
                return world
            case SendHeartbeat():
                assert world.head, "W1: a body before its head"
                assert not world.left, "a heartbeat after the last frame"
                assert world.frames == world.shown, "W4: a heartbeat within frames"
                assert world.now_s - world.wrote_s >= self._plan.heartbeat_s, "no silence"
                return world._replace(body=world.body + HEARTBEAT, beats=world.beats + 1)
            case Answer(reply=reply):
                assert not world.head, "W1: a second head"
                fails = isinstance(message, Failed)
                assert reply == (TRUE_ERROR if fails else WHOLE_ANSWER)
                assert fails or not self._plan.streamed, "a stream in one piece"
                return world._replace(ended="whole")
            case End(ok=ok):
                assert world.head, "the end of nothing"
                assert world.frames == world.shown, "W4: an end before the last frames"
                assert world.shown.endswith(DONE if ok else ERROR), "the wrong end"
                return world._replace(ended="normal" if ok else "error")

    def _check(self, world, before, message):
        """See that all that had to be done was done."""
        assert world.body.count(DONE) + world.body.count(ERROR) <= 1, "an end mark after an error"
        if world.over:
            return
        assert world.head or world.left or not world.content, "content is held back"
        assert world.client, "the client is gone and the response goes on"
        assert world.writing or world.frames == world.shown or not world.head, "frames wait"
        assert not world.writing or "slow" in dict(world.timers), "nobody watches the write"
        assert not world.left or world.writing, "nothing ends the response"
        if isinstance(message, Completed | Failed):
            assert world.left, "the turn is over and not left"
        if isinstance(message, RetryComing) and before.content and not self._plan.retractable:
            assert world.left, "a second attempt is glued onto the first"
        if message == TimerFired("slow") and world.writing:
            assert world.now_s - world.wrote_s < self._plan.slow_s, "not cut off"
        if isinstance(message, Lag) and not world.left:
            assert world.now_s - world.wrote_s < PATIENCE_S, "not cut off"
        if world.head and not world.left:
            assert "heartbeat" in dict(world.timers), "it will fall silent"
        if message == TimerFired("heartbeat") and not before.writing and not world.left:
            assert world.now_s - world.wrote_s < self._plan.heartbeat_s, "silent for too long"
        if not world.head and not world.left and self._plan.streamed:
            assert "commit" in dict(world.timers), "the status may wait for ever"

    def _as_of_now(self, world, state):
        """Count all times from now on, for only differences between them mean anything."""
        now_s = world.now_s
        if state.write_since_s is not None:
            state = replace(state, write_since_s=state.write_since_s - now_s)
        state = replace(state, quiet_since_s=state.quiet_since_s - now_s)
        timers = tuple((timer, at_s - now_s) for timer, at_s in world.timers)
        times = {"now_s": 0.0, "wrote_s": world.wrote_s - now_s, "timers": timers}
        return world._replace(**times, key=self._number(state))

    def _number(self, state):
        number = self._numbers.setdefault(state, len(self._states))
        if number == len(self._states):
            self._states.append(state)
        return number

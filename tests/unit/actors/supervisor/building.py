"""Messages to the supervisor in few words, and a supervision that is told them, for its tests."""

from tidegate.actors.supervisor.ladder import ROUNDS_MAX
from tidegate.actors.supervisor.orders import (
    AskIdle,
    CancelTimer,
    CancelWorker,
    PingWorker,
    StartTimer,
    ToSink,
    ToWorker,
)
from tidegate.actors.supervisor.pool import Kill, Pool, Spawn
from tidegate.actors.supervisor.supervision import Supervision
from tidegate.protocol.attempts import Ended, Pong, Target, WorkerReady
from tidegate.protocol.endpoints import Endpoint
from tidegate.protocol.failures import Failure, FailureKind
from tidegate.protocol.policy import Policy
from tidegate.protocol.requests import Request
from tidegate.protocol.sink import EvidenceTaken, Fenced, Limit, NotIdle, Snapshot, TurnClosed
from tidegate.protocol.supervisor import Interrupt, Prepared, Start, TimerFired, TurnPlan
from tidegate.protocol.workers import WorkerLost


TURN = 1
TARGET = Target("chat", "http://host/v1", "key")
LOST = Failure(kind=FailureKind.CONNECTION_LOST, retryable=True)
STALLED = Failure(kind=FailureKind.STALLED, reason="idle", retryable=True)
FATAL = Failure(kind=FailureKind.AUTH, status=401)
RESTARTS_MAX = 3
PERIOD_S = 30.0


def plan(*, stream=True, stream_options=b'{"include_usage":true}', **policy):
    """Return a plan; the policy's built-in values hold where none is given."""
    request = Request(Endpoint.chat("http://host/v1", "key"), {"model": "m", "messages": []})
    fields = {
        "backoff_jitter": 0.0,
        "first_event_timeout_s": 100.0,
        "stale_after_s": 80.0,
        **policy,
    }
    resolved = Policy(**fields).resolved(request, environ={}).values()
    return TurnPlan("chat http://host", "m", "c", b"{}", stream, stream_options, 1, resolved)


def start(turn=TURN, *, target=TARGET, failure=None, **fields):
    return Start(turn, plan(**fields), target, failure)


def prepared(target=TARGET, failure=None):
    return Prepared(TURN, target, failure)


def interrupt(turn=TURN, *, single=True):
    return Interrupt(turn, "enough", single)


def fenced(token, failure=LOST, *, turn=TURN, refused="", learned="", **snapshot):
    return Fenced(turn, token, failure, Snapshot(**snapshot), refused, learned)


def ended(token, *, turn=TURN, **fields):
    return Ended(turn, token, **fields)


def evidence(token, turn=TURN):
    return EvidenceTaken(turn, token)


def not_idle(token, count_from_s, limit=Limit.PROGRESS):
    return NotIdle(TURN, token, limit, count_from_s)


def closed(kind="completed", *, turn=TURN, received=True, visible=True):
    return TurnClosed(turn, kind, received, visible)


def fired(kind, about, *, heard=False, starved=False):
    return TimerFired((kind, about), heard, starved)


def ready(generation):
    return WorkerReady(generation, 4711)


def lost(generation):
    return WorkerLost(generation, "gone")


def pong(token, generation=1):
    return Pong(generation, token)


class Desk:
    """A supervision of one active worker and a standby that are up, and what it orders.

    Args:
        told: what it is told first; a number in between is the time from there on.
        size: how many active workers there are.
        up: whether the workers are up from the start.
    """

    def __init__(self, *told, size=1, up=True, restarts_max=RESTARTS_MAX, chance=0.0):
        self.now_s = 0.0
        self._chance = chance
        pool = Pool(size=size, restarts_max=restarts_max, period_s=PERIOD_S)
        self.supervision = Supervision(pool)
        self.booted = self.supervision.boot()
        for spawn in self.booted if up else ():
            self.tell(ready(spawn.generation))
        self.tell(*told)

    def tell(self, *told):
        """Take messages in order, and return the orders of the last one."""
        orders = []
        for message in told:
            if isinstance(message, float):
                self.now_s = message
            else:
                orders = self.supervision.handle(message, self.now_s, self._chance)
        return orders

    @property
    def turn(self):
        return self.supervision.turns.get(TURN)

    @property
    def counts(self):
        return self.supervision.counts

    @property
    def workers(self):
        """Return generation, role, live and cancelling of each worker."""
        pool = self.supervision.pool
        return [(w.generation, w.role, w.live, w.cancelling) for w in pool.workers]


def to_sink(orders):
    return [order.message for order in orders if isinstance(order, ToSink)]


def starts(orders):
    return [order.message for order in orders if isinstance(order, ToWorker)]


def cancels(orders):
    return [(each.generation, each.token) for each in orders if isinstance(each, CancelWorker)]


def pings(orders):
    return [(each.generation, each.token) for each in orders if isinstance(each, PingWorker)]


def questions(orders):
    return [order.question for order in orders if isinstance(order, AskIdle)]


def armed(orders):
    return {order.name: order.at_s for order in orders if isinstance(order, StartTimer)}


def disarmed(orders):
    return {order.name for order in orders if isinstance(order, CancelTimer)}


def spawned(orders):
    return [order.generation for order in orders if isinstance(order, Spawn)]


def killed(orders):
    return [(order.generation, order.dump) for order in orders if isinstance(order, Kill)]


def ignored(token):
    """Return what is told of an attempt that outlasts the rounds of its worker's loop."""
    return [told for _ in range(ROUNDS_MAX) for told in (pong(token), fired("kill", token))]

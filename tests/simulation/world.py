"""One state of the whole runtime: what is where, in numbers."""

from __future__ import annotations

from typing import NamedTuple


class Running(NamedTuple):
    """An attempt in a worker: its machine's state, how far its script is, whether it must end."""

    token: int
    state: int
    place: int = 0
    cancelled: bool = False


class Link(NamedTuple):
    """A worker and its sockets.

    Attributes:
        life: ``runs``, ``stopped`` (SIGSTOP) or ``dead``.
        unsent: what has not left the host: names and messages.
        swallowed: whether something lies in the socket of a stopped worker.
        up: the frames on their way to the host.
    """

    generation: int
    life: str = "runs"
    unsent: tuple = ()
    swallowed: bool = False
    up: tuple = ()
    attempts: tuple[Running, ...] = ()


class Left(NamedTuple):
    """What may still happen that need not."""

    interrupts: int
    failures: int
    deaths: int
    alarms: int
    stops: int


class World(NamedTuple):
    """One state of everything."""

    supervisor: int
    sink: int
    supervisor_fast: tuple[int, ...]
    supervisor_lane: tuple[int, ...]
    sink_fast: tuple[int, ...]
    sink_lane: tuple[tuple[int, ...], ...]
    sink_rest: tuple[int, ...]  # of the frame that the sink is at
    orders: tuple  # of the supervisor's last message, where they are carried out one by one
    commands: tuple
    links: tuple[Link, ...]
    timers: tuple
    left: Left
    now_s: float


def find(world, generation):
    """Return a worker's link; None if it is lost."""
    return next((link for link in world.links if link.generation == generation), None)


def replaced(world, link, **fields):
    """Return the world with a changed link."""
    new = link._replace(**fields)
    links = tuple(new if each.generation == link.generation else each for each in world.links)
    return world._replace(links=links)


def changed(attempts, running):
    """Return the attempts with a changed one."""
    return tuple(running if each.token == running.token else each for each in attempts)

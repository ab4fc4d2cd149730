"""Provider actors in a loop of their own, with an uplink that the test can read."""

import asyncio
import socket
import threading

import msgspec
import pytest

import tidegate.actors.provider.openai_client  # noqa: F401 - as workers are forked with it
from tidegate.actors.provider.actor import Providers
from tidegate.lab import Lab
from tidegate.protocol.attempts import (
    CancelAttempt,
    Credit,
    Deltas,
    Ended,
    Order,
    StartAttempt,
    Target,
)
from tidegate.protocol.deltas import Text


GUARD_S = 10.0
PROMPT = b'{"model":"m","messages":[]}'
TURN = 1


class Uplink:
    """Keeps what is sent, in order, for threads that wait for it."""

    def __init__(self):
        self.messages = []
        self.changed = threading.Condition()
        self.clear = asyncio.Event()
        self.clear.set()

    def send(self, message):
        with self.changed:
            self.messages.append(message)
            self.changed.notify_all()

    send_now = send

    @property
    def full(self):
        return not self.clear.is_set()

    async def drained(self):
        await self.clear.wait()


class Worker:
    """Runs ``Providers`` in a thread; its methods may be called from the test's."""

    def __init__(self):
        self._ready = threading.Event()
        self._tokens = 0
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), name="worker")

    def __enter__(self):
        self._thread.start()
        assert self._ready.wait(GUARD_S)
        return self

    def __exit__(self, *_):
        if self._thread.is_alive():
            self.call(self._stopping.set)
            self._thread.join(GUARD_S)
        assert not self._thread.is_alive()

    async def _serve(self):
        self.loop = asyncio.get_running_loop()
        self._stopping = asyncio.Event()
        self.uplink = Uplink()
        self.providers = Providers(self.uplink)
        self._ready.set()
        await self._stopping.wait()
        await self.providers.close()

    def call(self, function, *arguments):
        self.loop.call_soon_threadsafe(function, *arguments)

    def start(self, target, body=PROMPT, *, limit_bytes=1 << 30, **order):
        """Start an attempt, and return its token."""
        if isinstance(target, Lab):
            target = Target("chat", base_url=target.url)
        self._tokens += 1
        message = StartAttempt(
            TURN, self._tokens, 1, Order(target=target, body=body, **order), limit_bytes
        )
        self.call(self.providers.receive, message)
        return self._tokens

    def cancel(self, token):
        self.call(self.providers.receive, CancelAttempt(TURN, token))

    def credit(self, token, limit_bytes):
        self.call(self.providers.receive, Credit(token, limit_bytes))

    def heard(self, token):
        with self.uplink.changed:
            return [each for each in self.uplink.messages if each.token == token]

    def wait(self, token, condition):
        """Wait until the messages of an attempt fulfil ``condition``, and return them."""
        with self.uplink.changed:
            if not self.uplink.changed.wait_for(lambda: condition(self.heard(token)), GUARD_S):
                raise TimeoutError(f"only {self.heard(token)}")
            return self.heard(token)

    def wait_for(self, token, kind):
        """Wait for a message of this class, and return the first."""
        of_kind = lambda heard: [each for each in heard if isinstance(each, kind)]  # noqa: E731
        return of_kind(self.wait(token, of_kind))[0]

    def end_of(self, token):
        return self.wait_for(token, Ended)

    def text_of(self, token):
        return text_of(self.heard(token))

    def wait_text(self, token, text):
        self.wait(token, lambda heard: text_of(heard) == text)

    def outcome(self, target, body=PROMPT, **options):
        """Play one attempt to its end: its text and how it ended."""
        token = self.start(target, body, **options)
        end = self.end_of(token)
        return self.text_of(token), end

    def failure(self, target, body=PROMPT, **options):
        """Play an attempt that fails, and return the failure."""
        end = self.outcome(target, body, **options)[1]
        assert end.failure is not None, end
        assert not end.cancelled
        return end.failure


def text_of(heard):
    deltas = [delta for each in heard if isinstance(each, Deltas) for delta in each.deltas]
    return "".join(delta.text for delta in deltas if isinstance(delta, Text))


def with_target(lab, **fields):
    return msgspec.structs.replace(Target("chat", base_url=lab.url), **fields)


@pytest.fixture
def worker():
    with Worker() as worker:
        yield worker


@pytest.fixture
def lab():
    with Lab() as lab:
        yield lab


@pytest.fixture
def target_of():
    return with_target


@pytest.fixture
def dead_port():
    """A port at which nobody listens, and nobody else can while the test runs."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield bound.getsockname()[1]


@pytest.fixture
def deaf_port():
    """A port that takes no connection any more: its queue is full."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        port = listener.getsockname()[1]
        fillers = []
        for _ in range(4):
            filler = socket.socket()
            filler.setblocking(False)
            filler.connect_ex(("127.0.0.1", port))
            fillers.append(filler)
        yield port
        for filler in fillers:
            filler.close()


@pytest.fixture
def mute_port():
    """A port whose connections wait for the test to take them, and the listener to do so."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(GUARD_S)
        yield listener.getsockname()[1], listener

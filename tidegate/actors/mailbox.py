"""Two lanes and an actor loop without holes: what pykka leaves open, closed once.

pykka queues a stop behind the backlog, leaves an ask that races with a stop unanswered, stops every
actor of the process when one raises ``SystemExit``, and calls no hook when ``on_start`` fails. Here
interrupts, seals and stops go before everything else, every ask is answered, an actor's end is its
own, and it is reported exactly once on every path.
"""

from __future__ import annotations

import logging
import threading
from collections import Counter, deque
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Any, ClassVar, cast

import pykka
from pykka._envelope import Envelope
from pykka.messages import _ActorStop


_log = logging.getLogger("tidegate.actors")


class Mailbox:
    """An inbox with a fast lane; ``put`` never blocks and never loses a message silently.

    Args:
        fast: types of the messages that go before all others.

    Attributes:
        wake: called after each message, for an actor that has no thread of its own.
    """

    def __init__(self, fast: tuple[type, ...]) -> None:
        self._fast_types = frozenset((*fast, _ActorStop))
        self._lane: SimpleQueue[Envelope[Any] | None] = SimpleQueue()
        self._fast: deque[Envelope[Any]] = deque()
        self._closed = False
        self.wake: Callable[[], None] | None = None
        self.dead_letters: Counter[str] = Counter()

    def put(self, envelope: Envelope[Any], /) -> None:
        """Queue a message in its lane."""
        if type(envelope.message) in self._fast_types:
            self._fast.append(envelope)
            self._lane.put(None)  # wakes the loop, which looks at the fast lane first
        else:
            self._lane.put(envelope)
        if self._closed:
            # The loop has drained already, or is about to: whoever gets an envelope answers it.
            self.drain()
        elif self.wake is not None:
            self.wake()

    def tell(self, message: object) -> None:
        """Queue ``message`` without asking whether anybody is left to read it."""
        self.put(Envelope(message))

    def get(self) -> Envelope[Any]:
        """Wait for the next message: from the fast lane as long as that has any."""
        while True:
            if self._fast:
                return self._fast.popleft()
            envelope = self._lane.get()
            if envelope is not None:
                return envelope

    def empty(self) -> bool:
        """Say whether nothing is queued."""
        return not self._fast and self._lane.empty()

    def close(self) -> None:
        """Take no more: what is queued, and what comes, becomes a dead letter."""
        self._closed = True
        self.drain()

    def drain(self) -> None:
        """Answer what is queued with ``ActorDeadError``, or count it as a dead letter."""
        while (envelope := self.pop()) is not None:
            message, reply_to = envelope.message, envelope.reply_to
            if reply_to is None:
                self.dead_letters[type(message).__name__] += 1
            elif isinstance(message, _ActorStop):
                reply_to.set(None)
            else:
                dead = pykka.ActorDeadError("the actor stopped before handling the message")
                reply_to.set_exception((type(dead), dead, None))

    def pop(self) -> Envelope[Any] | None:
        """Return the next message, or None if nothing is queued."""
        # Asked first, because an exception costs more than the whole rest of a step.
        while not self.empty():
            try:
                envelope = self._fast.popleft() if self._fast else self._lane.get_nowait()
            except (IndexError, Empty):
                continue  # somebody else drains it
            if envelope is not None:
                return envelope
        return None


class Shell(pykka.Actor):
    """Base of the actors in the host: two lanes, one thread, one report of its end.

    The thread is its own daemon (``launch``), because a script that forgets to stop the runtime
    must still end; or somebody else's (``launch_on``), who then calls ``pump``. Either way messages
    are handled one at a time, in the order of their lanes.
    """

    FAST: ClassVar[tuple[type, ...]] = ()
    """Types of the messages that go before all others."""

    def __init__(self) -> None:
        super().__init__()
        # pykka makes the inbox in a static method, which cannot know the subclass's lanes.
        self.mailbox = Mailbox(self.FAST)
        self.actor_inbox = cast(Any, self.mailbox)
        self._actor_ref = pykka.ActorRef(self)
        self.thread: threading.Thread | None = None

    @staticmethod
    def _create_actor_inbox() -> Any:
        return Mailbox(())

    @staticmethod
    def _create_future() -> pykka.Future[Any]:
        return pykka.ThreadingFuture()

    def _start_actor_loop(self) -> None:
        name = f"tidegate-{type(self).__name__.removesuffix('Actor').lower()}"
        self.thread = threading.Thread(target=self._actor_loop, name=name, daemon=True)
        self.thread.start()

    def launch(self) -> None:
        """Start the thread; pykka's ``start`` would not let the maker keep the actor."""
        pykka.ActorRegistry.register(self.actor_ref)
        self._start_actor_loop()

    def launch_on(self, call: Callable[[Callable[[], None]], None]) -> None:
        """Let another thread handle the messages: the one that does what ``call`` queues."""
        pykka.ActorRegistry.register(self.actor_ref)
        self.mailbox.wake = lambda: call(self.pump)
        call(lambda: self._guard(lambda _nothing: self.on_start(), None))
        call(self.pump)

    def deliver(self, message: Any) -> None:
        """Handle ``message`` behind all that is queued; only for the thread that pumps."""
        self.pump()
        if not self.actor_stopped.is_set():
            self._guard(self.on_message, message)

    def pump(self) -> None:
        """Handle all that is queued; only for the thread that ``launch_on`` chose."""
        while not self.actor_stopped.is_set() and (envelope := self.mailbox.pop()) is not None:
            self._guard(self._step, envelope)

    def end(self) -> None:
        """Stop before anything else that is queued; pykka's ``stop`` would raise if it has."""
        self.mailbox.tell(_ActorStop())

    def halt(self, timeout_s: float) -> None:
        """Stop, and wait for the thread, unless this is it."""
        self.end()
        if self.thread is not None and self.thread is not threading.current_thread():
            self.thread.join(timeout_s)

    def on_message(self, message: Any) -> None:
        """Handle one message; an exception ends the actor."""
        raise NotImplementedError

    def down(self, error: BaseException | None) -> None:
        """Hear, exactly once and last, that the actor has ended; ``error`` is None after a stop."""

    def _actor_loop(self) -> None:
        self._guard(self._run, None)

    def _run(self, _nothing: None) -> None:
        self.on_start()
        get, step, stopped = self.mailbox.get, self._step, self.actor_stopped
        while not stopped.is_set():
            step(get())

    def _step(self, envelope: Envelope[Any]) -> None:
        message, reply_to = envelope.message, envelope.reply_to
        if isinstance(message, _ActorStop):
            self._finish(None)
            if reply_to is not None:
                reply_to.set(None)
        elif reply_to is not None:
            self._answer(message, reply_to)
        else:
            self.on_message(message)

    def _guard(self, handle: Callable[[Any], None], argument: Any) -> None:
        """Let an exception be the end of this actor, and of nothing else."""
        try:
            handle(argument)
        except BaseException as raised:  # noqa: BLE001 - the rim of the actor; reported below
            _log.critical("%s ended by an exception", type(self).__name__, exc_info=raised)
            self._finish(raised)

    def _finish(self, error: BaseException | None) -> None:
        self.actor_stopped.set()
        pykka.ActorRegistry.unregister(self.actor_ref)
        self.mailbox.close()
        self.down(error)

    def _answer(self, message: Any, reply_to: pykka.Future[Any]) -> None:
        try:
            reply_to.set(self.on_ask(message))
        except BaseException:
            reply_to.set_exception()  # the asker must not wait for an actor that ends by this
            raise

    def on_ask(self, message: Any) -> Any:
        """Answer a question from the edge of the runtime; an exception ends the actor."""
        raise NotImplementedError(f"{type(self).__name__} answers no {type(message).__name__}")

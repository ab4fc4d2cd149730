"""A turn as its caller has it: events, the answer, and the right to interrupt.

Path: ``sink/channel.py`` -> this -> the consumer.
"""

from __future__ import annotations

import asyncio
import threading
import time
import warnings
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from typing import TYPE_CHECKING, Self

import tidegate.arguments as arguments  # noqa: PLR0402 - "from tidegate" would load all of it
from tidegate.actors.sink.channel import TurnChannel
from tidegate.errors import ForkedRuntime
from tidegate.feed import Feed
from tidegate.protocol.answers import Answer
from tidegate.protocol.base import TurnNumber
from tidegate.protocol.events import AnyEvent, Terminal, TurnCompleted, TurnFailed
from tidegate.protocol.failures import FailureKind, error_from
from tidegate.reading import EventReader, TextReader, loop_waker


if TYPE_CHECKING:
    from tidegate.desk import Desk


class Turn:
    """One request and its one answer; made by ``Runtime.start``.

    Iterating gives the events from the first to the terminal one; each iterator is a reader of its
    own, and events stay until the turn is dropped. Usable from any thread and any event loop. A
    turn that is dropped while it runs is interrupted, with a ``ResourceWarning``.

    Args:
        channel: what it shares with the sink.
        interrupt: tells the supervisor, with the reason and whether it is meant for it alone.
        forked: says whether this process is a fork of the runtime's.
        desk: where its stream is read, if that is inline.
    """

    def __init__(
        self,
        channel: TurnChannel,
        interrupt: Callable[[str, bool], None],
        *,
        forked: Callable[[], bool],
        desk: Desk | None = None,
    ) -> None:
        self._channel = channel
        self._desk = desk
        self._interrupt = interrupt
        self._forked = forked

    @property
    def id(self) -> str:
        """The turn's name, unique among all runtimes."""
        return self._channel.outbox.turn_id

    @property
    def number(self) -> TurnNumber:
        """The turn's place in its runtime, from 1."""
        return self._channel.turn

    def __repr__(self) -> str:
        if self._forked():  # whoever held the lock is not here
            return f"<Turn {self.id} of another process>"
        terminal = self._channel.terminal()
        state = "running" if terminal is None else type(terminal).__name__
        return f"<Turn {self.id} {state}>"

    def __iter__(self) -> Iterator[AnyEvent]:
        return self._reader()

    def __aiter__(self) -> AsyncIterator[AnyEvent]:
        return self._reader()

    def text(self) -> TextReader:
        """Return an iterator of the text pieces of choice 0, for ``for`` and ``async for``.

        It cannot say that an attempt was superseded; who must know iterates the turn itself.
        """
        return TextReader(self._reader())

    def result(self, timeout: float | None = None) -> Answer:
        """Wait for the answer: a complete one, or a partial one that somebody has seen.

        While somebody waits here, the window is not enforced.

        Args:
            timeout: how long to wait, in seconds; the turn goes on after it. What this thread reads
                itself, because the stream is placed inline, must come back first.

        Raises:
            TimeoutError: the turn has not ended within ``timeout``.
            Interrupted: somebody ended the turn.
            TurnError: it failed; which class says how, and ``error.answer`` has what there is.
            ConfigurationError: ``timeout`` is no number.
            ForkedRuntime: this process is a fork of the one that runs the turn.
        """
        self._check_process()
        wait_s = -1.0
        if timeout is not None:
            wait_s = min(max(0.0, arguments.seconds("timeout", timeout)), threading.TIMEOUT_MAX)
        if self._desk is not None:
            terminal = self._read_to_end(self._desk, wait_s)
        else:
            terminal = self._wait_for_end(wait_s)
        if terminal is None:
            raise TimeoutError(f"turn {self.id} has not ended within {timeout} s")
        return _outcome(terminal)

    def __await__(self) -> Generator[None, None, Answer]:
        return self._wait().__await__()

    def interrupt(self, reason: str = "") -> bool:
        """End the turn; from any thread, never blocks.

        Args:
            reason: for the terminal event and whoever reads it.

        Returns:
            False if the turn had ended or was interrupted already.

        Raises:
            ConfigurationError: ``reason`` is no text.
        """
        self._check_process()
        return self._end(arguments.text("reason", reason), single=True)

    def snapshot(self) -> Answer:
        """Return the answer as it stands, at any time."""
        self._check_process()
        return self._channel.snapshot()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.interrupt("left the with block")

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_error: object) -> None:
        self.interrupt("left the with block")

    def __del__(self) -> None:
        # A constructor that failed left nothing to end.
        if not hasattr(self, "_forked") or self._forked():
            return
        if self._end("abandoned", single=False):
            warnings.warn(
                f"turn {self.id} was dropped while it ran: wait for it, or interrupt it",
                ResourceWarning,
                stacklevel=2,
                source=self,
            )

    def _end(self, reason: str, *, single: bool) -> bool:
        """Interrupt the turn, once; ``single`` says whether it is meant for this turn alone."""
        if not self._channel.interruptible:
            return False
        # Told first: after a Ctrl-C between the two it is told again, and taken once.
        self._interrupt(reason, single)
        return self._channel.claim_interrupt()

    def _hear(self) -> EventReader:
        """Return a reader for a callback, for which the window is not enforced."""
        self._unbind()
        return self._reader()

    def _unbind(self) -> None:
        """Let the window not be enforced, for good: a callback hears it, or a host keeps it.

        Before the turn is known to the sink, which looks at it when it begins.
        """
        self._channel.waiting += 1

    def _feed(self, offset: int = 0) -> Feed:
        """Return a reader for a host that serves others, from ``offset`` on."""
        return Feed(self, self._channel, offset)

    def _tell(self, on_event: Callable[[AnyEvent], object], event: AnyEvent) -> None:
        """Call a callback; one that raises ends the turn."""
        try:
            on_event(event)
        except BaseException:
            self.interrupt("callback raised")
            raise

    def _reader(self) -> EventReader:
        return EventReader(self, self._channel, self._check_process, self._desk)

    def _wait_for_end(self, wait_s: float) -> Terminal | None:
        ended = threading.Lock()
        ended.acquire()
        waker = ended.release
        self._channel.begin_wait()
        try:
            terminal = self._channel.await_terminal(waker)
            if terminal is None and ended.acquire(timeout=wait_s):
                terminal = self._channel.terminal()
                assert terminal is not None, "woken without a terminal event"
        finally:
            self._channel.end_wait(waker)
        return terminal

    def _read_to_end(self, desk: Desk, wait_s: float) -> Terminal | None:
        ended = threading.Semaphore(0)
        until_s = None if wait_s < 0 else time.monotonic() + wait_s
        self._channel.begin_wait()
        try:
            self._channel.await_terminal(ended.release)
            return desk.attend(self._channel.terminal, ended, until_s=until_s)
        finally:
            self._channel.end_wait(ended.release)

    def _check_process(self) -> None:
        """Raise ``ForkedRuntime`` in a fork of the process that runs the turn."""
        if self._forked():
            raise ForkedRuntime(
                f"turn {self.id} belongs to the process that this one was forked from: "
                "make a Runtime after the fork"
            )

    async def _wait(self) -> Answer:
        self._check_process()
        loop = asyncio.get_running_loop()
        ended: asyncio.Future[None] = loop.create_future()
        waker = loop_waker(loop, ended)
        self._channel.begin_wait()
        try:
            terminal = self._channel.await_terminal(waker)
            if terminal is None:
                if self._desk is not None:
                    self._desk.read_beside()
                await ended
                terminal = self._channel.terminal()
        finally:
            self._channel.end_wait(waker)
        assert terminal is not None, "woken without a terminal event"
        return _outcome(terminal)


def _outcome(terminal: Terminal) -> Answer:
    """Return what ``result`` returns, or raise what it raises."""
    answer = terminal.answer
    if isinstance(terminal, TurnCompleted):
        return answer
    failure = terminal.error if isinstance(terminal, TurnFailed) else answer.failure
    assert failure is not None, "a turn without evidence ends by something"
    if answer.partial and failure.kind is not FailureKind.INTERRUPTED:
        return answer
    raise error_from(failure, answer)

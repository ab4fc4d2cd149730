"""Reads the streams of a user's own, one piece at a time, in the thread that asks for it.

What a factory makes belongs to the thread that called it, like the event loop in which its
asynchronous streams run: clients are often bound to one or the other. A whole stream runs in one
task, so that whatever it has entered it leaves in the task that entered it.

Path: the user's own stream -> this -> ``provider/stream_run.py``
"""

from __future__ import annotations

import asyncio
import importlib
import inspect
import logging
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from typing import Any, Protocol

from tidegate.actors.causes import log_fault
from tidegate.protocol.custom import Streams
from tidegate.protocol.failures import Failure, FailureKind


END = object()
"""What a read returns when there is nothing more."""

logger = logging.getLogger("tidegate.custom")


class NoStream(Exception):
    """There is no such factory, or what it makes is none of what ``docs/custom.md`` says.

    Attributes:
        failure: the same as data.
    """

    def __init__(self, detail: str, cause: BaseException | None = None) -> None:
        super().__init__(detail)
        self.failure = Failure(
            kind=FailureKind.BAD_REQUEST,
            reason="factory",
            detail=detail,
            cause="" if cause is None else type(cause).__name__,
        )


class Reading(Protocol):
    """One stream that is being read. ``unblock`` may be called from any thread, at any time."""

    def read(self) -> object:
        """Wait for the next piece; ``END`` if there is none, or whatever the stream raises."""

    def unblock(self) -> None:
        """Make a read that waits return if that can be done; may take its time."""

    def close(self) -> None:
        """Close the stream, unless it has been closed; in the thread that reads."""


class Home:
    """What factories have made in one thread, and the event loop that goes with it.

    ``busy`` is held by whoever runs anything of it: the thread itself, or one that closes in its
    stead what it has left behind.
    """

    def __init__(self) -> None:
        self.busy = threading.RLock()
        self._made: dict[str, Streams] = {}
        self._loop: asyncio.AbstractEventLoop | None = None

    def open(self, factory: str, payload: dict[str, Any]) -> Reading:
        """Begin a stream of ``package.module:factory``, which is imported and called once.

        Raises:
            NoStream: there is no such factory, or what it made makes no stream.
            Exception: of the factory, or of its ``stream``.
        """
        if factory not in self._made:
            self._made[factory] = _made_by(factory)
        stream: Any = self._made[factory].stream(payload)
        if inspect.isawaitable(stream) or hasattr(stream, "__aiter__"):
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
            return AsyncReading(stream, self._loop, factory)
        if hasattr(stream, "__iter__") and not isinstance(stream, str | bytes | dict):
            return SyncReading(stream, factory)
        raise NoStream(_wrong_stream(factory, stream))

    def close(self) -> None:
        """Close what the factories made; what goes wrong on the way is logged."""
        with self.busy:
            for factory, streams in self._made.items():
                close = getattr(streams, "close", None)
                if close is None:
                    continue
                try:
                    closing = close()
                    if inspect.isawaitable(closing):
                        self._loop = self._loop or asyncio.new_event_loop()
                        self._loop.run_until_complete(closing)
                except Exception as error:  # noqa: BLE001 - there is nobody left but the log
                    log_fault(logger, f"the close of {factory} failed", error)
            self._made.clear()
            if self._loop is not None:
                self._loop.close()
                self._loop = None


class SyncReading:
    """Reads an iterable."""

    def __init__(self, stream: Iterable[object], factory: str) -> None:
        self._items: Iterator[object] = iter(stream)
        self._factory = factory
        owner = stream if hasattr(stream, "close") else self._items
        self._close: Callable[[], object] | None = getattr(owner, "close", None)
        # A generator cannot be closed while it runs.
        self._interruptible = not inspect.isgenerator(owner)
        self._closing = threading.Lock()
        self._closed = False

    def read(self) -> object:
        """Wait for the next piece."""
        return next(self._items, END)

    def unblock(self) -> None:
        """Close the stream under the read, if it has a ``close`` of its own."""
        if self._interruptible:
            self.close()

    def close(self) -> None:
        """Close the stream; who comes second waits until the first is done."""
        with self._closing:
            if self._closed or self._close is None:
                return
            self._closed = True
            try:
                self._close()
            except Exception as error:  # noqa: BLE001 - the answer is decided
                log_fault(logger, f"the close of a stream of {self._factory} failed", error)


class AsyncReading:
    """Reads an asynchronous iterable, or one that has to be awaited first, in one task."""

    def __init__(
        self,
        stream: Awaitable[object] | object,
        loop: asyncio.AbstractEventLoop,
        factory: str,
    ) -> None:
        self._stream = stream
        self._loop = loop
        self._factory = factory
        self._task: asyncio.Task[None] | None = None
        self._came: asyncio.Future[object] = loop.create_future()
        self._wanted = asyncio.Event()
        self._ending = False

    def read(self) -> object:
        """Wait for the next piece."""
        if self._task is None:
            self._task = self._loop.create_task(self._pump())
        elif self._ending:  # by what went up through whoever read before
            return END
        elif self._came.done():  # else a Ctrl-C has broken off the wait for it
            self._came = self._loop.create_future()
            self._wanted.set()
        try:
            return self._loop.run_until_complete(self._came)
        except asyncio.CancelledError:
            return END

    def unblock(self) -> None:
        """Cancel the task; what it has entered it leaves."""
        try:
            self._loop.call_soon_threadsafe(self._cancel)
        except RuntimeError:
            if not self._loop.is_closed():  # it was, so that nothing is left to cancel
                raise

    def close(self) -> None:
        """Cancel the task if it has not ended, and wait until the stream is closed."""
        if self._task is None:
            self._task = self._loop.create_task(self._close(self._stream))
        else:
            self._cancel()
        self._loop.run_until_complete(asyncio.wait((self._task,)))

    def _cancel(self) -> None:
        # Once, and not behind its end: it would reach the stream while that cleans up.
        if self._task is not None and not self._ending:
            self._ending = True
            self._task.cancel()

    async def _pump(self) -> None:
        owner: Any = None
        try:
            owner = await self._opened()
            async for piece in owner:
                self._came.set_result(piece)
                await self._wanted.wait()
                self._wanted.clear()
            self._came.set_result(END)
        except asyncio.CancelledError:
            self._came.cancel()
        except (SystemExit, KeyboardInterrupt):
            raise  # the loop itself hands them to whoever runs it
        except BaseException as error:  # noqa: BLE001 - it is read like a piece
            if not self._came.done():
                self._came.set_exception(error)
        finally:
            self._ending = True
            await self._close(owner)

    async def _opened(self) -> AsyncIterator[object]:
        stream: Any = self._stream
        if inspect.isawaitable(stream):
            stream = await stream
        if not hasattr(stream, "__aiter__"):
            raise NoStream(_wrong_stream(self._factory, stream))
        opened: AsyncIterator[object] = stream
        return opened

    async def _close(self, owner: Any) -> None:
        # What was never awaited is a coroutine, which has a close as well.
        close = getattr(owner, "aclose", None) or getattr(owner, "close", None)
        if close is None:
            return
        try:
            closing = close()
            if inspect.isawaitable(closing):
                await closing
        except Exception as error:  # noqa: BLE001 - the answer is decided
            log_fault(logger, f"the close of a stream of {self._factory} failed", error)


def _made_by(factory: str) -> Streams:
    module, _, name = factory.partition(":")
    try:
        make: Any = importlib.import_module(module)
        for part in name.split("."):
            make = getattr(make, part)
    except (ImportError, AttributeError) as error:
        raise NoStream(
            f"the factory {factory!r} cannot be imported: {error}; a worker looks where sys.path "
            "pointed when the runtime was made",
            error,
        ) from error
    if not callable(make):
        raise NoStream(f"{factory!r} is a {type(make).__name__}: name what can be called")
    if needed := _needed_by(make):
        raise NoStream(
            f"{factory!r} needs {needed}, and a factory is called without arguments: "
            "give them defaults, or name a function that gives them"
        )
    made = make()
    if not callable(getattr(made, "stream", None)):
        kind = type(made).__name__
        raise NoStream(f"{factory!r} returned a {kind}: return an object with stream(payload)")
    streams: Streams = made
    return streams


def _needed_by(make: Callable[..., Any]) -> str:
    """Return the names of the arguments that a callable cannot do without."""
    try:
        parameters = inspect.signature(make).parameters.values()
    except (TypeError, ValueError):
        return ""  # it does not tell, as some that are written in C
    optional = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return ", ".join(
        each.name
        for each in parameters
        if each.default is inspect.Parameter.empty and each.kind not in optional
    )


def _wrong_stream(factory: str, stream: object) -> str:
    kind = type(stream).__name__
    return f"stream() of {factory!r} returned a {kind}: return an iterator, or an asynchronous one"

"""The I/O thread: one selector over all workers' sockets, and every timer of the runtime.

Other threads give it commands; it answers with messages, through one function and in order. So
what a worker sent before something happened is always told before it.
"""

from __future__ import annotations

import selectors
import threading
import time
from collections.abc import Callable, Hashable
from functools import partial
from math import inf

from tidegate.actors.supervisor import forks
from tidegate.actors.supervisor.commands import Commands
from tidegate.actors.supervisor.timers import Timers
from tidegate.actors.supervisor.workers import Deliver, Workers
from tidegate.actors.supervisor.zygote_link import method_from
from tidegate.errors import ForkedRuntime
from tidegate.protocol.attempts import CancelAttempt, Credit, Ping, StartAttempt, ToWorker
from tidegate.protocol.base import Generation, Token, TurnNumber
from tidegate.protocol.codec import frame_from
from tidegate.protocol.workers import PROVIDERS, ZygoteReady


LEAVE_S = 0.25
KILLED_S = 0.5
_SLEEP_S_MAX = 86_400.0  # a selector takes no number that is much larger


class WorkerIo(threading.Thread):
    """Runs the workers of one runtime.

    A daemon thread, so that a script which never stops it ends all the same, and its workers
    with it. All methods but those of ``Thread`` may be called from any thread, block nobody, and
    are done in the order of the calls.

    Args:
        deliver: called in this thread with what there is to say: the messages of one read of one
            worker, a question, what a timer was given, a ``WorkerLost``. It must not block.
        crashed: called in this thread if it ends by an error, behind the death of the workers.
        turned: called in this thread when all that was there has been delivered and sent.
        preload: modules that workers need, imported once for all: ``package.module`` or
            ``package.module:function`` to call.
        clock: seconds; the instants of timers are on it.
        providers: ``package.module:factory`` of what takes messages in a worker.
        start_method: ``zygote`` or ``exec``; by default ``TIDEGATE_START_METHOD``, else what
            this system can do.

    Raises:
        ConfigurationError: there is no such start method.
    """

    def __init__(  # noqa: PLR0913 - each thing from outside comes in by its name
        self,
        *,
        deliver: Deliver,
        crashed: Callable[[BaseException], None],
        turned: Callable[[], None] | None = None,
        preload: tuple[str, ...] = (),
        clock: Callable[[], float] = time.monotonic,
        providers: str = PROVIDERS,
        start_method: str | None = None,
    ) -> None:
        super().__init__(name="tidegate-io", daemon=True)
        self.forked = False
        self._deliver = deliver
        self._crashed = crashed
        self._turned = turned
        self._clock = clock
        self._providers = providers
        self._stopping = False
        self._alarms = Timers()  # the callers'
        self._timers = Timers()  # for the workers' ends
        method = method_from(start_method)
        with forks.gate:
            self._commands = Commands()
            self._selector = selectors.DefaultSelector()
            self._workers = Workers(
                zygote=method == "zygote",
                preload=preload,
                selector=self._selector,
                timers=self._timers,
                clock=clock,
                deliver=deliver,
            )
            forks.watch(self)
        self._selector.register(
            self._commands.reader, selectors.EVENT_READ, self._commands.read_nudges
        )

    @property
    def zygote(self) -> ZygoteReady | None:
        """What the zygote said when it was ready; None while there is none."""
        return self._workers.starts.facts

    def call(self, command: Callable[[], None]) -> None:
        """Do ``command`` in this thread."""
        self._do(command)

    def spawn(self, generation: Generation, *, providers: str = "") -> None:
        """Start a worker. It can be sent messages at once; a failure is its ``WorkerLost``."""
        self._do(partial(self._workers.spawn, generation, providers or self._providers))

    def send(self, generation: Generation, message: ToWorker) -> None:
        """Send a message in a frame of its own; dropped if the worker is gone.

        Raises:
            ValueError: the message is too long for a frame.
        """
        messages: list[ToWorker] = [message]
        name: Hashable = None
        if isinstance(message, StartAttempt):
            name = ("start", message.token)
        elif isinstance(message, Credit):
            name = ("credit", message.token)
        self._do(partial(self._workers.send, generation, frame_from(messages), name))

    def cancel(self, generation: Generation, turn: TurnNumber, token: Token, ping: int) -> None:
        """Cancel an attempt, ahead of what waits for others, and ping behind it.

        If the attempt's start has not begun to leave, neither is sent, and ``Ended`` (cancelled)
        is delivered in the worker's place.
        """
        messages: list[ToWorker] = [CancelAttempt(turn, token), Ping(ping)]
        self._do(partial(self._workers.cancel, generation, turn, token, frame_from(messages)))

    def ask(self, generation: Generation, question: object) -> None:
        """Deliver ``question`` behind all that the worker had sent by then.

        It is delivered for a worker that is gone too, behind its ``WorkerLost``.
        """
        self._do(partial(self._workers.ask, generation, question))

    def kill(self, generation: Generation, *, dump: bool = False) -> None:
        """Kill a worker; its ``WorkerLost`` comes behind what it had sent.

        Args:
            generation: which.
            dump: whether to log where it is stuck first, which takes 5 ms.
        """
        self._do(partial(self._workers.kill, generation, dump=dump))

    def start_timer(self, name: Hashable, at_s: float, message: object) -> None:
        """Deliver ``message`` at ``at_s``, behind all that workers had sent by then.

        A timer of the same name is replaced.
        """
        self._do(partial(self._start_alarm, name, at_s, lambda: message))

    def start_kill_timer(
        self,
        name: Hashable,
        grace_s: float,
        generation: Generation,
        make_message: Callable[[bool, bool], object],
    ) -> None:
        """Like ``start_timer``, with a look at what the worker does meanwhile.

        Args:
            name: of the timer.
            grace_s: how long from when all that was sent before has left: a host that is late
                with a cancel is no reason to kill.
            generation: whose worker.
            make_message: called in this thread with whether the worker was heard, behind what
                it had sent by the start, and whether it was not because it wanted a processor
                all the while and got none. Either makes it slow, and not stuck.
        """

        def start() -> None:
            # Before the flush: an answer may be here before this thread gets to look for it.
            signs = self._workers.signs(generation)
            self._workers.flush()
            at_s = self._clock() + grace_s
            self._start_alarm(name, at_s, lambda: make_message(*signs()))

        self._do(start)

    def cancel_timer(self, name: Hashable) -> None:
        """Forget a timer; nothing happens if there is none such."""
        self._do(partial(self._alarms.cancel, name))

    def stop(self) -> None:
        """End all workers and this thread, as soon as those killed are gone; ``join`` waits for it.

        Nothing is delivered from the moment this is taken.
        """
        if self.forked or self._stopping:
            return
        self._do(self._note_stop)
        if self.ident is None:
            self._close()  # it was never started

    def run(self) -> None:
        """Serve until stopped; not to be called by others."""
        try:
            self._workers.starts.warm()
            while not self._stopping:
                self._serve()
            self._leave()
        except BaseException as error:  # noqa: BLE001 - the rim: the runtime fails as a whole
            self._fail(error)
        else:
            self._close()

    def after_fork_in_child(self) -> None:
        """Let go of everything: it is the parent's."""
        self.forked = True
        # Closed and not unregistered: the kernel's own list is shared with the parent.
        self._selector.close()
        self._commands.close()
        self._workers.after_fork_in_child()

    def _do(self, command: Callable[[], None]) -> None:
        if self.forked:
            raise ForkedRuntime("this runtime belongs to the parent process")
        self._commands.put(command)

    def _serve(self) -> None:
        for key, mask in self._selector.select(self._sleep_s()):
            key.data(mask)
        self._commands.get_up()
        self._take_commands()
        if min(self._alarms.first_s, self._timers.first_s) <= self._clock():
            self._fire()
        if self._turned is not None:
            self._turned()

    def _sleep_s(self) -> float | None:
        if not self._commands.lie_down():
            return 0.0
        first_s = min(self._alarms.first_s, self._timers.first_s)
        return None if first_s == inf else min(max(0.0, first_s - self._clock()), _SLEEP_S_MAX)

    def _take_commands(self) -> None:
        self._commands.run()
        self._workers.flush()

    def _fire(self) -> None:
        while action := self._timers.pop_due(self._clock()):
            action()
        now_s = self._clock()
        if self._alarms.first_s > now_s or self._stopping:
            return
        # What was in the host before the alarm wins, a command to forget the alarm as well.
        for key, mask in self._selector.select(0):
            key.data(mask)
        self._take_commands()
        while not self._stopping and (alarm := self._alarms.pop_due(now_s)):
            alarm()

    def _start_alarm(self, name: Hashable, at_s: float, message: Callable[[], object]) -> None:
        self._alarms.start(name, at_s, lambda: self._deliver([message()]))

    def _fail(self, error: BaseException) -> None:
        self._workers.deliver = _unheard
        try:
            self._workers.kill_all()
            self._wait_for_ends(KILLED_S)
            self._close()
        finally:
            self._crashed(error)

    def _note_stop(self) -> None:
        self._stopping = True
        self._workers.deliver = _unheard

    def _leave(self) -> None:
        self._workers.leave()
        self._wait_for_ends(LEAVE_S)
        self._workers.leaving.kill()
        self._wait_for_ends(KILLED_S)

    def _wait_for_ends(self, patience_s: float) -> None:
        until_s = time.monotonic() + patience_s
        while self._workers.leaving and (left_s := until_s - time.monotonic()) > 0:
            pause_s = min(left_s, self._timers.first_s - self._clock())
            for key, mask in self._selector.select(max(0.0, pause_s)):
                key.data(mask)
            while action := self._timers.pop_due(self._clock()):
                action()

    def _close(self) -> None:
        with forks.gate:
            self._workers.starts.close()
            self._workers.leaving.close()
            self._selector.close()
            self._commands.close()


def _unheard(_messages: list[object]) -> None:
    """Take what nobody listens to any more."""

"""What happens when somebody presses Ctrl-C, wherever the program is just then."""

import signal
import sys
from functools import partial

import pytest

import tidegate as tg
from tidegate import engine, reading
from tidegate import runtime as runtime_module
from tidegate import turn as turn_module
from tidegate.actors import mailbox
from tidegate.actors.sink import channel, outbox
from tidegate.testing import Answer, End, Lab, chat
from tidegate.testing.eventually import eventually


pytestmark = pytest.mark.usefixtures("nothing_left")

ENDLESS = Answer([chat.text("on and on"), End.HOLD], repeat=True)
HELLO_FOR_EVER = Answer(chat.answer("hello", " world").steps, repeat=True)
PLACES_MAX = 400
CALLED = {
    each.__file__
    for each in (runtime_module, engine, turn_module, reading, channel, outbox, mailbox)
}


class CtrlC:
    """Raises ``KeyboardInterrupt`` in this thread, at the n-th place of ours where one can come.

    The interpreter looks for signals when a function begins and when a built-in one has returned,
    which is just what a profiler is told of.
    """

    def __init__(self, place):
        self._left = place
        self.pressed = False

    def __enter__(self):
        sys.setprofile(self._look)
        return self

    def __exit__(self, kind, *_):
        sys.setprofile(None)
        return kind is KeyboardInterrupt

    def _look(self, frame, event, _):
        if event not in ("call", "c_return") or frame.f_code.co_filename not in CALLED:
            return
        if in_a_finalizer(frame):
            return  # what is raised there goes nowhere
        self._left -= 1
        if self._left == 0:
            self.pressed = True
            sys.setprofile(None)
            raise KeyboardInterrupt


def in_a_finalizer(frame):
    while frame is not None:
        if frame.f_code.co_name == "__del__":
            return True
        frame = frame.f_back
    return False


def at_each_place(call):
    """Run ``call`` again and again, with a Ctrl-C at a later place each time, to the last."""
    for place in range(1, PLACES_MAX):
        with CtrlC(place) as ctrl_c:
            call()
        yield place
        if not ctrl_c.pressed:
            return
    raise AssertionError("there is no end to it")


@pytest.fixture(scope="module")
def runtime():
    with tg.Runtime(workers=1) as runtime:
        yield runtime


@pytest.fixture
def ask(ask):
    """No worker is killed for being slow: those that replace it would look like left behind."""
    return partial(ask, kill_grace_s=30)


@pytest.fixture(autouse=True)
def _known(runtime, pids_of):
    """The runtime's own processes are there before a test, so they are not left behind by it."""
    pids_of(runtime, 2)


@pytest.mark.filterwarnings("ignore:.*dropped while it ran:ResourceWarning")
@pytest.mark.parametrize("called", ["start", "run", "iterate", "text", "result", "interrupt"])
def test_ctrl_c_at_each_place_of_a_call(runtime, ask, called):
    with Lab([HELLO_FOR_EVER]) as lab:
        request = ask(lab)

        def call():
            if called == "run":
                return runtime.run(request)
            turn = runtime.start(request)
            use = {
                "start": lambda: None,
                "iterate": lambda: list(turn),
                "text": lambda: list(turn.text()),
                "result": turn.result,
                "interrupt": turn.interrupt,
            }
            return use[called]()

        places = list(at_each_place(call))

        assert len(places) > 10
        eventually(lambda: runtime.statistics().running == 0)
        assert runtime.run(request).text == "hello world"


def test_event_is_not_lost_by_a_ctrl_c(runtime, ask):
    """The same iterator goes on where it was, unless the event had left it already."""
    with Lab([HELLO_FOR_EVER]) as lab:
        turn = runtime.start(ask(lab))
        turn.result()
        whole = list(turn)

        def call():
            events.extend(iterator)

        events, iterator = [], iter(turn)
        for _ in at_each_place(call):
            offsets = [event.offset for event in events]
            assert offsets == sorted(set(offsets))
            events, iterator = [], iter(turn)
        events.extend(iterator)
        assert events == whole


@pytest.mark.parametrize("place", [1, 6, 12, 20, 30])
def test_ctrl_c_in_stop_leaves_it_to_the_next_stop(ask, place):
    with Lab([ENDLESS]) as lab:
        runtime = tg.Runtime(workers=1)
        turn = runtime.start(ask(lab))
        with CtrlC(place) as ctrl_c:
            runtime.stop()
        assert ctrl_c.pressed

        runtime.stop()

        with pytest.raises(tg.Interrupted, match="runtime stopped"):
            turn.result()


@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")
def test_ctrl_c_in_the_constructor_leaves_nothing():
    made = []
    places = list(at_each_place(lambda: made.append(tg.Runtime(workers=1))))

    assert len(places) > 10
    [runtime] = made
    runtime.stop()


@pytest.mark.parametrize("held", ["channel", "mailbox"])
def test_interrupt_in_a_signal_handler(runtime, ask, held):
    """The signal may come while this very thread is in the middle of taking an event."""
    with Lab([ENDLESS]) as lab:
        turn = runtime.start(ask(lab))
        before = signal.signal(signal.SIGUSR1, lambda *_: turn.interrupt("by a signal"))
        try:
            if held == "channel":
                with turn._channel.lock:
                    signal.raise_signal(signal.SIGUSR1)
            else:
                signal.raise_signal(signal.SIGUSR1)
            with pytest.raises(tg.Interrupted, match="by a signal"):
                turn.result()
        finally:
            signal.signal(signal.SIGUSR1, before)


HEARS = "import signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n"
"""A program that a shell starts in the background ignores Ctrl-C, and so do all that it starts."""

SCRIPT = """
import sys
import tidegate as tg

url, what = sys.argv[1:]
request = tg.Request(tg.Endpoint.chat(url, "key"), {"model": "m", "messages": []})


def say(word):
    print(word, flush=True)


def callback(event):
    if isinstance(event, tg.TextDelta):
        say("here")


with tg.Runtime(workers=1) as runtime:
    if what == "run":
        runtime.run(request, on_event=callback)
    elif what == "stop":
        turn = runtime.start(request)
        next(turn.text())
        say("here")
        runtime.stop(drain_s=600)
    elif what == "start":
        say("here")
        while True:
            runtime.start(request).interrupt()
    else:
        turn = runtime.start(request)
        reading = turn.text()
        next(reading)
        if what == "await":
            import asyncio

            async def main():
                say("here")
                await turn

            asyncio.run(main())
        say("here")
        if what == "iterate":
            next(reading)
        else:
            turn.result()
"""


@pytest.mark.parametrize("what", ["start", "run", "iterate", "result", "await", "stop"])
def test_ctrl_c_ends_a_script(start_host, marked, what):
    with Lab([ENDLESS]) as lab:
        host = start_host(HEARS + SCRIPT, lab.url, what)
        assert host.stdout.readline() == "here\n"

        host.send_signal(signal.SIGINT)

        _, errors = host.communicate(timeout=20)
        assert host.returncode == -signal.SIGINT, errors
        assert errors.rstrip().endswith("KeyboardInterrupt"), errors
        eventually(lambda: not marked())


def test_ctrl_c_while_the_workers_are_being_made(start_host, marked):
    source = "import tidegate as tg\nruntime = tg.Runtime(workers=2)\nprint(flush=True)\ninput()\n"
    host = start_host(HEARS + source)
    host.stdout.readline()

    host.send_signal(signal.SIGINT)

    _, errors = host.communicate(timeout=20)
    assert host.returncode == -signal.SIGINT, errors
    eventually(lambda: not marked())

"""What happens when a part of tidegate itself fails: a machine, an actor, the I/O thread."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import pykka
import pytest

import tidegate as tg
from tidegate.protocol.attempts import Deltas
from tidegate.protocol.base import Seq
from tidegate.protocol.deltas import Text
from tidegate.testing import Answer, End, Lab, chat, gate
from tidegate.testing.eventually import eventually
from tidegate.testing.reading import Reading


pytestmark = pytest.mark.usefixtures("nothing_left")

SAID = "what the model said"
ENDLESS = Answer([chat.text("on and on"), End.HOLD], repeat=True)


def break_the_sink(runtime, turn):
    """Send a delta of the current attempt that is none, which the assembly cannot take."""
    token = runtime._supervisor.supervision.turns[turn.number].token
    runtime._to_sink(Deltas(turn.number, token, Seq(1), (Text(SAID), object())))


def break_the_supervisor(runtime, turn):
    """Send a message about the turn that is none of the supervisor's."""
    token = runtime._supervisor.supervision.turns[turn.number].token
    runtime._to_supervisor(Deltas(turn.number, token, Seq(1), (Text(SAID),)))


@pytest.mark.parametrize("damage", [break_the_sink, break_the_supervisor])
def test_fault_in_a_machine_ends_its_own_turn(ask, caplog, damage):
    doomed = Answer([chat.text("on and on"), End.HOLD])
    spared = Answer([chat.text("a"), gate("broken"), *chat.answer("b").steps])
    with Lab([doomed, spared]) as lab, tg.Runtime(workers=1) as runtime:
        struck = runtime.start(ask(lab))
        reading = Reading(struck)
        reading.until(tg.TextDelta)
        other = runtime.start(ask(lab))
        Reading(other).until(tg.TextDelta)

        damage(runtime, struck)

        terminal = reading.to_end()
        assert isinstance(terminal, tg.TurnFailed)
        assert terminal.error.kind == "internal"
        assert lab.wait_closed(0).how in ("eof", "reset")
        lab.open("broken")
        assert other.result().text == "ab"
        [record] = caplog.records
        assert record.message.startswith(f"turn {struck.number}: ")
        assert "Error at\n" in record.message
        assert SAID not in caplog.text


def stop_all(_runtime):
    pykka.ActorRegistry.stop_all()


def stop_the_sink(runtime):
    runtime._sink.actor_ref.stop()


def stop_the_supervisor(runtime):
    runtime._supervisor.actor_ref.stop()


def crash_the_sink(runtime):
    class Alien:
        """Nothing that anybody knows, and about no turn."""

        turn = property(lambda self: 1 / 0)

    runtime._sink.mailbox.tell([Alien()])


def crash_the_supervisor(runtime):
    runtime._to_supervisor(object())


def crash_the_io_thread(runtime):
    runtime._io._do(lambda: 1 / 0)


ENDS = [
    stop_all,
    stop_the_sink,
    stop_the_supervisor,
    crash_the_sink,
    crash_the_supervisor,
    crash_the_io_thread,
]


@pytest.mark.parametrize("end", ENDS)
def test_end_of_an_actor_fails_the_runtime_as_a_whole(ask, marked, end):
    with Lab([ENDLESS]) as lab, ThreadPoolExecutor(4) as pool:
        runtime = tg.Runtime(workers=1)
        turns = [runtime.start(ask(lab)) for _ in range(4)]
        unread, *read = turns
        readings = [Reading(turn) for turn in read]
        for reading in readings:
            reading.until(tg.TextDelta)

        async def wait():
            return await unread

        waiting = [
            pool.submit(unread.result),
            pool.submit(asyncio.run, wait()),
            pool.submit(readings[0].to_end),
        ]
        eventually(lambda: unread._channel.waiting == 2)

        end(runtime)

        assert [type(each.exception(20)) for each in waiting[:2]] == [tg.InternalError] * 2
        assert isinstance(waiting[2].result(20), tg.TurnFailed)
        for turn, reading in zip(read, readings, strict=True):
            terminal = list(turn)[-1]
            assert isinstance(terminal, tg.TurnFailed)
            assert terminal.error.kind == "internal"
            assert terminal.answer.text == "on and on"
            assert reading.events[-1] is terminal or reading.to_end() is terminal
        with pytest.raises(tg.RuntimeStopped, match="failed as a whole"):
            runtime.start(ask(lab))
        eventually(lambda: not marked())
        eventually(lambda: lab.open_connections_count == 0)
        runtime.stop()
        with pytest.raises(tg.RuntimeStopped):
            runtime.start(ask(lab))


def test_actor_that_ends_while_turns_are_started(ask):
    """Each start either raises or gives a turn that ends."""
    with Lab([ENDLESS]) as lab, tg.Runtime(workers=1) as runtime:
        request = ask(lab)
        begun = threading.Event()

        def keep_starting():
            turns = []
            while True:
                try:
                    turns.append(runtime.start(request))
                except tg.RuntimeStopped:
                    return turns
                if len(turns) == 10:
                    begun.set()

        with ThreadPoolExecutor(2) as pool:
            starting = [pool.submit(keep_starting) for _ in range(2)]
            begun.wait(20)
            runtime._sink.actor_ref.stop()
            turns = [turn for each in starting for turn in each.result(20)]

        for turn in turns:
            with pytest.raises(tg.InternalError):
                turn.result(20)


def test_other_actors_of_the_program_are_left_alone(ask):
    """They may use pykka as well; what fails here does not stop them."""

    class Theirs(pykka.ThreadingActor):
        def on_receive(self, message):
            return message

    theirs = Theirs.start()
    runtime = tg.Runtime(workers=1)
    crash_the_supervisor(runtime)
    eventually(lambda: runtime._state == "failed")
    runtime.stop()

    assert theirs.ask("still there") == "still there"
    theirs.stop()

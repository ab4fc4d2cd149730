"""Custom streams that are read where their turn is waited for, with stalls and interrupts."""

import asyncio
import gc
import importlib
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

import tidegate as tg
from tidegate.lab import Answer, End, Lab, chat, keepalive
from tidegate.testing.eventually import eventually
from tidegate.testing.reading import Reading


GUARD_S = 30
WHERE = [("where",), ("text", "a"), ("finish",)]


@pytest.fixture
def ask(ask_at):
    def make(how, *pieces, **options):
        return ask_at("inline", how, *pieces, **options)

    return make


@pytest.fixture(autouse=True)
def released(_importable):
    """What ``held`` streams wait for; they are let go when the test is over."""
    released = importlib.import_module("lab_streams").released
    released.clear()
    yield released
    released.set()


@pytest.fixture
def in_thread():
    """Run a job in a thread; returns a future."""
    with ThreadPoolExecutor(8) as pool:
        yield pool.submit


def thread_of(answer):
    pid, _, thread = answer.response_id.partition("/")
    assert int(pid) == os.getpid()
    return int(thread)


def as_result(runtime, request):
    return runtime.run(request)


def as_events(runtime, request):
    return [*runtime.start(request)][-1].answer


def as_callback(runtime, request):
    return runtime.run(request, on_event=lambda event: None)


def as_text(runtime, request):
    turn = runtime.start(request)
    assert "".join(turn.text()) == "a"
    return turn.result()


WAYS = [as_result, as_events, as_callback, as_text]


def here(job):
    return job()


def in_nested_pools(job):
    """Every thread of both pools waits for the job, so that none is left to help."""

    def delegate():
        with ThreadPoolExecutor(1) as children:
            return children.submit(job).result(GUARD_S)

    with ThreadPoolExecutor(1) as parents:
        return parents.submit(delegate).result(GUARD_S)


@pytest.mark.parametrize("how", ["told", "told_async", "awaited"])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("run_in", [here, in_nested_pools])
def test_stream_is_read_in_the_thread_that_waits_for_it(runtime, ask, how, way, run_in):
    threads = []

    def job():
        threads.append(threading.get_ident())
        return way(runtime, ask(how, *WHERE))

    assert [thread_of(run_in(job))] == threads


def test_factory_is_called_once_in_each_thread(runtime, ask):
    def twice():
        return [runtime.run(ask("told", *WHERE)).model for _ in range(2)]

    one, other = twice(), in_nested_pools(twice)

    assert len({*one}) == len({*other}) == 1
    assert {*one} != {*other}


def test_thread_that_has_ended_has_its_factory_closed(runtime, ask, notes):
    in_nested_pools(lambda: runtime.run(ask("told", *WHERE)))

    in_nested_pools(lambda: runtime.run(ask("told", *WHERE)))  # a new thread sweeps

    notes.wait("factory closed, client closed: False")


@pytest.mark.parametrize("how", ["told", "told_async"])
def test_coroutine_is_not_blocked_by_the_stream(runtime, ask, how):
    async def main():
        answer = await runtime.arun(ask(how, *WHERE))
        return answer, threading.get_ident()

    answer, thread = asyncio.run(main())

    assert (answer.text, answer.finish) == ("a", "stop")
    assert thread_of(answer) != thread


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("how", ["told", "told_async"])
def test_call_that_blocks_a_running_loop_works_all_the_same(runtime, ask, way, how):
    async def main():
        return way(runtime, ask(how, *WHERE))

    assert asyncio.run(main()).text == "a"


def test_events_come_to_a_coroutine_as_they_are_read(runtime, ask, released):
    async def main():
        turn = runtime.start(ask("held"))
        seen = []
        async for event in turn:
            seen.append(type(event).__name__)
            if isinstance(event, tg.TextDelta):
                released.set()  # it is seen before anything else is read
        return seen

    assert asyncio.run(main()) == [
        "AttemptStarted",
        "TextDelta",
        "TextDelta",
        "TurnCompleted",
    ]


def test_event_is_there_before_the_next_piece_is_read(runtime, ask, released):
    turn = runtime.start(ask("held"))
    reading = Reading(turn)

    reading.until(tg.TextDelta)
    released.set()
    reading.to_end()

    assert reading.texts == ["held", "late"]


@pytest.mark.parametrize("how", ["asynchronous", "interruptible"])
def test_interrupt_from_another_thread_ends_a_read_that_waits(runtime, ask, notes, in_thread, how):
    pings_only = Answer([chat.text("hello"), keepalive(0.05, 10_000), End.HOLD])
    for answer in (pings_only, Answer([chat.text("hello"), End.HOLD])):
        with Lab([answer]) as lab:
            turn = runtime.start(ask(how, url=f"{lab.url}/chat/completions", stale_after_s=60))
            waiting = in_thread(turn.result)
            Reading(turn).until(tg.TextDelta)

            assert turn.interrupt("test interrupt")

            error = waiting.exception(GUARD_S)
            assert isinstance(error, InterruptedError)
            assert "test interrupt" in str(error)
            assert error.answer.text == "hello"
            assert lab.wait_closed(0).how in ("eof", "reset")
    line = "closed" if how == "asynchronous" else "unblocked"
    eventually(lambda: notes.lines == [line, line])


@pytest.mark.parametrize("how", ["asynchronous", "interruptible"])
def test_stalled_stream_is_ended_under_its_reader(runtime, ask, how):
    with Lab([Answer([chat.text("hello"), End.HOLD])]) as lab:
        url = f"{lab.url}/chat/completions"
        request = ask(how, url=url, stale_after_s=0.3, first_event_timeout_s=30)

        with pytest.raises(tg.StreamStalled) as raised:
            in_nested_pools(lambda: runtime.run(request))

        assert raised.value.failure.reason == "idle"
        assert not raised.value.answer.partial
        assert lab.wait_closed(0).how in ("eof", "reset")
        assert len(lab.requests) == 1


def test_stalled_stream_is_read_anew_in_the_same_thread(runtime, ask):
    with Lab([Answer([chat.text("lost"), End.HOLD]), chat.answer("found")]) as lab:
        url = f"{lab.url}/chat/completions"
        request = ask(
            "interruptible", url=url, stale_after_s=1.0, first_event_timeout_s=30, retries=1
        )

        answer = runtime.run(request)

    assert (answer.text, answer.partial) == ("found", False)
    assert [report.outcome for report in answer.attempts] == ["failed", "completed"]
    assert answer.attempts[0].failure.kind == "stalled"


def stall(runtime, ask, budget_s):
    """Run a turn that is ended as stale: when it has, at least so much time has passed."""
    with Lab([Answer([chat.text("a"), End.HOLD])]) as lab:
        request = ask(
            "interruptible",
            url=f"{lab.url}/chat/completions",
            stale_after_s=budget_s,
            first_event_timeout_s=30,
        )
        with pytest.raises(tg.StreamStalled):
            runtime.run(request)


def test_turn_that_nobody_has_come_for_does_not_stall(runtime, ask):
    turn = runtime.start(ask("told", *WHERE, first_event_timeout_s=0.2, stale_after_s=0.2))

    stall(runtime, ask, 0.4)

    assert turn.result().text == "a"


def test_consumer_who_takes_his_time_is_no_stall(runtime, ask):
    request = ask("told", ("text", "a"), *WHERE, first_event_timeout_s=30, stale_after_s=0.2)
    turn = runtime.start(request)
    events = iter(turn)
    for event in events:
        if isinstance(event, tg.TextDelta):
            break

    stall(runtime, ask, 0.6)

    assert [*events][-1].answer.text == "aa"


def test_read_that_cannot_be_ended_holds_up_its_own_thread_alone(
    runtime, ask, notes, in_thread, released
):
    turn = runtime.start(ask("held", kill_grace_s=0.05))
    stuck = in_thread(turn.result)
    notes.wait("holding")

    turn.interrupt("enough")

    # For everybody else the turn has ended at once, and in the end it is forgotten.
    with pytest.raises(tg.Interrupted):
        turn.result()
    eventually(lambda: turn.number not in runtime._channels)
    assert not stuck.done()

    released.set()
    assert isinstance(stuck.exception(GUARD_S), tg.Interrupted)
    notes.wait("closed")
    assert runtime.run(ask("told", *WHERE)).text == "a"


def test_several_readers_all_have_every_event(runtime, ask, in_thread):
    pieces = [("text", str(number)) for number in range(50)]
    turn = runtime.start(ask("told", *pieces, ("finish",)))

    readings = [in_thread(lambda: [*turn]) for _ in range(3)]
    answer = turn.result()

    events = [reading.result(GUARD_S) for reading in readings]
    assert events[0] == events[1] == events[2]
    assert answer.text == "".join(str(number) for number in range(50))


def test_reader_that_leaves_is_followed_by_another(runtime, ask, notes, in_thread, released):
    turn = runtime.start(ask("held"))
    first = Reading(turn)
    first.until(tg.TextDelta)
    second = in_thread(turn.result)
    notes.wait("holding")

    released.set()

    assert second.result(GUARD_S).text == "heldlate"


def test_timeout_is_noticed_between_two_reads(runtime, ask):
    with Lab([Answer([chat.text("a"), keepalive(0.02, 10_000), End.HOLD])]) as lab:
        turn = runtime.start(ask("sync", url=f"{lab.url}/chat/completions"))

        with pytest.raises(TimeoutError, match="has not ended within"):
            turn.result(timeout=0.05)

        assert turn.snapshot().text == "a"
        turn.interrupt()
        assert lab.wait_closed(0).how in ("eof", "reset")


def test_interrupt_between_two_reads_closes_the_stream(runtime, ask, notes):
    turn = runtime.start(ask("told", ("text", "a"), ("text", "b"), ("finish",)))
    reading = Reading(turn)
    reading.until(tg.TextDelta)

    turn.interrupt()

    notes.wait("closed")
    assert isinstance(reading.to_end(), tg.TurnInterrupted)
    assert reading.texts == ["a"]


def test_turn_that_is_dropped_has_its_stream_closed(runtime, ask, notes):
    turn = runtime.start(ask("told", ("text", "a"), ("text", "b"), ("finish",)))
    for event in turn:
        if isinstance(event, tg.TextDelta):
            break

    with pytest.warns(ResourceWarning, match="was dropped while it ran"):  # noqa: PT031 - both
        del turn
        gc.collect()

    notes.wait("closed")


def test_turn_that_is_dropped_before_it_was_read_begins_no_stream(runtime, ask, notes):
    turn = runtime.start(ask("told", *WHERE))
    number = turn.number

    with pytest.warns(ResourceWarning, match="was dropped while it ran"):  # noqa: PT031 - both
        del turn
        gc.collect()

    eventually(lambda: number not in runtime._channels)
    assert notes.lines == []


def test_window_holds_for_who_reads_slowly(runtime, ask, notes):
    turn = runtime.start(ask("endless", window_bytes=4096))

    async def two_events():
        events = aiter(turn)
        return [await anext(events) for _ in range(2)]

    asyncio.run(two_events())
    notes.wait("3")
    turn.interrupt()

    notes.wait("closed")
    assert len(notes.lines) <= 4 + 4 + 1  # the window, what was taken of it, and the end


def test_stream_may_itself_wait_for_a_turn(runtime, ask, monkeypatch):
    """A mixture of providers is a stream of streams, in one and the same thread."""
    mixtures = importlib.import_module("mixtures")
    monkeypatch.setattr(mixtures, "inner", lambda: runtime.run(ask("told", *WHERE)))

    answer = runtime.run(ask("mixture", factory="mixtures:Mixture"))

    assert answer.text == "inner said a"


def test_callback_that_raises_ends_turn_and_stream(runtime, ask, notes):
    def refuse(event):
        if isinstance(event, tg.TextDelta):
            raise KeyError("no")

    with pytest.raises(KeyError):
        runtime.run(ask("told", ("text", "a"), ("text", "b"), ("finish",)), on_event=refuse)

    notes.wait("closed")


def test_ctrl_c_in_a_read_reaches_the_caller(runtime, ask, notes):
    with pytest.raises(KeyboardInterrupt):
        runtime.run(ask("told", ("text", "a"), ("interrupt_key",)))

    notes.wait("closed")


@pytest.mark.parametrize("how", ["told", "told_async"])
@pytest.mark.parametrize("piece", ["leave", "break_out", "interrupt_key"])
def test_what_breaks_out_of_a_read_ends_the_stream(runtime, ask, notes, how, piece):
    turn = runtime.start(ask(how, ("text", "a"), (piece,), ("text", "b")))
    with pytest.raises(BaseException, match=r"3|of all|^$") as caught:
        turn.result()

    assert not isinstance(caught.value, Exception)
    with pytest.raises(tg.StreamTruncated):
        turn.result()
    notes.wait("closed")


def test_stop_ends_a_read_in_another_thread(ask, in_thread):
    with Lab([Answer([chat.text("a"), End.HOLD])]) as lab:
        with tg.Runtime(workers=1) as runtime:
            turn = runtime.start(ask("interruptible", url=f"{lab.url}/chat/completions"))
            waiting = in_thread(turn.result)
            Reading(turn).until(tg.TextDelta)

        assert isinstance(waiting.exception(GUARD_S), tg.Interrupted)
        assert lab.wait_closed(0).how in ("eof", "reset")


def test_stop_closes_what_the_factories_made(ask, notes):
    with tg.Runtime(workers=1) as runtime:
        runtime.run(ask("told", *WHERE))

    assert "factory closed, client closed: False" in notes.lines


SCRIPT = """
import tidegate as tg
from tidegate.custom import Finish

class Streams:
    def stream(self, payload):
        yield "from "
        yield __name__
        yield Finish()

with tg.Runtime(workers=1) as runtime:
    endpoint = tg.Endpoint.custom("__main__:Streams", "inline")
    print(runtime.run(tg.Request(endpoint, {})).text)
"""


def test_factory_may_be_in_the_script_itself():
    ran = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=False, timeout=50
    )

    assert (ran.stdout, ran.stderr) == ("from __main__\n", "")

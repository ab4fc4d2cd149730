"""What happens when the program that uses tidegate makes a mistake, or goes its own way."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

import tidegate as tg
from tidegate.protocol import codec
from tidegate.testing import Answer, End, Lab, blast, chat, gate
from tidegate.testing.eventually import eventually
from tidegate.testing.reading import Reading


pytestmark = pytest.mark.usefixtures("nothing_left")

ENDLESS = Answer([chat.text("on and on"), End.HOLD], repeat=True)


class Oops(Exception):
    """The consumer's own error."""


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


def recursive():
    payload: dict = {"messages": []}
    payload["messages"].append(payload)
    return payload


@pytest.mark.parametrize(
    "payload",
    [
        pytest.param({"messages": [object()]}, id="an object"),
        pytest.param({"temperature": float("nan")}, id="no number"),
        pytest.param({"temperature": float("inf")}, id="an endless number"),
        pytest.param({"user": "\ud800"}, id="half a character"),
        pytest.param(recursive(), id="itself in itself"),
    ],
)
def test_payload_that_cannot_be_encoded(runtime, ask, payload):
    with Lab([]) as lab, pytest.raises(tg.ConfigurationError, match="payload"):
        runtime.start(ask(lab, payload))
    assert runtime.statistics().running == 0


@pytest.mark.parametrize("variable", ["OPENAI_ORG_ID", "OPENAI_PROJECT_ID"])
def test_variable_that_cannot_be_sent_is_named_at_the_start(runtime, ask, monkeypatch, variable):
    with Lab([chat.answer("a")]) as lab:
        with monkeypatch.context() as patch:
            patch.setenv(variable, "caf\udce9")  # a byte that is no UTF-8
            with pytest.raises(tg.ConfigurationError, match=variable):
                runtime.start(ask(lab))

        assert runtime.run(ask(lab)).text == "a"
        assert len(lab.requests) == 1


def test_payload_over_what_a_worker_takes_ends_its_turn_alone(runtime, ask, monkeypatch):
    monkeypatch.setattr(codec, "FRAME_BYTES_MAX", 1 << 20)
    with Lab([chat.answer("a")]) as lab:
        with pytest.raises(tg.BadRequest, match="over 1048576"):
            runtime.run(ask(lab, {"messages": [], "user": "a" * (1 << 20)}))

        assert runtime.run(ask(lab)).text == "a"


def test_limits_may_be_as_long_as_a_number_can_be():
    limits = ("connect_timeout_s", "first_event_timeout_s", "stale_after_s", "alive_timeout_s")
    rests = ("deadline_s", "finish_grace_s", "kill_grace_s", "giveup_cooldown_s")
    counts = ("retries", "stale_giveup", "window_bytes")
    policy = tg.Policy(**dict.fromkeys((*limits, *rests), 1e300), **dict.fromkeys(counts, 1 << 53))
    held = Answer([chat.text("a"), gate("go on"), chat.finish(), chat.done()])
    with Lab([held, chat.answer("b")]) as lab, tg.Runtime(workers=1) as runtime:
        endpoint = tg.Endpoint.chat(lab.url, "test-key")
        turn = runtime.start(tg.Request(endpoint, {"messages": []}, policy=policy))
        Reading(turn).until(tg.TextDelta)
        lab.open("go on")

        assert turn.result().text == "a"
        assert runtime.run(tg.Request(endpoint, {"messages": []}, policy=policy)).text == "b"


def test_payload_that_forbids_streaming(ask):
    with pytest.raises(tg.ConfigurationError, match="stream=False"):
        ask("http://127.0.0.1/v1", {"messages": [], "stream": False})


def test_request_that_is_none(runtime):
    with pytest.raises(tg.ConfigurationError, match="Request"):
        runtime.start({"messages": []})


def test_consumer_that_raises_while_it_iterates(runtime, ask):
    with Lab([ENDLESS]) as lab:

        def consume(turn):
            with turn:
                for event in turn:
                    if isinstance(event, tg.TextDelta):
                        raise Oops

        turn = runtime.start(ask(lab))
        with pytest.raises(Oops):
            consume(turn)

        with pytest.raises(tg.Interrupted, match="left the with block"):
            turn.result()
        assert lab.wait_closed(0).how in ("eof", "reset")


def raise_at_text(event):
    if isinstance(event, tg.TextDelta):
        raise Oops


def reason_of_the_last(runtime, channels):
    """Return the reason in the terminal event of the newest turn."""
    return eventually(channels[runtime.statistics().turns].terminal).reason


@pytest.mark.parametrize("error", [Oops, KeyboardInterrupt, SystemExit])
def test_callback_that_raises(runtime, ask, error):
    channels = {}

    def callback(event):
        channels.update(runtime._channels)
        if isinstance(event, tg.TextDelta):
            raise error

    with Lab([ENDLESS]) as lab:
        with pytest.raises(error):
            runtime.run(ask(lab), on_event=callback)

        assert reason_of_the_last(runtime, channels) == "callback raised"
        assert lab.wait_closed(0).how in ("eof", "reset")


def test_callback_that_raises_in_an_event_loop(runtime, ask):
    channels = {}

    def callback(event):
        channels.update(runtime._channels)
        raise_at_text(event)

    with Lab([ENDLESS]) as lab:
        with pytest.raises(Oops):
            asyncio.run(runtime.arun(ask(lab), on_event=callback))

        assert reason_of_the_last(runtime, channels) == "callback raised"
        assert lab.wait_closed(0).how in ("eof", "reset")


def test_task_that_is_cancelled_ends_its_turn(runtime, ask):
    with Lab([ENDLESS]) as lab:

        async def main():
            asking = asyncio.create_task(runtime.arun(ask(lab)), name="asking")
            await asyncio.to_thread(lab.wait_requests, 1)
            asking.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asking

        asyncio.run(main())
        assert lab.wait_closed(0).how in ("eof", "reset")


def test_consumer_that_never_reads(runtime, ask):
    """It holds up nobody else, and the provider is read no further than the window."""
    much = Answer([blast([chat.text("x" * 1000)], times=20_000), gate("all written"), End.HOLD])
    with Lab([much, chat.answer("another turn")]) as lab:
        unread = runtime.start(ask(lab, deadline_s=1.0))
        lab.wait_requests(1)

        assert runtime.run(ask(lab)).text == "another turn"

        with pytest.raises(TimeoutError):
            lab.reached("all written", timeout=0.2)
        eventually(unread._channel.terminal)
        with pytest.raises(tg.StreamStalled) as raised:
            unread.result()
        assert raised.value.failure.reason == "deadline"
        assert lab.wait_closed(0).how in ("eof", "reset")


def test_turn_that_is_dropped_while_it_runs(runtime, ask):
    with Lab([ENDLESS]) as lab:
        with pytest.warns(ResourceWarning, match="dropped while it ran"):
            runtime.start(ask(lab))

        eventually(lambda: runtime.statistics().running == 0)
        eventually(lambda: lab.open_connections_count == 0)


def test_result_from_several_threads(runtime, ask):
    with Lab([Answer([gate("all wait"), *chat.answer("shared").steps])]) as lab:
        turn = runtime.start(ask(lab))
        with ThreadPoolExecutor(8) as pool:
            waiting = [pool.submit(turn.result) for _ in range(8)]
            eventually(lambda: turn._channel.waiting == 8)
            lab.open("all wait")

            answers = [each.result() for each in waiting]

        assert {answer.text for answer in answers} == {"shared"}
        assert len(set(map(id, answers))) == 1


def test_error_from_several_threads(runtime, ask):
    with Lab([Answer([gate("all wait"), End.CUT])]) as lab:
        turn = runtime.start(ask(lab, retries=0))
        with ThreadPoolExecutor(8) as pool:
            waiting = [pool.submit(turn.result) for _ in range(8)]
            eventually(lambda: turn._channel.waiting == 8)
            lab.open("all wait")

            errors = [each.exception() for each in waiting]

        assert {type(error) for error in errors} == {tg.StreamTruncated}
        assert len(set(map(id, errors))) == 8  # tracebacks of threads do not mix


def test_stop_with_turns_running(ask):
    with Lab([ENDLESS]) as lab:
        runtime = tg.Runtime(workers=1)
        turns = [runtime.start(ask(lab)) for _ in range(20)]
        readings = [Reading(turn) for turn in turns]
        for reading in readings[:10]:
            reading.until(tg.TextDelta)

        runtime.stop()

        for turn, reading in zip(turns, readings, strict=True):
            assert reading.to_end().reason == "runtime stopped"
            with pytest.raises(tg.Interrupted, match="runtime stopped"):
                turn.result()
        with pytest.raises(tg.RuntimeStopped):
            runtime.start(ask(lab))
        runtime.stop()


def test_stop_from_several_threads_and_from_a_callback(ask):
    with Lab([ENDLESS]) as lab, ThreadPoolExecutor(4) as pool:
        runtime = tg.Runtime(workers=1)
        stopped = []
        together = threading.Barrier(4)

        def stop():
            together.wait()
            runtime.stop()
            stopped.append(runtime._io.is_alive())

        def callback(event):
            if isinstance(event, tg.TextDelta):
                stop()

        others = [pool.submit(stop) for _ in range(3)]
        with pytest.raises(tg.Interrupted, match="runtime stopped"):
            runtime.run(ask(lab), on_event=callback)

        for other in others:
            other.result()
        assert stopped == [False] * 4


def test_stop_in_a_callback_in_an_event_loop(ask):
    with Lab([ENDLESS]) as lab:

        async def main():
            async with tg.Runtime(workers=1) as runtime:
                await runtime.arun(ask(lab), lambda event: runtime.stop())

        with pytest.raises(tg.Interrupted, match="runtime stopped"):
            asyncio.run(main())


def test_stop_waits_for_what_is_nearly_done(ask):
    with Lab([Answer([chat.text("a"), gate("stopping"), *chat.answer("b").steps])]) as lab:
        runtime = tg.Runtime(workers=1)
        turn = runtime.start(ask(lab))
        Reading(turn).until(tg.TextDelta)
        stopping = threading.Thread(target=runtime.stop, kwargs={"drain_s": 30})
        stopping.start()
        eventually(lambda: runtime._state == "stopping")
        lab.open("stopping")
        stopping.join()

        assert turn.result().text == "ab"

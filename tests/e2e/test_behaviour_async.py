"""Turns and runtimes in coroutines: the same as in threads, without blocking the loop."""

import asyncio

import pytest

import tidegate as tg
from tests.e2e.scripts import ENDLESS, HELD, LEFT, in_threads
from tidegate.lab import Answer, Lab, chat
from tidegate.testing.eventually import eventually
from tidegate.testing.warm import warm


@pytest.fixture(scope="module")
def runtime():
    with tg.Runtime(workers=1) as runtime:
        warm(runtime, 1)
        yield runtime


def test_events_and_answer(runtime, ask):
    async def main(lab):
        turn = runtime.start(ask(lab))
        events = [event async for event in turn]
        return events, await turn, await turn

    with Lab([chat.answer("Hel", "lo")]) as lab:
        events, answer, again = asyncio.run(main(lab))

    assert [type(event) for event in events] == [
        tg.AttemptStarted,
        tg.TextDelta,
        tg.TextDelta,
        tg.TurnCompleted,
    ]
    assert answer == again == events[-1].answer


def test_text(runtime, ask):
    async def main(lab):
        return [piece async for piece in runtime.start(ask(lab)).text()]

    with Lab([chat.answer("Hel", "lo")]) as lab:
        assert asyncio.run(main(lab)) == ["Hel", "lo"]


def test_arun(runtime, ask):
    async def main(lab):
        heard = []
        return await runtime.arun(ask(lab), heard.append), heard

    with Lab([chat.answer("Hel", "lo")]) as lab:
        answer, heard = asyncio.run(main(lab))

    assert answer.text == "Hello"
    assert isinstance(heard[-1], tg.TurnCompleted)


def test_many_at_once(runtime, ask):
    async def main(lab):
        return await asyncio.gather(*(runtime.arun(ask(lab)) for _ in range(50)))

    with Lab([Answer(chat.answer("Hello").steps, repeat=True)]) as lab:
        assert [answer.text for answer in asyncio.run(main(lab))] == ["Hello"] * 50


def test_loop_goes_on_while_a_turn_waits(runtime, ask):
    async def main(lab):
        turn = runtime.start(ask(lab))
        reading = asyncio.ensure_future(anext(turn.text()))
        assert await reading == "Hel"
        answer = asyncio.ensure_future(runtime_answer(turn))
        await asyncio.to_thread(lab.reached, "go on")
        assert not answer.done()
        lab.open("go on")
        return await answer

    async def runtime_answer(turn):
        return await turn

    with Lab([HELD]) as lab:
        assert asyncio.run(main(lab)).text == "Hello"


def test_ending_the_wait_does_not_end_the_turn(runtime, ask):
    async def main(lab):
        turn = runtime.start(ask(lab))
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(wait_for(turn), 0.01)
        lab.open("go on")
        return await turn

    async def wait_for(turn):
        return await turn

    with Lab([HELD]) as lab:
        assert asyncio.run(main(lab)).text == "Hello"


def test_failure_is_raised(runtime, ask):
    with Lab([chat.error_answer(401, "no")]) as lab, pytest.raises(tg.AuthRejected):
        asyncio.run(runtime.arun(ask(lab)))


def test_cancelled_arun_interrupts(runtime, ask):
    async def main(lab):
        running = asyncio.ensure_future(runtime.arun(ask(lab)))
        await asyncio.to_thread(lab.wait_requests, 1)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    with Lab([ENDLESS]) as lab:
        asyncio.run(main(lab))
        assert lab.wait_closed(0).how in LEFT


def test_callback_that_raises_interrupts(runtime, ask):
    def stop(_event):
        raise LookupError("from the callback")

    with Lab([ENDLESS]) as lab:
        with pytest.raises(LookupError, match="from the callback"):
            asyncio.run(runtime.arun(ask(lab), stop))

        assert eventually(lambda: runtime.statistics().running == 0)


def test_leaving_async_with_interrupts(runtime, ask):
    async def main(lab):
        async with runtime.start(ask(lab)) as turn:
            assert await anext(turn.text()) == "so far"
        with pytest.raises(tg.Interrupted):
            await turn

    with Lab([ENDLESS]) as lab:
        asyncio.run(main(lab))
        assert lab.wait_closed(0).how in LEFT


def test_one_turn_serves_several_loops_and_threads(runtime, ask):
    with Lab([HELD]) as lab:
        turn = runtime.start(ask(lab))
        lab.open("go on")

        async def wait():
            return await turn

        answers = in_threads(3, lambda: asyncio.run(wait()))
        assert [answer.text for answer in (*answers, turn.result())] == ["Hello"] * 4


def test_runtime_is_a_context_manager(ask):
    async def main(lab):
        async with tg.Runtime(workers=1) as runtime:
            turn = runtime.start(ask(lab))
            assert await anext(turn.text()) == "so far"
        return runtime, turn

    with Lab([ENDLESS]) as lab:
        runtime, turn = asyncio.run(main(lab))

        with pytest.raises(tg.Interrupted, match="runtime stopped"):
            turn.result()
        with pytest.raises(tg.RuntimeStopped):
            runtime.start(ask(lab))

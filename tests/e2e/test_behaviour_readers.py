"""A reader that is closed while somebody waits in it: he comes to the end, and nobody else does."""

import asyncio
import threading

import pytest

import tidegate as tg
from tests.e2e.scripts import GUARD_S
from tidegate.lab import Answer, Lab, chat, gate
from tidegate.testing.eventually import eventually
from tidegate.testing.reading import Reading


TWO_STEPS = [chat.text("Hel"), gate("go on"), chat.text("lo"), chat.finish(), chat.done()]


@pytest.fixture(scope="module")
def runtime():
    with tg.Runtime(workers=1) as runtime:
        yield runtime


@pytest.fixture
def waits():
    """Say whether so many readers of a turn have nothing to take."""
    return lambda turn, count: eventually(lambda: len(turn._channel._wakers) == count)


def texts_of(events):
    return [event.text for event in events if isinstance(event, tg.TextDelta)]


def test_thread_that_waits_comes_to_the_end(runtime, ask, waits):
    with Lab([Answer(TWO_STEPS)]) as lab, runtime.start(ask(lab)) as turn:
        reader, events = iter(turn), []
        thread = threading.Thread(target=lambda: events.extend(reader))
        thread.start()
        lab.reached("go on")
        eventually(lambda: texts_of(events) == ["Hel"])
        waits(turn, 1)
        reader.close()
        thread.join(GUARD_S)

        assert not thread.is_alive()
        assert list(reader) == []
        lab.open("go on")
        assert turn.result().text == "Hello"


def test_task_that_waits_comes_to_the_end(runtime, ask):
    async def main(lab):
        async with runtime.start(ask(lab)) as turn:
            reader, taken, events = aiter(turn), asyncio.Event(), []

            async def read():
                async for event in reader:
                    events.append(event)
                    if isinstance(event, tg.TextDelta):
                        taken.set()

            task = asyncio.create_task(read())
            await taken.wait()
            await reader.aclose()
            await task
            lab.open("go on")
            return texts_of(events), await turn

    with Lab([Answer(TWO_STEPS)]) as lab:
        texts, answer = asyncio.run(main(lab))

    assert texts == ["Hel"]
    assert answer.text == "Hello"


def test_text_reader_that_is_closed_elsewhere_comes_to_the_end(runtime, ask, waits):
    with Lab([Answer(TWO_STEPS)]) as lab, runtime.start(ask(lab)) as turn:
        reader, texts = turn.text(), []
        thread = threading.Thread(target=lambda: texts.extend(reader))
        thread.start()
        eventually(lambda: texts == ["Hel"])
        waits(turn, 1)
        reader.close()
        thread.join(GUARD_S)

        assert not thread.is_alive()
        assert texts == ["Hel"]


def test_other_readers_wait_on(runtime, ask, waits):
    with Lab([Answer(TWO_STEPS)]) as lab, runtime.start(ask(lab)) as turn:
        readers, seen = [iter(turn), iter(turn)], [[], []]
        threads = [
            threading.Thread(target=events.extend, args=(reader,))
            for reader, events in zip(readers, seen, strict=True)
        ]
        for thread in threads:
            thread.start()
        eventually(lambda: [texts_of(events) for events in seen] == [["Hel"], ["Hel"]])
        waits(turn, 2)
        readers[0].close()
        threads[0].join(GUARD_S)
        late = Reading(turn)  # has no number of one that was closed, and so none of its events
        lab.open("go on")
        threads[1].join(GUARD_S)
        late.to_end()

        assert [texts_of(events) for events in seen] == [["Hel"], ["Hel", "lo"]]
        assert late.texts == ["Hel", "lo"]

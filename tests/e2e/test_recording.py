"""A runtime whose host writes each event before anybody can take it."""

import threading
from collections import deque

import pytest

import tidegate as tg
from tidegate.actors.sink.channel import Record
from tidegate.engine import Engine, Recording
from tidegate.lab import Answer, End, Lab, chat, messages
from tidegate.protocol.deltas import Block
from tidegate.runtime import Runtime
from tidegate.testing.eventually import eventually


class Recorder:
    """Writes when it is told to, in order."""

    def __init__(self):
        self.written = {}
        self.held = threading.Event()
        self._queue = deque()

    def record(self, turn_id, new, done):
        self._queue.append((turn_id, new, done))

    def commit(self):
        while self._queue:
            turn_id, new, done = self._queue.popleft()
            log = self.written.setdefault(turn_id, [])
            del log[new.first :]
            log += new.events
            done()

    def has_end(self):
        return any(new.events and hasattr(new.events[-1], "answer") for _, new, _ in self._queue)


class Recorded(Runtime):
    def __init__(self, record: Record, newest_token=0):
        Engine.__init__(
            self, 1, None, (), None, recording=Recording(record, newest_token=newest_token)
        )


@pytest.fixture
def recorder():
    return Recorder()


@pytest.fixture
def runtime(recorder):
    runtime = Recorded(recorder.record, 7 << 32)
    done = threading.Event()

    def commit_on():
        while not done.wait(0.01):
            recorder.commit()

    yield runtime
    thread = threading.Thread(target=commit_on)
    thread.start()
    try:
        runtime.stop()
    finally:
        done.set()
        thread.join()


def never():
    """Be told, and do nothing."""


def test_nothing_is_taken_and_no_result_returned_before_it_is_written(runtime, recorder, ask):
    with Lab([chat.answer("Hello")]) as lab:
        turn = runtime.start(ask(lab))
        feed = turn._feed()
        eventually(recorder.has_end)

        assert feed.take(never) == []
        with pytest.raises(TimeoutError):
            turn.result(timeout=0.01)

        recorder.commit()

        events = feed.take(never)
        assert events == recorder.written[turn.id]
        assert feed.drained
        assert turn.result().text == "Hello"


def test_recorder_is_told_when_a_step_is_over(ask):
    handed = []
    calls = []

    class Told(Runtime):
        def __init__(self):
            recording = Recording(
                lambda _turn, _new, done: (handed.append(done), calls.append("record")),
                lambda: calls.append("over"),
            )
            Engine.__init__(self, 1, None, (), None, recording=recording)

    with Lab([chat.answer("Hello", "there")]) as lab, Told() as runtime:
        turn = runtime.start(ask(lab))
        eventually(lambda: turn._channel.outbox.closed)
        eventually(lambda: calls[-1] == "over")
        for done in tuple(handed):
            done()
        assert turn.result(10).text == "Hellothere"

    assert "record" in calls
    # What is handed over is never the last thing that is heard of.
    assert calls[-1] == "over"


def test_tokens_go_on_where_the_host_says(runtime, recorder, ask):
    with Lab([chat.answer("Hello")]) as lab:
        turn = runtime.start(ask(lab))
        eventually(recorder.has_end)
        recorder.commit()

        assert turn.result().attempts[0].token == (7 << 32) + 1


def test_turn_has_the_name_that_its_host_gives(runtime, recorder, ask):
    prepared = []
    with Lab([chat.answer("Hello")]) as lab:
        turn = runtime._begin(ask(lab), turn_id="turn_of_mine", prepare=prepared.append)
        assert prepared == [turn]
        assert turn.id == "turn_of_mine"
        eventually(recorder.has_end)
        recorder.commit()

    assert {event.turn_id for event in recorder.written["turn_of_mine"]} == {"turn_of_mine"}


def test_waker_comes_when_there_is_more(runtime, recorder, ask):
    woken = threading.Event()
    with Lab([chat.answer("Hello")]) as lab:
        turn = runtime.start(ask(lab))
        feed = turn._feed()
        assert feed.take(woken.set) == []
        eventually(recorder.has_end)
        assert not woken.is_set()

        recorder.commit()

        assert woken.wait(5)
        assert [type(event) for event in feed.take(never)][-1] is tg.TurnCompleted


def test_waker_that_is_left_again_is_called_once(runtime, recorder, ask):
    woken = []

    def wake():
        woken.append(len(woken))

    with Lab([chat.answer("Hello")]) as lab:
        feed = runtime.start(ask(lab))._feed()
        assert feed.take(wake) == []
        feed.wait(wake)
        assert feed.take(wake) == []
        eventually(recorder.has_end)

        recorder.commit()

        assert woken == [0]


def test_feed_begins_at_its_offset_and_ends_when_closed(runtime, recorder, ask):
    with Lab([chat.answer("Hello", "there")]) as lab:
        turn = runtime.start(ask(lab))
        eventually(recorder.has_end)
        recorder.commit()
        written = recorder.written[turn.id]

        assert turn._feed(2).take(never) == written[2:]
        feed = turn._feed()
        feed.close()
        assert feed.drained
        assert feed.take(never) == []


def test_feed_has_the_blocks_of_a_wire(runtime, recorder):
    with Lab([messages.answer("Hello")]) as lab:
        endpoint = tg.Endpoint.messages(lab.url.removesuffix("/v1"), "test-key")
        payload = {
            "model": "test-model",
            "max_tokens": 9,
            "messages": [{"role": "user", "content": "Hello"}],
        }
        turn = runtime.start(tg.Request(endpoint, payload))
        eventually(recorder.has_end)
        recorder.commit()

        items = turn._feed().take(never)

    blocks = [item for item in items if isinstance(item, Block)]
    assert blocks
    assert [item for item in items if not isinstance(item, Block)] == recorder.written[turn.id]


@pytest.mark.parametrize("_round", range(20))
def test_callback_of_run_is_there_before_anything_can_happen(ask, runtime_of_its_own, _round):
    with Lab([Answer([chat.text("so far"), End.CUT])]) as lab:
        answer = runtime_of_its_own.run(ask(lab, retries=0), lambda event: None)

    assert (answer.text, answer.partial) == ("so far", True)


@pytest.fixture(scope="module")
def runtime_of_its_own():
    with tg.Runtime(workers=1) as runtime:
        yield runtime

"""Observers see every attempt whole, and whatever they do nothing happens to a turn."""

import threading

import pytest
from openai.types.chat import ChatCompletion

import tidegate as tg
from tests.e2e.scripts import GUARD_S
from tidegate.lab import Answer, End, Lab, chat, gate, messages
from tidegate.testing.eventually import eventually


class Notes(tg.Observer):
    """Keeps what it is told, by attempt."""

    def __init__(self):
        self.began, self.chunks, self.ends = [], [], []

    def started(self, turn_id, attempt):
        self.began.append((turn_id, attempt.number))

    def chunk(self, turn_id, attempt, chunk):
        self.chunks.append((attempt, chunk))

    def ended(self, turn_id, attempt, response):
        self.ends.append((attempt, response))

    def texts(self, attempt):
        return [
            chunk["text"]
            for number, chunk in self.chunks
            if number == attempt and chunk["type"] == "text.delta"
        ]


class Stuck(tg.Observer):
    """Does not return from what it is told first until it is let go."""

    def __init__(self):
        self.at_work, self.go = threading.Event(), threading.Event()

    def started(self, turn_id, attempt):
        self.at_work.set()
        self.go.wait()


class Raising(tg.Observer):
    def started(self, turn_id, attempt):
        raise RuntimeError("started")

    def chunk(self, turn_id, attempt, chunk):
        chunk.clear()  # it is the observer's own
        raise KeyboardInterrupt

    def ended(self, turn_id, attempt, response):
        raise SystemExit(3)


@pytest.fixture
def stuck():
    observer = Stuck()
    yield observer
    observer.go.set()


def test_each_attempt_is_seen_whole(ask):
    notes = Notes()
    cut = Answer([chat.text("Hel"), gate("cut"), End.CUT])
    call = [
        chat.tool(0, id="call_1", name="search", arguments='{"q":'),
        chat.tool(0, arguments='"hello"}'),
    ]
    whole = Answer([*call, chat.finish("tool_calls"), chat.usage(3, 2), chat.done()])
    with Lab([cut, whole]) as lab, tg.Runtime(workers=1, observers=[notes]) as runtime:
        turn = runtime.start(ask(lab, after_visible_text="restart"))
        assert next(turn.text()) == "Hel"
        lab.open("cut")
        answer = turn.result()

    assert notes.began == [(turn.id, 1), (turn.id, 2)]
    assert (notes.texts(1), notes.texts(2)) == (["Hel"], [])
    pieces = [chunk for number, chunk in notes.chunks if number == 2]
    assert [piece["type"] for piece in pieces] == ["tool_call.delta"] * 2 + ["usage.reported"]
    (first, cut_short), (second, response) = notes.ends
    assert (first.outcome, first.failure.kind) == ("failed", "truncated")
    assert cut_short["choices"][0]["message"]["content"] == "Hel"
    assert second == answer.attempts[1]
    assert response == answer.native()
    [seen] = ChatCompletion.model_validate(response).choices[0].message.tool_calls
    assert (seen.function.name, seen.function.arguments) == ("search", '{"q":"hello"}')


def test_attempt_that_brought_nothing_has_no_response(ask):
    notes = Notes()
    with (
        Lab([chat.error_answer(401, "no")]) as lab,
        tg.Runtime(workers=1, observers=[notes]) as runtime,
        pytest.raises(tg.AuthRejected),
    ):
        runtime.run(ask(lab))

    [(report, response)] = notes.ends
    assert (report.outcome, report.failure.kind, response) == ("failed", "auth", None)


def test_interrupted_attempt_has_what_came(ask):
    notes = Notes()
    held = Answer([chat.text("so far"), End.HOLD])
    with Lab([held]) as lab, tg.Runtime(workers=1, observers=[notes]) as runtime:
        turn = runtime.start(ask(lab))
        assert next(turn.text()) == "so far"
        turn.interrupt("enough")

    [(report, response)] = notes.ends
    assert report.outcome == "interrupted"
    assert response["choices"][0]["message"]["content"] == "so far"


def test_what_is_seen_to_begin_is_seen_to_end_however_soon_it_is_interrupted(ask):
    notes = Notes()
    with Lab() as lab, tg.Runtime(workers=1, observers=[notes]) as runtime:
        for _ in range(20):
            runtime.start(ask(lab)).interrupt()

    ended = {report.token for report, _ in notes.ends}
    assert len(ended) == len(notes.ends) == len(notes.began)


def test_chunks_of_another_wire_have_its_structure():
    notes = Notes()
    answer = messages.answer("Hel", "lo")
    with Lab([answer]) as lab, tg.Runtime(workers=1, observers=[notes]) as runtime:
        payload = {
            "model": "m",
            "max_tokens": 9,
            "messages": [{"role": "user", "content": "Hello"}],
        }
        whole = runtime.run(tg.Request(tg.Endpoint.messages(lab.base, "test-key"), payload))

    assert notes.texts(1) == ["Hel", "lo"]
    assert "block" in {chunk["type"] for _, chunk in notes.chunks}
    assert notes.ends[0][1] == whole.native()


def test_observers_that_raise_change_nothing(ask):
    notes = Notes()
    observers = [Raising(), notes]
    with Lab([chat.answer("Hel", "lo")]) as lab, tg.Runtime(observers=observers) as runtime:
        assert runtime.run(ask(lab)).text == "Hello"
        eventually(lambda: notes.ends and runtime.statistics().observers_errors == 4)

    assert notes.texts(1) == ["Hel", "lo"]


def test_observer_that_never_returns_stops_nothing(ask, stuck):
    notes = Notes()
    runtime = tg.Runtime(workers=1, observers=[stuck, notes])
    with Lab([chat.answer("Hel", "lo"), Answer([chat.text("so far"), End.HOLD])]) as lab, runtime:
        assert runtime.run(ask(lab)).text == "Hello"
        assert stuck.at_work.wait(GUARD_S)
        turn = runtime.start(ask(lab))
        assert next(turn.text()) == "so far"
        turn.interrupt()
        with pytest.raises(tg.Interrupted):
            turn.result(GUARD_S)

    # Leaving the block has stopped the runtime, though the observer still stands where it stood.
    assert not stuck.go.is_set()
    assert [report.outcome for report, _ in notes.ends] == ["completed", "interrupted"]


def test_what_an_observer_misses_is_counted(ask, stuck):
    words = ["w" * (1 << 20)] * 12
    with Lab([chat.answer(*words)]) as lab, tg.Runtime(workers=1, observers=[stuck]) as runtime:
        answer = runtime.run(ask(lab))
        dropped = runtime.statistics().observers_dropped

    assert answer.text == "".join(words)
    assert dropped >= 4
    assert runtime.statistics().observers_errors == 0


def test_without_observers_there_is_no_thread_for_them(ask):
    def of_observers():
        return [each.name for each in threading.enumerate() if each.name.startswith("tidegate-obs")]

    with Lab([chat.answer("a")] * 2) as lab:
        with tg.Runtime(workers=1) as runtime:
            runtime.run(ask(lab))
            assert of_observers() == []
        with tg.Runtime(workers=1, observers=[Notes()]) as runtime:
            runtime.run(ask(lab))
            assert of_observers() == ["tidegate-observer-Notes"]
    assert of_observers() == []


def test_script_that_forgets_stop_ends_though_its_observer_does_not(run_host):
    source = """
import sys, threading
import tidegate as tg
from tidegate.lab import Lab, chat

class Stuck(tg.Observer):
    def started(self, turn_id, attempt):
        threading.Event().wait()

lab = Lab([chat.answer("Hello")])
lab.start()
runtime = tg.Runtime(workers=1, observers=[Stuck()])
payload = {"messages": [{"role": "user", "content": "Hi"}]}
print(runtime.run(tg.Request(tg.Endpoint.chat(lab.url, "k"), payload)).text)
"""
    assert run_host(source) == (0, "Hello\n", "")

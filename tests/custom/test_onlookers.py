"""Who looks on at custom streams: observers see them like any other, and a capture has no wire."""

import threading

import pytest

import tidegate as tg
from tidegate.lab import Answer, End, Lab, chat
from tidegate.testing.eventually import eventually
from tidegate.testing.reading import Reading


class Notes(tg.Observer):
    """Keeps what it is told, and in which thread."""

    def __init__(self):
        self.began, self.chunks, self.ends, self.threads = [], [], [], set()

    def started(self, turn_id, attempt):
        self.threads.add(threading.current_thread().name)
        self.began.append((turn_id, attempt.number))

    def chunk(self, turn_id, attempt, chunk):
        self.chunks.append((attempt, chunk))

    def ended(self, turn_id, attempt, response):
        self.ends.append((attempt, response))

    def kinds(self, attempt):
        return [chunk["type"] for number, chunk in self.chunks if number == attempt]


class Raising(tg.Observer):
    def started(self, turn_id, attempt):
        raise RuntimeError("started")

    def chunk(self, turn_id, attempt, chunk):
        raise RuntimeError("chunk")

    def ended(self, turn_id, attempt, response):
        raise RuntimeError("ended")


@pytest.fixture(params=["worker", "inline"])
def ask(request, ask_at):
    def make(how, *pieces, **options):
        return ask_at(request.param, how, *pieces, **options)

    return make


PIECES = [
    ("response", "id_1", "model_1"),
    ("reasoning", "hm"),
    ("text", "Hello"),
    ("tool", 0, "call_1", "search", '{"q": 1}'),
    ("usage", 3, 2),
    ("finish", "tool_calls"),
]
KINDS = ["reasoning.delta", "text.delta", "tool_call.delta", "usage.reported"]


def test_each_piece_is_seen_and_the_end_with_its_figures(ask):
    notes = Notes()
    with tg.Runtime(workers=1, observers=[notes]) as runtime:
        turn = runtime.start(ask("told", *PIECES))
        answer = turn.result()

    assert notes.began == [(turn.id, 1)]
    assert notes.kinds(1) == KINDS
    [(report, response)] = notes.ends
    assert (report, response) == (answer.attempts[0], None)  # the wire has no form of its own
    assert notes.threads == {"tidegate-observer-Notes"}


def test_attempt_that_fails_and_the_one_behind_it_are_seen(ask):
    notes = Notes()
    with (
        Lab([Answer([chat.text("lost"), End.CUT]), chat.answer("found")]) as lab,
        tg.Runtime(workers=1, observers=[notes]) as runtime,
    ):
        url = f"{lab.url}/chat/completions"
        answer = runtime.run(ask("sync", url=url, retries=1))

    assert answer.text == "found"
    assert [(report.number, report.outcome) for report, _ in notes.ends] == [
        (1, "failed"),
        (2, "completed"),
    ]
    assert [chunk["text"] for _, chunk in notes.chunks if "text" in chunk] == ["lost", "found"]


def test_interrupted_stream_is_seen_to_its_end(ask):
    notes = Notes()
    with (
        Lab([Answer([chat.text("a"), End.HOLD])]) as lab,
        tg.Runtime(workers=1, observers=[notes]) as runtime,
    ):
        turn = runtime.start(ask("interruptible", url=f"{lab.url}/chat/completions"))
        Reading(turn).until(tg.TextDelta)
        turn.interrupt("enough")
        eventually(lambda: notes.ends)

    [(report, _)] = notes.ends
    assert report.outcome == "interrupted"
    assert notes.kinds(1) == ["text.delta"]


def test_observer_that_raises_does_no_harm(ask):
    with tg.Runtime(workers=1, observers=[Raising()]) as runtime:
        answer = runtime.run(ask("told", *PIECES))
        eventually(lambda: runtime.statistics().observers_errors == 2 + len(KINDS))

    assert (answer.text, answer.finish) == ("Hello", "tool_calls")


def test_capture_has_nothing_of_a_stream_whose_sockets_are_its_own(ask, tmp_path):
    with tg.Runtime(workers=1, capture=tmp_path / "captures") as runtime:
        answer = runtime.run(ask("told", *PIECES))
        with Lab([chat.answer("a")]) as lab:
            request = tg.Request(tg.Endpoint.chat(lab.url, "key"), {"model": "m", "messages": []})
            turn = runtime.start(request)
            turn.result()

    assert answer.text == "Hello"
    [file] = (tmp_path / "captures").iterdir()
    assert file.name == f"{turn.id}-01.jsonl"

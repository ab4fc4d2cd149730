"""What was captured plays again: the same answer, the same failure, on every wire."""

import json
import stat

import pytest

import tidegate as tg
from tests.e2e.scripts import GUARD_S, refusal
from tidegate.lab import (
    Answer,
    End,
    Lab,
    chat,
    converse,
    gate,
    messages,
    raw,
    responses,
    wait,
    zipped,
)
from tidegate.protocol.captures import VERSION
from tidegate.testing.eventually import eventually


KEY = "sk-capture-0123456789"
NOW = float("inf")
PROMPT = {"model": "m", "messages": [{"role": "user", "content": "Hello"}]}
CALLS = [
    chat.tool(0, id="call_1", name="clock", arguments="{}"),
    chat.tool(1, id="call_2", name="tide", arguments='{"at":'),
    chat.tool(1, arguments='"Wyk"}'),
]
SILENT = {"stale_after_s": 0.3, "first_event_timeout_s": 0.3}

CHAT = {
    "text": chat.answer("Hel", "lo é", steps=[chat.usage(3, 2)]),
    "tools": Answer([chat.reasoning("hm"), *CALLS, chat.finish("tool_calls"), chat.done()]),
    "cut": Answer([chat.text("so far"), End.CUT]),
    "cut in a call": Answer([*CALLS[:2], End.CUT]),
    "cut in a character": Answer([chat.text("so far"), raw(b'data: "\xc3'), End.CUT]),
    "reset": Answer([chat.text("so far"), gate("taken"), End.RESET]),
    "ends without evidence": Answer([chat.text("so far"), End.EOF]),
    "stall": Answer([chat.text("so far"), End.HOLD]),
    "no response": Answer([End.RESET], headers={}, headers_with_first_frame=True),
    "silence": Answer([End.HOLD], headers={}, headers_with_first_frame=True),
    "refused": refusal(401, f"Incorrect API key provided: {KEY}", code="invalid_api_key"),
    "length": Answer.json(chat.completion("whole", tokens=(1, 2))),
    "cut before its length": Answer(
        [raw(b'{"choices":'), End.CUT],
        headers={"content-type": "application/json", "content-length": "90"},
    ),
    "gzip": Answer(
        [*(zipped(step.data) for step in chat.answer("packed").steps[:-1])],
        headers={"content-type": "text/event-stream", "content-encoding": "gzip"},
    ),
}

HOW = {
    "cut": "cut",
    "cut in a call": "cut",
    "cut in a character": "cut",
    "reset": "reset",
    "stall": "left",
    "no response": "failed",
    "silence": "left",
    "cut before its length": "cut",
}

WIRES = {
    "responses": (
        responses.answer("Hel", "lo"),
        lambda lab: tg.Endpoint.responses(lab.url, KEY),
        {"model": "m", "input": "Hello"},
    ),
    "messages": (
        messages.answer("Hel", "lo"),
        lambda lab: tg.Endpoint.messages(lab.base, KEY),
        {**PROMPT, "max_tokens": 9},
    ),
    "converse": (
        converse.answer("Hel", "lo"),
        lambda lab: tg.Endpoint.converse("us-east-1", lab.base, api_key=KEY),
        {"modelId": "m", "messages": [{"role": "user", "content": [{"text": "Hello"}]}]},
    ),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("captures")


@pytest.fixture(scope="module")
def runtime(folder):
    with tg.Runtime(workers=1, capture=folder) as runtime:
        yield runtime


@pytest.fixture
def files_of(folder):
    """Return the files of a turn, once all have got their names."""

    def find(turn_id, count=1):
        named = lambda: sorted(folder.glob(f"{turn_id}-*.jsonl"))  # noqa: E731
        return eventually(lambda: len(named()) == count and named())

    return find


def request_to(lab, **policy):
    endpoint = tg.Endpoint.chat(lab.url, KEY)
    impatient = {"retries": 0, "backoff_s": (0.01,), "backoff_jitter": 0.0} | policy
    return tg.Request(endpoint, PROMPT, policy=tg.Policy(**impatient))


def outcome(runtime, lab, request):
    """Run a turn to its end; return its name, and all that a replay must have in common."""
    turn = runtime.start(request)
    heard = []
    for event in turn:
        if isinstance(event, tg.TextDelta | tg.ReasoningDelta | tg.ToolCallDelta):
            heard.append(event)
        if isinstance(event, tg.TextDelta):
            lab.open("taken")
    answer = event.answer
    failure = answer.failure and (answer.failure.kind, answer.failure.reason, answer.failure.status)
    said = [(type(each), getattr(each, "text", None)) for each in heard]
    return turn.id, (type(event), said, answer.native(), answer.lost_tools, failure)


def lines_of(file):
    return [json.loads(line) for line in file.read_text().splitlines()]


@pytest.mark.parametrize("name", CHAT)
def test_what_was_captured_plays_again(runtime, files_of, name):
    policy = SILENT if name in ("stall", "silence") else {}
    with Lab([CHAT[name]]) as lab:
        turn_id, first = outcome(runtime, lab, request_to(lab, **policy))

    with Lab.from_capture(*files_of(turn_id), speed=NOW) as lab:
        again_id, again = outcome(runtime, lab, request_to(lab, **policy))
        assert len(lab.requests) == 1
    assert again == first
    over, over_again = (lines_of(files_of(each)[0])[-1] for each in (turn_id, again_id))
    assert over_again["how"] == over["how"] == HOW.get(name, "eof")


@pytest.mark.parametrize("wire", WIRES)
def test_every_wire_plays_again(runtime, files_of, wire):
    script, endpoint_of, payload = WIRES[wire]
    with Lab([script]) as lab:
        turn_id, first = outcome(runtime, lab, tg.Request(endpoint_of(lab), payload))
        path = lab.requests[0].target

    [file] = files_of(turn_id)
    began, asked, *_ = lines_of(file)
    assert began["wire"] == wire
    assert asked["url"].endswith(path)
    assert KEY not in file.read_text()
    with Lab.from_capture(file, speed=NOW) as lab:
        _, again = outcome(runtime, lab, tg.Request(endpoint_of(lab), payload))
    assert again == first
    assert first[0] is tg.TurnCompleted


def test_each_attempt_has_a_file_that_only_its_owner_can_read(runtime, files_of):
    with Lab([CHAT["no response"], CHAT["text"]]) as lab:
        turn_id, first = outcome(runtime, lab, request_to(lab, retries=1))

    files = files_of(turn_id, 2)
    assert [stat.S_IMODE(file.stat().st_mode) for file in files] == [0o600, 0o600]
    assert [lines_of(file)[-1]["how"] for file in files] == ["failed", "eof"]
    with Lab.from_capture(*files, speed=NOW) as lab:
        _, again = outcome(runtime, lab, request_to(lab, retries=1))
    assert again == first


def test_lines_say_what_went_over_the_wire_and_when(runtime, files_of):
    silence_s = 0.05
    steps = [chat.text("a"), wait(silence_s), chat.finish(), chat.done()]
    with Lab([Answer(steps)]) as lab:
        turn_id, _ = outcome(runtime, lab, request_to(lab))
        sent = lab.requests[0]

    began, asked, head, *body, over = lines_of(files_of(turn_id)[0])
    assert began["version"] == VERSION
    assert asked["method"] == "POST"
    assert asked["url"] == f"{lab.url}/chat/completions"
    assert asked["text"].encode() == sent.body
    assert ["authorization", "***"] in asked["headers"]
    assert head["status"] == 200
    assert "".join(line["text"] for line in body).encode() == b"".join(
        step.data for step in steps if step != wait(silence_s)
    )
    times = [line["at_s"] for line in (asked, head, *body, over)]
    assert times == sorted(times)
    # A silence cannot end early, so this is no matter of how fast the machine is.
    assert over["at_s"] - body[0]["at_s"] > silence_s / 2


def test_key_that_a_provider_repeats_is_in_no_file(runtime, files_of):
    halves = [raw(b": " + KEY[:9].encode()), gate("taken"), raw(KEY[9:].encode() + b"\n\n")]
    with Lab([CHAT["refused"], Answer([chat.text("x"), *halves, *chat.answer().steps])]) as lab:
        ids = [outcome(runtime, lab, request_to(lab))[0] for _ in range(2)]

    for turn_id in ids:
        text = files_of(turn_id)[0].read_text()
        assert KEY not in text
        assert KEY[:9] not in text
        assert "*" * len(KEY) in text


def test_redirect_is_noted_and_left_out_when_it_is_played(runtime, files_of):
    with Lab() as lab:
        away = Answer.whole(b"", "text/plain", 307, {"location": f"{lab.base}/other"})
        lab.add(away, CHAT["text"])
        turn_id, first = outcome(runtime, lab, request_to(lab))

    [file] = files_of(turn_id)
    assert [line["status"] for line in lines_of(file) if line["type"] == "head"] == [307, 200]
    with Lab.from_capture(file, speed=NOW) as lab:
        _, again = outcome(runtime, lab, request_to(lab))
        assert len(lab.requests) == 1
    assert again == first


def test_killed_worker_leaves_what_it_had(kill, tmp_path):
    with Lab([CHAT["stall"]]) as lab, tg.Runtime(workers=1, capture=tmp_path) as runtime:
        turn = runtime.start(request_to(lab))
        texts = turn.text()
        assert next(texts) == "so far"
        kill(runtime, turn)
        assert turn.result(GUARD_S).failure.kind == "worker_lost"

    [file] = tmp_path.iterdir()
    assert file.name == f"{turn.id}-01.jsonl.part"
    kinds = [line["type"] for line in lines_of(file)]
    assert kinds == ["capture", "request", "head", "body"]
    with Lab.from_capture(file, speed=NOW) as lab, tg.Runtime(workers=1) as runtime:
        answer = outcome(runtime, lab, request_to(lab, **SILENT))[1]
        assert answer[-1][0] == "stalled"


def test_interrupted_attempt_has_its_file_when_the_runtime_has_ended(tmp_path):
    with Lab([CHAT["stall"]]) as lab, tg.Runtime(workers=1, capture=tmp_path) as runtime:
        turn = runtime.start(request_to(lab))
        assert next(turn.text()) == "so far"
        turn.interrupt()

    [file] = tmp_path.iterdir()
    assert file.name == f"{turn.id}-01.jsonl"
    assert lines_of(file)[-1]["how"] == "left"


def test_file_that_cannot_be_written_changes_nothing(tmp_path):
    folder = tmp_path / "gone"
    with Lab([CHAT["text"]]) as lab, tg.Runtime(workers=1, capture=folder) as runtime:
        folder.rmdir()
        assert runtime.run(request_to(lab)).text == "Hello é"


@pytest.mark.parametrize("place", [7, "", b"x", "a\0b", "caf\udce9"])
def test_capture_that_is_no_path_is_an_error(place):
    with pytest.raises(tg.ConfigurationError, match="capture="):
        tg.Runtime(capture=place)


def test_capture_where_no_folder_can_be_is_an_error(tmp_path):
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(tg.ConfigurationError, match=r"capture='.*file'"):
        tg.Runtime(capture=file)


def test_without_capture_nothing_is_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with Lab([CHAT["text"]]) as lab, tg.Runtime(workers=1) as runtime:
        runtime.run(request_to(lab))

    assert list(tmp_path.iterdir()) == []

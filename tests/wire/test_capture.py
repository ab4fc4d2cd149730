"""The recording of an attempt where a worker's whole runtime would only be in the way."""

import json

import pytest

from tidegate.actors.provider import recording
from tidegate.lab import Answer, End, Lab, chat, gate, pace, raw
from tidegate.protocol.attempts import Opened
from tidegate.testing.eventually import eventually


@pytest.fixture
def file(tmp_path):
    return tmp_path / "attempt.jsonl"


def lines_of(file):
    return [json.loads(line) for line in file.read_text().splitlines()]


def closed(file):
    """Wait until the file has its name, and return its lines."""
    eventually(file.exists)
    return lines_of(file)


def test_size_is_bounded_and_the_attempt_is_not(worker, lab, file, monkeypatch):
    monkeypatch.setattr(recording, "CAPTURE_BYTES_MAX", 20_000)
    words = ["w" * 1000] * 50
    lab.add(Answer([pace(map(chat.text, words), 0.001), chat.finish(), chat.done()]))

    text, end = worker.outcome(lab, capture=str(file))

    assert text == "".join(words)
    assert end.failure is None
    lines = closed(file)
    assert lines[-1]["how"] == "full"
    one_read = 1 << 16
    assert 20_000 <= file.stat().st_size < 20_000 + one_read
    with Lab.from_capture(file, speed=float("inf")) as again:
        assert worker.failure(again).kind == "truncated"


def test_full_disk_ends_the_file_alone(worker, lab, file, monkeypatch, caplog):
    def full(_file, _data):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(recording.os, "write", full)
    lab.add(chat.answer("Hello"))

    text, end = worker.outcome(lab, capture=str(file))

    assert (text, end.failure) == ("Hello", None)
    assert [record.message for record in caplog.records] == [
        f"the attempt goes on, but not its capture {file}: [Errno 28] No space left on device"
    ]


def test_cancelled_before_the_head(worker, lab, file):
    lab.add(Answer([gate("never")], headers_with_first_frame=True))
    token = worker.start(lab, capture=str(file))
    lab.reached("never")
    worker.cancel(token)

    assert worker.end_of(token).cancelled
    assert [line["type"] for line in closed(file)] == ["capture", "request", "end"]
    assert lines_of(file)[-1]["how"] == "left"
    with Lab.from_capture(file, speed=float("inf")) as again:
        token = worker.start(again)
        again.wait_requests(1)
        worker.cancel(token)
        assert worker.end_of(token).cancelled
        assert not [each for each in worker.heard(token) if isinstance(each, Opened)]


def test_nobody_to_connect_to(worker, file, dead_port, lab, target_of):
    target = target_of(lab, base_url=f"http://127.0.0.1:{dead_port}/v1")
    failure = worker.failure(target, capture=str(file))

    assert failure.reason == "connect"
    over = closed(file)[-1]
    assert over["how"] == "failed"
    assert "ClientConnectorError" in over["error"]
    with Lab.from_capture(file, speed=float("inf")) as again:
        assert worker.failure(again).kind == failure.kind


def test_file_that_is_there_is_not_written_over(worker, lab, file, caplog):
    file.with_name(file.name + ".part").write_text("kept")
    lab.add(chat.answer("Hello"))

    assert worker.outcome(lab, capture=str(file))[0] == "Hello"
    assert file.with_name(file.name + ".part").read_text() == "kept"
    assert "File exists" in caplog.text


def test_what_comes_behind_the_evidence_is_noted(worker, lab, file):
    behind = b": " + b"x" * 100 + b"\n\n"
    lab.add(Answer([chat.text("a"), chat.finish(), chat.done(), gate("read"), raw(behind)]))
    token = worker.start(lab, capture=str(file))
    assert worker.end_of(token).failure is None
    lab.reached("read")
    lab.open("read")

    lines = closed(file)
    assert lines[-1]["how"] == "eof"
    assert "".join(line["text"] for line in lines if line["type"] == "body").endswith(
        behind.decode()
    )


def test_timings_are_kept(file, worker, lab):
    silence_s = 0.2
    lab.add(Answer([chat.text("a"), gate("b"), chat.text("b"), chat.finish(), End.EOF]))
    token = worker.start(lab, capture=str(file))
    worker.wait_text(token, "a")
    lab.reached("b")
    lab.open("b")
    worker.end_of(token)
    noted = closed(file)
    # As if the silence had been longer: the file says when, and nothing else does.
    for line in noted[4:]:
        line["at_s"] = noted[3]["at_s"] + silence_s
    file.write_text("\n".join(map(json.dumps, noted)))

    with Lab.from_capture(file) as again:
        token = worker.start(again)
        worker.wait_text(token, "a")
        began_s = again.requests[0].at_s
        worker.end_of(token)
        over_s = worker.loop.time()
    # A silence cannot end early, so this is no matter of how fast the machine is.
    assert over_s - began_s >= silence_s

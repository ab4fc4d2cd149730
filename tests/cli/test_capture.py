"""``tidegate run --capture`` and ``tidegate lab`` behind it: a bug report is one file."""

import contextlib
import json
import os
import signal
import stat

import pytest

from tidegate.lab import Answer, End, Lab, chat, gate


GUARD_S = 50
KEY = "sk-capture-0123456789"


@pytest.fixture
def lab():
    with Lab() as lab:
        yield lab


@pytest.fixture
def ask(command):
    """Run ``tidegate run`` to its end: exit code, output and errors."""

    def start(url, *words):
        environment = {**os.environ, "SOME_KEY": KEY}
        options = ["--endpoint", url, "--api-key", "env:SOME_KEY"]
        process = command("run", "Hi", *options, *words, env=environment)
        output, errors = process.communicate(timeout=GUARD_S)
        return process.returncode, output, errors

    return start


@pytest.fixture
def replay(command):
    """Serve a capture with ``tidegate lab``, and yield the address."""

    @contextlib.contextmanager
    def serve(file, *words):
        process = command("lab", file, *words)
        yield process.stdout.readline().strip()
        process.send_signal(signal.SIGINT)
        assert process.wait(GUARD_S) == 0

    return serve


def test_a_turn_of_two_attempts_is_one_file_that_can_be_played(ask, replay, lab, tmp_path):
    lab.add(Answer([chat.role(), End.CUT]), chat.answer("Hel", "lo"))
    file = tmp_path / "bug.jsonl"

    status, output, errors = ask(lab.url, "--capture", file)
    assert (status, output) == (0, "Hello\n")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["bug.jsonl"]
    assert KEY not in file.read_text()
    kinds = [json.loads(line)["type"] for line in file.read_text().splitlines()]
    assert kinds.count("capture") == kinds.count("request") == kinds.count("end") == 2

    with replay(file, "--speed", "inf") as url:
        again = ask(url)
    assert again[:2] == (status, output)
    said, jitter = "attempt 1 failed: truncated", "; the next one"
    assert said in errors
    assert again[2].partition(jitter)[0] == errors.partition(jitter)[0]


def test_an_interrupted_turn_is_captured_as_far_as_it_went(command, lab, tmp_path):
    lab.add(Answer([chat.text("so far"), gate("said"), End.HOLD]))
    file = tmp_path / "bug.jsonl"
    process = command("run", "Hi", "--endpoint", lab.url, "--capture", file)
    assert process.stdout.read(6) == "so far"
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=GUARD_S)

    assert process.returncode == 130
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert [line["type"] for line in lines] == ["capture", "request", "head", "body", "end"]
    assert lines[-1]["how"] == "left"


def test_place_that_cannot_be_written_is_wrong_use_before_anything_is_asked(ask, lab, tmp_path):
    for place in (tmp_path, tmp_path / "no" / "bug.jsonl"):
        status, _, errors = ask(lab.url, "--capture", place)

        assert status == 2
        assert str(place) in errors
    assert lab.requests == []
    assert list(tmp_path.iterdir()) == []


def test_what_is_there_is_not_written_over(ask, lab, tmp_path):
    full, link, pipe = (tmp_path / name for name in ("old.jsonl", "link.jsonl", "pipe"))
    full.write_text("an older capture")
    link.symlink_to(tmp_path / "elsewhere")
    os.mkfifo(pipe)
    for place in (full, link, pipe):
        status, _, errors = ask(lab.url, "--capture", place)

        assert status == 2
        assert f"cannot write the capture {place}: it is there, and " in errors
    assert lab.requests == []
    assert full.read_text() == "an older capture"
    assert {path.name for path in tmp_path.iterdir()} == {full.name, link.name, pipe.name}


def test_empty_file_is_as_good_as_none(ask, lab, tmp_path):
    lab.add(chat.answer("Hello"))
    file = tmp_path / "made-by-mktemp"
    file.touch()

    assert ask(lab.url, "--capture", file)[0] == 0
    assert file.read_text().startswith("{")


def test_speed_is_of_captures_alone_and_above_nothing(tidegate, ask, lab, tmp_path):
    lab.add(chat.answer("Hello"))
    file = tmp_path / "bug.jsonl"
    ask(lab.url, "--capture", file)

    for words in (["--speed", "2"], [file, "--speed", "0"], [file, "--speed", "nan"]):
        status, _, errors = tidegate("lab", *words)
        assert status == 2
        assert "speed" in errors

"""``tidegate run``, as a process, against a scripted provider."""

import json
import os
import pty
import signal
import subprocess
import sys

import pytest

from tidegate.lab import Answer, End, Lab, chat, gate, wait
from tidegate.testing.eventually import eventually


GUARD_S = 50


@pytest.fixture
def lab():
    with Lab() as lab:
        yield lab


@pytest.fixture
def ask(command, lab):
    """Start ``tidegate run`` against the lab."""

    def start(*words, **options):
        return command("run", *words, "--endpoint", lab.url, **options)

    return start


def ended(process):
    output, errors = process.communicate(timeout=GUARD_S)
    return process.returncode, output, errors


def held_after(*words):
    """Some words, and then silence."""
    return Answer([chat.role(), *map(chat.text, words), gate("shown"), End.HOLD])


def test_answer_goes_to_standard_output_and_nothing_else_is_said(ask, lab):
    lab.add(chat.answer("Hello", " world"))

    assert ended(ask("Hi")) == (0, "Hello world\n", "")


def test_prompt_and_model_are_in_the_request(ask, lab):
    lab.add(chat.answer("Hello"))

    assert ended(ask("-- Hi", "--model", "small"))[0] == 0
    sent = lab.requests[0].json()
    assert sent["messages"] == [{"role": "user", "content": "-- Hi"}]
    assert sent["model"] == "small"


def test_prompt_comes_from_standard_input(ask, lab, tmp_path):
    lab.add(chat.answer("Hello"))
    prompt = tmp_path / "prompt"
    prompt.write_text("What is\na tide?\n")
    with prompt.open() as file:
        process = ask("-", stdin=file)

    assert ended(process)[0] == 0
    assert lab.requests[0].json()["messages"][0]["content"] == "What is\na tide?"


def test_key_is_read_from_the_named_variable(ask, lab):
    lab.add(chat.answer("Hello"))
    environment = {**os.environ, "SOME_KEY": "the-key"}

    assert ended(ask("Hi", "--api-key", "env:SOME_KEY", env=environment))[0] == 0
    assert dict(lab.requests[0].headers)["authorization"] == "Bearer the-key"


def test_json_prints_every_event_on_a_line(ask, lab):
    lab.add(chat.answer("Hel", "lo"))
    status, output, errors = ended(ask("Hi", "--json"))
    events = [json.loads(line) for line in output.splitlines()]

    assert (status, errors) == (0, "")
    assert [event["type"] for event in events] == [
        "attempt.started",
        "text.delta",
        "text.delta",
        "turn.completed",
    ]
    assert [event["offset"] for event in events] == [0, 1, 2, 3]
    assert events[-1]["answer"]["text"] == "Hello"


def test_reasoning_goes_to_standard_error(ask, lab):
    lab.add(Answer([chat.reasoning("hm"), chat.text("Hello"), chat.finish(), chat.done()]))

    assert ended(ask("Hi")) == (0, "Hello\n", "hm")


def test_retry_is_told_on_standard_error(ask, lab):
    lab.add(Answer([chat.role(), End.CUT]), chat.answer("Hello"))
    status, output, errors = ended(ask("Hi"))

    assert (status, output) == (0, "Hello\n")
    assert "attempt 1 failed: truncated" in errors


def test_refused_request_fails(ask, lab):
    lab.add(chat.error_answer(400, "no such thing"))
    status, output, errors = ended(ask("Hi"))

    assert (status, output) == (1, "")
    assert "no such thing" in errors


@pytest.mark.parametrize(("words", "count"), [((), 1), (("--model", "small"), 0)])
def test_refused_request_without_a_model_is_told_of_the_option(ask, lab, words, count):
    lab.add(chat.error_answer(400, "you must provide a model"))
    status, output, errors = ended(ask("Hi", *words))

    assert (status, output) == (1, "")
    assert errors.count("no --model was given") == count


def test_variable_of_the_name_of_a_field_holds(ask, lab):
    lab.add(Answer([chat.role(), End.CUT]))
    status, _, errors = ended(ask("Hi", env={**os.environ, "TIDEGATE_RETRIES": "0"}))

    assert status == 1
    assert errors.startswith("failed: ")
    assert len(lab.requests) == 1


def test_partial_answer_fails_and_its_text_is_kept(ask, lab):
    lab.add(Answer([chat.role(), chat.text("Half of"), gate("shown"), End.CUT]))
    process = ask("Hi")
    assert process.stdout.read(len("Half of")) == "Half of"
    lab.open("shown")
    status, rest, errors = ended(process)

    assert (status, rest) == (1, "\n")
    assert "the answer is not whole" in errors


def test_first_ctrl_c_interrupts_and_keeps_the_text(ask, lab):
    lab.add(held_after("Half of"))
    process = ask("Hi")
    assert process.stdout.read(len("Half of")) == "Half of"
    process.send_signal(signal.SIGINT)
    status, rest, errors = ended(process)

    assert (status, rest) == (130, "\n")
    assert errors == "interrupted (Ctrl-C); the answer is not whole\n"
    assert lab.wait_closed(timeout=GUARD_S).how in {"eof", "reset"}


def test_ctrl_c_is_an_event_in_json(ask, lab):
    lab.add(held_after("Half of"))
    process = ask("Hi", "--json")
    process.stdout.readline()
    process.stdout.readline()
    process.send_signal(signal.SIGINT)
    status, rest, errors = ended(process)
    event = json.loads(rest)

    assert (status, errors) == (130, "")
    assert event["type"] == "turn.interrupted"
    assert event["answer"]["text"] == "Half of"


def test_second_ctrl_c_ends_at_once(ask, lab):
    lab.add(held_after("Half of"))
    # Nobody reads, so that the first Ctrl-C cannot be done with.
    read_fd, write_fd = os.pipe()
    fill(write_fd)
    process = ask("Hi", stdout=write_fd)
    os.close(write_fd)
    lab.reached("shown", GUARD_S)
    process.send_signal(signal.SIGINT)
    # Two pending signals of one kind are one: the second is sent when the first has had its effect.
    lab.wait_closed(timeout=GUARD_S)
    process.send_signal(signal.SIGINT)

    assert process.wait(GUARD_S) == 130
    os.close(read_fd)


def fill(descriptor):
    os.set_blocking(descriptor, False)
    for size in (1 << 16, 1):
        try:
            while True:
                os.write(descriptor, b"x" * size)
        except BlockingIOError:
            continue
    os.set_blocking(descriptor, True)


def test_reader_that_leaves_interrupts_the_turn_quietly(ask, lab):
    lab.add(Answer([chat.role(), chat.text("Half"), gate("left"), chat.text(" of"), End.HOLD]))
    process = ask("Hi")
    assert process.stdout.read(len("Half")) == "Half"
    process.stdout.close()
    lab.open("left")

    assert process.wait(GUARD_S) == 1
    assert process.stderr.read() == ""
    assert lab.wait_closed(timeout=GUARD_S).how in {"eof", "reset"}


def test_terminal_is_not_steered_by_the_answer(lab):
    lab.add(chat.answer("a\x1b[2Jb", steps=[wait(0)]))
    main, secondary = pty.openpty()
    script = f"import sys; sys.path[:] = {sys.path!r}; from tidegate.cli.main import main; main()"
    process = subprocess.Popen(
        [sys.executable, "-c", script, "run", "Hi", "--endpoint", lab.url],
        stdin=subprocess.DEVNULL,
        stdout=secondary,
        stderr=secondary,
    )
    os.close(secondary)
    try:
        assert process.wait(GUARD_S) == 0
        assert os.read(main, 1 << 16).decode() == "a\ufffd[2Jb\r\n"
    finally:
        process.kill()
        process.wait()
        os.close(main)


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (["Hi", "--endpoint", "nowhere"], "tidegate: --endpoint='nowhere': give an http://"),
        (["Hi", "--endpoint", "http://host/v1?a=b"], "tidegate: --endpoint='http://host/v1' with"),
        (["Hi", "--endpoint", "http://host/v1/responses"], "give 'http://host/v1'"),
        (["Hi", "--endpoint", "http://127.0.0.1:1/v1", "--api-key", "sk-123"], "env:NAME"),
        (["Hi", "--api-key", "env:SOME_KEY"], "--endpoint"),
        (["-"], "prompt is empty"),
        ([], "PROMPT"),
    ],
)
def test_wrong_use_says_what_is_wrong(tidegate, words, what):
    status, output, errors = tidegate("run", *words)

    assert (status, output) == (2, "")
    assert what in errors
    assert "sk-123" not in errors
    assert "Traceback" not in errors


def test_missing_weights_are_said_with_the_way_out(tidegate, tmp_path):
    environment = {**os.environ, "TIDEGATE_CACHE_DIR": str(tmp_path)}
    status, output, errors = tidegate("run", "Hi", env=environment)

    assert (status, output) == (1, "")
    assert "tidegate local fetch" in errors


def test_nothing_that_it_started_outlives_it(ask, lab):
    lab.add(held_after("Half of"))
    process = ask("Hi", start_new_session=True)
    assert process.stdout.read(len("Half of")) == "Half of"
    process.kill()
    process.wait()

    assert lab.wait_closed(timeout=GUARD_S).how in {"eof", "reset"}
    eventually(lambda: lab.open_connections_count == 0)

"""``tidegate tail``, as a process, against a real daemon."""

import json
import signal

import pytest

from tests.cli.daemons import ENVIRON, GUARD_S, ask, ended, held, silent, until
from tests.daemon.e2e.conftest import endpoint
from tests.daemon.hosting import DaemonProcess
from tidegate.lab import Answer, End, chat


@pytest.fixture
def tail(command, daemon):
    """Start ``tidegate tail``."""

    def start(turn, *words):
        return command("tail", turn, *words, "--url", daemon.url, env=ENVIRON)

    return start


def test_answer_goes_to_standard_output_as_it_comes(tail, daemon, lab):
    lab.add(held("Hel", "lo"))
    turn = ask(daemon)
    process = tail(turn)
    assert process.stdout.read(5) == "Hello"
    lab.open("shown")

    assert ended(process) == (0, "\n", "")


def test_attempts_and_retries_go_to_standard_error(tail, daemon, lab):
    lab.add(Answer([chat.role(), End.CUT]), chat.answer("Hello"))
    turn = ask(daemon)
    until(daemon, turn, 5)
    status, output, errors = ended(tail(turn))

    assert (status, output) == (0, "Hello\n")
    assert "attempt 1 failed: truncated" in errors
    assert errors.splitlines()[-1] == "attempt 2"


def test_events_up_to_an_offset_are_left_out(tail, daemon, lab):
    lab.add(chat.answer("Hel", "lo"))
    turn = ask(daemon)
    until(daemon, turn, 4)

    assert ended(tail(turn, "--after", "1"))[:2] == (0, "lo\n")
    assert ended(tail(turn, "--after", "-1"))[:2] == (0, "Hello\n")


def test_json_prints_every_event_on_a_line(tail, daemon, lab):
    lab.add(chat.answer("Hel\u2028", "lo"))
    turn = ask(daemon)
    status, output, errors = ended(tail(turn, "--json"))
    events = [json.loads(line) for line in output.split("\n")[:-1]]

    assert (status, errors) == (0, "")
    assert [event["offset"] for event in events] == [0, 1, 2, 3]
    assert events[-1]["answer"]["text"] == "Hel\u2028lo"


def test_exit_code_is_that_of_the_turn(tail, daemon, lab):
    lab.add(chat.error_answer(400, "no such thing"), silent("Half"))
    status, output, errors = ended(tail(ask(daemon)))
    assert (status, output) == (1, "")
    assert "no such thing" in errors
    turn = ask(daemon)
    process = tail(turn)
    assert process.stdout.read(4) == "Half"
    with daemon.client() as client:
        client.post(f"/v1/turns/{turn}/interrupt")

    assert ended(process)[0] == 130


def test_leaving_does_nothing_to_the_turn(tail, daemon, lab):
    lab.add(held("Hel"))
    turn = ask(daemon)
    process = tail(turn)
    assert process.stdout.read(3) == "Hel"
    process.send_signal(signal.SIGINT)

    assert ended(process) == (130, "\n", "")
    with daemon.client() as client:
        assert client.get(f"/v1/turns/{turn}").json()["state"] == "running"
    lab.open("shown")


def test_lost_connection_is_taken_up_where_it_was(command, serve, lab, tmp_path):
    lab.add(silent("Half", " of it"))
    first = serve(endpoint(lab))
    turn = ask(first)
    process = command("tail", turn, "--url", first.url, env=ENVIRON)
    assert process.stdout.read(10) == "Half of it"
    config = (tmp_path / "tidegate.toml").read_text()
    first.kill()
    config = config.replace('"127.0.0.1:0"', f'"127.0.0.1:{first.port}"')
    second = DaemonProcess(tmp_path, config, {"TEST_PROVIDER_KEY": "provider-key"})
    try:
        status, rest, errors = ended(process)
    finally:
        assert second.end() == 0

    assert (status, rest) == (1, "\n")
    assert "trying again" in errors
    assert errors.splitlines()[-1].startswith("failed: ")


def test_unknown_turn_is_said(tail):
    status, output, errors = ended(tail("turn_x"))

    assert (status, output) == (1, "")
    assert "there is no such turn" in errors


@pytest.mark.parametrize("turn", ["../../livez", "..", "", "a/b", "x?y", "x\ny", "turn_\xe4"])
def test_what_is_no_id_is_wrong_use_and_nothing_is_asked(tidegate, turn):
    status, output, errors = tidegate("tail", turn, "--url", "http://127.0.0.1:1", env=ENVIRON)

    assert (status, output) == (2, "")
    assert (
        errors == f"tidegate: {turn!r} is no turn's id: `tidegate ps --all` lists those there are\n"
    )


def test_offset_that_no_reader_can_have_is_said(tail, daemon, lab):
    lab.add(chat.answer("Hello"))
    turn = ask(daemon)
    until(daemon, turn, 3)
    status, output, errors = ended(tail(turn, "--after", "77"))

    assert (status, output) == (1, "")
    assert "77" in errors


def test_reader_that_leaves_ends_it_quietly(tail, daemon, lab):
    lab.add(held("Hel"))
    turn = ask(daemon)
    process = tail(turn)
    assert process.stdout.read(3) == "Hel"
    process.stdout.close()
    lab.open("shown")

    assert process.wait(GUARD_S) in {0, 1}
    assert process.stderr.read() == ""

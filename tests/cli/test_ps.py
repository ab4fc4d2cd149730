"""``tidegate ps``, as a process, against a real daemon."""

import json
import re

import pytest

from tests.cli.daemons import ENVIRON, ask, held, until
from tests.daemon.e2e.conftest import endpoint
from tidegate.lab import Answer, chat


def test_turns_that_run_and_wait_are_listed(tidegate, serve, lab):
    daemon = serve(endpoint(lab), top="max_running = 1")
    lab.add(held("Hello"), chat.answer("later"))
    running = ask(daemon)
    until(daemon, running, 2)
    queued = ask(daemon, model="an\x1b[2Jother")
    status, output, errors = tidegate("ps", "--url", daemon.url, env=ENVIRON)

    head, first, second = output.splitlines()
    assert (status, errors) == (0, "")
    names = ["TURN", "STATE", "ENDPOINT", "MODEL", "ATTEMPT", "AGE", "CHARS", "HOW IT STANDS"]
    assert re.split(r" {2,}", head.strip()) == names
    assert re.fullmatch(rf"{running} +running +main +test-model +1 +[\d.]+ s +5 +\S.*", first)
    assert re.fullmatch(rf"{queued} +queued +main +an\ufffd\[2Jother +0 .* 0 +place 1 *", second)
    lab.open("shown")


def test_ended_ones_are_listed_if_asked_for(tidegate, daemon, lab):
    lab.add(chat.answer("Hello"))
    turn = ask(daemon)
    until(daemon, turn, 3)

    assert turn not in tidegate("ps", "--url", daemon.url, env=ENVIRON)[1]
    assert turn in tidegate("ps", "--all", "--url", daemon.url, env=ENVIRON)[1]


def test_json_is_data(tidegate, daemon, lab):
    lab.add(held("Hello"))
    turn = ask(daemon)
    until(daemon, turn, 2)
    status, output, _ = tidegate("ps", "--json", "--url", daemon.url, env=ENVIRON)

    shown = json.loads(output)
    assert status == 0
    assert shown["daemon"]["running"] == 1
    assert [(each["id"], each["state"]) for each in shown["turns"]] == [(turn, "running")]
    lab.open("shown")


@pytest.mark.parametrize("where", ["TIDEGATE_URL", "tidegate.toml"])
def test_daemon_is_found_without_an_option(tidegate, daemon, tmp_path, where):
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    environ = {**ENVIRON, "HOME": str(folder), "XDG_CONFIG_HOME": str(folder)}
    if where == "TIDEGATE_URL":
        environ[where] = daemon.url
        (folder / "tidegate.toml").write_text('listen = "127.0.0.1:1"')
    else:
        (folder / where).write_text(f'listen = "0.0.0.0:{daemon.port}"\nkeys = ["env:ANY"]')

    assert tidegate("ps", cwd=folder, env=environ)[0] == 0


def test_key_is_given_by_reference(tidegate, serve, lab):
    daemon = serve(endpoint(lab), top='keys = ["env:ONE"]', environ={"ONE": "the-key"})
    options = ("ps", "--url", daemon.url)
    named = {**ENVIRON, "SOME_KEY": "the-key"}

    assert tidegate(*options, "--key", "env:SOME_KEY", env=named)[0] == 0
    assert tidegate(*options, env={**ENVIRON, "TIDEGATE_KEY": "the-key"})[0] == 0
    for environ in (ENVIRON, {**ENVIRON, "TIDEGATE_KEY": "another"}):
        status, output, errors = tidegate(*options, env=environ)
        assert (status, output) == (1, "")
        assert "--key env:NAME" in errors


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (["--url", "nowhere"], "--url: 'nowhere'"),
        (["--url", "http://[::1"], "--url: 'http://[::1'"),
        (["--url", "http://host:99999"], "--url: 'http://host:99999'"),
        (["--url", "http://me:sk-123@host:x"], "--url: 'host:x'"),
        (["--url", "http://127.0.0.1:1", "--key", "sk-123"], "env:NAME"),
        (["--url", "http://127.0.0.1:1", "--key", "env:NO_SUCH_KEY"], "NO_SUCH_KEY"),
    ],
)
def test_wrong_use_says_what_is_wrong(tidegate, words, what):
    status, output, errors = tidegate("ps", *words, env=ENVIRON)

    assert (status, output) == (2, "")
    assert what in errors
    assert "sk-123" not in errors


@pytest.mark.parametrize(("key", "what"), [("ä-123", "not ASCII"), ("a\nb-123", "")])
def test_key_that_no_header_can_carry_is_said_and_not_shown(tidegate, key, what):
    for words, name in ((["--key", "env:SOME_KEY"], "SOME_KEY"), ([], "TIDEGATE_KEY")):
        url = ["--url", "http://127.0.0.1:1"]
        status, output, errors = tidegate("ps", *url, *words, env={**ENVIRON, name: key})

        assert (status, output) == (2, "")
        assert errors.startswith(f"tidegate: --key: the environment variable {name} has ")
        assert errors.count("\n") == 1
        assert "123" not in errors


def test_blank_around_a_key_is_no_part_of_it(tidegate, serve, lab):
    daemon = serve(endpoint(lab), top='keys = ["env:ONE"]', environ={"ONE": "the-key"})
    environ = {**ENVIRON, "TIDEGATE_KEY": "the-key\n"}

    assert tidegate("ps", "--url", daemon.url, env=environ)[0] == 0


def test_limit_of_the_daemon_is_said_in_one_line(tidegate, serve, lab):
    top = 'keys = ["env:ONE"]\nrate_per_minute = 1'
    daemon = serve(endpoint(lab), top=top, environ={"ONE": "the-key"})
    environ = {**ENVIRON, "TIDEGATE_KEY": "the-key"}
    tidegate("tail", "turn_x", "--url", daemon.url, env=environ)
    status, output, errors = tidegate("tail", "turn_x", "--url", daemon.url, env=environ)

    assert (status, output) == (1, "")
    assert "more than 1 requests a minute" in errors
    assert errors.count("\n") == 1


@pytest.mark.parametrize("listen", ["127.0.0.1:0", "nonsense"])
def test_configuration_that_names_no_address_is_said(tidegate, tmp_path, listen):
    (tmp_path / "tidegate.toml").write_text(f'listen = "{listen}"')
    environ = {**ENVIRON, "HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path)}
    status, output, errors = tidegate("ps", cwd=tmp_path, env=environ)

    assert (status, output) == (2, "")
    assert "--url" in errors


@pytest.mark.parametrize("user", ["", "me:sk-123@"])
def test_nobody_there_is_said_with_the_way_out(tidegate, user):
    status, output, errors = tidegate("ps", "--url", f"http://{user}127.0.0.1:1", env=ENVIRON)

    assert (status, output) == (1, "")
    assert "no daemon answers at http://127.0.0.1:1: " in errors
    assert "tidegate serve" in errors


def test_server_that_is_none_of_ours_is_said(tidegate, lab):
    lab.add(Answer.json({"hello": "world"}), Answer.json({}, status=500))
    url = lab.url.removesuffix("/v1")
    for words in ("is another version of tidegate, or none", "no word of a tidegate daemon"):
        status, output, errors = tidegate("ps", "--url", url, env=ENVIRON)
        assert (status, output) == (1, "")
        assert words in errors

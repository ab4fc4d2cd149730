"""``tidegate config check``, as a process."""

import json
import os
import re
import socket

import pytest


@pytest.fixture
def check(tidegate, tmp_path):
    """Run it in a folder with a file that says this, where no other file is found."""

    def run(text, *words, **environ):
        (tmp_path / "tidegate.toml").write_text(text)
        ours = {"XDG_CONFIG_HOME": str(tmp_path), "HOME": str(tmp_path)} | environ
        rest = {
            name: text
            for name, text in os.environ.items()
            if not name.startswith(("TIDEGATE", "AWS_"))
        }
        return tidegate("config", "check", *words, cwd=tmp_path, env={**rest, **ours})

    return run


def test_values_are_explained_with_their_origins(check):
    text = "drain_s = 3\n[endpoints.main]\nwire = 'chat'\napi_key = 'env:NOBODY'"
    status, output, errors = check(text, TIDEGATE_HEARTBEAT_S="4")

    lines = {line.split()[0]: line.split(maxsplit=3)[1:] for line in output.splitlines() if line}
    assert (status, errors) == (0, "")
    assert lines["drain_s"][:2] == ["3", "tidegate.toml:1"]
    assert lines["heartbeat_s"][:2] == ["4", "TIDEGATE_HEARTBEAT_S"]
    assert lines["listen"][:2] == ["127.0.0.1:8765", "built-in"]
    assert lines["listen"][2].startswith("where clients connect")
    assert "! endpoints.main: the environment variable NOBODY is not set" in output


def test_report_is_data_if_asked_for(check):
    status, output, _ = check("drain_s = 3", "--json")

    report = json.loads(output)
    assert status == 0
    assert report["errors"] == []
    assert {"key", "value", "origin", "meaning"} == {*report["rows"][0]}
    assert report["path"].endswith("tidegate.toml")


def test_all_that_is_wrong_is_said_and_is_wrong_use(check):
    status, output, errors = check("drain = 3\nlisten = 5")

    assert (status, output) == (2, "")
    assert errors.splitlines()[:2] == [
        "tidegate: 2 errors in the configuration:",
        "  tidegate.toml:1: the top of the file has no key 'drain': did you mean 'drain_s'?",
    ]


def test_what_is_wrong_is_data_too(check):
    status, output, errors = check("drain = 3", "--json")

    assert (status, errors) == (2, "")
    assert json.loads(output) == {
        "errors": [
            "tidegate.toml:1: the top of the file has no key 'drain': did you mean 'drain_s'?"
        ]
    }


def test_variables_of_policies_are_checked_and_slips_in_their_names_noted(check):
    status, output, errors = check("", TIDEGATE_RETRIES="many")
    assert (status, output) == (2, "")
    assert errors.startswith("tidegate: TIDEGATE_RETRIES='many': give a whole number of at least 0")

    status, output, errors = check("", TIDEGATE_STALE_GIVEUP="9", TIDEGATE_RETRYS="1")
    assert (status, errors) == (0, "")
    assert re.search(r"policy\.stale_giveup +9 +TIDEGATE_STALE_GIVEUP ", output)
    assert "! TIDEGATE_RETRYS is set and nobody reads it: did you mean TIDEGATE_RETRIES?" in output


def test_another_file_can_be_named(check, tmp_path):
    (tmp_path / "other.toml").write_text("drain_s = 9")

    assert "other.toml:1" in check("", "--config", "other.toml")[1]
    status, _, errors = check("", "--config", "none.toml")
    assert (status, errors) == (
        2,
        "tidegate: none.toml: cannot be read (No such file or directory)\n",
    )


@pytest.fixture
def start(tidegate, tmp_path):
    """Run ``tidegate serve`` in the folder of the file, where it cannot start."""

    def run():
        environ = {name: text for name, text in os.environ.items() if "TIDEGATE" not in name}
        return tidegate("serve", cwd=tmp_path, env={**environ, "HOME": str(tmp_path)})

    return run


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            'keys = ["env:NOBODY"]',
            "tidegate.toml:1: keys: the environment variable NOBODY is not set: set it to the key",
        ),
        (
            'keys = ["file:/none"]',
            "tidegate.toml:1: keys: the key file '/none' cannot be read (No such file or ",
        ),
        (
            'journal = "none/tidegate.db"',
            "tidegate.toml:1: journal none/tidegate.db: there is no folder none; make it, or ",
        ),
        (
            'journal = "~nobody-of-that-name/tidegate.db"',
            "tidegate.toml:1: journal ~nobody-of-that-name/tidegate.db: there is no folder ",
        ),
        ('journal = "."', "tidegate.toml:1: journal .: this is a folder; give another file "),
        (
            'listen = "a..b:0"\nkeys = ["file:tidegate.toml"]',
            "2 errors in the configuration:\n  tidegate.toml:1: listen='a..b:0': ",
        ),
    ],
)
def test_what_keeps_the_daemon_from_starting_is_wrong_already(check, start, text, said):
    for status, output, errors in (check(text), start()):
        assert (status, output) == (2, "")
        assert errors.startswith(f"tidegate: {said}")


def test_address_that_another_process_has_may_be_free_later(check, start):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        status, _, errors = check(f'listen = "127.0.0.1:{taken.getsockname()[1]}"')
        started = start()

    assert (status, errors) == (0, "")
    assert started[0] == 1
    assert "Address already in use" in started[2]


def test_region_that_is_missing_keeps_the_daemon_from_starting_too(check, tidegate, tmp_path):
    nowhere = {"AWS_CONFIG_FILE": "/none", "AWS_SHARED_CREDENTIALS_FILE": "/none"}
    text = '[endpoints.rock]\nwire = "converse"'
    status, _, errors = check(text, **nowhere)
    environ = {name: text for name, text in os.environ.items() if not name.startswith("AWS_")}
    started = tidegate("serve", cwd=tmp_path, env={**environ, **nowhere})

    assert (status, started[0]) == (2, 2)
    for said in (errors, started[2]):
        assert said.startswith(
            "tidegate: tidegate.toml:1: [endpoints.rock] the wire 'converse' has no region: give"
        )

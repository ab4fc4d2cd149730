"""The command line where an extra is not installed."""

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.cli.daemons import ENVIRON
from tidegate.cli.extras import EXTRAS


ADVICE = "which is not installed: run `pip install 'tidegate[daemon]'`"


@pytest.fixture(scope="module")
def without_extras(tmp_path_factory):
    """Return an import path where all is as here, but for what the extras bring."""
    site = tmp_path_factory.mktemp("site")
    absent = {each.replace("-", "_") for brings in EXTRAS.values() for each in brings}
    paths = []
    for folder in sys.path:
        if Path(folder).name != "site-packages":
            paths.append(folder)
            continue
        for each in Path(folder).iterdir():
            package = each.name.partition(".")[0].partition("-")[0].lower()
            if package not in absent and not (site / each.name).exists():
                (site / each.name).symlink_to(each)
    return [*paths, str(site)]


@pytest.fixture
def bare(without_extras, tmp_path):
    """Run ``tidegate`` there to its end; returns its exit code and what it printed, twice."""
    script = (
        f"import sys; sys.path[:] = {without_extras!r}\nfrom tidegate.cli.main import main; main()"
    )
    folders = {"HOME": str(tmp_path), "TIDEGATE_CACHE_DIR": str(tmp_path)}

    def run(*words, **environ):
        done = subprocess.run(
            [sys.executable, "-c", script, *words],
            capture_output=True,
            check=False,
            cwd=tmp_path,
            env={**ENVIRON, **folders, **environ},
            stdin=subprocess.DEVNULL,
            text=True,
            timeout=50,
        )
        return done.returncode, done.stdout, done.stderr

    return run


def test_extras_are_those_of_the_package():
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    for extra, brings in EXTRAS.items():
        wanted = {each.partition(">")[0] for each in project["optional-dependencies"][extra]}
        assert wanted == {*brings}


@pytest.mark.parametrize(("word", "near"), [("nosuch", ""), ("ru", '"run"'), ("pss", '"ps"')])
def test_unknown_command_is_wrong_use(bare, word, near):
    status, output, errors = bare(word)

    assert (status, output) == (2, "")
    assert f'Unknown command "{word}"' in errors
    assert near in errors
    assert "not installed" not in errors


@pytest.mark.parametrize(
    "command", ["run", "demo", "lab", "doctor", "serve", "ps", "tail", "stop", "top", "config"]
)
def test_help_is_there_for_every_command(bare, command):
    status, output, errors = bare(command, "--help")

    assert (status, errors) == (0, "")
    assert f"Usage: tidegate {command}" in output


@pytest.mark.parametrize("words", [["ps"], ["tail", "x"], ["stop", "x"], ["top"], ["serve"]])
def test_commands_of_the_daemon_say_which_extra_they_need(bare, words):
    status, output, errors = bare(*words)

    assert (status, output) == (1, "")
    assert errors.startswith("tidegate: the daemon and its commands need ")
    assert errors.rstrip().endswith(ADVICE)


def test_doctor_says_which_extras_are_there(bare, tidegate, tmp_path):
    slip = {"TIDEGATE_RETRYS": "1"}
    alone = json.loads(bare("doctor", "--json", **slip)[1])
    environ = {**os.environ, "HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path), **slip}
    whole = json.loads(tidegate("doctor", "--json", cwd=tmp_path, env=environ)[1])

    assert {*alone["extras"]} == {*whole["extras"]} == {"local", "daemon"}
    assert {*alone["extras"]["daemon"].values()} == {None}
    assert whole["extras"]["daemon"]["httpx"]
    said = [problem["what"] for problem in alone["problems"]]
    assert "the extra `daemon` is not installed" in said
    assert "the extra `local` is not installed" in said
    note = "TIDEGATE_RETRYS is set and nobody reads it: did you mean TIDEGATE_RETRIES?"
    assert note in said
    said = [problem["what"] for problem in whole["problems"]]
    assert "the extra `daemon` is not installed" not in said
    assert note in said

"""The samples for systemd and for containers name what there is."""

import ast
import configparser
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tidegate.daemon.config.load import load


ROOT = Path(__file__).parents[3]
PACKAGING = ROOT / "packaging"
INSTALLED = "/opt/tidegate/bin/tidegate"
SCRIPT = Path(sys.executable).parent / "tidegate"


@pytest.fixture(scope="module")
def unit():
    parser = configparser.ConfigParser(interpolation=None, strict=False, delimiters=("=",))
    parser.optionxform = str
    parser.read(PACKAGING / "tidegate.service")
    return parser


def instructions():
    """Return name and rest of each instruction of the Containerfile, continuation lines joined."""
    text = (PACKAGING / "Containerfile").read_text()
    lines = re.sub(r"\\\n\s*", "", text).splitlines()
    return [tuple(line.split(maxsplit=1)) for line in lines if line and not line.startswith("#")]


def test_unit_runs_what_is_installed(unit):
    program, command, *options = shlex.split(unit["Service"]["ExecStart"])

    assert program == INSTALLED
    assert command == "serve"
    assert options[::2] == ["--config", "--journal"]
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    assert Path(program).name in scripts


def test_unit_is_of_the_kind_that_the_daemon_speaks_to(unit):
    service = unit["Service"]

    assert service["Type"] in ("notify", "notify-reload")
    assert service["NotifyAccess"] == "main"
    assert service["KillMode"] == "mixed", "else SIGTERM ends the workers before the drain"
    assert "HUP" in service["ExecReload"]
    assert "STATE_DIRECTORY" in service["ExecStart"]
    assert service["WorkingDirectory"] == f"/var/lib/{service['StateDirectory']}"


def test_unit_gives_a_drain_its_time(unit):
    assert int(unit["Service"]["TimeoutStopSec"]) > load(PACKAGING / "tidegate.toml").config.drain_s


def test_systemd_finds_nothing_wrong_with_the_unit(unit, tmp_path):
    there = tmp_path / "tidegate.service"
    source = (PACKAGING / "tidegate.service").read_text()
    there.write_text(source.replace(INSTALLED, str(SCRIPT)))
    verify = shutil.which("systemd-analyze")
    if verify is None:
        assert unit.sections() == ["Unit", "Service", "Install"]
        return
    command = [verify, "verify", "--man=no", there]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=50, check=False)

    said = [line for line in ran.stderr.splitlines() if "tidegate.service" in line]
    assert (ran.returncode, said) == (0, [])


def test_container_copies_what_there_is():
    from_here = [rest.split() for name, rest in instructions() if name == "COPY"]
    sources = [each for words in from_here if "--from=build" not in words for each in words[:-1]]

    assert len(sources) > 2
    assert [each for each in sources if not (ROOT / each).exists()] == []
    needed = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert {needed["readme"], *needed["license-files"]} <= set(sources)


def test_container_runs_what_is_installed():
    last = dict(instructions())

    assert ast.literal_eval(last["ENTRYPOINT"]) == [INSTALLED]
    command, *options = ast.literal_eval(last["CMD"])
    assert command == "serve"
    assert dict(zip(options[::2], options[1::2], strict=True)) == {
        "--config": "/etc/tidegate/tidegate.toml",
        "--listen": "0.0.0.0:8765",
        "--journal": "/var/lib/tidegate/tidegate.db",
    }
    assert last["USER"] != "root"
    assert last["STOPSIGNAL"] == "SIGTERM"


def test_sample_configuration_can_be_used():
    config = load(PACKAGING / "tidegate.toml", environ={}).config

    assert not config.is_loopback
    assert config.keys
    assert set(config.endpoints) == {"openai", "anthropic"}


@pytest.mark.parametrize("name", ["Containerfile", "tidegate.service"])
def test_samples_give_each_variable_that_the_sample_configuration_names(name):
    variables = re.findall(r'"env:(\w+)"', (PACKAGING / "tidegate.toml").read_text())
    text = (PACKAGING / name).read_text()

    assert len(variables) == 3
    assert [each for each in variables if not re.search(rf"\b{each}\b", text)] == []

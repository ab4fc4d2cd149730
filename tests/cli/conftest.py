"""Runs the command line as the user does: a process of its own, with its exit code."""

import subprocess
import sys

import pytest

from tests.daemon.e2e.conftest import endpoint, serve  # noqa: F401 - a fixture
from tidegate.lab import Lab


@pytest.fixture
def command():
    """Start ``tidegate`` with some words; it is gone when the test is."""
    processes = []
    outputs = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}

    def start(*words, **options):
        # The console script is these two lines; the import path is the test's.
        script = (
            f"import sys; sys.path[:] = {sys.path!r}\nfrom tidegate.cli.main import main; main()"
        )
        process = subprocess.Popen(
            [sys.executable, "-c", script, *map(str, words)],
            text=True,
            **{"stdin": subprocess.DEVNULL, **outputs, **options},
        )
        processes.append(process)
        return process

    yield start
    for process in processes:
        with process:
            process.kill()


@pytest.fixture
def tidegate(command):
    """Run ``tidegate`` to its end; returns its exit code and what it printed, twice."""

    def run(*words, **options):
        process = command(*words, **options)
        output, errors = process.communicate(timeout=50)
        return process.returncode, output, errors

    return run


@pytest.fixture
def lab():
    with Lab() as lab:
        yield lab


@pytest.fixture
def daemon(serve, lab):  # noqa: F811
    """A daemon in front of the lab."""
    return serve(endpoint(lab))

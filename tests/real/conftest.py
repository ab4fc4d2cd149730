"""A real model server of its own, nginx in front of anything, and requests for both."""

import contextlib
import json
import shutil
import socket
import subprocess
import urllib.request
from contextlib import closing, suppress

import pytest

import tidegate as tg
from tests.daemon.hosting import DaemonProcess
from tests.real import clients, processes
from tidegate.local.server import LocalServers
from tidegate.local.weights import fetch
from tidegate.testing.eventually import eventually


STORY = {
    "messages": [{"role": "user", "content": "Tell a long story about a lighthouse."}],
    "temperature": 0,
    "seed": 7,
}

NGINX_CONF = """
daemon off;
master_process off;
pid {folder}/nginx.pid;
error_log {folder}/nginx.err warn;
events {{ worker_connections 128; }}
http {{
  access_log off;
  client_body_temp_path {folder}/body;
  proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi;
  scgi_temp_path {folder}/scgi;
  server {{
    listen 127.0.0.1:{port};
    location / {{ proxy_pass {upstream}; {directives} }}
  }}
}}
"""
UNBUFFERED = 'proxy_http_version 1.1; proxy_set_header Connection ""; proxy_buffering off;'


@pytest.fixture(scope="module")
def model_server():
    """The real weights on the real server; gives its owner, to ask for address and process."""
    fetch()
    with closing(LocalServers()) as servers:
        servers.base_url("smollm2")
        yield servers


@pytest.fixture(scope="module")
def model_url(model_server):
    return model_server.base_url("smollm2")


@pytest.fixture(scope="module")
def tool_model(tmp_path_factory):
    """The real weights in a server of its own, with a template that tells the model of tools."""
    with processes.tool_model(fetch(), tmp_path_factory.mktemp("tool_model") / "log") as server:
        yield server


@pytest.fixture(scope="module")
def aimock(tmp_path_factory):
    with processes.aimock(tmp_path_factory.mktemp("aimock") / "log") as server:
        yield server


@pytest.fixture(scope="module")
def quiet_aimock(tmp_path_factory):
    """Another one, for turns that end early alone: no connection is ever left in a pool."""
    with processes.aimock(tmp_path_factory.mktemp("quiet_aimock") / "log") as server:
        yield server


@pytest.fixture(scope="module")
def llmock(tmp_path_factory):
    with processes.llmock(tmp_path_factory.mktemp("llmock") / "log") as server:
        yield server


@pytest.fixture(scope="module")
def asking(tmp_path_factory):
    """The clients of others, by name."""
    log = tmp_path_factory.mktemp("clients") / "log"
    with clients.node_clients(log) as process, closing(clients.Python()) as python:
        made = (
            python,
            clients.Node(process, "official"),
            clients.Node(process, "vercel"),
        )
        yield {each.name: each for each in made}


@pytest.fixture(scope="module")
def serve(tmp_path_factory):
    """Start daemons, each in a folder of its own; all of them end in good order."""
    with contextlib.ExitStack() as stack:

        def start(*tables, top=""):
            config = "\n".join(('listen = "127.0.0.1:0"', top, *tables))
            folder = tmp_path_factory.mktemp("daemon")
            daemon = DaemonProcess(folder, config, {"TEST_PROVIDER_KEY": "key"})
            stack.callback(processes.end_daemon, daemon)
            return daemon

        yield start


@pytest.fixture
def busy_slots():
    """Say how many answers the model is working at."""

    def look(model_url):
        with urllib.request.urlopen(f"{model_url.removesuffix('/v1')}/slots", timeout=20) as slots:
            return sum(slot["is_processing"] for slot in json.load(slots))

    return look


@pytest.fixture(scope="module")
def runtime():
    with tg.Runtime(workers=1) as runtime:
        yield runtime


@pytest.fixture
def nginx(tmp_path):
    """Start nginx in front of a base URL, unbuffered or with other directives; gives its URL."""
    binary = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin:/usr/local/sbin")
    assert binary, "nginx is missing: `make test-real` installs it"
    processes = []

    def start(base_url, directives=UNBUFFERED):
        port = free_port()
        configuration = tmp_path / f"{port}.conf"
        upstream = base_url.removesuffix("/v1")
        configuration.write_text(
            NGINX_CONF.format(folder=tmp_path, port=port, upstream=upstream, directives=directives)
        )
        command = [binary, "-e", tmp_path / "nginx.err", "-p", tmp_path, "-c", configuration]
        processes.append(subprocess.Popen(command))
        eventually(lambda: answers(port))
        return f"http://127.0.0.1:{port}/v1"

    yield start
    for process in processes:
        process.terminate()
        process.wait(20)


def free_port():
    # nginx takes no socket from us, so that there is a moment in which it could be taken.
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        return taken.getsockname()[1]


def answers(port):
    with suppress(OSError), closing(socket.create_connection(("127.0.0.1", port), timeout=1)):
        return True
    return False


@pytest.fixture
def story():
    """Make a request for a long answer; keywords are fields of its policy."""

    def make(base_url, *, max_tokens=400, **policy):
        payload = STORY | {"max_tokens": max_tokens}
        impatient = {"backoff_s": (0.05,)} | policy
        return tg.Request(tg.Endpoint.chat(base_url), payload, policy=tg.Policy(**impatient))

    return make

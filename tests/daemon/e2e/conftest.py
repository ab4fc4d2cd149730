"""Daemons that end with their test, in front of labs."""

import contextlib

import pytest

from tests.daemon.hosting import PROMPT, DaemonProcess, Frames
from tidegate.lab import Lab, chat


IMPATIENT = """
[policy]
backoff_s = [0.01]
backoff_jitter = 0.0
"""


def endpoint(lab, wire="chat", name="main", more=""):
    """Return the table of an endpoint that is a lab."""
    url = lab.url if wire in ("chat", "responses") else lab.url.removesuffix("/v1")
    return (
        f'[endpoints.{name}]\nwire = "{wire}"\nbase_url = "{url}"\n'
        f'api_key = "env:TEST_PROVIDER_KEY"\n{more}\n'
    )


@pytest.fixture
def serve(tmp_path):
    """Start a daemon: top-level lines, then tables; all of them end in good order."""
    running = []

    def start(*tables, listen="127.0.0.1:0", top="", policy=IMPATIENT, folder=None, environ=()):
        config = "\n".join((f'listen = "{listen}"', top, *tables, policy))
        daemon = DaemonProcess(
            folder or tmp_path, config, {"TEST_PROVIDER_KEY": "provider-key", **dict(environ)}
        )
        running.append(daemon)
        return daemon

    yield start
    for daemon in running:
        if daemon.process.poll() is None:
            # Turns that a test has left are interrupted at once, by a second signal.
            assert daemon.end_now() == 0, daemon.log.read_text()


class House:
    """One daemon in front of a lab for each wire, for all tests of a file."""

    def __init__(self, folder, labs):
        self.labs = labs
        tables = [endpoint(lab, wire, name=wire) for wire, lab in labs.items()]
        config = "\n".join(
            ('listen = "127.0.0.1:0"', *tables, "[policy]\nretries = 0\nstale_giveup = 0\n")
        )
        self.daemon = DaemonProcess(folder, config, {"TEST_PROVIDER_KEY": "provider-key"})

    def warm(self):
        """Wait until its workers have loaded what all wires need."""
        self.chat.add(chat.answer("warm"))
        with self.daemon.client() as client:
            client.post("/v1/chat/completions", json=PROMPT, timeout=60).raise_for_status()

    def __getattr__(self, wire):
        return self.labs[wire]


@pytest.fixture(scope="module")
def house(tmp_path_factory):
    with contextlib.ExitStack() as stack:
        labs = {wire: stack.enter_context(Lab([])) for wire in ("chat", "responses", "messages")}
        house = House(tmp_path_factory.mktemp("house"), labs)
        try:
            house.warm()
            yield house
        finally:
            code = house.daemon.end()
        assert code == 0, house.daemon.log.read_text()


@pytest.fixture
def client(house):
    with house.daemon.client() as client:
        yield client


@pytest.fixture
def stream(client):
    """Ask for a stream of chat completions, and return its frames as they come."""
    with contextlib.ExitStack() as stack:

        def ask(path="/v1/chat/completions", body=PROMPT, **options):
            more = {} if body is None else {"json": {**body, "stream": True}}
            method = "GET" if body is None else "POST"
            response = stack.enter_context(client.stream(method, path, **more, **options))
            return Frames(response)

        yield ask

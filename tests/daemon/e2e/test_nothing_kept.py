"""What is over is in the journal alone: the daemon's memory holds nothing of it."""

import asyncio
import gc
import threading

import httpx
import pytest

from tests.daemon.hosting import PROMPT
from tests.daemon.sockets import Client
from tidegate.daemon.config.model import DaemonConfig, EndpointConfig
from tidegate.daemon.parts import Parts
from tidegate.daemon.serve import Server, address_of, listening
from tidegate.daemon.stream.response import Response
from tidegate.daemon.turns.hosted import HostedTurn
from tidegate.lab import Answer, End, Lab, chat
from tidegate.protocol.policy import Policy
from tidegate.testing.eventually import eventually


CHAT = "/v1/chat/completions"
STREAMED = {**PROMPT, "stream": True}
ASKED = {"endpoint": "main", "payload": PROMPT}
GUARD_S = 60


class InThread:
    """All parts of a daemon, in this process: what it keeps can be looked at."""

    def __init__(self, config):
        self._config = config
        self._up = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()))

    async def _run(self):
        self._loop = asyncio.get_running_loop()
        listener = listening(self._config)
        async with Parts(self._config) as parts:
            self.parts, server = parts, Server(parts.app)
            serving = asyncio.create_task(server.serve([listener]))
            await server.up.wait()
            self.url = address_of(listener)
            self.port = listener.getsockname()[1]
            self._up.set()
            await parts.until_drained()
            server.should_exit = True
            await serving
        listener.close()

    def __enter__(self):
        self._thread.start()
        assert self._up.wait(GUARD_S)
        return self

    def __exit__(self, *_error):
        self._loop.call_soon_threadsafe(self.parts.drain)
        self._thread.join(GUARD_S)
        assert not self._thread.is_alive()

    def kept(self):
        """Return what is known of turns."""
        registry = self.parts.registry
        state = registry.state
        admission = registry._admission
        return [
            *state.turns,
            *state.waiting,
            *registry.hosted,
            *registry._timers,
            *registry._refused,
            *registry._readers,
            *admission._waiting,
            *admission._turned_away,
        ]


@pytest.fixture
def lab():
    with Lab([]) as lab:
        yield lab


@pytest.fixture
def daemon(lab, tmp_path):
    endpoint = EndpointConfig(
        wire="chat", base_url=lab.url, api_key="env:PATH", policy=Policy(retries=0)
    )
    with InThread(
        DaemonConfig(
            listen="127.0.0.1:0",
            journal=str(tmp_path / "tidegate.db"),
            max_running=1,
            max_queued=1,
            workers=1,
            endpoints={"main": endpoint},
        )
    ) as daemon:
        yield daemon


@pytest.fixture
def no_collector():
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("no_collector")
def test_turns_that_are_over_need_no_collector(daemon, lab):
    lab.add(*(chat.answer("some") for _ in range(4)))
    with httpx.Client(base_url=daemon.url, timeout=GUARD_S) as client:
        for body in (PROMPT, STREAMED, PROMPT, STREAMED):
            turn_id = client.post(CHAT, json=body).headers["tidegate-turn"]
            client.get(f"/v1/turns/{turn_id}/events")
        # A connection keeps its last request.
        client.get("/livez")

        def kept():
            return [each for each in gc.get_objects() if type(each) in (HostedTurn, Response)]

        eventually(lambda: not kept())


def test_of_turns_that_are_over_nothing_is_kept(daemon, lab):
    held = Answer([chat.text("some"), End.HOLD])
    with httpx.Client(base_url=daemon.url, timeout=GUARD_S) as client:
        for number in range(3):
            key = {"idempotency-key": f"key-{number}"}
            lab.add(chat.answer("whole"), chat.answer("streamed"), chat.error_answer(400, "no"))
            for body in (PROMPT, STREAMED, PROMPT):
                client.post(CHAT, json=body)
            lab.add(held)
            with Client(daemon.port) as running, Client(daemon.port) as waiting:
                running.ask("POST", CHAT, STREAMED, {"tidegate-on-disconnect": "continue:600"})
                running.until(b'"some"')
                waiting.ask("POST", CHAT, PROMPT)
                eventually(lambda: daemon.parts.registry.state.queued == 1)
                refused = [
                    client.post(CHAT, json=STREAMED),
                    client.post("/v1/turns", json=ASKED),
                    client.post("/v1/turns", json=ASKED, headers=key),
                ]
                assert {each.status_code for each in refused} == {429}
                with Client(daemon.port) as reader:
                    reader.ask("GET", f"/v1/turns/{running.turn_id}/events").until(b'"some"')
                    waiting.leave("reset")
                    running.leave("reset")
                    client.post(f"/v1/turns/{running.turn_id}/interrupt")
                    reader.until(b"event: turn.interrupted")
            lab.add(chat.answer("kept"))
            for _ in range(2):
                made = client.post("/v1/turns", json=ASKED, headers=key)
                assert made.status_code == 202
            turn_id = made.json()["id"]
            eventually(
                lambda turn_id=turn_id: client.get(f"/v1/turns/{turn_id}").json()["ended_at"]
            )
            assert client.delete(f"/v1/turns/{turn_id}").status_code == 204
            eventually(lambda: not daemon.kept())
    assert lab.unexpected == []

"""A client of the daemon leaves its stream: the turn ends, unless it has ended already.

What the seeds show with responses whose ``write`` fails is shown here on the client's own socket.
"""

import pytest

from tests.daemon.hosting import DaemonProcess
from tests.daemon.sockets import Client
from tidegate.lab import Answer, End, Lab, chat, gate
from tidegate.testing.eventually import eventually


STREAMED = {
    "model": "test-model",
    "messages": [{"role": "user", "content": "Hello"}],
    "stream": True,
}
REASON = "SSE client disconnected"


@pytest.fixture(scope="module")
def lab():
    with Lab([]) as lab:
        yield lab


@pytest.fixture(scope="module")
def daemon(tmp_path_factory, lab):
    config = (
        'listen = "127.0.0.1:0"\nmax_running = 1\n[endpoints.main]\nwire = "chat"\n'
        f'base_url = "{lab.url}"\napi_key = "env:TEST_PROVIDER_KEY"\n'
    )
    folder = tmp_path_factory.mktemp("daemon")
    daemon = DaemonProcess(folder, config, {"TEST_PROVIDER_KEY": "provider-key"})
    lab.add(chat.answer("warm"))
    with daemon.client() as client:
        client.post("/v1/chat/completions", json=STREAMED, timeout=60).raise_for_status()
    yield daemon
    assert daemon.end() == 0


@pytest.fixture
def ask(daemon, lab):
    """Ask for a stream; returns the client, and the number of the provider's request."""
    clients = []

    def begin(*steps):
        number = len(lab.requests)
        lab.add(Answer(steps))
        client = Client(daemon.port)
        clients.append(client)
        client.ask("POST", "/v1/chat/completions", STREAMED)
        lab.wait_requests(number + 1)
        return client, number

    yield begin
    for client in clients:
        client.socket.close()


@pytest.fixture
def ended(daemon):
    """Wait for the end of a turn; without a name of the newest."""

    def wait(turn_id=None):
        with daemon.client() as client:
            known = turn_id or client.get("/v1/turns").json()["turns"][0]["id"]

            def end():
                found = client.get(f"/v1/turns/{known}").json()
                return found if found["ended_at"] else None

            return eventually(end)

    return wait


def test_agent_task_cancelled_on_client_disconnect(ask, lab, ended):
    """The socket is reset when one frame has come and a second one is due."""
    client, number = ask(chat.text("hello "), End.HOLD)
    client.until(b"hello ")

    client.leave("reset")

    assert lab.wait_closed(number).how in ("eof", "reset")
    turn = ended(client.turn_id)
    assert (turn["state"], turn["answer"]["text"]) == ("interrupted", "hello ")


def test_agent_task_not_cancelled_on_normal_completion(ask, ended):
    client, _ = ask(*chat.answer("hello").steps)
    client.until(b"data: [DONE]\n\n")

    client.leave()

    turn = ended(client.turn_id)
    assert (turn["state"], turn["answer"]["text"]) == ("completed", "hello")
    assert "reason" not in turn


def test_broken_pipe_also_cancels_agent(ask, lab, ended):
    """The client is gone before the first frame, so that the first write would find nobody."""
    client, number = ask(gate("never"), chat.text("hello"), End.HOLD)

    client.leave("close")

    assert lab.wait_closed(number).how in ("eof", "reset")
    turn = ended()
    assert (turn["state"], turn["answer"].get("text", "")) == ("interrupted", "")


def test_already_done_task_not_cancelled_on_disconnect(ask, ended):
    """The turn is complete, and its client goes with most of the answer still untaken."""
    text = "data" * (1 << 20)
    client, _ = ask(*chat.answer(text).steps)
    turn = ended(client.turn_id)

    client.leave("reset")

    assert (turn["state"], turn["answer"]["text"]) == ("completed", text)
    assert ended(client.turn_id) == turn


def test_agent_interrupt_called_on_disconnect(ask, lab, ended, daemon):
    """Once, with the reason that names who left, and without a failure of anybody else's."""
    client, number = ask(chat.text("hello "), End.HOLD)
    client.until(b"hello ")

    client.leave("fin")

    assert lab.wait_closed(number).how in ("eof", "reset")
    turn = ended(client.turn_id)
    assert turn["reason"] == turn["answer"]["failure"]["detail"] == REASON
    with daemon.client() as looking:
        events = looking.get(f"/v1/turns/{client.turn_id}/events").text
    assert events.count("event: turn.interrupted") == 1
    assert events.count(f'"reason":"{REASON}"') == 1


def test_agent_ref_none_still_cancels_task(ask, daemon, lab, ended):
    """The turn waits for its place, so that there is nothing to interrupt; it ends all the same."""
    first, number = ask(chat.text("hello"), End.HOLD)
    first.until(b"hello")
    with daemon.client() as looking, Client(daemon.port) as second:
        second.ask("POST", "/v1/chat/completions", STREAMED)
        [turn] = eventually(lambda: looking.get("/v1/turns?state=queued").json()["turns"])

        second.leave("reset")

        assert ended(turn["id"])["reason"] == REASON
        first.leave()
        assert ended(first.turn_id)["reason"] == REASON
    assert len(lab.requests) == number + 1

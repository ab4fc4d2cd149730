"""A daemon that is to stop takes on nothing more, and lets what runs end in good order."""

import contextlib
import signal

import pytest

from tests.daemon.e2e.conftest import endpoint
from tests.daemon.e2e.reading import body_of, events_in
from tests.daemon.hosting import PROMPT
from tests.daemon.sockets import Client
from tidegate.lab import Answer, Lab, chat, gate
from tidegate.testing.eventually import eventually


CHAT = "/v1/chat/completions"
STREAMED = {**PROMPT, "stream": True}
ASKED = {"endpoint": "main", "payload": PROMPT}
LEFT = ("eof", "reset")


@pytest.fixture
def lab():
    held = [chat.text("Hel"), gate("go"), *chat.answer("lo").steps]
    with Lab([Answer(held, repeat=True)]) as lab:
        yield lab


@pytest.fixture
def connect():
    """Connect to a daemon; what is connected is closed in the end."""
    with contextlib.ExitStack() as stack:
        yield lambda daemon: stack.enter_context(Client(daemon.port))


def drain(daemon, client):
    """Have it drain, and wait until it does."""
    daemon.process.terminate()
    eventually(lambda: client.get("/readyz").status_code == 503)


def test_what_runs_ends_in_good_order(serve, lab, connect):
    daemon = serve(endpoint(lab), top="max_running = 2")
    with daemon.client() as client:
        asker = connect(daemon).ask("POST", CHAT, STREAMED)
        asker.until(b'"Hel"')
        turn_id = client.post("/v1/turns", json=ASKED).json()["id"]
        reader = connect(daemon).ask("GET", f"/v1/turns/{turn_id}/events")
        reader.until(b'"Hel"')
        waiting = connect(daemon).ask("POST", CHAT, STREAMED)
        queued = eventually(lambda: client.get("/v1/turns?state=queued").json()["turns"])[0]["id"]

        drain(daemon, client)

        assert client.get("/readyz").json() == {"status": "draining"}
        assert client.get("/livez").status_code == 200
        for path, body in [(CHAT, PROMPT), ("/v1/turns", ASKED)]:
            refused = client.post(path, json=body)
            assert refused.status_code == 503
            assert int(refused.headers["retry-after"]) >= 1
            assert "stopping" in refused.json()["error"]["message"]
        # Readers are told where to go on.
        place = f"/v1/turns/{turn_id}/events"
        asker.until(f"/v1/turns/{asker.turn_id}/events".encode())
        reader.until(b"event: daemon.draining")
        told = [each for each in events_in(body_of(reader.got)) if each.name == "daemon.draining"]
        assert [(each.data["resume"], each.id) for each in told] == [(place, -1)]
        # What waited does not begin.
        assert b"daemon draining" in waiting.until(b"daemon draining")
        turn = client.get(f"/v1/turns/{queued}").json()
        assert (turn["state"], turn["reason"]) == ("interrupted", "daemon draining")
        lab.open("go")
        assert asker.until(b"data: [DONE]\n\n").count(b"data: [DONE]") == 1
        reader.until(b"event: turn.completed")
    assert daemon.ended() == 0
    assert len(lab.requests) == 2


def test_second_signal_interrupts_what_runs(serve, lab, connect):
    daemon = serve(endpoint(lab))
    with daemon.client() as client:
        asker = connect(daemon).ask("POST", CHAT, STREAMED)
        asker.until(b'"Hel"')
        drain(daemon, client)

        daemon.process.terminate()

        got = asker.to_end()
        assert b"daemon stopping" in got
        assert b"[DONE]" not in got
        assert lab.wait_closed(0).how in LEFT
    assert daemon.ended() == 0
    daemon = serve(endpoint(lab))
    with daemon.client() as client:
        turn = client.get(f"/v1/turns/{asker.turn_id}").json()
    assert (turn["state"], turn["reason"]) == ("interrupted", "daemon stopping")


@pytest.mark.parametrize("drain_s", ["0", "0.05"])
def test_deadline_interrupts_what_runs(serve, lab, connect, drain_s):
    daemon = serve(endpoint(lab), top=f"drain_s = {drain_s}")
    asker = connect(daemon).ask("POST", CHAT, STREAMED)
    asker.until(b'"Hel"')

    daemon.process.terminate()

    assert b"daemon stopping" in asker.to_end()
    assert lab.wait_closed(0).how in LEFT
    assert daemon.ended() == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_nothing_to_wait_for_is_the_end_at_once(serve, lab, connect, number):
    daemon = serve(endpoint(lab), top="drain_s = 600")
    idle = connect(daemon).ask("GET", "/livez")
    idle.until(b'"ok"')

    assert daemon.end(number=number) == 0
    idle.to_end()


def test_turn_may_be_interrupted_while_it_drains(serve, lab, connect):
    daemon = serve(endpoint(lab), top="drain_s = 600")
    with daemon.client() as client:
        asker = connect(daemon).ask("POST", CHAT, STREAMED)
        asker.until(b'"Hel"')
        drain(daemon, client)

        answer = client.post(f"/v1/turns/{asker.turn_id}/interrupt")

        assert (answer.status_code, answer.json()["state"]) == (200, "interrupted")
    assert daemon.ended() == 0


def test_client_that_leaves_while_it_drains_lets_it_end(serve, lab, connect):
    daemon = serve(endpoint(lab), top="drain_s = 600")
    with daemon.client() as client:
        asker = connect(daemon).ask("POST", CHAT, STREAMED)
        asker.until(b'"Hel"')
        drain(daemon, client)

    asker.leave("reset")

    assert daemon.ended() == 0
    assert lab.wait_closed(0).how in LEFT

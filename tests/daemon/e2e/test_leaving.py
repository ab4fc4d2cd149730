"""A client that leaves is noticed in every phase, and what that means is a policy."""

import contextlib
import socket
from pathlib import Path

import pytest

from tests.daemon.e2e.conftest import endpoint
from tests.daemon.hosting import PROMPT
from tests.daemon.sockets import Client
from tidegate.lab import Answer, End, Lab, chat, gate
from tidegate.testing.eventually import eventually


STREAMED = {**PROMPT, "stream": True}
CHAT = "/v1/chat/completions"
REASON = "SSE client disconnected"
LEFT = ("eof", "reset")
WAYS = ("fin", "close", "reset")


@pytest.fixture
def guest(house):
    """Connect to the daemon of this file; what is connected is closed in the end."""
    with contextlib.ExitStack() as stack:
        yield lambda **options: stack.enter_context(Client(house.daemon.port, **options))


@pytest.fixture
def turn(client):
    """Look at a turn; without a name at the newest."""

    def look(turn_id=None):
        if turn_id is None:
            turn_id = client.get("/v1/turns").json()["turns"][0]["id"]
        return client.get(f"/v1/turns/{turn_id}").json()

    return look


@pytest.fixture
def ended(turn):
    """Wait for the end of a turn."""

    def wait(turn_id=None):
        def end():
            found = turn(turn_id)
            return found if found["ended_at"] else None

        return eventually(end)

    return wait


def is_left(turn, text=""):
    assert (turn["state"], turn["reason"]) == ("interrupted", REASON)
    assert turn["answer"].get("text", "") == text
    return True


def ask_held(house, guest, *steps, body=STREAMED, headers=(), **more):
    """Ask for an answer that goes no further than ``steps``; returns the client."""
    at = len(house.chat.requests)
    house.chat.add(Answer([*steps, End.HOLD], **more))
    client = guest().ask("POST", CHAT, body, headers)
    house.chat.wait_requests(at + 1)
    return client, at


@pytest.mark.parametrize("how", WAYS)
def test_mid_stream(house, guest, ended, how):
    client, at = ask_held(house, guest, chat.text("some"))
    client.until(b'"some"')

    client.leave(how)

    assert house.chat.wait_closed(at).how in LEFT
    assert is_left(ended(client.turn_id), "some")


@pytest.mark.parametrize("how", WAYS)
@pytest.mark.parametrize("streamed", [True, False])
def test_before_the_first_byte(house, guest, ended, how, streamed):
    body = {**PROMPT, "stream": streamed}
    client, at = ask_held(house, guest, body=body, headers_with_first_frame=True)

    client.leave(how)

    assert house.chat.wait_closed(at).how in LEFT
    assert is_left(ended())


@pytest.mark.parametrize("how", WAYS)
def test_while_a_whole_answer_is_made(house, guest, turn, ended, how):
    client, at = ask_held(house, guest, chat.text("some"), body=PROMPT)
    eventually(lambda: turn()["answer"].get("text"))

    client.leave(how)

    assert house.chat.wait_closed(at).how in LEFT
    assert is_left(ended(), "some")


@pytest.mark.parametrize("how", WAYS)
def test_with_a_second_request_in_the_pipe(house, guest, turn, ended, how):
    client, at = ask_held(house, guest, chat.text("some"))
    client.until(b'"some"')
    client.ask("POST", CHAT, STREAMED)

    client.leave(how)

    assert house.chat.wait_closed(at).how in LEFT
    assert is_left(ended(client.turn_id), "some")
    assert turn()["id"] == client.turn_id
    assert len(house.chat.requests) == at + 1


@pytest.mark.parametrize("how", WAYS)
def test_while_it_sends_its_request(house, guest, client, how):
    before = client.get("/v1/turns").json()
    seen = len(house.chat.requests)

    guest().ask("POST", CHAT, STREAMED, cut=7).leave(how)

    assert client.get("/readyz").status_code == 200
    assert client.get("/v1/turns").json() == before
    assert len(house.chat.requests) == seen


def test_while_the_provider_is_connected_to(serve):
    with socket.create_server(("127.0.0.1", 0), backlog=0) as deaf, contextlib.ExitStack() as stack:
        port = deaf.getsockname()[1]
        for _ in range(3):  # nobody accepts, so that no other one is answered
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(("127.0.0.1", port))
        eventually(lambda: connecting_to(port))
        before = connecting_to(port)
        daemon = serve(
            f'[endpoints.main]\nwire = "chat"\nbase_url = "http://127.0.0.1:{port}"\n'
            'api_key = "env:TEST_PROVIDER_KEY"'
        )
        looking = stack.enter_context(daemon.client())
        for how in WAYS:
            client = stack.enter_context(Client(daemon.port)).ask("POST", CHAT, STREAMED)
            eventually(lambda: connecting_to(port) - before)

            client.leave(how)

            eventually(lambda: connecting_to(port) == before)
            [newest, *_] = eventually(
                lambda: looking.get("/v1/turns?state=interrupted").json()["turns"]
            )
            assert is_left(looking.get(f"/v1/turns/{newest['id']}").json())
        assert len(listed(looking)) == len(WAYS)
        eventually(lambda: {each["state"] for each in listed(looking)} == {"interrupted"})


def connecting_to(port):
    """Return the local ports of connections to ``port`` that were not answered yet."""
    lines = Path("/proc/net/tcp").read_text().splitlines()[1:]
    rows = [line.split() for line in lines]
    wanted = f"0100007F:{port:04X}"
    return {row[1] for row in rows if row[2] == wanted and row[3] == "02"}


def test_while_queued(serve):
    with Lab([Answer([chat.text("first"), gate("go"), *chat.answer().steps])]) as lab:
        daemon = serve(endpoint(lab), top="max_running = 1")
        with daemon.client() as looking, Client(daemon.port) as running:
            running.ask("POST", CHAT, STREAMED).until(b'"first"')
            for how in WAYS:
                with Client(daemon.port) as waiting:
                    waiting.ask("POST", CHAT, STREAMED)
                    [turn] = eventually(lambda: listed(looking, "?state=queued"))

                    waiting.leave(how)

                    eventually(lambda: not listed(looking, "?state=queued"))
                    assert is_left(looking.get(f"/v1/turns/{turn['id']}").json())
            lab.open("go")
            running.until(b"[DONE]")
            lab.add(chat.answer("next"))
            assert looking.post(CHAT, json=PROMPT).status_code == 200
            assert len(lab.requests) == 2


def listed(client, query=""):
    return client.get(f"/v1/turns{query}").json()["turns"]


@pytest.mark.parametrize("how", WAYS)
@pytest.mark.parametrize("policy", ["continue", "continue:600"])
def test_turn_that_goes_on_is_complete_afterwards(house, guest, ended, how, policy):
    house.chat.add(Answer([chat.text("Hel"), gate(f"{how}-{policy}"), *chat.answer("lo").steps]))
    client = guest().ask("POST", CHAT, STREAMED, {"tidegate-on-disconnect": policy})
    client.until(b'"Hel"')

    client.leave(how)

    house.chat.open(f"{how}-{policy}")
    found = ended(client.turn_id)
    assert (found["state"], found["on_disconnect"]) == ("completed", policy)
    assert found["answer"]["text"] == "Hello"


@pytest.mark.parametrize("streamed", [True, False])
def test_turn_that_goes_on_for_a_while_is_interrupted_after_it(house, guest, ended, streamed):
    body, headers = {**PROMPT, "stream": streamed}, {"tidegate-on-disconnect": "continue:0.05"}
    client, at = ask_held(house, guest, chat.text("some"), body=body, headers=headers)

    client.leave()

    assert house.chat.wait_closed(at).how in LEFT
    assert ended()["reason"] == REASON


@pytest.mark.parametrize("policy", ["stay", "continue:0", "continue:-1", "continue:"])
def test_policy_that_makes_no_sense_is_refused(client, policy):
    response = client.post(CHAT, json=PROMPT, headers={"tidegate-on-disconnect": policy})

    assert response.status_code == 400
    message = response.json()["error"]["message"]
    assert "tidegate-on-disconnect" in message
    assert "interrupt" in message


def test_policy_is_the_requests_then_the_endpoints_then_the_daemons(serve):
    own = 'on_disconnect = "interrupt"\nmodels = ["own-*"]'
    with Lab([]) as lab:
        daemon = serve(
            endpoint(lab, name="own", more=own),
            endpoint(lab, name="other", more='models = ["other-*"]'),
            top='on_disconnect = "continue"',
        )
        asked = [
            ("own-model", {}, "interrupted"),
            ("other-model", {}, "completed"),
            ("own-model", {"tidegate-on-disconnect": "continue"}, "completed"),
            ("other-model", {"tidegate-on-disconnect": "interrupt"}, "interrupted"),
        ]
        with daemon.client() as looking:
            for number, (model, headers, state) in enumerate(asked):
                rest = chat.answer("lo").steps
                lab.add(Answer([chat.text("Hel"), gate(f"go-{number}"), *rest]))
                with Client(daemon.port) as client:
                    client.ask("POST", CHAT, {**STREAMED, "model": model}, headers)
                    client.until(b'"Hel"')
                    client.leave()
                if state == "interrupted":
                    assert lab.wait_closed(number).how in LEFT
                lab.open(f"go-{number}")
                eventually(lambda: listed(looking)[0]["ended_at"])
                assert listed(looking)[0]["state"] == state


@pytest.mark.parametrize("how", WAYS)
def test_who_leaves_the_events_ends_nothing(house, guest, client, ended, how):
    house.chat.add(Answer([chat.text("Hel"), gate(f"events-{how}"), *chat.answer("lo").steps]))
    made = client.post("/v1/turns", json={"endpoint": "chat", "payload": PROMPT}).json()
    readers = [guest().ask("GET", f"/v1/turns/{made['id']}/events") for _ in range(2)]
    for reader in readers:
        reader.until(b'"Hel"')

    for reader in readers:
        reader.leave(how)

    house.chat.open(f"events-{how}")
    found = ended(made["id"])
    assert (found["state"], found["answer"]["text"]) == ("completed", "Hello")

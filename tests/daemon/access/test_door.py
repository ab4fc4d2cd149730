"""The door on a real socket: refused in the words of the API that was asked, and let in as whom."""

import pytest

from tests.daemon.ops.serving import Client, Server, answer
from tidegate.daemon.access import Access, Keys, OwnReply, RateLimit, Rules, owner_of
from tidegate.daemon.access.body import read_body


KEY = "a-key-of-nobody"
LOCKED = Rules(keys=Keys([KEY]), loopback=True, origins=frozenset({"https://app.example"}))
BEARER = f"authorization: Bearer {KEY}\r\n"


async def behind(scope, receive, send):
    await read_body(receive, scope["headers"], 1 << 20)
    await answer(send, scope["state"]["owner"].encode(), headers=[(b"tidegate-turn", b"turn_1")])


def shaped(api, status, kind, message, headers):
    return OwnReply(status, dict(headers), {"api": api, "kind": kind, "message": message})


@pytest.fixture
def door():
    return Access(behind, LOCKED, refusal=shaped)


@pytest.fixture
def client(door):
    with Server(door) as server, Client(server.port) as client:
        yield client


def test_request_with_a_key_goes_on_as_its_owners(client):
    client.ask("POST", "/v1/turns", BEARER, b"{}")

    status, headers, body = client.answer()
    assert (status, body.decode()) == (200, owner_of(KEY))
    assert headers["vary"] == "origin"
    assert headers["tidegate-turn"] == "turn_1"


@pytest.mark.parametrize(
    ("path", "header", "api"),
    [
        ("/v1/chat/completions", "", "chat"),
        ("/v1/responses", "", "responses"),
        ("/v1/messages", "", "messages"),
        ("/v1/models", "", "chat"),
        ("/v1/models/m", "anthropic-version: 2023-06-01\r\n", "messages"),
    ],
)
def test_refusal_is_in_the_words_of_the_api(client, path, header, api):
    client.ask("POST", path, header, b"{}")

    status, headers, body = client.json()
    assert (status, body["api"], body["kind"]) == (401, api, "auth")
    assert headers["www-authenticate"] == 'Bearer realm="tidegate"'
    assert headers["content-type"] == "application/json"


@pytest.mark.parametrize("path", ["/v1/turns", "/v1/turns/turn_1/events", "/nothing"])
def test_other_refusals_are_in_our_own_words(client, path):
    client.ask("GET", path)

    status, _, body = client.json()
    assert status == 401
    assert body["error"]["type"] == "auth"
    assert "x-api-key" in body["error"]["message"]


def test_refusal_keeps_the_connection(client):
    for _ in range(3):
        client.ask("POST", "/v1/turns", body=b"x" * 100_000)
        assert client.answer()[0] == 401
    client.ask("POST", "/v1/turns", BEARER, b"{}")
    assert client.answer()[0] == 200


def test_refusal_of_a_head_has_no_body(client):
    client.ask("HEAD", "/v1/turns")
    head = client.until(b"\r\n\r\n")
    client.ask("POST", "/v1/turns", BEARER, b"{}")

    assert head.startswith(b"HTTP/1.1 401")
    assert client.answer()[0] == 200


def test_preflight_has_no_body_and_needs_no_key(client):
    client.ask(
        "OPTIONS",
        "/v1/turns",
        "origin: https://app.example\r\naccess-control-request-method: POST\r\n",
    )

    status, headers, body = client.answer()
    assert (status, body) == (204, b"")
    assert headers["access-control-allow-origin"] == "https://app.example"
    assert "content-length" not in headers


def test_page_that_is_listed_can_read_answers_and_refusals(client):
    for key, status in ((BEARER, 200), ("", 401)):
        client.ask("POST", "/v1/turns", f"origin: https://app.example\r\n{key}", b"{}")
        found, headers, _ = client.answer()
        assert found == status
        assert headers["access-control-allow-origin"] == "https://app.example"


def test_rules_and_rates_can_be_replaced(client, door):
    door.rate = RateLimit(1)
    for status in (200, 429):
        client.ask("POST", "/v1/turns", BEARER, b"{}")
        assert client.answer()[0] == status
    door.rules = Rules(keys=Keys(["another"]), loopback=True)
    client.ask("POST", "/v1/turns", BEARER, b"{}")
    assert client.answer()[0] == 401


def test_rate_is_counted_by_the_clock_that_was_given():
    now_s = [0.0]
    door = Access(behind, LOCKED, RateLimit(1), clock=lambda: now_s[0])
    with Server(door) as server, Client(server.port) as client:
        statuses = []
        for at_s in (0.0, 59.0, 60.0):
            now_s[0] = at_s
            client.ask("POST", "/v1/turns", BEARER, b"{}")
            statuses.append(client.answer()[0])

    assert statuses == [200, 429, 200]

"""Whoever asks again with the same key gets the same turn, and the provider one request."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from tests.daemon.e2e.conftest import endpoint
from tests.daemon.hosting import PROMPT
from tidegate.lab import Answer, Lab, chat, gate
from tidegate.testing.eventually import eventually


ASKED = {"endpoint": "chat", "payload": PROMPT}
OTHER = {"endpoint": "chat", "payload": {**PROMPT, "temperature": 0}}


@pytest.fixture
def key(request):
    """A key that no other test has."""
    return {"idempotency-key": request.node.name}


def ask(client, body, headers):
    return client.post("/v1/turns", json=body, headers=headers)


def wait_ended(client, turn_id):
    eventually(lambda: client.get(f"/v1/turns/{turn_id}").json()["ended_at"])


def test_same_key_and_body_are_the_same_turn(house, client, key):
    at = len(house.chat.requests)
    house.chat.add(Answer([gate("same"), *chat.answer("Hello").steps]))
    first = ask(client, ASKED, key)
    again = ask(client, ASKED, key)
    reordered = ask(client, dict(reversed(ASKED.items())), key)
    house.chat.open("same")
    wait_ended(client, first.json()["id"])
    late = ask(client, ASKED, key)

    assert {each.status_code for each in (first, again, reordered, late)} == {202}
    assert {each.json()["id"] for each in (again, reordered, late)} == {first.json()["id"]}
    assert "idempotency-replayed" not in first.headers
    assert again.headers["idempotency-replayed"] == late.headers["idempotency-replayed"] == "true"
    assert late.json()["state"] == "completed"
    assert len(house.chat.requests) == at + 1


def test_other_body_with_the_same_key_is_a_conflict(house, client, key):
    at = len(house.chat.requests)
    house.chat.add(chat.answer("Hello"))
    first = ask(client, ASKED, key)

    refused = ask(client, OTHER, key)

    assert (refused.status_code, refused.json()["error"]["type"]) == (409, "idempotency_conflict")
    assert "another key" in refused.json()["error"]["message"]
    wait_ended(client, first.json()["id"])
    assert len(house.chat.requests) == at + 1


def test_many_at_once_are_one_request_upstream(house, client, key):
    at = len(house.chat.requests)
    house.chat.add(chat.answer("Hello"))
    start = Barrier(16)

    def one(_number):
        start.wait(30)
        return ask(client, ASKED, key)

    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(one, range(16)))

    assert {each.status_code for each in answers} == {202}
    assert len({each.json()["id"] for each in answers}) == 1
    assert sum("idempotency-replayed" not in each.headers for each in answers) == 1
    wait_ended(client, answers[0].json()["id"])
    assert len(house.chat.requests) == at + 1


@pytest.mark.parametrize("value", ["two words", "", "ä".encode(), "k" * 256])
def test_key_that_is_none_is_refused(client, value):
    response = ask(client, ASKED, {"idempotency-key": value})

    assert (response.status_code, response.json()["error"]["type"]) == (400, "bad_request")
    assert "idempotency-key" in response.json()["error"]["message"]


def test_forgotten_turn_gives_its_key_back(house, client, key):
    house.chat.add(chat.answer("one"), chat.answer("two"))
    first = ask(client, ASKED, key).json()["id"]
    wait_ended(client, first)
    client.delete(f"/v1/turns/{first}").raise_for_status()

    second = ask(client, OTHER, key)

    assert second.status_code == 202
    assert second.json()["id"] != first
    wait_ended(client, second.json()["id"])


@pytest.mark.parametrize("end", ["end", "kill"])
def test_same_key_is_the_same_turn_after_a_restart(serve, key, end):
    asked = {"endpoint": "main", "payload": PROMPT}
    with Lab([chat.answer("Hello")]) as lab:
        daemon = serve(endpoint(lab))
        with daemon.client() as client:
            first = ask(client, asked, key).json()["id"]
            wait_ended(client, first)
        getattr(daemon, end)()
        daemon = serve(endpoint(lab))
        with daemon.client() as client:
            again = ask(client, asked, key)
            other = ask(client, {**asked, "payload": {**PROMPT, "n": 1}}, key)

        assert (again.status_code, again.json()["id"]) == (202, first)
        assert again.json()["state"] == "completed"
        assert other.status_code == 409
        assert len(lab.requests) == 1


def test_full_queue_refuses_what_is_new_and_no_replay(serve):
    asked = {"endpoint": "main", "payload": PROMPT}
    with Lab([Answer([gate("go"), *chat.answer("Hello").steps], repeat=True)]) as lab:
        daemon = serve(endpoint(lab), top="max_running = 1\nmax_queued = 1")
        with daemon.client() as client:
            kept = [ask(client, asked, {"idempotency-key": f"kept-{n}"}).json() for n in range(2)]
            new = [ask(client, asked, {}), ask(client, asked, {"idempotency-key": "new"})]
            again = [ask(client, asked, {"idempotency-key": f"kept-{n}"}) for n in range(2)]

            assert [each["state"] for each in kept] == ["running", "queued"]
            for refused in new:
                assert refused.status_code == 429
                assert refused.json()["error"]["type"] == "queue_full"
                assert int(refused.headers["retry-after"]) >= 1
            assert [each.status_code for each in again] == [202, 202]
            assert [each.json()["id"] for each in again] == [each["id"] for each in kept]
            assert len(client.get("/v1/turns").json()["turns"]) == 2
            lab.open("go")
            for each in kept:
                wait_ended(client, each["id"])
            # What was refused was not done, so that its key still stands for nothing.
            taken = ask(client, asked, {"idempotency-key": "new"})
            assert "idempotency-replayed" not in taken.headers
            wait_ended(client, taken.json()["id"])
            assert len(lab.requests) == 3


def test_many_at_once_are_refused_alike_by_a_full_queue(serve):
    asked = {"endpoint": "main", "payload": PROMPT}
    with Lab([Answer([gate("go"), *chat.answer("Hello").steps], repeat=True)]) as lab:
        daemon = serve(endpoint(lab), top="max_running = 1\nmax_queued = 0")
        with daemon.client() as client, ThreadPoolExecutor(8) as pool:
            running = ask(client, asked, {}).json()["id"]
            start = Barrier(8)

            def one(number):
                start.wait(30)
                return ask(client, asked, {"idempotency-key": f"key-{number % 2}"})

            for _ in range(10):
                assert {each.status_code for each in pool.map(one, range(8))} == {429}
            assert len(client.get("/v1/turns").json()["turns"]) == 1
            lab.open("go")
            wait_ended(client, running)

"""Turns as resources: made, listed, looked at, interrupted and forgotten."""

import json
import threading
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from tests.daemon.e2e.conftest import endpoint
from tests.daemon.hosting import PROMPT
from tidegate.lab import Answer, End, Lab, chat, gate, messages
from tidegate.testing.eventually import eventually


LEFT = ("eof", "reset")
ASKED = {"endpoint": "chat", "payload": PROMPT}


@pytest.fixture
def make(client):
    """Make a turn, and return what its maker was told."""

    def ask(body=ASKED, **headers):
        response = client.post("/v1/turns", json=body, headers=headers)
        assert response.status_code == 202, response.text
        assert response.headers["location"] == f"/v1/turns/{response.json()['id']}"
        assert response.headers["tidegate-turn"] == response.json()["id"]
        return response.json()

    return ask


@pytest.fixture
def ended(client):
    """Wait for the end of a turn."""

    def wait(made):
        def end():
            found = client.get(f"/v1/turns/{made['id']}").json()
            return found if found["ended_at"] else None

        return eventually(end)

    return wait


@pytest.fixture
def held(house, make):
    """Make a turn that has said something and goes no further by itself."""
    house.chat.add(Answer([chat.text("some"), End.HOLD]))
    at = len(house.chat.requests)
    made = make()
    house.chat.wait_requests(at + 1)
    return made, at


def test_turn_runs_to_its_end_without_any_reader(house, make, ended, client):
    house.chat.add(chat.answer("Hel", "lo"))

    made = make()

    assert (made["state"] in ("queued", "running"), made["endpoint"]) == (True, "chat")
    assert (made["wire"], made["model"], made["api"]) == ("chat", "test-model", "turns")
    turn = ended(made)
    assert (turn["state"], turn["attempt"], turn["events"]) == ("completed", 1, 4)
    assert (turn["answer"]["text"], turn["answer"]["finish"]) == ("Hello", "stop")
    assert turn["created_at"] <= turn["ended_at"]
    [shown] = [each for each in client.get("/v1/turns").json()["turns"] if each["id"] == made["id"]]
    assert (shown["state"], shown["attempt"]) == ("completed", 1)


def test_payload_goes_to_the_endpoint_as_it_is(house, make, ended):
    house.messages.add(messages.answer("Hello"))
    payload = {**PROMPT, "max_tokens": 7, "metadata": {"user_id": "é"}}

    ended(make({"endpoint": "messages", "payload": payload}))

    sent = json.loads(house.messages.requests[-1].body)
    assert sent == {**payload, "stream": True}


def test_policy_of_the_request_stands_over_the_configured_one(house, make, ended):
    house.chat.add(chat.error_answer(503, "busy"), chat.answer("fine"))
    policy = {"retries": 1, "backoff_s": [0.01], "backoff_jitter": 0.0}

    turn = ended(make({**ASKED, "policy": policy}))

    assert (turn["state"], turn["attempt"], turn["answer"]["text"]) == ("completed", 2, "fine")


def test_turn_that_fails_says_why(house, make, ended):
    house.chat.add(Answer([chat.text("half"), End.CUT]))

    turn = ended(make())

    assert (turn["state"], turn["error"]["kind"]) == ("failed", "truncated")
    assert turn["answer"]["text"] == "half"


def test_turn_under_way_shows_what_it_has(held, client):
    made, _ = held

    def so_far():
        return client.get(f"/v1/turns/{made['id']}").json()

    eventually(lambda: so_far()["answer"].get("text") == "some")
    assert (so_far()["state"], so_far()["ended_at"]) == ("running", None)
    client.post(f"/v1/turns/{made['id']}/interrupt")


@pytest.mark.parametrize("body", [None, {}, {"reason": "because é"}])
def test_interrupt_ends_it_and_the_providers_stream(house, held, client, body):
    made, at = held
    given = {} if body is None else {"json": body}

    answer = client.post(f"/v1/turns/{made['id']}/interrupt", **given)

    assert answer.status_code == 200
    assert (answer.json()["state"], answer.json()["reason"]) == (
        "interrupted",
        (body or {}).get("reason", ""),
    )
    assert house.chat.wait_closed(at).how in LEFT


def test_interrupt_may_come_again_and_too_late(house, held, make, ended, client):
    made, _ = held
    first = client.post(f"/v1/turns/{made['id']}/interrupt", json={"reason": "one"})
    again = client.post(f"/v1/turns/{made['id']}/interrupt", json={"reason": "two"})
    house.chat.add(chat.answer("Hello"))
    complete = ended(make())
    late = client.post(f"/v1/turns/{complete['id']}/interrupt")

    assert (first.status_code, again.status_code, late.status_code) == (200, 200, 200)
    assert again.json()["reason"] == first.json()["reason"] == "one"
    assert late.json() == complete


def test_turn_that_runs_is_not_forgotten(held, client):
    made, _ = held

    response = client.delete(f"/v1/turns/{made['id']}")

    assert (response.status_code, response.json()["error"]["type"]) == (409, "turn_running")
    assert "interrupt" in response.json()["error"]["message"]
    assert client.post(f"/v1/turns/{made['id']}/interrupt").status_code == 200
    assert client.delete(f"/v1/turns/{made['id']}").status_code == 204


def test_forgotten_turn_was_never_there(house, make, ended, client):
    house.chat.add(chat.answer("Hello"))
    made = ended(make())

    assert client.delete(f"/v1/turns/{made['id']}").status_code == 204

    for method, path in [("GET", ""), ("GET", "/events"), ("POST", "/interrupt"), ("DELETE", "")]:
        response = client.request(method, f"/v1/turns/{made['id']}{path}")
        assert (response.status_code, response.json()["error"]["type"]) == (404, "turn_unknown")
    assert made["id"] not in [each["id"] for each in client.get("/v1/turns").json()["turns"]]


def test_list_is_the_newest_first_and_goes_on_where_it_ended(house, make, ended, client):
    house.chat.add(*[chat.answer("Hello")] * 5)
    made = [ended(make())["id"] for _ in range(5)]

    first = client.get("/v1/turns", params={"limit": 2}).json()["turns"]
    second = client.get("/v1/turns", params={"limit": 3, "before": first[-1]["id"]}).json()

    assert [each["id"] for each in [*first, *second["turns"]]] == made[::-1]


def test_list_goes_on_behind_a_turn_that_waits(serve):
    """It is not in the journal yet, where nothing is written without need."""
    with Lab([Answer([gate("never")])]) as lab:
        daemon = serve(endpoint(lab), top="max_running = 1")
        with daemon.client() as client, ThreadPoolExecutor(3) as pool:

            def listed(**query):
                turns = client.get("/v1/turns", params=query).json()["turns"]
                return [each["id"] for each in turns]

            for count in range(1, 4):
                pool.submit(httpx.post, f"{daemon.url}/v1/chat/completions", json=PROMPT)
                eventually(lambda count=count: len(listed()) == count)
            newest, middle, oldest = listed()

            assert listed(limit=1) == [newest]
            assert listed(limit=1, before=newest) == [middle]
            assert listed(limit=2, before=newest) == [middle, oldest]
            assert listed(before=middle) == [oldest]
            assert listed(before=oldest) == []
            assert listed(before=newest, state="running") == [oldest]
            for turn in (newest, middle, oldest):
                client.post(f"/v1/turns/{turn}/interrupt").raise_for_status()


def test_list_of_one_state(house, held, make, ended, client):
    made, _ = held
    house.chat.add(chat.error_answer(400, "no"), chat.answer("Hello"))
    failed, completed = ended(make())["id"], ended(make())["id"]

    def listed(state):
        return [each["id"] for each in client.get(f"/v1/turns?state={state}").json()["turns"]]

    assert listed("running") == [made["id"]]
    assert listed("failed")[0] == failed
    assert listed("completed")[0] == completed
    assert listed("queued") == []
    client.post(f"/v1/turns/{made['id']}/interrupt")
    assert listed("interrupted")[0] == made["id"]
    assert listed("running") == []


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({}, "endpoint"),
        ({"endpoint": "chat"}, "payload"),
        ({"endpoint": 7, "payload": {}}, "endpoint"),
        ({"endpoint": "chat", "payload": []}, "payload"),
        ({**ASKED, "polcy": {}}, "polcy"),
        ({**ASKED, "policy": {"retires": 1}}, "policy: Object contains unknown field `retires`"),
        ({**ASKED, "policy": {"retries": -1}}, "retries"),
        ({**ASKED, "on_disconnect": "stay"}, "on_disconnect='stay': give 'interrupt'"),
        ({**ASKED, "wire": "morse"}, "wire"),
    ],
)
def test_turn_that_makes_no_sense_is_told_what_is_wrong(house, client, body, words):
    seen = len(house.chat.requests)

    response = client.post("/v1/turns", json=body)

    assert (response.status_code, response.json()["error"]["type"]) == (400, "bad_request")
    assert words in response.json()["error"]["message"]
    assert len(house.chat.requests) == seen


@pytest.mark.parametrize("body", [{**ASKED, "endpoint": "none"}, {**ASKED, "wire": "messages"}])
def test_endpoint_that_is_not_there_is_not_found(client, body):
    response = client.post("/v1/turns", json=body)

    assert (response.status_code, response.json()["error"]["type"]) == (404, "endpoint_unknown")
    assert "chat" in response.json()["error"]["message"]


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("limit=0", "from 1 to 1000"),
        ("limit=1001", "from 1 to 1000"),
        ("limit=many", "limit='many'"),
        ("state=done", "completed"),
        ("before=turn_none", "turn_none"),
    ],
)
def test_list_that_makes_no_sense_is_told_what_is_wrong(client, query, words):
    response = client.get(f"/v1/turns?{query}")

    assert (response.status_code, response.json()["error"]["type"]) == (400, "bad_request")
    assert words in response.json()["error"]["message"]


@pytest.mark.parametrize("body", [{"reason": 7}, {"reason": "x" * 501}, {"reasn": "a slip"}])
def test_reason_that_is_none_is_refused(held, client, body):
    made, _ = held

    response = client.post(f"/v1/turns/{made['id']}/interrupt", json=body)

    assert response.status_code == 400
    assert "reason" in response.json()["error"]["message"]
    assert client.get(f"/v1/turns/{made['id']}").json()["state"] == "running"
    client.post(f"/v1/turns/{made['id']}/interrupt")


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/v1/nothing", 404),
        ("PUT", "/v1/turns", 405),
        ("GET", "/v1/turns/turn_none", 404),
        ("GET", "/v1/turns/turn_none/events", 404),
        ("POST", "/v1/turns/turn_none/interrupt", 404),
        ("DELETE", "/v1/turns/turn_none", 404),
    ],
)
def test_what_is_not_there_is_said_in_one_form(client, method, path, status):
    response = client.request(method, path)

    assert response.status_code == status
    assert response.json()["error"].keys() == {"type", "message"}


def test_what_a_path_can_be_asked_for_is_said(client):
    assert client.put("/v1/turns").headers["allow"] == "GET, HEAD, POST"
    assert client.get("/v1/chat/completions").headers["allow"] == "POST"


def test_turn_is_seen_by_its_own_key_alone(serve):
    keys = {"TEST_KEY_A": "key-of-a-tester", "TEST_KEY_B": "key-of-another"}
    with Lab([Answer([chat.text("mine"), gate("go"), *chat.answer().steps])]) as lab:
        daemon = serve(
            endpoint(lab), top='keys = ["env:TEST_KEY_A", "env:TEST_KEY_B"]', environ=keys
        )
        with daemon.client() as client:
            a, b = ({"authorization": f"Bearer {key}"} for key in keys.values())
            asked = {"json": {"endpoint": "main", "payload": PROMPT}}
            made = client.post("/v1/turns", **asked, headers=a).json()
            path = f"/v1/turns/{made['id']}"

            def of_b():
                tries = [("GET", ""), ("GET", "/events"), ("POST", "/interrupt"), ("DELETE", "")]
                return [
                    client.request(method, path + rest, headers=b).status_code
                    for method, rest in tries
                ]

            assert of_b() == [404] * 4
            assert client.get("/v1/turns", headers=b).json() == {"turns": []}
            assert [each["id"] for each in client.get("/v1/turns", headers=a).json()["turns"]] == [
                made["id"]
            ]
            lab.open("go")
            eventually(lambda: client.get(path, headers=a).json()["ended_at"])
            assert client.get(path, headers=a).json()["state"] == "completed"
            assert of_b() == [404] * 4
            # The same key of two owners names two turns.
            own = {"idempotency-key": "k1"}
            lab.add(chat.answer("one"), chat.answer("two"))
            first = client.post("/v1/turns", **asked, headers={**a, **own}).json()
            second = client.post("/v1/turns", **asked, headers={**b, **own}).json()
            assert first["id"] != second["id"]


@pytest.mark.parametrize("query", ["limit=2", "limit=2&state=completed"])
def test_page_is_full_while_others_are_turned_away(serve, query):
    keys = {"TEST_KEY_A": "key-of-a-tester", "TEST_KEY_B": "key-of-another"}
    top = 'max_running = 1\nmax_queued = 0\nkeys = ["env:TEST_KEY_A", "env:TEST_KEY_B"]'
    a, b = ({"authorization": f"Bearer {key}"} for key in keys.values())
    asked = {"json": {"endpoint": "main", "payload": PROMPT}}
    rest = threading.Event()
    with Lab([*[chat.answer("Hello")] * 3, Answer([gate("never")])]) as lab:
        daemon = serve(endpoint(lab), top=top, environ=keys)

        def storm(number):
            """Ask again and again, each time with another key, for what there is no room for."""
            with daemon.client() as client:
                at = 0
                while not rest.is_set():
                    at += 1
                    named = {"idempotency-key": f"{number}-{at}"}
                    response = client.post("/v1/turns", **asked, headers={**b, **named})
                    assert response.status_code == 429, response.text
            return at

        with daemon.client() as client, ThreadPoolExecutor(3) as pool:
            for _ in range(3):
                client.post("/v1/chat/completions", json=PROMPT, headers=b).raise_for_status()
            client.post("/v1/turns", **asked, headers=a).raise_for_status()
            lab.reached("never")
            refused = [pool.submit(storm, number) for number in range(3)]
            try:
                pages = [client.get(f"/v1/turns?{query}", headers=b).json() for _ in range(200)]
            finally:
                rest.set()
            assert [len(page["turns"]) for page in pages] == [2] * 200
            assert min(each.result() for each in refused) > 0

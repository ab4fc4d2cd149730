"""A turn's events are taken up where they were left: none is lost, none comes twice."""

import sqlite3
from contextlib import closing, contextmanager

import pytest

from tests.daemon.e2e.conftest import endpoint
from tests.daemon.e2e.reading import body_of, events_in, text_of
from tests.daemon.hosting import PROMPT
from tests.daemon.sockets import Client
from tidegate.lab import Answer, End, Lab, chat, gate
from tidegate.testing.eventually import eventually


ASKED = {"endpoint": "chat", "payload": PROMPT}
WORDS = ["Once ", "upon ", "a ", "time ", "é\u2028 ", "in a\nland"]


@contextmanager
def reading(daemon, turn_id, after=None, last=None):
    """Read a turn's events down to the socket."""
    query = "" if after is None else f"?after={after}"
    headers = {} if last is None else {"last-event-id": last}
    with Client(daemon.port) as client:
        yield client.ask("GET", f"/v1/turns/{turn_id}/events{query}", headers=headers)


def read_all(client, turn_id, **options):
    """Read to the end, which comes by itself."""
    response = client.get(f"/v1/turns/{turn_id}/events", **options)
    assert response.status_code == 200, response.text
    assert response.headers["content-type"].startswith("text/event-stream")
    return events_in(response.content)


def events_read(reader):
    """Read until a word has come, and return all events that have."""
    reader.until(b"event: text.delta")
    while not (events := events_in(body_of(reader.got))) or events[-1].name != "text.delta":
        reader.more()
    return events


def make(client, body=ASKED):
    return client.post("/v1/turns", json=body).json()["id"]


def wait_ended(client, turn_id):
    eventually(lambda: client.get(f"/v1/turns/{turn_id}").json()["ended_at"])


@pytest.fixture(scope="module")
def told(house):
    """A turn that has ended, and all that was told of it."""
    house.chat.add(chat.answer(*WORDS))
    with house.daemon.client() as client:
        turn_id = make(client)
        wait_ended(client, turn_id)
        return turn_id, read_all(client, turn_id)


def test_events_are_named_and_numbered_and_end_by_themselves(told):
    turn_id, events = told

    assert [each.id for each in events] == [*range(len(events))]
    assert [each.name for each in events] == [each.data["type"] for each in events]
    assert (events[0].name, events[-1].name) == ("attempt.started", "turn.completed")
    assert {each.data["turn_id"] for each in events} == {turn_id}
    assert [each.data["offset"] for each in events] == [each.id for each in events]
    assert text_of(events) == events[-1].data["answer"]["text"] == "".join(WORDS)


def test_ended_turn_is_read_from_each_offset_on(client, told):
    turn_id, events = told
    for after in range(-1, len(events)):
        rest = events[after + 1 :]
        assert read_all(client, turn_id, params={"after": after}) == rest
        assert read_all(client, turn_id, headers={"last-event-id": str(after)}) == rest
    # A browser that comes back asks at the address that it had first.
    header = {"last-event-id": "3"}
    assert read_all(client, turn_id, params={"after": 0}, headers=header) == events[4:]


def test_reader_that_is_cut_off_behind_each_event_comes_back(house, client):
    """While the turn runs: the next word comes only once the last one was read."""
    steps = [
        step
        for number, word in enumerate(WORDS)
        for step in (chat.text(word), gate(f"read-{number}"))
    ]
    house.chat.add(Answer([*steps, *chat.answer().steps]))
    turn_id = make(client)
    events = []
    for number in range(len(WORDS)):
        with reading(house.daemon, turn_id, last=len(events) - 1) as reader:
            events += events_read(reader)
            reader.leave("reset" if number % 2 else "fin")
        house.chat.open(f"read-{number}")
    events += read_all(client, turn_id, params={"after": len(events) - 1})

    assert [each.id for each in events] == [*range(len(events))]
    assert text_of(events) == "".join(WORDS)
    assert events[-1].name == "turn.completed"


def test_every_subscriber_sees_everything(house, client):
    house.chat.add(Answer([chat.text("Hel"), gate("subscribed"), *chat.answer("lo").steps]))
    turn_id = make(client)
    eventually(lambda: client.get(f"/v1/turns/{turn_id}").json()["answer"].get("text"))
    with (
        reading(house.daemon, turn_id) as first,
        reading(house.daemon, turn_id) as second,
        reading(house.daemon, turn_id, after=0) as third,
    ):
        readers = [first, second, third]
        for reader in readers:
            reader.until(b'"Hel"')
        house.chat.open("subscribed")
        seen = [events_in(body_of(reader.until(b"0\r\n\r\n"))) for reader in readers]

    assert seen[0] == seen[1] == read_all(client, turn_id)
    assert seen[2] == seen[0][1:]
    assert text_of(seen[0]) == "Hello"


def test_reader_of_a_turn_that_waits_gets_its_end(serve):
    with Lab([Answer([chat.text("first"), End.HOLD])]) as lab:
        daemon = serve(endpoint(lab), top="max_running = 1")
        asked = {"endpoint": "main", "payload": PROMPT}
        with daemon.client() as client:
            make(client, asked)
            waiting = make(client, asked)
            assert client.get(f"/v1/turns/{waiting}").json()["state"] == "queued"
            with reading(daemon, waiting) as reader:
                reader.until(b"retry: 1000")
                client.post(f"/v1/turns/{waiting}/interrupt", json={"reason": "enough"})
                [end] = events_in(body_of(reader.until(b"0\r\n\r\n")))
            again = read_all(client, waiting)
        assert (end.name, end.id, end.data["reason"]) == ("turn.interrupted", 0, "enough")
        assert again == [end]
        assert len(lab.wait_requests(1)) == 1


def test_retry_is_told_and_nothing_of_it_is_withdrawn_from_who_read_it(serve):
    first = Answer([chat.text("half"), gate("read"), End.CUT])
    with Lab([first, chat.answer("whole")]) as lab:
        daemon = serve(endpoint(lab))
        body = {
            "endpoint": "main",
            "payload": PROMPT,
            "policy": {"after_visible_text": "restart", "retries": 1, "backoff_s": [0.01]},
        }
        with daemon.client() as client:
            turn_id = make(client, body)
            with reading(daemon, turn_id) as reader:
                reader.until(b'"half"')
                lab.open("read")
                seen = events_in(body_of(reader.until(b"0\r\n\r\n")))
            assert read_all(client, turn_id) == seen

    names = [each.name for each in seen]
    assert names.index("retry.scheduled") < names.index("attempt.superseded")
    assert [each.id for each in seen] == [*range(len(seen))]
    assert seen[-1].data["answer"]["text"] == "whole"


@pytest.mark.parametrize("end", ["end", "kill"])
def test_ended_turn_is_the_same_after_a_restart(serve, end):
    with Lab([chat.answer(*WORDS)]) as lab:
        daemon = serve(endpoint(lab))
        with daemon.client() as client:
            turn_id = make(client, {"endpoint": "main", "payload": PROMPT})
            wait_ended(client, turn_id)
            before, view = read_all(client, turn_id), client.get(f"/v1/turns/{turn_id}").json()
        getattr(daemon, end)()
        daemon = serve(endpoint(lab))
        with daemon.client() as client:
            assert read_all(client, turn_id) == before
            assert read_all(client, turn_id, params={"after": 3}) == before[4:]
            assert client.get(f"/v1/turns/{turn_id}").json() == view


@pytest.mark.parametrize(
    "cursor",
    [{"params": {"after": 99}}, {"headers": {"last-event-id": "99"}}],
)
def test_cursor_that_nobody_can_have_is_told(house, client, told, cursor):
    turn_id, events = told
    house.chat.add(Answer([gate("never"), End.HOLD]))
    running = make(client)
    for each, count in [(turn_id, len(events)), (running, None)]:
        response = client.get(f"/v1/turns/{each}/events", **cursor)
        assert response.status_code == 400
        error = response.json()["error"]
        assert error["type"] == "cursor_unknown"
        assert "99" in error["message"]
        assert count is None or str(count) in error["message"]
    client.post(f"/v1/turns/{running}/interrupt")


@pytest.mark.parametrize("value", ["-2", "x", "1.5", "1_0", "+1", "9" * 30, "٣".encode()])
def test_cursor_that_is_no_number_is_told(client, told, value):
    turn_id, _ = told
    asked = [{"headers": {"last-event-id": value}}]
    if isinstance(value, str):
        asked.append({"params": {"after": value}})
    for each in asked:
        response = client.get(f"/v1/turns/{turn_id}/events", **each)
        assert (response.status_code, response.json()["error"]["type"]) == (400, "bad_request")


def test_question_for_the_head_alone_keeps_its_connection(house, client, told):
    ended, events = told
    house.chat.add(Answer([gate("never"), End.HOLD]))
    running = make(client)
    with Client(house.daemon.port) as asker:
        for each in (ended, running):
            asker.ask("HEAD", f"/v1/turns/{each}/events").until(f"turn: {each}".encode())
        asker.ask("HEAD", f"/v1/turns/{ended}/events?after={len(events)}").until(b" 400 ")
        asker.ask("GET", "/livez").until(b'{"status":"ok"}')
    client.post(f"/v1/turns/{running}/interrupt")


def test_expired_cursor_is_gone_with_the_final_state(serve, tmp_path):
    with Lab([chat.answer("Hello")]) as lab:
        daemon = serve(endpoint(lab), top="journal_keep_s = 3600")
        with daemon.client() as client:
            turn_id = make(client, {"endpoint": "main", "payload": PROMPT})
            wait_ended(client, turn_id)
        assert daemon.end() == 0
        with closing(sqlite3.connect(tmp_path / "tidegate.db")) as journal, journal:
            journal.execute("UPDATE turns SET ended_at = ended_at - 7200, changed_at = 1")
        daemon = serve(endpoint(lab), top="journal_keep_s = 3600")
        with daemon.client() as client:
            path = f"/v1/turns/{turn_id}"
            gone = eventually(
                lambda: (got := client.get(f"{path}/events?after=1")).status_code == 410 and got
            )
            from_the_start = client.get(f"{path}/events")
            view = client.get(path).json()

    body = gone.json()
    assert body["error"]["type"] == "cursor_expired"
    assert from_the_start.status_code == 410
    assert body["turn"] == view
    assert (view["state"], view["expired"]) == ("completed", True)
    assert (view["final"]["finish"], view["final"]["text_chars"]) == ("stop", 5)
    assert "Hello" not in gone.text

"""A journal that cannot be written ends what runs, at once and in words."""

import contextlib
import json
import resource
import sqlite3
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.daemon.e2e.conftest import endpoint
from tests.daemon.e2e.reading import body_of, events_in, text_of
from tests.daemon.hosting import PROMPT
from tests.daemon.sockets import Client
from tidegate.lab import Answer, End, Lab, chat, gate
from tidegate.testing.eventually import eventually


CHAT = "/v1/chat/completions"
STREAMED = {**PROMPT, "stream": True}
ASKED = {"endpoint": "main", "payload": PROMPT}
LEFT = ("eof", "reset")
FULL_BYTES = 128 << 10
MUCH = "x" * 1_000_000


@contextlib.contextmanager
def full_disk(daemon, left_bytes=FULL_BYTES):
    """Let the daemon's files grow no further: how a process without rights has a full disk."""
    pid = daemon.process.pid
    before = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (left_bytes, before[1]))
    yield
    with contextlib.suppress(ProcessLookupError):
        resource.prlimit(pid, resource.RLIMIT_FSIZE, before)


@pytest.fixture
def lab():
    first = [chat.text("Hel"), gate("go"), chat.text(MUCH), End.HOLD]
    silent = Answer([End.HOLD], headers_with_first_frame=True)
    with Lab([Answer(first), Answer(first), silent, silent]) as lab:
        yield lab


def ended(client, turn_id):
    """Return a turn once it has ended."""
    turn = client.get(f"/v1/turns/{turn_id}").json()
    return turn if turn["ended_at"] else None


def test_everybody_is_told_at_once_and_it_goes_on_afterwards(serve, lab):
    daemon = serve(endpoint(lab))
    with daemon.client() as client, contextlib.ExitStack() as stack:
        asker, held, silent, reader = (stack.enter_context(Client(daemon.port)) for _ in range(4))
        asker.ask("POST", CHAT, STREAMED).until(b'"Hel"')
        turn_id = client.post("/v1/turns", json=ASKED).json()["id"]
        reader.ask("GET", f"/v1/turns/{turn_id}/events").until(b'"Hel"')
        held.ask("POST", CHAT, STREAMED)
        silent.ask("POST", CHAT, PROMPT)
        lab.wait_requests(4)

        with full_disk(daemon):
            lab.open("go")

            error = json.loads(
                body_of(asker.until(b"0\r\n\r\n")).split(b"\n\n")[-2][len("data: ") :]
            )
            assert "journal cannot be written" in error["error"]["message"]
            assert b"[DONE]" not in asker.got
            for each in (held, silent):
                head = each.until(b"journal_unavailable").lower()
                assert head.startswith(b"http/1.1 503 ")
                assert b"\r\nretry-after: " in head
            last = events_in(body_of(reader.until(b"0\r\n\r\n")))[-1]
            assert (last.name, last.id) == ("daemon.trouble", -1)
            for number in range(4):
                assert lab.wait_closed(number).how in LEFT
            ready = client.get("/readyz")
            assert (ready.status_code, ready.json()["status"]) == (503, "journal_unavailable")
            assert client.get("/livez").status_code == 200
            key = {"idempotency-key": "any"}
            for path, body, more in [
                (CHAT, PROMPT, {}),
                ("/v1/turns", ASKED, {}),
                ("/v1/turns", ASKED, key),
            ]:
                refused = client.post(path, json=body, headers=more)
                assert refused.status_code == 503
                assert int(refused.headers["retry-after"]) >= 1
                assert "journal" in refused.json()["error"]["message"]

        eventually(lambda: client.get("/readyz").status_code == 200)
        for each in (turn_id, asker.turn_id):
            turn = eventually(lambda each=each: ended(client, each))
            assert (turn["state"], turn["reason"]) == ("interrupted", "journal unavailable")
        seen = events_in(body_of(reader.got))[:-1]
        path = f"/v1/turns/{turn_id}/events"
        rest = events_in(client.get(f"{path}?after={seen[-1].id}").content)
        events = [*seen, *rest]
        assert [each.id for each in events] == [*range(len(events))]
        assert text_of(events) == events[-1].data["answer"]["text"]
        assert len(client.get("/v1/turns").json()["turns"]) == 4
        lab.add(chat.answer("fine"))
        assert client.post(CHAT, json=PROMPT).json()["choices"][0]["message"]["content"] == "fine"


def test_turn_that_cannot_be_kept_is_refused_and_never_sent(serve):
    with Lab([]) as lab:
        daemon = serve(endpoint(lab))
        payload = {**PROMPT, "user": "u" * 100}
        with daemon.client() as client, ThreadPoolExecutor(8) as pool:
            with full_disk(daemon, 1):

                def ask(number):
                    headers = {"idempotency-key": f"key-{number % 2}"} if number % 3 else {}
                    asked = {"endpoint": "main", "payload": payload}
                    return client.post("/v1/turns", json=asked, headers=headers)

                answers = list(pool.map(ask, range(8)))
                assert {each.status_code for each in answers} == {503}
            eventually(lambda: client.get("/readyz").status_code == 200)
            eventually(lambda: client.get("/v1/turns").json()["turns"] == [])
        assert lab.requests == []


def test_daemon_ends_in_trouble_and_says_what_is_lost(serve, lab):
    daemon = serve(endpoint(lab))
    with daemon.client() as client, Client(daemon.port) as asker:
        asker.ask("POST", CHAT, STREAMED).until(b'"Hel"')
        with full_disk(daemon):
            lab.open("go")
            asker.to_end()
            eventually(lambda: client.get("/readyz").status_code == 503)

            assert daemon.end() == 1

    log = daemon.log.read_text()
    assert "items lost" in log
    assert asker.turn_id in log
    assert "Traceback" not in log
    daemon = serve(endpoint(lab))
    with daemon.client() as client:
        turn = client.get(f"/v1/turns/{asker.turn_id}").json()
    assert (turn["state"], turn["error"]["reason"]) == ("failed", "daemon_lost")
    assert turn["answer"]["text"] == "Hel"


def test_reader_of_what_is_kept_is_not_disturbed(serve):
    text = "k" * 5_000_000
    with Lab([chat.answer(text)]) as lab:
        daemon = serve(endpoint(lab))
        with daemon.client() as client, Client(daemon.port, window=4096) as reader:
            turn_id = client.post("/v1/turns", json=ASKED).json()["id"]
            eventually(lambda: ended(client, turn_id))
            reader.ask("GET", f"/v1/turns/{turn_id}/events").until(b"kkk")
            with full_disk(daemon, 1):
                assert client.post("/v1/turns", json=ASKED).status_code == 503
                assert client.get(f"/v1/turns/{turn_id}").json()["answer"]["text"] == text
                forgotten = client.delete(f"/v1/turns/{turn_id}")
                assert forgotten.status_code == 503
                assert forgotten.json()["error"]["type"] == "journal_unavailable"
                assert int(forgotten.headers["retry-after"]) >= 1

                events = events_in(body_of(reader.until(b"0\r\n\r\n")))
                assert text_of(events) == text
                assert events[-1].name == "turn.completed"


def test_who_forgets_a_turn_just_then_is_told_so_and_it_is_forgotten_later(serve, tmp_path):
    with Lab([chat.answer("fine")]) as lab:
        daemon = serve(endpoint(lab))
        with daemon.client() as client:
            turn_id = client.post(CHAT, json=PROMPT).headers["tidegate-turn"]
            eventually(lambda: ended(client, turn_id))
            with contextlib.closing(
                sqlite3.connect(tmp_path / "tidegate.db", isolation_level=None)
            ) as shell:
                shell.execute("BEGIN IMMEDIATE")

                forgotten = client.delete(f"/v1/turns/{turn_id}")
                assert forgotten.status_code == 503
                assert forgotten.json()["error"]["type"] == "journal_unavailable"
                assert int(forgotten.headers["retry-after"]) >= 1
                assert client.get(f"/v1/turns/{turn_id}").status_code == 200

            eventually(lambda: client.get(f"/v1/turns/{turn_id}").status_code == 404)
            assert client.get("/v1/lanes").json()["lanes"] == []

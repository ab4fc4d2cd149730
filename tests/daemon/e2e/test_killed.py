"""A daemon is killed while turns run: nothing that anybody saw is lost, and nothing runs on."""

import contextlib
import os
import signal
from pathlib import Path

import pytest

from tests.daemon.e2e.conftest import endpoint
from tests.daemon.e2e.reading import body_of, events_in, text_of
from tests.daemon.hosting import PROMPT
from tests.daemon.sockets import Client
from tidegate.lab import Answer, End, Lab, chat
from tidegate.testing.eventually import eventually


ASKED = {"endpoint": "main", "payload": PROMPT}
LOST = ("failed", "internal", "daemon_lost")


@pytest.fixture
def lab():
    with Lab([Answer([chat.text("all "), chat.text("seen"), End.HOLD], repeat=True)]) as lab:
        yield lab


def end_of(turn):
    return turn["state"], turn["error"]["kind"], turn["error"]["reason"]


def tokens_in(events):
    return [each.data["token"] for each in events if each.name == "attempt.started"]


def test_turns_that_ran_have_failed_with_all_that_was_seen(serve, lab):
    daemon = serve(endpoint(lab), top="max_running = 3")
    with daemon.client() as client, contextlib.ExitStack() as stack:
        asker = stack.enter_context(Client(daemon.port))
        asker.ask("POST", "/v1/chat/completions", {**PROMPT, "stream": True}).until(b'"seen"')
        ids = [client.post("/v1/turns", json=ASKED).json()["id"] for _ in range(3)]
        readers = []
        for turn_id in ids:
            reader = stack.enter_context(Client(daemon.port))
            readers.append(reader.ask("GET", f"/v1/turns/{turn_id}/events"))
        for reader in readers[:2]:
            reader.until(b'"seen"')
        queued = ids[2]
        assert client.get(f"/v1/turns/{queued}").json()["state"] == "queued"
        workers = daemon.pids()[1:]
        assert workers

        daemon.kill()

        for number in range(3):
            assert lab.wait_closed(number).how in ("eof", "reset")
        assert not [pid for pid in workers if Path(f"/proc/{pid}").exists()]
        for each in readers:
            with contextlib.suppress(ConnectionResetError):
                each.to_end()
        seen = [events_in(body_of(reader.got)) for reader in readers]

    daemon = serve(endpoint(lab))
    with daemon.client() as client:
        for turn_id, before in zip(ids, seen, strict=True):
            turn = client.get(f"/v1/turns/{turn_id}").json()
            assert end_of(turn) == LOST
            assert turn["error"]["retryable"] is True
            after = len(before) - 1
            rest = events_in(client.get(f"/v1/turns/{turn_id}/events?after={after}").content)
            events = [*before, *rest]
            assert [each.id for each in events] == [*range(len(events))]
            assert events[-1].name == "turn.failed"
            assert events == events_in(client.get(f"/v1/turns/{turn_id}/events").content)
            assert turn["answer"].get("text", "") == text_of(events)
        assert [text_of(each) for each in seen] == ["all seen", "all seen", ""]
        turn = client.get(f"/v1/turns/{asker.turn_id}").json()
        assert end_of(turn) == LOST
        assert turn["answer"]["text"] == "all seen"
        assert len(lab.requests) == 3

        new = client.post("/v1/turns", json=ASKED).json()["id"]
        with Client(daemon.port) as reader:
            reader.ask("GET", f"/v1/turns/{new}/events").until(b'"seen"')
            tokens = tokens_in(events_in(body_of(reader.got)))
        assert min(tokens) > max(token for each in seen for token in tokens_in(each))
    assert "4 turns were open when the daemon was lost" in daemon.log.read_text()


def test_key_of_a_turn_that_was_lost_names_it_still(serve, lab):
    key = {"idempotency-key": "one"}
    daemon = serve(endpoint(lab))
    with daemon.client() as client:
        turn_id = client.post("/v1/turns", json=ASKED, headers=key).json()["id"]
        lab.wait_requests(1)
    daemon.kill()
    daemon = serve(endpoint(lab))
    with daemon.client() as client:
        again = client.post("/v1/turns", json=ASKED, headers=key)

    assert (again.status_code, again.json()["id"]) == (202, turn_id)
    assert again.json()["state"] == "failed"
    assert len(lab.requests) == 1


def test_name_that_was_told_is_known_after_a_kill(serve, lab):
    """However soon after its answer: it is kept before it is told."""
    folder = None
    for _ in range(2):
        daemon = serve(endpoint(lab))
        assert folder in (None, daemon.folder)
        folder = daemon.folder
        with Client(daemon.port) as client:
            client.ask("POST", "/v1/turns", ASKED).until(b"}")
            daemon.process.kill()
        daemon.kill()
        daemon = serve(endpoint(lab))
        with daemon.client() as looking:
            assert looking.get(f"/v1/turns/{client.turn_id}").json()["state"] == "failed"
        assert daemon.end() == 0


def test_second_daemon_on_the_same_journal_is_refused(serve, lab, tmp_path):
    serve(endpoint(lab))

    with pytest.raises(AssertionError, match=r"tidegate\.db"):
        serve(endpoint(lab), folder=tmp_path)


def test_client_of_a_daemon_that_was_killed_finds_the_next_one(serve, lab):
    daemon = serve(endpoint(lab))
    with daemon.client() as client:
        turn_id = client.post("/v1/turns", json=ASKED).json()["id"]
        eventually(lambda: client.get(f"/v1/turns/{turn_id}").json()["answer"].get("text"))
    for _ in range(2):
        daemon.kill()
        daemon = serve(endpoint(lab))
    with daemon.client() as client:
        assert end_of(client.get(f"/v1/turns/{turn_id}").json()) == LOST
        events = events_in(client.get(f"/v1/turns/{turn_id}/events").content)
    assert [each.name for each in events].count("turn.failed") == 1


@pytest.mark.parametrize("stream", [False, True])
def test_daemon_whose_workers_all_end_is_not_ready(serve, stream):
    routes = {
        "chat": ("/v1/chat/completions", "server_error"),
        "responses": ("/v1/responses", "server_error"),
        "messages": ("/v1/messages", "overloaded_error"),
    }
    with Lab([chat.answer("Hello")]) as lab:
        daemon = serve(*(endpoint(lab, wire, name=wire) for wire in routes))
        with daemon.client() as client:

            def is_without_workers():
                return client.get("/readyz").json()["status"] == "no_workers"

            def none_left():
                for pid in daemon.pids()[1:]:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
                return is_without_workers()

            def refused(path):
                """Ask while none is there: they come back by themselves, at any time."""
                while True:
                    eventually(none_left)
                    ready = client.get("/readyz")
                    answer = client.post(path, json={**PROMPT, "stream": stream})
                    if is_without_workers():
                        return ready, answer

            assert client.get("/readyz").status_code == 200
            for path, kind in routes.values():
                ready, answer = refused(path)
                error = answer.json()["error"]
                assert (ready.status_code, answer.status_code) == (503, 503)
                assert 1 <= int(answer.headers["retry-after"]) <= 30, "the rest of the period"
                assert (error["type"], error["tidegate"]["kind"]) == (kind, "worker_lost")
            assert client.get("/livez").status_code == 200

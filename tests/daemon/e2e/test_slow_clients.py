"""A client that lags is cut off, with a cursor to come back to; the turn and all others go on."""

import contextlib
import json

import pytest

from tests.daemon.e2e.conftest import endpoint
from tests.daemon.e2e.reading import body_of, events_in, text_of
from tests.daemon.hosting import PROMPT
from tests.daemon.sockets import Client
from tidegate.lab import Answer, Lab, blast, chat, gate
from tidegate.testing.eventually import eventually


CHAT = "/v1/chat/completions"
ASKED = {"endpoint": "main", "payload": PROMPT}
WINDOW = 65536  # less than is sent, and enough to be read fast
WORD, TIMES = "x" * 4000, 3000
LIMITS = {
    "time": "slow_client_timeout_s = 2",
    "bytes": "slow_client_timeout_s = 600\nclient_queue_bytes = 65536",
}


@pytest.fixture
def lab():
    steps = [chat.text("first"), gate("go"), blast([chat.text(WORD)], times=TIMES)]
    with Lab([Answer([*steps, *chat.answer("last").steps])]) as lab:
        yield lab


def read_to_end(client):
    """Read all that comes, up to the end or the reset; says whether it was a reset."""
    try:
        client.to_end()
    except ConnectionResetError:
        return True
    return False


def cut_off(client):
    """Return how many clients were cut off so far."""
    lines = client.get("/metrics").text.splitlines()
    return sum(float(line.split()[-1]) for line in lines if line.startswith(CUT))


CUT = "tidegate_clients_cut_off_total"


@pytest.mark.parametrize("limit", LIMITS)
def test_reader_that_lags_comes_back_and_misses_nothing(serve, lab, limit):
    daemon = serve(endpoint(lab), top=LIMITS[limit])
    with daemon.client() as client, contextlib.ExitStack() as stack:
        turn_id = client.post("/v1/turns", json=ASKED).json()["id"]
        path = f"/v1/turns/{turn_id}/events"
        slow = stack.enter_context(Client(daemon.port, window=4096)).ask("GET", path)
        slow.until(b'"first"')
        other = stack.enter_context(client.stream("GET", path))

        lab.open("go")

        whole = events_in(other.read())
        eventually(lambda: cut_off(client) == 1, 30)
        assert read_to_end(slow)
        seen = events_in(body_of(slow.got))
        assert len(seen) < len(whole)
        rest = events_in(client.get(f"{path}?after={seen[-1].id}").content)
        turn = client.get(f"/v1/turns/{turn_id}").json()

    assert [*seen, *rest] == whole
    assert turn["state"] == "completed"
    assert turn["answer"]["text"] == text_of(whole) == f"first{WORD * TIMES}last"


@pytest.mark.parametrize("limit", LIMITS)
def test_client_that_is_cut_off_has_not_left(serve, lab, limit):
    """Its turn goes on, though a client that leaves would end it."""
    daemon = serve(endpoint(lab), top=LIMITS[limit])
    with daemon.client() as client, Client(daemon.port, window=4096) as slow:
        slow.ask("POST", CHAT, {**PROMPT, "stream": True}).until(b'"first"')

        lab.open("go")

        eventually(lambda: cut_off(client) == 1, 30)
        path = f"/v1/turns/{slow.turn_id}"
        eventually(lambda: client.get(path).json()["ended_at"], 30)
        assert read_to_end(slow)
        assert b"[DONE]" not in slow.got
        turn = client.get(path).json()
        events = events_in(client.get(f"{path}/events").content)

    assert (turn["state"], turn["on_disconnect"]) == ("completed", "interrupt")
    assert turn["answer"]["text"] == text_of(events) == f"first{WORD * TIMES}last"


def test_client_that_takes_its_time_and_reads_gets_everything(serve, lab):
    """It lags by more than its window, but takes each write in time."""
    daemon = serve(endpoint(lab), top="slow_client_timeout_s = 20\nclient_queue_bytes = 1073741824")
    with daemon.client() as client, Client(daemon.port, window=WINDOW) as slow:
        slow.ask("POST", CHAT, {**PROMPT, "stream": True}).until(b'"first"')
        lab.open("go")
        path = f"/v1/turns/{slow.turn_id}"
        eventually(lambda: client.get(path).json()["ended_at"], 30)

        frames = body_of(slow.until(b"data: [DONE]\n\n")).decode().split("\n\n")

        deltas = [json.loads(frame.removeprefix("data: ")) for frame in frames[:-2]]
        text = "".join(
            choice["delta"].get("content") or "" for each in deltas for choice in each["choices"]
        )
        assert text == f"first{WORD * TIMES}last"
        assert cut_off(client) == 0


def test_heartbeats_stand_between_whole_frames(serve):
    long = [chat.text("y" * 300_000), gate("again")]
    with Lab([Answer([chat.text("z"), gate("go"), *long, *chat.answer("end").steps])]) as lab:
        daemon = serve(endpoint(lab), top="heartbeat_s = 0.02")
        with Client(daemon.port, window=4096) as client:
            client.ask("POST", CHAT, {**PROMPT, "stream": True})
            client.until(b": heartbeat\n\n")
            lab.open("go")
            while client.got.count(b": heartbeat") < 20:
                client.more()
            lab.open("again")
            frames = body_of(client.until(b"data: [DONE]\n\n")).split(b"\n\n")

    assert frames[-2:] == [b"data: [DONE]", b""]
    beats = [frame for frame in frames if frame == b": heartbeat"]
    others = [frame for frame in frames[:-2] if frame != b": heartbeat"]
    assert len(beats) >= 20
    for frame in others:
        json.loads(frame.removeprefix(b"data: "))


def test_turn_is_forgotten_under_its_readers_and_they_read_on(serve, lab):
    daemon = serve(endpoint(lab), top="client_queue_bytes = 1073741824")
    with daemon.client() as client, contextlib.ExitStack() as stack:
        asker, reader = (stack.enter_context(Client(daemon.port, window=WINDOW)) for _ in range(2))
        asker.ask("POST", CHAT, {**PROMPT, "stream": True}).until(b'"first"')
        path = f"/v1/turns/{asker.turn_id}"
        reader.ask("GET", f"{path}/events").until(b'"first"')
        lab.open("go")
        eventually(lambda: client.get(path).json()["ended_at"], 30)

        assert client.delete(path).status_code == 204

        assert client.get(path).status_code == 404
        assert text_of(events_in(body_of(reader.until(b"0\r\n\r\n")))).endswith("last")
        assert asker.until(b"data: [DONE]").count(b'"last"') == 1
        assert client.get(path).status_code == 404

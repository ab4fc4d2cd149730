"""A client that leaves is noticed in whatever phase the script is, and how it left."""

import socket
from time import monotonic

import pytest

from tidegate.lab import Answer, End, blast, gate, keepalive, pace, send, wait
from tidegate.testing.eventually import eventually


LONG_S = 3600
PHASES = {
    "delayed": Answer([], delay_s=LONG_S),
    "waiting_before_the_head": Answer([wait(LONG_S)], headers_with_first_frame=True),
    "waiting": Answer([send("x"), wait(LONG_S)]),
    "keeping_alive": Answer([keepalive(0.001, 10**9)]),
    "pacing": Answer([pace([send("x")], LONG_S)]),
    "blasting": Answer([blast([b"x" * 60_000], times=10**9)]),
    "at_a_gate": Answer([gate("never")]),
    "holding": Answer([End.HOLD]),
    "idle": Answer.json({}),
}


@pytest.fixture(params=PHASES)
def client(request, lab, connect):
    """A client whose request is being answered, in this phase."""
    lab.add(PHASES[request.param])
    client = connect(lab)
    client.ask()
    lab.wait_requests(1)
    return client


def test_client_that_says_goodbye(lab, client):
    # close() with bytes unread would send a reset; this is the FIN and nothing else.
    left_at_s = monotonic()
    client.socket.shutdown(socket.SHUT_WR)

    closed = lab.wait_closed()

    assert closed.how == "eof"
    assert left_at_s <= closed.at_s <= monotonic()
    eventually(lambda: lab.open_connections_count == 0)


def test_client_that_resets(lab, client):
    client.leave_with_reset()

    assert lab.wait_closed().how == "reset"


def test_script_stops_when_its_client_is_gone(lab, connect):
    lab.add(Answer([gate("left"), gate("behind")]), Answer([gate("behind"), End.EOF]))
    client = connect(lab)
    client.ask()
    lab.reached("left")
    client.leave()
    lab.wait_closed()

    lab.open("left")
    lab.open("behind")
    other = connect(lab)
    other.ask()
    other.read_to_end()

    lab.reached("behind", times=1)
    with pytest.raises(TimeoutError):
        lab.reached("behind", 0.01, times=2)


def test_connection_without_a_request_is_counted(lab, connect):
    connect(lab).leave()

    eventually(lambda: lab.connections_count == 1 and lab.open_connections_count == 0)
    assert lab.requests == []


def test_half_a_request_is_no_request(lab, connect):
    client = connect(lab)
    client.socket.sendall(b"POST / HTTP/1.1\r\ncontent-length: 9\r\n\r\nabc")
    client.leave()

    eventually(lambda: lab.connections_count == 1 and lab.open_connections_count == 0)
    assert lab.requests == []

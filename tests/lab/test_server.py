"""Requests, answers and connections, as an HTTP client sees them."""

import gc
import socket
import threading

import httpx
import pytest

from tidegate.lab import (
    Answer,
    End,
    Lab,
    chat,
    frame,
    gate,
    keepalive,
    pace,
    raw,
    send,
    wait,
    zipped,
)
from tidegate.testing.eventually import eventually


@pytest.fixture
def client():
    with httpx.Client(trust_env=False, timeout=10) as client:
        yield client


def test_stream_of_every_step_that_writes(lab, client):
    lab.add(
        Answer(
            [
                frame({"n": 1}, event="tick"),
                raw(b"abcde", piece=2),
                wait(0.001),
                keepalive(0.001, 2),
                pace([send("x"), send("y")], 0.001, times=2),
                send("end"),
            ]
        )
    )

    with client.stream("POST", lab.url, json={}) as response:
        body = b"".join(response.iter_raw())

    assert response.headers["content-type"] == "text/event-stream"
    assert body == (b'event: tick\ndata: {"n":1}\n\nabcde: keepalive\n\n: keepalive\n\nxyxyend')


def test_a_small_write_waits_for_no_acknowledgement(lab, connect):
    lab.add(Answer([send("a"), gate("never"), End.KEEPALIVE]))
    connect(lab).ask()
    lab.reached("never")

    (connection,) = lab._connections
    sock = connection._transport.get_extra_info("socket")

    assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_gzip_is_decoded_by_a_real_client(lab, client):
    lab.add(
        Answer(
            [zipped(b"one "), wait(0.001), zipped(b"two"), End.EOF],
            headers={"content-encoding": "gzip"},
        )
    )

    assert client.get(lab.url).text == "one two"


def test_request_is_recorded_whole(lab, client):
    lab.add(Answer.json({}))
    body = {"text": "x" * 3_000_000}

    client.post(f"{lab.url}/chat/completions?q=1", json=body, headers={"X-Key": "k"})

    (request,) = lab.wait_requests(1)
    assert (request.method, request.path) == ("POST", "/v1/chat/completions")
    assert request.target == "/v1/chat/completions?q=1"
    assert request.headers["x-key"] == "k"
    assert request.json() == body
    assert request.connection == 1
    assert request.closed is None
    assert request.at_s >= lab.record.connections[0].opened_at_s


def test_nothing_is_answered_before_the_request_is_whole(lab, connect):
    lab.add(Answer.json({"whole": True}))
    client = connect(lab)

    client.socket.sendall(b"POST / HTTP/1.1\r\ncontent-length: 4\r\n\r\nab")
    eventually(lambda: lab.connections_count == 1)
    assert lab.requests == []
    client.socket.sendall(b"cd")

    assert client.read_until(b"}").endswith(b'{"whole":true}')
    assert lab.requests[0].body == b"abcd"


def test_body_sent_in_chunks(lab, client):
    lab.add(Answer.json({}))

    client.post(lab.url, content=iter([b"one", b"two"]))

    assert lab.requests[0].body == b"onetwo"


def test_answers_go_out_in_order_and_one_repeats(lab, client):
    lab.add(Answer.json(1), Answer.json(2), Answer.json(3, 503), Answer.json(4))
    lab.add(Answer.whole(b"again", "text/plain", 200))
    again = Answer.json("again")
    lab.add(Answer(again.steps, headers=again.headers, repeat=True))

    assert [client.get(lab.url).json() for _ in range(4)] == [1, 2, 3, 4]
    assert [client.get(lab.url).text for _ in range(4)] == ["again", *['"again"'] * 3]
    assert {request.connection for request in lab.requests} == {1}


def test_request_without_an_answer_is_an_error_and_recorded(lab, client):
    lab.add(Answer.json({}))

    assert client.get(lab.url).status_code == 200
    refused = client.get(lab.url)
    assert refused.status_code == 500
    assert "no answer left for this request, GET /v1" in refused.text
    assert lab.unexpected == lab.requests[1:]


def test_route_comes_before_the_queue(client):
    def route(request):
        return Answer.json(request.json()) if request.path == "/echo" else None

    with Lab([Answer.json("queue")], route=route) as lab:
        assert client.post(f"{lab.base}/other").json() == "queue"
        assert client.post(f"{lab.base}/echo", json=[1]).json() == [1]
        assert client.post(f"{lab.base}/other").status_code == 500


def test_route_that_raises_fails_the_test(client):
    def leave_with_a_broken_route():
        with Lab(route=lambda request: request.nothing) as lab:
            with pytest.raises(httpx.RemoteProtocolError):
                client.get(lab.url)
            eventually(lambda: lab.open_connections_count == 0)

    with pytest.raises(AttributeError, match="nothing"):
        leave_with_a_broken_route()


def test_requests_sent_ahead_are_answered_in_order(lab, connect):
    lab.add(Answer([send("1"), wait(0.001)]), Answer.json("2"), Answer([send("3"), End.EOF]))
    client = connect(lab)

    for _ in range(3):
        client.ask()
    data, how = client.read_to_end()

    assert how == "eof"
    assert data.count(b"HTTP/1.1 200 OK") == 3
    assert data.index(b"1\r\n1\r\n") < data.index(b'"2"') < data.index(b"1\r\n3\r\n")


def test_target_of_a_proxy_is_a_whole_url(lab):
    lab.add(Answer.json({}))

    with httpx.Client(proxy=lab.base, trust_env=False) as client:
        client.post("http://provider.example/v1beta/chat?x=1", json={})

    assert lab.requests[0].target == "http://provider.example/v1beta/chat?x=1"
    assert lab.requests[0].path == "/v1beta/chat"
    assert lab.requests[0].headers["host"] == "provider.example"


def test_tunnel_is_refused_and_costs_no_answer(lab):
    lab.add(Answer.json({}))

    with (
        httpx.Client(proxy=lab.base, trust_env=False) as client,
        pytest.raises(httpx.ProxyError, match="405"),
    ):
        client.get("https://provider.example/")

    assert [request.method for request in lab.requests] == ["CONNECT"]
    assert lab.unexpected == []


def test_bytes_that_are_no_request_are_refused(lab, connect):
    client = connect(lab)

    client.socket.sendall(b"\x16\x03\x01\x02\x00 hello in TLS")

    data, _ = client.read_to_end()
    assert data.startswith(b"HTTP/1.1 400 ")
    assert "no method" in lab.record.malformed[0]


def test_client_that_asks_for_it_gets_the_connection_closed(lab, connect):
    lab.add(chat.answer("x"))
    client = connect(lab)

    client.ask(headers="connection: close\r\n")

    data, how = client.read_to_end()
    assert (data[-5:], how) == (b"0\r\n\r\n", "eof")


def test_missing_request_is_reported_with_what_there_was(lab, client):
    lab.add(Answer.json({}))
    client.get(lab.url)

    with pytest.raises(TimeoutError, match=r"no 2 requests in 0.01 s: 1 requests"):
        lab.wait_requests(2, 0.01)
    with pytest.raises(TimeoutError, match="close of request 0"):
        lab.wait_closed(0, 0.01)
    with pytest.raises(TimeoutError, match="1 at gate 'g'"):
        lab.reached("g", 0.01)


def test_leaving_ends_the_thread_and_frees_the_port(connect):
    with Lab([Answer([send("x"), End.HOLD], repeat=True)]) as lab:
        clients = [connect(lab) for _ in range(3)]
        for client in clients:
            client.ask()
            client.read_until(b"x")

    assert [client.read_to_end()[1] for client in clients] == ["eof"] * 3
    assert {request.closed.how for request in lab.requests} == {"server"}
    assert "lab" not in {thread.name for thread in threading.enumerate()}
    with Lab(port=lab.port):
        pass


def test_connection_that_is_accepted_while_it_stops_is_closed(connect):
    """An unclosed one would be a ResourceWarning, which fails the test."""
    for _ in range(20):
        with Lab() as lab:
            clients = [connect(lab) for _ in range(3)]
        assert {client.read_to_end()[1] for client in clients} <= {"eof", "reset"}
    gc.collect()


def test_stopping_twice_or_before_the_start_is_harmless():
    lab = Lab()
    lab.stop()
    lab.start()
    lab.stop()
    lab.stop()


def test_port_that_is_taken_is_an_error(lab):
    with pytest.raises(OSError, match=r"[Aa]ddress"):
        Lab(port=lab.port).start()


def test_lab_that_was_not_started_has_no_address_and_says_so():
    lab = Lab()
    for name in ("base", "url"):
        with pytest.raises(RuntimeError, match="not started: put it in a with block"):
            getattr(lab, name)

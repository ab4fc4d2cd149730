"""How an answer's end looks from outside."""

import httpx
import pytest

from tidegate.lab import Answer, End, Lab, gate, send
from tidegate.testing.eventually import eventually


def end_of(lab, connect, *steps, **fields):
    lab.add(Answer(steps, **fields))
    client = connect(lab)
    client.ask()
    data, how = client.read_to_end()
    head, _, body = data.partition(b"\r\n\r\n")
    return head, body, how


def test_eof_completes_the_body_and_closes(lab, connect):
    head, body, how = end_of(lab, connect, send("x"), End.EOF)

    assert (body, how) == (b"1\r\nx\r\n0\r\n\r\n", "eof")
    assert b"connection: close" in head
    assert lab.wait_closed().how == "server"


def test_cut_closes_in_the_middle(lab, connect):
    _, body, how = end_of(lab, connect, send("x"), End.CUT)

    assert (body, how) == (b"1\r\nx\r\n", "eof")
    assert lab.wait_closed().how == "server"


def test_reset_comes_behind_what_was_written(lab, connect):
    _, body, how = end_of(lab, connect, send("x"), End.RESET)

    assert (body, how) == (b"1\r\nx\r\n", "reset")
    assert lab.wait_closed().how == "server"


def test_reset_comes_behind_a_body_larger_than_any_buffer(lab, connect):
    _, body, how = end_of(lab, connect, send("x" * 8_000_000), gate("read"), End.RESET)

    assert (len(body), how) == (8_000_000 + len("7a1200\r\n\r\n"), "reset")


@pytest.fixture(autouse=True)
def _open_gates(lab):
    lab.open("read")


def test_each_end_is_told_apart_every_time(lab, connect):
    for _ in range(50):
        assert end_of(lab, connect, send("x"), End.CUT)[2] == "eof"
        assert end_of(lab, connect, send("x"), End.RESET)[2] == "reset"


def test_reset_in_place_of_an_answer(lab, connect):
    head, body, how = end_of(lab, connect, End.RESET, headers_with_first_frame=True)

    assert (head, body, how) == (b"", b"", "reset")


def test_http_client_tells_the_three_apart(lab):
    lab.add(Answer([send("x"), End.EOF]), Answer([send("x"), End.CUT]))
    lab.add(Answer([send("x"), End.RESET]))

    with httpx.Client(trust_env=False) as client:
        assert client.get(lab.url).text == "x"
        with pytest.raises(httpx.RemoteProtocolError, match="incomplete chunked read"):
            client.get(lab.url)
        with pytest.raises(httpx.ReadError):
            client.get(lab.url)


def test_hold_is_silent_until_the_client_leaves(lab, connect):
    lab.add(Answer([send("x"), End.HOLD]))
    client = connect(lab)
    client.ask()
    client.read_until(b"x\r\n")
    assert lab.requests[0].closed is None

    client.leave()

    assert lab.wait_closed().how == "eof"


def test_keepalive_serves_the_next_request(lab, connect):
    lab.add(Answer([send("x"), End.KEEPALIVE]), Answer([send("y"), End.EOF]))
    client = connect(lab)
    client.ask()
    assert client.read_until(b"0\r\n\r\n").endswith(b"x\r\n0\r\n\r\n")

    client.ask()

    assert client.read_to_end()[0].endswith(b"y\r\n0\r\n\r\n")


def test_idle_connection_is_closed(lab, connect):
    _, body, how = end_of(lab, connect, send("x"), keepalive_close_after_s=0.01)

    assert (body, how) == (b"1\r\nx\r\n0\r\n\r\n", "eof")
    assert lab.wait_closed().how == "server"


def test_next_request_stops_the_idle_clock(connect):
    idle = Answer([send("x")], keepalive_close_after_s=60)
    with Lab([idle, Answer([send("y"), gate("g"), End.EOF])]) as lab:
        client = connect(lab)
        client.ask()
        client.read_until(b"0\r\n\r\n")
        client.ask()
        lab.reached("g")
        lab.open("g")

        assert client.read_to_end()[1] == "eof"


def test_head_is_kept_back_until_the_first_frame(lab, connect):
    lab.add(Answer([gate("g"), send("x"), End.EOF], headers_with_first_frame=True))
    client = connect(lab)
    client.ask()
    lab.reached("g")
    client.socket.setblocking(False)
    with pytest.raises(BlockingIOError):
        client.socket.recv(1)
    client.socket.settimeout(10)

    lab.open("g")

    data, _ = client.read_to_end()
    assert data.startswith(b"HTTP/1.1 200 OK\r\n")


def test_head_comes_at_once_otherwise(lab, connect):
    lab.add(Answer([gate("g"), send("x"), End.EOF]))
    client = connect(lab)
    client.ask()

    assert client.read_until(b"\r\n\r\n").endswith(b"\r\n\r\n")
    lab.open("g")


def test_delay_comes_before_the_status_line(lab, connect):
    head, _, _ = end_of(lab, connect, End.EOF, delay_s=0.01)

    assert head.startswith(b"HTTP/1.1 200 OK")
    eventually(lambda: lab.requests[0].closed)

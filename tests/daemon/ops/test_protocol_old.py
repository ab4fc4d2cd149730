"""Clients of HTTP/1.0 get bodies without chunks, which end with their connections."""

import asyncio

import pytest

from tests.daemon.ops.serving import (
    Client,
    Server,
    Steps,
    answer,
    begin_stream,
    read_all,
    stream,
)
from tidegate.daemon.protocol import CONNECTION, WRITE_BUFFER_BYTES


PIECE = b"x" * 65536
KEEP = b"connection: keep-alive\r\n"


@pytest.fixture(params=["asyncio", "uvloop"])
def loop(request):
    return request.param


def ask(method=b"GET", more=b"", body=b"", version=b"1.0"):
    return b"%s / HTTP/%s\r\nhost: h\r\n%s\r\n%s" % (method, version, more, body)


def told(client):
    """Return status line, headers and body of what comes until the connection ends."""
    head, _, body = client.rest().partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    return first, dict(line.split(": ", 1) for line in lines), body


async def in_pieces(_scope, _receive, send):
    await begin_stream(send)
    for piece in (b"one", b"", b"two"):
        await stream(send, piece)
    await stream(send, b"three", more=False)


async def whole(_scope, receive, send):
    await answer(send, b"got " + await read_all(receive))


@pytest.mark.parametrize("version", [b"1.0", b"2.0"])
@pytest.mark.parametrize("more", [b"", KEEP])
def test_stream_ends_with_the_connection(loop, more, version):
    """Also where a version is named that is spoken in another way, and has no chunks either."""
    with Server(in_pieces, loop=loop) as server, Client(server.port) as client:
        client.send(ask(more=more, version=version))

        first, headers, body = told(client)
        assert first.endswith("200 OK")
        assert headers == {"content-type": "text/event-stream", "connection": "close"}
        assert body == b"onetwothree"


def test_piece_is_there_before_the_next_one(loop):
    steps = Steps()

    async def app(_scope, _receive, send):
        await begin_stream(send)
        await stream(send, b"one")
        await steps.passed("on")
        await stream(send, b"two", more=False)

    with Server(app, loop=loop) as server, Client(server.port) as client:
        client.send(ask())
        assert client.until(b"one").endswith(b"\r\n\r\none")
        steps.open("on")

        assert client.rest() == b"two"


def test_stream_that_a_client_takes_slowly_comes_whole(loop):
    async def app(_scope, _receive, send):
        await begin_stream(send)
        for _ in range(100):
            await stream(send, PIECE)
        await stream(send, b"", more=False)

    with Server(app, loop=loop) as server, Client(server.port, 4096) as client:
        client.send(ask())

        assert told(client)[2] == PIECE * 100


def test_pieces_that_wait_for_a_slow_client_together_come_whole(loop):
    steps = Steps()

    async def app(scope, _receive, send):
        count = 3
        await begin_stream(send)
        while scope["extensions"][CONNECTION].buffered() <= WRITE_BUFFER_BYTES:
            await stream(send, PIECE)
            count += 1
        bodies = [
            {"type": "http.response.body", "body": each, "more_body": True}
            for each in (PIECE, PIECE * 2, b"y")
        ]
        waiting = [asyncio.create_task(send(each)) for each in bodies]
        await asyncio.sleep(0)  # now each of them waits
        steps.tell(count)
        await asyncio.gather(*waiting)
        await stream(send, b"", more=False)

    with Server(app, loop=loop) as server, Client(server.port, 4096) as client:
        client.send(ask())
        count = steps.next()

        body = told(client)[2]
        assert (body.count(b"x"), body.count(b"y")) == (count * len(PIECE), 1)


@pytest.mark.parametrize("more", [b"", KEEP, b"expect: 100-continue\r\n"])
def test_body_with_a_length_keeps_it(loop, more):
    with Server(whole, loop=loop) as server, Client(server.port) as client:
        client.send(ask(b"POST", b"content-length: 4\r\n" + more, b"body") + ask())

        first, headers, body = told(client)
        assert first.endswith("200 OK")
        assert headers == {"content-length": "8", "connection": "close"}
        assert body == b"got body"


def test_head_has_no_body(loop):
    with Server(in_pieces, loop=loop) as server, Client(server.port) as client:
        client.send(ask(b"HEAD"))

        first, headers, body = told(client)
        assert (first.split()[1], headers["connection"], body) == ("200", "close", b"")


def test_client_of_http_1_1_gets_chunks_and_may_ask_again(loop):
    with Server(in_pieces, loop=loop) as server, Client(server.port) as client:
        for _ in range(2):
            client.ask()
            assert b"transfer-encoding: chunked\r\n" in client.until(b"\r\n\r\n")
            assert client.until(b"0\r\n\r\n") == b"3\r\none\r\n3\r\ntwo\r\n5\r\nthree\r\n0\r\n\r\n"

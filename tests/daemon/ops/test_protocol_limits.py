"""What a client may cost, and what becomes of requests that follow each other."""

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
from tidegate.daemon.protocol import CONNECTION, ClientProtocol, Limits, protocol_with


SMALL = 4096


@pytest.fixture(params=["asyncio", "uvloop"])
def loop(request):
    return request.param


@pytest.fixture
def steps():
    return Steps()


async def echo(scope, receive, send):
    body = await read_all(receive)
    if body is not None:
        await answer(send, scope["path"].encode() + b" " + body)


async def deny(scope, receive, send):
    await answer(send, b"no", 401)


def test_requests_on_one_connection_are_answered_in_turn(loop):
    with Server(echo, loop=loop) as server, Client(server.port) as client:
        for number in range(3):
            client.ask("POST", f"/{number}", body=b"x" * number)
            assert client.answer()[2] == b"/%d %s" % (number, b"x" * number)


def test_requests_in_one_pipe_are_answered_in_turn(loop):
    with Server(echo, loop=loop) as server, Client(server.port) as client:
        for number in range(40):
            client.ask("POST", f"/{number}", body=b"x" * number)
        for number in range(40):
            assert client.answer()[2] == b"/%d %s" % (number, b"x" * number)


def test_large_bodies_come_whole(loop):
    with Server(echo, loop=loop) as server, Client(server.port) as client:
        for size in (300_000, 5_000_000, 10):
            client.ask("POST", "/", body=b"x" * size)
            assert client.answer()[2] == b"/ " + b"x" * size


def test_request_behind_a_stream_waits_for_its_end(loop, steps):
    async def app(scope, receive, send):
        steps.tell(scope["path"])
        if scope["path"] == "/stream":
            await begin_stream(send)
            await stream(send, b"one")
            await steps.passed("on")
            await stream(send, b"two", more=False)
        else:
            await answer(send, b"next")

    with Server(app, loop=loop) as server, Client(server.port) as client:
        client.ask(path="/stream")
        client.until(b"one")
        client.ask(path="/next")
        steps.open("on")

        assert client.until(b"0\r\n\r\n").endswith(b"two\r\n0\r\n\r\n")
        assert client.answer()[2] == b"next"
        assert [steps.next(), steps.next()] == ["/stream", "/next"]


@pytest.mark.parametrize("pieces", [1, 50])
def test_headers_that_are_too_large_are_431(loop, pieces):
    protocol = protocol_with(Limits(head_bytes_max=SMALL))
    with Server(echo, protocol, loop) as server, Client(server.port) as client:
        lines = b"".join(b"x-%d: %s\r\n" % (each, b"v" * 200) for each in range(50))
        client.send(b"GET / HTTP/1.1\r\nhost: h\r\n")
        size = len(lines) // pieces
        for each in range(pieces):
            client.send(lines[each * size : (each + 1) * size])

        status, headers, _ = client.answer()
        assert (status, headers["connection"]) == (431, "close")
        assert client.end() == "eof"


def test_header_that_never_ends_is_431(loop):
    protocol = protocol_with(Limits(head_bytes_max=SMALL))
    with Server(echo, protocol, loop) as server, Client(server.port) as client:
        client.send(b"GET / HTTP/1.1\r\nhost: h\r\nx: ")
        client.send(b"v" * 1_000_000)  # more than is ever read at once

        assert client.answer()[0] == 431


def test_target_that_never_ends_is_431(loop):
    protocol = protocol_with(Limits(head_bytes_max=SMALL))
    with Server(echo, protocol, loop) as server, Client(server.port) as client:
        client.send(b"GET /" + b"p" * 10_000)

        assert client.answer()[0] == 431


def test_headers_just_within_the_limit_are_taken(loop):
    protocol = protocol_with(Limits(head_bytes_max=SMALL))
    with Server(echo, protocol, loop) as server, Client(server.port) as client:
        for _ in range(3):
            client.ask("POST", headers=f"x: {'v' * (SMALL - 100)}\r\n", body=b"b" * SMALL * 3)
            assert client.answer()[0] == 200


def test_body_in_chunks_of_a_byte_is_taken(loop):
    protocol = protocol_with(Limits(head_bytes_max=SMALL))
    with Server(echo, protocol, loop) as server, Client(server.port) as client:
        client.send(b"POST / HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked\r\n\r\n")
        for _ in range(10):
            client.send(b"1\r\nx\r\n" * 1000)
        client.send(b"0\r\n\r\n")

        assert client.answer()[2] == b"/ " + b"x" * 10_000


@pytest.mark.parametrize("trailer", [b"x: " + b"v" * 200_000, b"x: v\r\n" * 30_000])
def test_trailers_that_never_end_end_the_connection(loop, trailer):
    protocol = protocol_with(Limits(head_bytes_max=SMALL))
    with Server(echo, protocol, loop) as server, Client(server.port) as client:
        client.send(b"POST / HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked\r\n\r\n0\r\n")
        try:
            client.send(trailer)
        except OSError:
            return

        assert client.end() in ("eof", "reset")


def test_trailers_are_no_headers(loop, steps):
    async def app(scope, receive, send):
        await read_all(receive)
        steps.tell([name for name, _ in scope["headers"]])
        await answer(send)

    with Server(app, loop=loop) as server, Client(server.port) as client:
        client.send(b"POST / HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked\r\n\r\n")
        client.send(b"1\r\nx\r\n0\r\nauthorization: Bearer late\r\n\r\n")

        assert client.answer()[0] == 200
        assert steps.next() == [b"host", b"transfer-encoding"]


def test_headers_that_take_too_long_are_408(loop):
    protocol = protocol_with(Limits(head_s=0.05))
    with Server(echo, protocol, loop) as server, Client(server.port) as client:
        client.send(b"GET / HTTP/1.1\r\nhost:")

        assert client.answer()[0] == 408
        assert client.end() == "eof"


@pytest.mark.parametrize("said", [b"", b"\r\n", b"\r\n\r\n"])
def test_client_that_says_nothing_is_let_go(loop, said):
    protocol = protocol_with(Limits(head_s=0.05))
    with Server(echo, protocol, loop) as server, Client(server.port) as client:
        client.send(said)

        assert client.end() == "eof"


def test_second_request_has_its_time_too(loop):
    protocol = protocol_with(Limits(head_s=0.05))
    with Server(echo, protocol, loop) as server, Client(server.port) as client:
        client.ask()
        assert client.answer()[0] == 200
        client.send(b"GET / HTTP/1.1\r\nhost:")

        assert client.answer()[0] == 408


def test_stream_may_last_longer_than_headers_may(loop, steps):
    async def app(scope, receive, send):
        await begin_stream(send)
        for number in range(4):
            await stream(send, b"data: %d\n\n" % number)
            await steps.passed(number)
        await stream(send, b"", more=False)

    protocol = protocol_with(Limits(head_s=0.01, flush_s=0.01))
    with Server(app, protocol, loop) as server, Client(server.port) as client:
        client.ask()
        client.send(b"GET / HTTP/1.1\r\nhost:")  # unfinished, behind the stream
        for number in range(4):
            client.until(b"data: %d\n\n" % number)
            steps.open(number)
        client.until(b"0\r\n\r\n")
        assert client.answer()[0] == 408


def test_what_is_no_http_is_400(loop):
    with Server(echo, loop=loop) as server, Client(server.port) as client:
        client.send(b"\x16\x03\x01 this is TLS\r\n\r\n")

        status, _, body = client.json()
        assert (status, body["error"]["message"]) == (400, "this is no HTTP request")
        assert client.end() == "eof"


def test_what_is_no_http_behind_a_stream_writes_nothing_into_it(loop, steps):
    async def app(scope, receive, send):
        connection = scope["extensions"][CONNECTION]
        connection.when_gone(lambda: steps.tell("gone"))
        await begin_stream(send)
        await stream(send, b"one")
        await connection.gone.wait()

    with Server(app, loop=loop) as server, Client(server.port) as client:
        client.ask()
        client.until(b"one\r\n")
        client.send(b"nonsense\r\n\r\n")

        assert steps.next() == "gone"
        assert client.end() in ("eof", "reset")


def test_refused_body_is_dropped_and_the_connection_kept(loop):
    async def app(scope, receive, send):
        await (deny if scope["path"] == "/deny" else echo)(scope, receive, send)

    with Server(app, loop=loop) as server, Client(server.port) as client:
        client.ask("POST", "/deny", body=b"x" * 3_000_000)
        assert client.answer()[0] == 401
        client.ask(path="/ok")
        assert client.answer()[2] == b"/ok "


def test_refused_body_that_is_too_large_ends_the_connection(loop):
    protocol = protocol_with(Limits(drop_bytes_max=SMALL))
    with Server(deny, protocol, loop) as server, Client(server.port) as client:
        client.send(b"POST / HTTP/1.1\r\nhost: h\r\ncontent-length: 1000000\r\n\r\n")
        assert client.answer()[0] == 401
        client.send(b"x" * 2 * SMALL)

        assert client.end() in ("eof", "reset")


def test_refused_body_that_does_not_come_ends_the_connection(loop):
    protocol = protocol_with(Limits(drop_s=0.05))
    with Server(deny, protocol, loop) as server, Client(server.port) as client:
        client.ask("POST", headers="expect: 100-continue\r\ncontent-length: 10\r\n")
        assert client.answer()[0] == 401

        assert client.end() in ("eof", "reset")


def test_client_that_asks_whether_to_send_is_told(loop):
    with Server(echo, loop=loop) as server, Client(server.port) as client:
        client.ask("POST", headers="expect: 100-continue\r\ncontent-length: 2\r\n")
        client.until(b"HTTP/1.1 100 Continue\r\n\r\n")
        client.send(b"{}")

        assert client.answer()[2] == b"/ {}"


def test_offer_of_http2_is_passed_over(loop):
    offer = "connection: upgrade, http2-settings\r\nupgrade: h2c\r\nhttp2-settings: AAMAAABk\r\n"
    with Server(echo, loop=loop) as server, Client(server.port) as client:
        for body in (b"{}", b"x" * 500_000, b"", None):
            client.ask("POST", headers=offer, body=body)
            assert client.answer()[2] == b"/ " + (body or b"")
        for number in range(3):  # in one pipe
            client.ask("POST", f"/{number}", headers=offer, body=b"{}")
        for number in range(3):
            assert client.answer()[2] == b"/%d {}" % number


def test_end_of_a_response_that_nobody_takes_is_given_up(loop, steps):
    async def app(scope, receive, send):
        connection = scope["extensions"][CONNECTION]
        await begin_stream(send)
        while not connection.buffered():
            await stream(send, b"x" * 65536)
        await stream(send, b"", more=False)
        steps.tell("ended")

    protocol = protocol_with(Limits(flush_s=0.05))
    with Server(app, protocol, loop) as server, Client(server.port, SMALL) as client:
        client.ask()
        assert steps.next() == "ended"

        assert client.is_reset()


def test_response_that_fails_for_a_client_that_takes_nothing_is_given_up(loop, steps):
    async def app(scope, receive, send):
        connection = scope["extensions"][CONNECTION]
        await begin_stream(send)
        while not connection.buffered():
            await stream(send, b"x" * 65536)
        steps.tell("fails")
        raise RuntimeError("on purpose")

    protocol = protocol_with(Limits(flush_s=0.05))
    with Server(app, protocol, loop) as server, Client(server.port, SMALL) as client:
        client.ask()
        assert steps.next() == "fails"

        assert client.is_reset()


def test_protocol_with_limits_is_one_of_its_own():
    limits = Limits(head_s=1.0)

    assert protocol_with(limits).limits is limits
    assert ClientProtocol.limits == Limits()

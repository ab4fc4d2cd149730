"""A client that goes is noticed in every phase; one that must go is cut."""

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
from tidegate.daemon.protocol import CONNECTION
from tidegate.testing.eventually import eventually


LOOPS = ["asyncio", "uvloop"]
LEAVES = ["leave", "leave_with_reset"]


@pytest.fixture(params=LOOPS)
def loop(request):
    return request.param


@pytest.fixture(params=LEAVES)
def leave(request):
    return lambda client: getattr(client, request.param)()


@pytest.fixture
def steps():
    return Steps()


def connection_of(scope):
    return scope["extensions"][CONNECTION]


class Watching:
    """An app that tells when its client went, and does nothing else unless ``doing`` does."""

    def __init__(self, steps, doing=None):
        self._steps = steps
        self._doing = doing

    async def __call__(self, scope, receive, send):
        connection = connection_of(scope)
        connection.when_gone(lambda: self._steps.tell(f"gone {scope['path']}"))
        self._steps.tell(f"asked {scope['path']}")
        if self._doing is not None:
            await self._doing(scope, receive, send)
        await connection.gone.wait()
        self._steps.tell(f"done {scope['path']}")


def test_client_that_goes_within_its_body_is_noticed(loop, leave, steps):
    async def doing(scope, receive, send):
        steps.tell(await read_all(receive))

    with Server(Watching(steps, doing), loop=loop) as server, Client(server.port) as client:
        client.send(b"POST / HTTP/1.1\r\nhost: h\r\ncontent-length: 10\r\n\r\nhalf")
        assert steps.next() == "asked /"
        leave(client)

        assert [steps.next() for _ in range(3)] == ["gone /", None, "done /"]


@pytest.mark.parametrize("size", [2, 100_000, 1_000_000])
def test_client_that_goes_before_an_answer_is_noticed(loop, leave, steps, size):
    async def doing(scope, receive, send):
        steps.tell(len(await read_all(receive)))

    with Server(Watching(steps, doing), loop=loop) as server, Client(server.port) as client:
        client.ask("POST", body=b"x" * size)
        assert [steps.next(), steps.next()] == ["asked /", size]
        leave(client)

        assert [steps.next(), steps.next()] == ["gone /", "done /"]


def test_client_that_goes_while_nobody_reads_its_body_is_noticed(loop, leave, steps):
    with Server(Watching(steps), loop=loop) as server, Client(server.port) as client:
        client.ask("POST", body=b"x" * 1000)
        assert steps.next() == "asked /"
        leave(client)

        assert [steps.next(), steps.next()] == ["gone /", "done /"]


def test_client_that_goes_within_a_stream_is_noticed_without_a_write(loop, leave, steps):
    async def doing(scope, receive, send):
        await read_all(receive)
        await begin_stream(send)
        await stream(send, b"data: 1\n\n")

    with Server(Watching(steps, doing), loop=loop) as server, Client(server.port) as client:
        client.ask("POST", body=b"{}")
        client.until(b"data: 1\n\n")
        assert steps.next() == "asked /"
        leave(client)

        assert [steps.next(), steps.next()] == ["gone /", "done /"]


def test_client_that_goes_while_it_reads_nothing_is_noticed(loop, leave, steps):
    async def doing(scope, receive, send):
        await begin_stream(send)
        connection = connection_of(scope)
        while not connection.buffered():
            await stream(send, b"x" * 65536)
        steps.tell("stalled")

    with Server(Watching(steps, doing), loop=loop) as server, Client(server.port, 4096) as client:
        client.ask()
        assert [steps.next(), steps.next()] == ["asked /", "stalled"]
        leave(client)

        assert [steps.next(), steps.next()] == ["gone /", "done /"]


def test_write_that_waits_for_a_client_that_went_ends(loop, leave, steps):
    async def doing(scope, receive, send):
        await begin_stream(send)
        connection = connection_of(scope)
        connection.when_gone(lambda: steps.tell("told"))
        steps.tell("writing")
        while not connection.gone.is_set():
            await stream(send, b"x" * 65536)

    with Server(Watching(steps, doing), loop=loop) as server, Client(server.port, 4096) as client:
        client.ask()
        assert [steps.next(), steps.next()] == ["asked /", "writing"]
        client.until(b"xxx")
        leave(client)

        assert [steps.next() for _ in range(3)] == ["gone /", "told", "done /"]


def test_client_that_closes_its_side_only_counts_as_gone(loop, steps):
    with Server(Watching(steps), loop=loop) as server, Client(server.port) as client:
        client.ask()
        assert steps.next() == "asked /"
        client.socket.shutdown(1)

        assert [steps.next(), steps.next()] == ["gone /", "done /"]
        assert client.end() in ("eof", "reset")


def test_receive_tells_of_a_client_that_went_too(loop, leave, steps):
    async def app(scope, receive, send):
        await read_all(receive)
        steps.tell("asked")
        steps.tell((await receive())["type"])

    with Server(app, loop=loop) as server, Client(server.port) as client:
        client.ask("POST", body=b"{}")
        assert steps.next() == "asked"
        leave(client)

        assert steps.next() == "http.disconnect"


def test_client_with_a_second_request_in_the_pipe_is_noticed(loop, leave, steps):
    with Server(Watching(steps), loop=loop) as server, Client(server.port) as client:
        client.ask(path="/first")
        assert steps.next() == "asked /first"
        client.ask(path="/second")
        leave(client)

        assert [steps.next(), steps.next()] == ["gone /first", "done /first"]


def test_end_of_a_request_is_no_leaving(loop, leave, steps):
    async def app(scope, receive, send):
        connection_of(scope).when_gone(lambda: steps.tell("gone"))
        await answer(send, scope["path"].encode())
        steps.tell(scope["path"])

    with Server(app, loop=loop) as server:
        with Client(server.port) as client:
            client.ask(path="/1")
            assert client.answer()[2] == b"/1"
            leave(client)
        with Client(server.port) as client:
            client.ask(path="/2")
            assert client.answer()[2] == b"/2"

        assert [steps.next(), steps.next()] == ["/1", "/2"]


def test_taking_a_callback_back_keeps_it_from_being_called(loop, steps):
    async def app(scope, receive, send):
        connection = connection_of(scope)
        take_back = connection.when_gone(lambda: steps.tell("taken back"))
        connection.when_gone(lambda: steps.tell("kept"))
        take_back()
        take_back()
        steps.tell("asked")
        await connection.gone.wait()
        connection.when_gone(lambda: steps.tell("late"))
        steps.tell("done")

    with Server(app, loop=loop) as server, Client(server.port) as client:
        client.ask()
        assert steps.next() == "asked"
        client.leave()

        assert [steps.next() for _ in range(3)] == ["kept", "late", "done"]


def test_abort_resets_a_client_that_reads_nothing_and_is_no_leaving(loop, steps):
    async def app(scope, receive, send):
        connection = connection_of(scope)
        connection.when_gone(lambda: steps.tell("gone"))
        await begin_stream(send)
        while not connection.buffered():
            await stream(send, b"x" * 65536)
        steps.tell("stalled")
        connection.abort()
        connection.abort()
        await stream(send, b"this goes nowhere")
        steps.tell((await receive())["type"])
        steps.tell((connection.gone.is_set(), connection.is_cut))

    with Server(app, loop=loop) as server, Client(server.port, 4096) as client:
        client.ask()
        assert [steps.next() for _ in range(3)] == ["stalled", "http.disconnect", (False, True)]
        assert client.end() == "reset"


def test_abort_ends_a_write_that_waits(loop, steps):
    async def app(scope, receive, send):
        connection = connection_of(scope)
        await begin_stream(send)
        steps.tell(connection)
        while not connection.is_cut:
            await stream(send, b"x" * 65536)
        steps.tell("ended")

    cutting = []

    async def both(scope, receive, send):
        if scope["path"] == "/cut":
            cutting[0].abort()
            await answer(send)
        else:
            await app(scope, receive, send)

    with Server(both, loop=loop) as server, Client(server.port, 4096) as client:
        client.ask()
        connection = steps.next()
        cutting.append(connection)
        eventually(connection.buffered)
        with Client(server.port) as other:
            other.ask(path="/cut")
            assert other.answer()[0] == 200

        assert steps.next() == "ended"
        assert client.end() == "reset"


def test_stalled_client_costs_a_bounded_piece_of_memory(loop, steps):
    sent = []

    async def app(scope, receive, send):
        connection = connection_of(scope)
        await begin_stream(send)
        while connection.buffered() < 65536:
            await stream(send, b"x" * 4096)
            sent.append(4096)
        steps.tell(sum(sent))
        connection.abort()

    with Server(app, loop=loop) as server, Client(server.port, 4096) as client:
        client.ask()

        assert steps.next() < 2_000_000

"""What a server sends before it is asked is the answer to no request."""

import threading

import pytest

from tests.wire.conftest import GUARD_S
from tests.wire.test_transport import at
from tidegate.lab import chat
from tidegate.lab.script import Send
from tidegate.testing.eventually import eventually


HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
HALF_A_HEAD = HEAD[:40]


def chunks_of(text):
    frames = [step.data for step in chat.answer(text).steps if isinstance(step, Send)]
    return [b"%x\r\n%b\r\n" % (len(frame), frame) for frame in frames] + [b"0\r\n\r\n"]


def whole(text):
    return HEAD + b"".join(chunks_of(text))


EXTRAS = pytest.mark.parametrize(
    "extra", [whole("late"), HALF_A_HEAD, b"?"], ids=["answer", "half a head", "rubbish"]
)


class Server:
    """One port, whose connections the test serves by hand."""

    def __init__(self, listener):
        self._listener = listener
        self.port = listener.getsockname()[1]

    def asked_on_new(self):
        """Take a connection and the request on it."""
        connection, _ = self._listener.accept()
        connection.settimeout(GUARD_S)
        read_request(connection)
        return connection


class Hold:
    """Keeps the worker's loop from turning."""

    def __init__(self):
        self.begun, self.go_on = threading.Event(), threading.Event()

    def __call__(self):
        self.begun.set()
        assert self.go_on.wait(GUARD_S)


def read_request(connection):
    data = b""
    while b"\r\n\r\n" not in data:
        data += connection.recv(1 << 16)
    head, _, body = data.partition(b"\r\n\r\n")
    [length] = [
        int(line.partition(b":")[2])
        for line in head.lower().split(b"\r\n")
        if line.startswith(b"content-length:")
    ]
    while len(body) < length:
        body += connection.recv(1 << 16)


@pytest.fixture
def server(mute_port):
    return Server(mute_port[1])


@pytest.fixture
def first(worker, server):
    """The connection of a request whose answer is whole but for its end."""
    token = worker.start(at(server.port))
    with server.asked_on_new() as connection:
        connection.sendall(HEAD + b"".join(chunks_of("first")[:-1]))
        worker.wait_text(token, "first")
        yield token, connection


def wait_kept(worker, token):
    """Wait until an answer is read to its end, and its connection is kept for the next."""
    assert worker.end_of(token).failure is None
    eventually(lambda: not worker.providers._attempts)


def ask_again(worker, server, first):
    """Expect that the next request comes on another connection, and its own answer is read."""
    token = worker.start(at(server.port))
    with server.asked_on_new() as second:
        second.sendall(whole("second"))
        assert worker.end_of(token).failure is None
    assert worker.text_of(token) == "second"
    assert first.recv(1 << 16) == b""


@EXTRAS
def test_bytes_behind_an_answer_in_one_piece_with_its_end(worker, server, first, extra):
    token, connection = first
    connection.sendall(chunks_of("first")[-1] + extra)
    wait_kept(worker, token)

    ask_again(worker, server, connection)


@EXTRAS
def test_bytes_that_come_while_nobody_asks(worker, server, first, extra):
    token, connection = first
    connection.sendall(chunks_of("first")[-1])
    wait_kept(worker, token)
    connection.sendall(extra)

    ask_again(worker, server, connection)


@EXTRAS
def test_bytes_that_the_loop_has_had_no_time_to_read(worker, server, first, extra):
    token, connection = first
    connection.sendall(chunks_of("first")[-1])
    wait_kept(worker, token)
    gather, busy = Hold(), Hold()
    worker.call(gather)
    assert gather.begun.wait(GUARD_S)
    # Both in the next turn of the loop, so that the request is made in the one behind it: before
    # anything that has come meanwhile is read.
    token = worker.start(at(server.port))
    worker.call(busy)
    gather.go_on.set()
    assert busy.begun.wait(GUARD_S)
    connection.sendall(extra)
    busy.go_on.set()

    with server.asked_on_new() as second:
        second.sendall(whole("second"))
        assert worker.end_of(token).failure is None
    assert worker.text_of(token) == "second"


def test_connection_without_any_is_used_again(worker, server, first):
    token, connection = first
    connection.sendall(chunks_of("first")[-1])
    wait_kept(worker, token)

    token = worker.start(at(server.port))
    read_request(connection)
    connection.sendall(whole("second"))

    assert worker.end_of(token).failure is None
    assert worker.text_of(token) == "second"

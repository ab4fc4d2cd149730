"""A read that waits for a socket ends when another thread hangs up, whoever made the response."""

import contextlib
import socket
import ssl
import threading
import urllib.request

import httpx
import httpx2
import pytest
import urllib3

from tidegate.custom import Interruptible, hang_up
from tidegate.lab import Answer, End, Lab, send


GUARD_S = 20
WORD = "x" * 64


def by_httpx(url, ca_file):
    client = httpx.Client(timeout=None, verify=ssl.create_default_context(cafile=ca_file))
    response = client.send(client.build_request("POST", url, json={}), stream=True)
    return response, response.iter_raw()


def by_httpx2(url, ca_file):
    client = httpx2.Client(timeout=None, verify=ssl.create_default_context(cafile=ca_file))
    response = client.send(client.build_request("POST", url, json={}), stream=True)
    return response, response.iter_raw()


def by_urllib(url, ca_file):
    context = ssl.create_default_context(cafile=ca_file) if url.startswith("https") else None
    response = urllib.request.urlopen(url, b"{}", context=context)
    return response, iter(lambda: response.read(len(WORD)), b"")


def by_urllib3(url, ca_file):
    pool = urllib3.PoolManager(ca_certs=ca_file)
    response = pool.request("POST", url, body=b"{}", preload_content=False, timeout=None)
    return response, response.stream(len(WORD))


class AsRequests:
    """What a response of ``requests`` is made of."""

    def __init__(self, raw):
        self.raw = raw


def by_requests(url, ca_file):
    raw, pieces = by_urllib3(url, ca_file)
    return AsRequests(raw), pieces


@pytest.mark.parametrize("tls", [False, True], ids=["plain", "tls"])
@pytest.mark.parametrize("ask", [by_httpx, by_httpx2, by_urllib, by_urllib3, by_requests])
def test_read_that_waits_ends(ask, tls):
    with Lab([Answer([send(WORD), End.HOLD])], tls=tls) as lab:
        response, pieces = ask(f"{lab.url}/any", lab.ca_file if tls else None)
        assert next(pieces) == WORD.encode()
        ended = threading.Event()

        def read():
            with contextlib.suppress(Exception):  # each client has its own
                next(pieces, None)
            ended.set()

        threading.Thread(target=read, daemon=True).start()

        hang_up(response)

        assert ended.wait(GUARD_S)
        assert lab.wait_closed(0).how in ("eof", "reset")
        hang_up(response)  # and once more does no harm


def test_socket_will_do():
    ours, theirs = socket.socketpair()

    hang_up(ours)

    assert theirs.recv(1) == b""
    ours.close()
    theirs.close()
    hang_up(ours)


def test_anything_else_is_refused():
    with pytest.raises(TypeError, match=r"builtins\.dict is no response"):
        hang_up({})


class TestInterruptible:
    def test_pieces_are_read_and_closed(self):
        done = []

        def pieces():
            try:
                yield from "ab"
            finally:
                done.append("closed")

        stream = Interruptible(pieces(), unblock=lambda: done.append("unblocked"))

        assert next(stream) == "a"
        stream.close()
        assert done == ["unblocked", "closed"]
        assert [*stream] == []

    def test_pieces_that_are_being_read_are_left_to_their_reader(self):
        def pieces():
            stream.close()  # as another thread would, while this one is in here
            yield "a"

        stream = Interruptible(pieces(), unblock=lambda: None)

        assert [*stream] == ["a"]

"""Requests are read whole, however their bytes arrive."""

import pytest

from tidegate.lab.request import HEAD_BYTES_MAX, MalformedRequest, RequestReader


SIZED = (
    b"POST /v1/chat?x=1 HTTP/1.1\r\nHost: lab\r\nX-A: 1\r\nx-a: 2\r\n"
    b'Content-Length: 7\r\n\r\n{"a":1}'
)
CHUNKED = (
    b"POST http://api.example/v1/chat HTTP/1.1\r\nTransfer-Encoding: chunked\r\n"
    b'Connection: close\r\n\r\n3;ext\r\n{"a\r\n4\r\n":1}\r\n0\r\nTrailer: t\r\n\r\n'
)
BARE = b"GET /v1/models HTTP/1.1\r\n\r\n"


def fields(request):
    return request.method, request.target, request.path, request.headers, request.body


def read(*pieces):
    reader = RequestReader()
    return [fields(request) for piece in pieces for request in reader.feed(piece)]


def test_body_with_a_length():
    assert read(SIZED) == [
        (
            "POST",
            "/v1/chat?x=1",
            "/v1/chat",
            {"host": "lab", "x-a": "1, 2", "content-length": "7"},
            b'{"a":1}',
        )
    ]


def test_chunked_body_to_a_proxy():
    ((method, target, path, _, body),) = read(CHUNKED)

    assert (method, target, path) == ("POST", "http://api.example/v1/chat", "/v1/chat")
    assert body == b'{"a":1}'


@pytest.mark.parametrize("whole", [SIZED, CHUNKED, BARE], ids=["sized", "chunked", "bare"])
def test_cut_in_two_at_every_byte(whole):
    for at in range(len(whole)):
        assert read(whole[:at], whole[at:]) == read(whole)


def test_one_byte_at_a_time_and_one_behind_the_other():
    several = SIZED + CHUNKED + BARE + SIZED

    assert read(*(bytes([byte]) for byte in several)) == read(several)
    assert len(read(several)) == 4


def test_client_that_wants_the_connection_closed():
    last = [request.last for request in RequestReader().feed(SIZED + CHUNKED)]

    assert last == [False, True]


def test_json_of_the_body():
    reader = RequestReader()
    (good,) = reader.feed(SIZED)
    (bad,) = reader.feed(BARE)

    assert good.json() == {"a": 1}
    with pytest.raises(ValueError, match="body b''"):
        bad.json()


@pytest.mark.parametrize(
    "data",
    [
        b"\x16\x03\x01 a hello in TLS",
        b"GET\r\n\r\n",
        b"GET / HTTP/1.1\r\nno colon\r\n\r\n",
        b"GET / HTTP/1.1\r\ncontent-length: -1\r\n\r\n",
        b"GET / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\nxyz\r\n",
        b"G" * (HEAD_BYTES_MAX + 1),
    ],
)
def test_what_is_no_request_is_refused(data):
    with pytest.raises(MalformedRequest):
        RequestReader().feed(data)

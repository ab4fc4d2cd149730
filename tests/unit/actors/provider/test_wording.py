"""What transports say, in our words; the real ones are asked in the tests of connections."""

import socket
import ssl
import zlib

import aiohttp
import botocore.exceptions
import httpx
import httpx2
import pytest

from tests.unit.actors.provider.test_stream_errors import REQUESTS, REQUESTS_CONNECTION, error_named
from tidegate.actors.provider.exceptions import failure_from


CUT = "the connection ended in the middle of the answer"
UNANSWERED = "the server closed the connection without an answer"
POOL = "HTTPConnectionPool(host='far', port=80): "


def asking(error, url="http://far:81/v1?key=secret"):
    """Let an error of httpx or requests know what was asked."""
    error.request = httpx.Request("POST", url)
    return error


def because(error, cause):
    error.__context__ = cause
    return error


def requests_error(name, text, *ancestors):
    return error_named(f"requests.exceptions.{name}", *ancestors or (REQUESTS,))(text)


REFUSED = ConnectionRefusedError(111, "Connection refused")
READ = '("Connection broken: IncompleteRead(3 bytes read, 97 more expected)", IncompleteRead(...))'
RESET = "('Connection broken: x', ConnectionResetError(104, 'Connection reset by peer'))"


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (aiohttp.ClientPayloadError("Response payload is not completed: <E: 400>"), CUT),
        (
            aiohttp.ClientPayloadError("... (received 3 of 100 bytes)."),
            f"{CUT}: 3 of 100 bytes had come",
        ),
        (
            httpx.RemoteProtocolError(
                "peer closed connection without sending complete message body "
                "(received 3 bytes, expected 100)"
            ),
            f"{CUT}: 3 of 100 bytes had come",
        ),
        (
            httpx2.RemoteProtocolError(
                "peer closed connection without sending complete message body "
                "(incomplete chunked read)"
            ),
            CUT,
        ),
        (requests_error("ChunkedEncodingError", READ), f"{CUT}: 3 of 100 bytes had come"),
        (requests_error("ChunkedEncodingError", "Response ended prematurely"), CUT),
        (requests_error("ChunkedEncodingError", RESET), f"{CUT}: Connection reset by peer"),
        (aiohttp.ServerDisconnectedError(), UNANSWERED),
        (aiohttp.ServerDisconnectedError("<RawResponseMessage(code=200)>"), UNANSWERED),
        (
            httpx.RemoteProtocolError("Server disconnected without sending a response."),
            UNANSWERED,
        ),
        (
            REQUESTS_CONNECTION("('Connection aborted.', RemoteDisconnected('Remote end closed'))"),
            UNANSWERED,
        ),
        (
            httpx.ReadError("[Errno 104] Connection reset by peer"),
            "the connection was lost: Connection reset by peer",
        ),
        (BrokenPipeError(), "the connection was lost"),
        (
            httpx.RemoteProtocolError("illegal status line: bytearray(b'x')"),
            "the answer is no HTTP: illegal status line: bytearray(b'x')",
        ),
        (
            asking(httpx.ConnectError("[Errno 111] Connection refused")),
            "no connection to far:81: Connection refused",
        ),
        (
            asking(httpx2.ConnectError("[Errno 111] Connection refused"), "https://[::1]/v1"),
            "no connection to [::1]:443: Connection refused",
        ),
        (
            because(asking(REQUESTS_CONNECTION(f"{POOL}Max retries exceeded")), REFUSED),
            "no connection to far:81: Connection refused",
        ),
        (asking(httpx.ConnectTimeout("timed out")), "no connection to far:81 in the time for it"),
        (asking(httpx.ReadTimeout("timed out")), "no answer from far:81 in time"),
        (
            asking(requests_error("ReadTimeout", f"{POOL}Read timed out. (read timeout=1)")),
            "no answer from far:81 in time",
        ),
        (TimeoutError(), "no answer from the server in time"),
        (
            TimeoutError(110, "Connection timed out"),
            "no connection to the server: Connection timed out",
        ),
        (
            because(asking(REQUESTS_CONNECTION(POOL)), socket.gaierror(-2, "Name is not known")),
            "no address for far: Name is not known",
        ),
        (
            asking(httpx.ConnectError("[SSL: WRONG_VERSION_NUMBER] wrong version (_ssl.c:1006)")),
            "no TLS with far:81: wrong version",
        ),
        (ssl.SSLError(1, "[SSL: BAD] bad (_ssl.c:1)"), "no TLS with the server: bad"),
        (
            because(
                asking(requests_error("ProxyError", f"{POOL}Max", REQUESTS_CONNECTION)), REFUSED
            ),
            "no connection to the proxy: Connection refused",
        ),
        (
            requests_error(
                "ProxyError",
                f"{POOL}Max (Caused by ProxyError(OSError('Tunnel connection failed: 407 No')))",
                REQUESTS_CONNECTION,
            ),
            "the proxy refused: 407 No",
        ),
        (httpx.ProxyError("403 Forbidden"), "the proxy refused: 403 Forbidden"),
        (
            zlib.error("Error -3 while decompressing data: incorrect header check"),
            "the answer cannot be decompressed: incorrect header check",
        ),
        (aiohttp.InvalidURL("http:///x"), "no URL that can be asked: http:///x"),
        (
            UnicodeEncodeError("ascii", "\u201c", 0, 1, "no"),
            "a header has a character that cannot be sent: headers are ASCII",
        ),
        (
            botocore.exceptions.EndpointConnectionError(endpoint_url="http://far"),
            'Could not connect to the endpoint URL: "http://far"',
        ),
    ],
    ids=repr,
)
def test_what_transports_say_is_said_in_our_words(error, words):
    assert failure_from(error).detail == words

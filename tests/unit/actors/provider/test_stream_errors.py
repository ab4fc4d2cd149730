"""What the exceptions of a user's own stream mean; they are known by their names."""

import errno
import subprocess
import sys

import anthropic
import botocore.exceptions
import httpx
import httpx2
import openai
import pytest

from tidegate.actors.provider.stream_errors import failure_from_stream
from tidegate.errors import RateLimited
from tidegate.protocol.answers import Answer
from tidegate.protocol.failures import Failure
from tidegate.protocol.failures import FailureKind as Kind


OLD = httpx.Request("POST", "http://x")
NEW = httpx2.Request("POST", "http://x")


def error_named(dotted, *ancestors):
    """Make a class as a package of that name would have it."""
    module, _, name = dotted.rpartition(".")
    return type(name, ancestors or (Exception,), {"__module__": module})


REQUESTS = error_named("requests.exceptions.RequestException", OSError)
REQUESTS_CONNECTION = error_named("requests.exceptions.ConnectionError", REQUESTS)
REQUESTS_TIMEOUT = error_named("requests.exceptions.Timeout", REQUESTS)


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (httpx.ConnectError("x"), "connect"),
        (httpx2.ConnectError("x"), "connect"),
        (httpx.ReadTimeout("x"), "connect"),
        (httpx.PoolTimeout("x"), "connect"),
        (httpx.ReadError("x"), "reset"),
        (httpx2.ReadError("x"), "reset"),
        (httpx.RemoteProtocolError("peer closed"), "protocol"),
        (httpx2.RemoteProtocolError("peer closed"), "protocol"),
        (httpx.ProxyError("x"), "proxy"),
        (REQUESTS_CONNECTION("x"), "reset"),
        (error_named("requests.exceptions.ConnectTimeout", REQUESTS_TIMEOUT)("x"), "connect"),
        (error_named("requests.exceptions.ChunkedEncodingError", REQUESTS)("x"), "cut"),
        (error_named("requests.exceptions.SSLError", REQUESTS_CONNECTION)("x"), "tls"),
        (error_named("requests.exceptions.ProxyError", REQUESTS_CONNECTION)("x"), "proxy"),
        (openai.APIConnectionError(request=NEW), "protocol"),
        (openai.APITimeoutError(request=NEW), "connect"),
        (anthropic.APIConnectionError(request=NEW), "protocol"),
        (botocore.exceptions.EndpointConnectionError(endpoint_url="x"), "connect"),
        (botocore.exceptions.ReadTimeoutError(endpoint_url="x"), "connect"),
        (botocore.exceptions.ConnectionClosedError(endpoint_url="x"), "reset"),
        (ConnectionResetError("x"), "reset"),
        (BrokenPipeError(), "reset"),
        (TimeoutError(), "connect"),
        (OSError(errno.EHOSTUNREACH, "no route"), "connect"),
    ],
    ids=lambda value: f"{type(value).__module__}.{type(value).__name__}",
)
def test_lost_connection_is_known_by_its_class(error, reason):
    failure = failure_from_stream(error)

    assert (failure.kind, failure.reason) == (Kind.CONNECTION_LOST, reason)
    assert failure.retryable
    assert failure.cause == type(error).__name__


def old_status(status, headers=None, **body):
    response = httpx.Response(status, headers=headers, request=OLD, **body)
    return httpx.HTTPStatusError("said no", request=OLD, response=response)


def openai_status(status, body):
    response = httpx2.Response(status, request=NEW)
    return openai.APIStatusError("said no", response=response, body=body)


def test_status_says_what_it_says_on_the_built_in_wires():
    limited = failure_from_stream(old_status(429, {"Retry-After": "7", "x-request-id": "r"}))
    assert (limited.kind, limited.retry_after_s, limited.request_id) == (Kind.RATE_LIMITED, 7, "r")

    empty = failure_from_stream(old_status(429, json={"error": {"code": "insufficient_quota"}}))
    assert empty.kind is Kind.QUOTA_EXHAUSTED

    assert failure_from_stream(old_status(503)).kind is Kind.SERVER_ERROR
    assert failure_from_stream(openai_status(401, {"message": "who?"})).kind is Kind.AUTH
    assert failure_from_stream(openai_status(529, None)).kind is Kind.OVERLOADED


def test_body_that_was_never_read_is_no_trouble():
    response = httpx.Response(500, stream=httpx.ByteStream(b"unread"), request=OLD)

    failure = failure_from_stream(httpx.HTTPStatusError("no", request=OLD, response=response))

    assert (failure.kind, failure.status, failure.detail) == (Kind.SERVER_ERROR, 500, "no")


@pytest.mark.parametrize("library", [httpx, httpx2])
def test_link_for_browsers_is_left_out(library):
    request = library.Request("POST", "http://x")
    with pytest.raises(library.HTTPStatusError) as redirected:
        library.Response(302, headers={"location": "/y"}, request=request).raise_for_status()
    with pytest.raises(library.HTTPStatusError) as limited:
        library.Response(429, request=request).raise_for_status()

    said = "the custom stream raised HTTPStatusError: Redirect response '302 Found' for url"
    assert failure_from_stream(redirected.value).detail.startswith(said)
    assert failure_from_stream(redirected.value).detail.endswith("; Redirect location: '/y'")
    said = "Client error '429 Too Many Requests' for url 'http://x'"
    assert failure_from_stream(limited.value).detail == said


def test_botocore_says_it_in_a_dict():
    said = {
        "Error": {"Code": "ThrottlingException", "Message": "slower"},
        "ResponseMetadata": {"HTTPStatusCode": 429, "HTTPHeaders": {"retry-after": "2"}},
    }

    failure = failure_from_stream(botocore.exceptions.ClientError(said, "ConverseStream"))

    assert (failure.kind, failure.retry_after_s) == (Kind.RATE_LIMITED, 2)
    assert "slower" in failure.detail


@pytest.mark.parametrize("sdk", [openai, anthropic])
def test_error_that_an_sdk_found_in_a_stream_speaks_by_its_words(sdk):
    lost = sdk.APIError("upstream connect error", request=NEW, body=None)
    overloaded = sdk.APIError("x", request=NEW, body={"error": {"type": "overloaded_error"}})

    assert failure_from_stream(lost).kind is Kind.TRUNCATED
    assert failure_from_stream(overloaded).kind is Kind.OVERLOADED


def test_error_of_tidegate_is_its_failure():
    failure = Failure(kind=Kind.RATE_LIMITED, retryable=True, retry_after_s=3)

    assert failure_from_stream(RateLimited("wait", failure, Answer())) is failure


@pytest.mark.parametrize(
    "error",
    [
        ValueError("odd"),
        FileNotFoundError(errno.ENOENT, "no such file", "model.bin"),
        PermissionError(errno.EACCES, "no"),
        OSError("disk full"),
        UnicodeEncodeError("ascii", "\u201c", 0, 1, "no"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_is_left_is_the_stream_s_own_defect(error):
    failure = failure_from_stream(error)

    assert failure.kind is Kind.INTERNAL
    assert not failure.retryable
    assert failure.detail.startswith(f"the custom stream raised {type(error).__name__}: ")


def test_nothing_is_imported_to_know_them():
    script = (
        "import sys\n"
        "from tidegate.actors.provider.stream_errors import failure_from_stream\n"
        "failure_from_stream(ValueError('x'))\n"
        "sdks = {'httpx', 'httpx2', 'requests', 'openai', 'anthropic', 'botocore', 'aiohttp'}\n"
        "print(sorted(sdks & set(sys.modules)))\n"
    )

    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    assert ran.stdout.strip() == "[]"

"""What errors of providers mean: kinds, hints, words, and which refusals have a way round."""

import json

import pytest

from tidegate.actors.provider.dialects.faults import (
    failure_from_error_body,
    failure_from_frame,
    is_error,
    refused_from,
    retry_after_from,
)
from tidegate.protocol.failures import FailureKind as Kind


NOON_S = 1_700_000_000.0
NOON = "Tue, 14 Nov 2023 22:13:20 GMT"


def failure(status, body=b"", headers=()):
    body = body if isinstance(body, bytes | str) else json.dumps(body).encode()
    return failure_from_error_body(status, body, dict(headers), now_s=NOON_S)


@pytest.mark.parametrize(
    ("status", "kind", "retryable"),
    [
        (400, Kind.BAD_REQUEST, False),
        (401, Kind.AUTH, False),
        (402, Kind.QUOTA_EXHAUSTED, False),
        (403, Kind.AUTH, False),
        (404, Kind.BAD_REQUEST, False),
        (405, Kind.BAD_REQUEST, False),
        (408, Kind.SERVER_ERROR, True),
        (407, Kind.AUTH, False),
        (409, Kind.SERVER_ERROR, True),
        (413, Kind.BAD_REQUEST, False),
        (422, Kind.BAD_REQUEST, False),
        (429, Kind.RATE_LIMITED, True),
        (500, Kind.SERVER_ERROR, True),
        (501, Kind.SERVER_ERROR, False),
        (502, Kind.SERVER_ERROR, True),
        (503, Kind.SERVER_ERROR, True),
        (504, Kind.SERVER_ERROR, True),
        (520, Kind.SERVER_ERROR, True),
        (524, Kind.SERVER_ERROR, True),
        (529, Kind.OVERLOADED, True),
    ],
)
@pytest.mark.parametrize("body", [b"", b"<html>oops</html>", b'{"error":{"message":"m"}}', b"[]"])
def test_status_decides_where_there_is_no_code(status, kind, retryable, body):
    found = failure(status, body)

    assert (found.kind, found.retryable, found.status) == (kind, retryable, status)


@pytest.mark.parametrize(
    ("status", "error", "kind"),
    [
        (429, {"code": "insufficient_quota"}, Kind.QUOTA_EXHAUSTED),
        (429, {"type": "insufficient_quota", "code": None}, Kind.QUOTA_EXHAUSTED),
        (400, {"code": "context_length_exceeded"}, Kind.CONTEXT_OVERFLOW),
        (400, {"type": "exceed_context_size_error", "code": 400}, Kind.CONTEXT_OVERFLOW),
        (400, {"code": "content_policy_violation"}, Kind.CONTENT_REFUSED),
        (
            400,
            {"code": "x", "innererror": {"code": "ResponsibleAIPolicyViolation"}},
            Kind.CONTENT_REFUSED,
        ),
        (503, {"code": "overloaded"}, Kind.OVERLOADED),
        (429, {"type": "engine_overloaded_error"}, Kind.OVERLOADED),
        (400, {"code": "invalid_api_key"}, Kind.AUTH),
        (401, {"type": "invalid_request_error"}, Kind.AUTH),
        (503, {"status": "UNAVAILABLE"}, Kind.SERVER_ERROR),
        (429, {"status": "RESOURCE_EXHAUSTED"}, Kind.RATE_LIMITED),
    ],
)
def test_exact_machine_code_decides(status, error, kind):
    assert failure(status, {"error": error}).kind is kind
    assert failure(status, [{"error": error}]).kind is kind


@pytest.mark.parametrize(
    "body",
    [
        {"status": 429, "error": "INSUFFICIENT QUOTA", "message": "concurrent requests"},
        {"error": {"message": "insufficient_quota for this minute"}},
        {"error": {"code": "INSUFFICIENT QUOTA", "message": "concurrent requests"}},
    ],
)
def test_free_text_does_not_make_a_rate_limit_final(body):
    assert failure(429, body).kind is Kind.RATE_LIMITED


def test_words_tell_a_context_overflow_from_another_bad_request():
    body = {"error": {"message": "This model's maximum context length is 4096 tokens."}}

    assert failure(400, body).kind is Kind.CONTEXT_OVERFLOW
    assert failure(500, body).kind is Kind.SERVER_ERROR


@pytest.mark.parametrize(
    ("error", "kind", "status"),
    [
        ({"code": 502, "metadata": {"error_type": "provider_unavailable"}}, Kind.SERVER_ERROR, 502),
        ({"code": "429", "message": "slow"}, Kind.RATE_LIMITED, 429),
        ({"type": "overloaded_error"}, Kind.OVERLOADED, None),
        ({"code": "rate_limit_exceeded", "type": "requests"}, Kind.RATE_LIMITED, None),
        ({"type": "invalid_request_error"}, Kind.BAD_REQUEST, None),
        ({"type": "authentication_error"}, Kind.AUTH, None),
        ({"type": "api_error"}, Kind.SERVER_ERROR, None),
        ({"message": "what?"}, Kind.SERVER_ERROR, None),
        ({"code": 1302, "message": "what?"}, Kind.SERVER_ERROR, None),
    ],
)
def test_error_inside_a_stream_brings_its_own_status_or_code(error, kind, status):
    found = failure_from_frame({"error": error})

    assert (found.kind, found.status) == (kind, status)
    assert failure(200, {"error": error}).kind is kind


@pytest.mark.parametrize(
    "words",
    [
        "Network connection lost.",
        "connection reset",
        "The connection was closed",
        "network error",
        "terminated",
        "peer closed connection",
        "Broken pipe",
        "upstream connect error or disconnect",
    ],
)
def test_connection_lost_behind_the_provider_is_a_truncated_stream(words):
    for body in ({"error": {"message": words}}, {"error": words}, words, words.encode()):
        found = failure_from_frame(body)

        assert (found.kind, found.retryable, found.detail) == (Kind.TRUNCATED, True, words)
    assert failure(502, {"error": words}).kind is Kind.SERVER_ERROR
    coded = {"error": {"message": words, "type": "invalid_request_error"}}
    assert failure_from_frame(coded).kind is Kind.BAD_REQUEST


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry-After": "7"}, 7.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after-ms": "250", "retry-after": "30"}, 0.25),
        ({"retry-after-ms": "-1", "retry-after": "30"}, 30.0),
        ({"retry-after-ms": "soon"}, None),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": ""}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "Tue, 99 Nov 2023 22:13:20 GMT"}, None),
        ({"retry-after": NOON.replace(":20 ", ":23 ")}, 3.0),
        ({"retry-after": NOON.replace("2023", "2020")}, 0.0),
        ({"retry-after": "Tuesday, 14-Nov-23 22:13:25 GMT"}, 5.0),
        ({}, None),
    ],
)
def test_hint_how_long_to_wait_is_understood_in_all_its_forms(headers, seconds):
    assert failure(429, headers=headers).retry_after_s == seconds
    lower = {name.lower(): value for name, value in headers.items()}
    assert retry_after_from(lower, now_s=NOON_S) == seconds


def test_words_of_the_error_and_of_whoever_is_behind_are_kept():
    body = {
        "error": {"message": "Provider returned error", "metadata": {"raw": "no GPU"}},
        "message": "sibling",
    }

    assert failure(500, body).detail == "Provider returned error: sibling: no GPU"
    assert failure(400, {"detail": [{"msg": "m"}]}).detail == '{"detail":[{"msg":"m"}]}'
    assert failure(502, b" <h1>bad</h1>\n").detail == "<h1>bad</h1>"
    assert failure(502, b"\xff").detail == "\ufffd"
    assert len(failure(500, {"error": {"message": "x" * 9000}}).detail) == 4096


def test_code_is_the_most_exact_that_is_no_status():
    assert failure(429, {"error": {"code": "a_code", "type": "a_type"}}).code == "a_code"
    assert failure(400, {"error": {"code": "400", "type": "a_type"}}).code == "a_type"
    assert failure(400, {"error": {"code": "not a code"}}).code is None


def test_name_of_the_request_is_taken_from_headers_or_body():
    assert failure(500, headers={"X-Request-Id": "r1"}).request_id == "r1"
    assert failure(500, {"message": "m", "request_id": "r2"}).request_id == "r2"
    assert failure(500).request_id is None


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (422, {"detail": [{"type": "extra_forbidden", "loc": ["body", "stream_options"]}]}),
        (400, {"error": {"message": "Unrecognized request argument supplied: stream_options"}}),
        (400, {"error": {"message": "stream_options is not supported"}}),
        (400, "Unknown field: stream_options"),
    ],
)
def test_refused_stream_options_are_recognised(status, body):
    assert refused_from(status, body) == "stream_options"
    assert refused_from(500, body) != "stream_options"


@pytest.mark.parametrize(
    "body",
    [
        "Streaming is not supported for this model",
        "model gpt-4.1 does not support streaming",
        "This endpoint doesn't support stream=true",
        "streaming is currently unsupported",
        "unsupported: streaming",
        "stream is not yet available",
        "stream must be false",
        {"error": {"message": "verify first", "param": "stream", "code": "unsupported_value"}},
    ],
)
def test_refused_streaming_is_recognised(body):
    assert refused_from(400, body) == "streaming"
    assert refused_from(None, body) == "streaming"
    assert refused_from(429, body) == ""


@pytest.mark.parametrize(
    "body",
    [
        b"",
        "messages: field required",
        {"error": {"message": "stream_options is only possible with stream"}},
        {"error": {"message": "temperature is not supported"}},
        {"error": {"message": "The upstream provider failed"}},
    ],
)
def test_other_errors_are_no_refusal_with_a_way_round(body):
    assert refused_from(400, body) == ""


@pytest.mark.parametrize("frame", [None, [], 5, "error", {}, {"error": None}, {"choices": [{}]}])
def test_what_is_no_error(frame):
    assert not is_error(frame)

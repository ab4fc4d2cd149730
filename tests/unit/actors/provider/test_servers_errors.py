"""Errors as well-known servers put them, before a stream and in it: the kind, and the wait."""

import json

import pytest

from tests.unit.actors.provider.servers_golden import DONE, ROLE, chunk, data
from tests.unit.actors.provider.test_servers_chat import assembled, batches_of
from tidegate.actors.provider.dialects.chat import decode_json
from tidegate.actors.provider.dialects.faults import failure_from_error_body
from tidegate.protocol.failures import FailureKind as Kind


def named(payload):
    return b"event: error\n" + data(payload)


def google(code, status, *details, message="No."):
    return {"error": {"code": code, "message": message, "status": status, "details": [*details]}}


RETRY = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34.5s"}
PER_DAY, PER_MINUTE = (
    {
        "@type": "type.googleapis.com/google.rpc.QuotaFailure",
        "violations": [{"quotaId": f"GenerateRequestsPer{each}PerProjectPerModel-FreeTier"}],
    }
    for each in ("Day", "Minute")
)
BUSY = google(429, "RESOURCE_EXHAUSTED", PER_MINUTE, RETRY)
SPENT = google(429, "RESOURCE_EXHAUSTED", PER_DAY, RETRY)

IN_A_STREAM = {
    "openrouter": (
        chunk(
            {"content": ""},
            "error",
            provider="Some",
            error={"code": 502, "message": "Provider disconnected unexpectedly"},
        ),
        Kind.SERVER_ERROR,
        502,
    ),
    "openrouter, limited": (
        data({"error": {"code": 429, "message": "Rate limited", "metadata": {"raw": "busy"}}}),
        Kind.RATE_LIMITED,
        429,
    ),
    "openrouter, of the choice": (
        chunk({}, "error", choice={"error": {"code": 503, "message": "Overloaded"}}),
        Kind.SERVER_ERROR,
        503,
    ),
    "groq": (
        named({"error": {"message": "over capacity", "type": "server_error"}}),
        Kind.SERVER_ERROR,
        None,
    ),
    "groq, in its own place": (
        chunk({}, "stop", x_groq={"id": "req_1", "error": "stopped early"}),
        Kind.SERVER_ERROR,
        None,
    ),
    "mistral": (chunk({"content": ""}, "error"), Kind.SERVER_ERROR, None),
    "deepseek": (chunk({}, "insufficient_system_resource"), Kind.OVERLOADED, None),
    "gemini": (data([BUSY]), Kind.RATE_LIMITED, 429),
    "gemini, of the day": (data([SPENT]), Kind.QUOTA_EXHAUSTED, 429),
    "gemini, a call that was filtered": (
        chunk({}, "function_call_filter: MALFORMED_FUNCTION_CALL"),
        Kind.MALFORMED_TOOL_CALL,
        None,
    ),
    "vllm": (
        data({"error": {"message": "EngineCore died", "type": "InternalServerError", "code": 500}}),
        Kind.SERVER_ERROR,
        500,
    ),
    "vllm, older": (
        data({"object": "error", "message": "too long", "type": "BadRequestError", "code": 400}),
        Kind.BAD_REQUEST,
        400,
    ),
    "ollama": (
        data({"error": {"message": "an error was encountered", "type": "api_error"}}),
        Kind.SERVER_ERROR,
        None,
    ),
    "llama.cpp": (
        data(
            {
                "error": {
                    "code": 500,
                    "message": "Failed to decode the batch",
                    "type": "server_error",
                }
            }
        ),
        Kind.SERVER_ERROR,
        500,
    ),
    "llama.cpp, its context": (
        data(
            {
                "error": {
                    "code": 400,
                    "message": "the request exceeds the available context size",
                    "type": "exceed_context_size_error",
                    "n_ctx": 4096,
                }
            }
        ),
        Kind.CONTEXT_OVERFLOW,
        400,
    ),
    "lm studio": (named({"error": {"message": "The model has crashed"}}), Kind.SERVER_ERROR, None),
    "together": (
        data({"error": {"message": "busy", "type": "service_overloaded", "code": "overloaded"}}),
        Kind.OVERLOADED,
        None,
    ),
    "fireworks": (
        data({"error": {"object": "error", "type": "internal_server_error", "message": "oops"}}),
        Kind.SERVER_ERROR,
        None,
    ),
    "xai": (
        data({"code": "The service is currently unavailable", "error": "The model is at capacity"}),
        Kind.SERVER_ERROR,
        None,
    ),
    "text-generation-inference": (
        data({"error": "Input validation error", "error_type": "validation"}),
        Kind.BAD_REQUEST,
        None,
    ),
}


@pytest.fixture(params=IN_A_STREAM)
def told(request):
    return IN_A_STREAM[request.param]


@pytest.mark.parametrize("before", [b"", chunk({**ROLE, "content": "Ebb"})], ids=["first", "later"])
@pytest.mark.parametrize("after", [b"", DONE, chunk({"content": "more"}, "stop")])
def test_error_in_a_stream_is_of_its_kind(told, before, after):
    frame, kind, status = told
    for pieces in ([before + frame + after], [before, frame, after]):
        choice, answer, failure = assembled(batches_of(*pieces))

        assert (failure.kind, failure.status) == (kind, status)
        assert choice is None or choice.finish is None
        assert answer.native()["choices"][0]["finish_reason"] is None


def test_error_after_the_evidence_changes_nothing(told):
    choice, _, failure = assembled(batches_of(chunk({"content": "Ebb"}, "stop") + told[0]))

    assert (failure, choice.text, choice.finish) == (None, "Ebb", "stop")


def test_error_in_the_place_of_a_document_is_of_its_kind(told):
    frame, kind, status = told
    document = frame.rpartition(b"data: ")[2]
    failure = decode_json(document).failure

    assert (failure.kind, failure.status) == (kind, status)


BEFORE_A_STREAM = {
    "azure, its filter": (
        400,
        {
            "error": {
                "message": "The response was filtered",
                "type": None,
                "param": "prompt",
                "code": "content_filter",
                "status": 400,
                "innererror": {"code": "ResponsibleAIPolicyViolation"},
            }
        },
        Kind.CONTENT_REFUSED,
    ),
    "azure, its limit": (
        429,
        {"error": {"code": "429", "message": "Requests have exceeded the token rate limit."}},
        Kind.RATE_LIMITED,
    ),
    "azure, no such deployment": (
        404,
        {"error": {"code": "DeploymentNotFound", "message": "does not exist"}},
        Kind.BAD_REQUEST,
    ),
    "azure, its gateway": (
        429,
        {"statusCode": 429, "message": "Rate limit is exceeded. Try again in 5 seconds."},
        Kind.RATE_LIMITED,
    ),
    "openrouter, no credits": (
        402,
        {"error": {"code": 402, "message": "Insufficient credits"}},
        Kind.QUOTA_EXHAUSTED,
    ),
    "openrouter, moderated": (
        403,
        {"error": {"code": 403, "message": "flagged", "metadata": {"reasons": ["violence"]}}},
        Kind.AUTH,
    ),
    "groq, capacity": (
        498,
        {"error": {"message": "Flex tier capacity exceeded", "code": "capacity_exceeded"}},
        Kind.OVERLOADED,
    ),
    "mistral, invalid": (
        422,
        {"object": "error", "message": {"detail": [{"msg": "x"}]}, "type": "invalid_request_error"},
        Kind.BAD_REQUEST,
    ),
    "deepseek, no balance": (
        402,
        {"error": {"message": "Insufficient Balance", "code": "invalid_request_error"}},
        Kind.QUOTA_EXHAUSTED,
    ),
    "gemini, limit": (429, [BUSY], Kind.RATE_LIMITED),
    "gemini, of the day": (429, [SPENT], Kind.QUOTA_EXHAUSTED),
    "gemini, key": (
        400,
        [
            google(
                400,
                "INVALID_ARGUMENT",
                {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"},
                message="API key not valid. Please pass a valid API key.",
            )
        ],
        Kind.AUTH,
    ),
    "gemini, overloaded": (503, [google(503, "UNAVAILABLE")], Kind.SERVER_ERROR),
    "vllm, context": (
        400,
        {
            "object": "error",
            "message": "This model's maximum context length is 4096 tokens.",
            "type": "BadRequestError",
            "code": 400,
        },
        Kind.CONTEXT_OVERFLOW,
    ),
    "ollama, no such model": (
        404,
        {"error": {"message": 'model "x" not found', "type": "api_error", "code": None}},
        Kind.BAD_REQUEST,
    ),
    "llama.cpp, loading": (
        503,
        {"error": {"code": 503, "message": "Loading model", "type": "unavailable_error"}},
        Kind.SERVER_ERROR,
    ),
    "lm studio, no model": (400, {"error": "No models loaded."}, Kind.BAD_REQUEST),
    "together, limit": (
        429,
        {"error": {"message": "slow down", "type": "request_limit", "code": "rate_limit"}},
        Kind.RATE_LIMITED,
    ),
    "xai, key": (
        400,
        {"code": "Client specified an invalid argument", "error": "Incorrect API key provided"},
        Kind.BAD_REQUEST,
    ),
}


@pytest.mark.parametrize("name", BEFORE_A_STREAM)
def test_error_before_a_stream_is_of_its_kind(name):
    status, body, kind = BEFORE_A_STREAM[name]
    failure = failure_from_error_body(status, json.dumps(body).encode(), {}, now_s=0)

    assert (failure.kind, failure.status) == (kind, status)
    assert failure.detail


@pytest.mark.parametrize(
    ("details", "headers", "seconds"),
    [
        ([RETRY], {}, 34.5),
        ([{"retryDelay": "34s"}], {}, 34.0),
        ([RETRY], {"Retry-After": "7"}, 7.0),
        ([RETRY], {"Retry-After": "soon"}, 34.5),
        ([PER_MINUTE], {}, None),
        ([{"retryDelay": "soon"}, {"retryDelay": 5}, None, 5], {}, None),
    ],
)
def test_wait_that_google_asks_for_is_known(details, headers, seconds):
    body = google(429, "RESOURCE_EXHAUSTED", *details)

    assert failure_from_error_body(429, [body], headers, now_s=0).retry_after_s == seconds
    if not headers:
        assert assembled(batches_of(data([body])))[2].retry_after_s == seconds


@pytest.mark.parametrize("details", [None, 5, {"a": 1}, [{"violations": [None, {"quotaId": 5}]}]])
def test_details_of_another_shape_say_nothing(details):
    failure = failure_from_error_body(
        429, {"error": {"code": 429, "details": details}}, {}, now_s=0
    )

    assert (failure.kind, failure.retry_after_s) == (Kind.RATE_LIMITED, None)

"""Errors before the first byte: their status, and what official clients make of them."""

import anthropic
import openai
import pytest

from tests.daemon.fronts import sdks
from tidegate.daemon.fronts import error_of, refusal_of
from tidegate.protocol.failures import Failure, FailureKind


APIS = ("chat", "responses", "messages")
STATUSES = {
    FailureKind.INTERRUPTED: 499,
    FailureKind.STALLED: 504,
    FailureKind.CONNECTION_LOST: 502,
    FailureKind.TRUNCATED: 502,
    FailureKind.EMPTY: 502,
    FailureKind.MALFORMED: 502,
    FailureKind.MALFORMED_TOOL_CALL: 502,
    FailureKind.RATE_LIMITED: 429,
    FailureKind.QUOTA_EXHAUSTED: 429,
    FailureKind.SERVER_ERROR: 502,
    FailureKind.BAD_REQUEST: 400,
    FailureKind.AUTH: 401,
    FailureKind.CONTEXT_OVERFLOW: 400,
    FailureKind.CONTENT_REFUSED: 400,
    FailureKind.CIRCUIT_OPEN: 503,
    FailureKind.WORKER_LOST: 503,
    FailureKind.SLOW_CLIENT: 500,
    FailureKind.INTERNAL: 500,
}


def failure(kind=FailureKind.SERVER_ERROR, **fields):
    return Failure(kind=kind, **({"detail": "no"} | fields))


@pytest.fixture(params=APIS)
def api(request):
    return request.param


class TestStatus:
    @pytest.mark.parametrize("kind", STATUSES)
    def test_each_kind_has_its_own(self, api, kind):
        assert error_of(api, failure(kind)).status == STATUSES[kind]

    def test_overload_is_what_clients_of_the_api_know(self):
        found = {api: error_of(api, failure(FailureKind.OVERLOADED)).status for api in APIS}

        assert found == {"chat": 503, "responses": 503, "messages": 529}

    @pytest.mark.parametrize("status", [401, 403, 404, 409, 413, 422, 429, 500, 503, 529])
    def test_providers_own_stands(self, api, status):
        assert error_of(api, failure(status=status)).status == status

    def test_a_good_one_does_not(self, api):
        assert error_of(api, failure(status=200)).status == 502
        assert error_of(api, failure(FailureKind.TRUNCATED, status=200)).status == 502
        assert error_of(api, failure(FailureKind.STALLED, status=429)).status == 504

    def test_key_of_a_proxy_is_none_of_the_clients_business(self, api):
        assert error_of(api, failure(FailureKind.AUTH, status=407)).status == 502


class TestBody:
    @pytest.mark.parametrize("kind", FailureKind)
    def test_our_own_words_are_in_it(self, api, kind):
        reply = error_of(api, failure(kind, reason="idle", retryable=True), attempts=3)

        told = {"kind": kind, "reason": "idle", "retryable": True, "attempts": 3}
        assert reply.body["error"]["tidegate"] == told
        assert reply.body["error"]["message"] == "no"

    def test_openai_finds_what_it_looks_for(self):
        overflow = failure(FailureKind.CONTEXT_OVERFLOW, code="too_long", status=400)
        error = sdks.refused("chat", error_of("chat", overflow))

        assert isinstance(error, openai.BadRequestError)
        assert (error.code, error.type, error.param) == (
            *("context_length_exceeded", "invalid_request_error"),
            None,
        )

    def test_providers_code_is_passed_on(self):
        error = sdks.refused("chat", error_of("chat", failure(code="odd_code", status=500)))

        assert isinstance(error, openai.InternalServerError)
        assert (error.code, error.type) == ("odd_code", "server_error")

    @pytest.mark.parametrize(
        ("fields", "kind"),
        [
            ({"status": 404}, "not_found_error"),
            ({"status": 413}, "request_too_large"),
            ({"status": 422}, "invalid_request_error"),
            ({"status": 500}, "api_error"),
            ({"code": "billing_error", "status": 400}, "billing_error"),
            ({"kind": FailureKind.OVERLOADED}, "overloaded_error"),
            ({"kind": FailureKind.RATE_LIMITED}, "rate_limit_error"),
            ({"kind": FailureKind.STALLED}, "timeout_error"),
            ({"kind": FailureKind.WORKER_LOST}, "overloaded_error"),
            ({"kind": FailureKind.INTERRUPTED}, "api_error"),
        ],
    )
    def test_anthropic_finds_what_it_looks_for(self, fields, kind):
        reply = error_of("messages", failure(**fields, request_id="req_1"))
        error = sdks.refused("messages", reply)

        assert isinstance(error, anthropic.APIStatusError)
        assert error.status_code == reply.status
        assert error.body["error"]["type"] == kind
        assert error.body["request_id"] == error.request_id == "req_1"

    def test_failure_without_words_has_a_message(self, api):
        bare = Failure(kind=FailureKind.STALLED, reason="first_byte")

        assert error_of(api, bare).body["error"]["message"] == "stalled (first_byte)"


class TestRetries:
    def test_wait_is_told_in_whole_seconds(self, api):
        for asked_s, told in ((0.0, "0"), (1.2, "2"), (90.0, "90")):
            reply = error_of(api, failure(FailureKind.RATE_LIMITED, retry_after_s=asked_s))
            assert reply.headers["retry-after"] == told

    def test_client_tries_again_what_may_work(self, api):
        reply = error_of(api, failure(FailureKind.CONNECTION_LOST, retryable=True))

        assert sdks.requests_until_given_up(api, reply) == 3

    def test_client_comes_back_where_no_worker_is_left(self, api):
        lost = failure(FailureKind.WORKER_LOST, retryable=True, retry_after_s=5.0)
        reply = error_of(api, lost)

        error = sdks.refused(api, reply)
        assert isinstance(error, (openai.InternalServerError, anthropic.ServiceUnavailableError))
        assert (error.status_code, error.response.headers["retry-after"]) == (503, "5")
        assert reply.body["error"]["tidegate"]["retryable"] is True
        assert sdks.requests_until_given_up(api, reply) == 3

    def test_client_need_not_wait_where_one_worker_was_lost(self, api):
        reply = error_of(api, failure(FailureKind.WORKER_LOST, retryable=True))

        assert (reply.status, dict(reply.headers)) == (503, {})

    @pytest.mark.parametrize(
        "hopeless",
        [
            failure(FailureKind.QUOTA_EXHAUSTED, status=429),
            failure(FailureKind.INTERNAL),
            failure(FailureKind.STALLED, reason="deadline"),
            failure(FailureKind.INTERRUPTED),
            failure(FailureKind.AUTH, status=401),
            failure(FailureKind.BAD_REQUEST, status=400),
        ],
        ids=lambda each: each.kind.value,
    )
    def test_client_does_not_try_again_what_cannot(self, api, hopeless):
        assert sdks.requests_until_given_up(api, error_of(api, hopeless)) == 1


class TestRefusals:
    def test_bad_key(self):
        message = "this key is not among `keys`"
        openai_error = sdks.refused("chat", refusal_of("chat", 401, "bad_key", message))
        anthropic_error = sdks.refused("messages", refusal_of("messages", 401, "bad_key", message))

        assert isinstance(openai_error, openai.AuthenticationError)
        assert openai_error.code == "invalid_api_key"
        assert isinstance(anthropic_error, anthropic.AuthenticationError)
        assert anthropic_error.body["error"]["message"] == message

    def test_model_that_no_endpoint_serves(self):
        error = sdks.refused("responses", refusal_of("responses", 404, "model_not_found", "no"))

        assert isinstance(error, openai.NotFoundError)
        assert (error.code, error.param) == ("model_not_found", "model")

    @pytest.mark.parametrize(
        ("status", "kind"),
        [
            (400, "invalid_request_error"),
            (403, "permission_error"),
            (404, "not_found_error"),
            (405, "invalid_request_error"),
            (413, "request_too_large"),
            (429, "rate_limit_error"),
            (500, "api_error"),
            (503, "overloaded_error"),
        ],
    )
    def test_messages_have_the_type_of_the_status(self, status, kind):
        body = refusal_of("messages", status, "refused", "no").body

        assert (body["type"], body["error"]["type"]) == ("error", kind)

    def test_headers_are_kept(self, api):
        reply = refusal_of(api, 429, "too_many_turns", "no", {"retry-after": "3"})

        assert reply.headers == {"retry-after": "3"}
        assert reply.body["error"]["tidegate"]["kind"] == "too_many_turns"
        assert reply.body["error"]["tidegate"]["retryable"]

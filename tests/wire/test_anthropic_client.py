"""Requests of the messages wire: addresses, credentials, what is changed, and refusals."""

import json

import pytest

from tidegate.lab import Answer, messages
from tidegate.protocol.attempts import Ended, Opened, Target
from tidegate.protocol.failures import FailureKind


KEY = "sk-ant-0123456789"
BODY = b'{"model":"m","top_k":1.50,"max_tokens":9,"messages":[]}'
TOOLS = [
    {"name": "f", "input_schema": {"type": "object"}, "eager_input_streaming": True},
    {"type": "custom", "name": "g", "input_schema": {"type": "object"}},
    {"type": "web_search_20250305", "name": "web_search"},
]


@pytest.fixture
def target(lab):
    return Target("messages", base_url=lab.base, api_key=KEY)


@pytest.fixture
def vertex(lab):
    return Target(
        "messages",
        base_url=f"{lab.base}/v1",
        api_key="ya29.token",
        project="my project",
        options=(("region", "us-east5"),),
    )


def test_payload_is_sent_as_it_is_with_streaming_in_front(worker, lab, target):
    lab.add(messages.answer("a"))

    assert worker.outcome(target, BODY) == ("a", Ended(1, 1))
    sent = lab.requests[0]
    assert sent.path == "/v1/messages"
    assert sent.body == b'{"stream":true,' + BODY[1:]
    assert sent.headers["authorization"] == f"Bearer {KEY}"
    assert sent.headers["anthropic-version"]
    assert sent.headers["accept-encoding"] == "identity"


def test_plain_request_says_nothing_of_streaming(worker, lab, target):
    lab.add(Answer.json(messages.message("Hello")))

    assert worker.outcome(target, BODY, stream=False) == ("Hello", Ended(1, 1))
    assert lab.requests[0].body == BODY


def test_empty_payload_is_still_an_object(worker, lab, target):
    lab.add(messages.answer("a"))
    worker.outcome(target, b" {} ")

    assert lab.requests[0].json() == {"stream": True}


def test_without_a_key_no_authorization_is_sent(worker, lab, monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-of-the-environment")
    lab.add(messages.answer("a"))
    worker.outcome(Target("messages", base_url=lab.base), BODY)

    assert "authorization" not in lab.requests[0].headers


def test_headers_and_query_go_along(worker, lab):
    lab.add(messages.answer("a"))
    target = Target(
        "messages",
        base_url=lab.base,
        headers=(("X-Api-Key", KEY), ("anthropic-beta", "later-1")),
        query=(("trace", "1"),),
    )
    worker.outcome(target, BODY)

    sent = lab.requests[0]
    assert (sent.headers["x-api-key"], sent.headers["anthropic-beta"]) == (KEY, "later-1")
    assert "authorization" not in sent.headers
    assert sent.target == "/v1/messages?trace=1"


def test_tools_are_asked_for_with_care_on_demand(worker, lab, target):
    lab.add(messages.answer("a"), messages.answer("a"))
    body = json.dumps({"model": "m", "tools": TOOLS, "messages": []}).encode()
    worker.outcome(target, body)
    worker.outcome(target, body, buffered_tools=True)

    first, second = (each.json() for each in lab.requests)
    assert first.pop("tools") == TOOLS
    own, custom, server = second.pop("tools")
    assert own == TOOLS[0] | {"eager_input_streaming": False}
    assert custom == TOOLS[1] | {"eager_input_streaming": False}
    assert server == TOOLS[2]
    assert first == second


def test_request_id_is_known_from_its_own_header(worker, lab, target):
    headers = {"content-type": "text/event-stream", "request-id": "req_7"}
    lab.add(Answer(messages.answer("a").steps, headers=headers))
    token = worker.start(target, BODY)

    assert worker.wait_for(token, Opened).request_id == "req_7"


class TestVertex:
    def test_model_is_in_the_address_and_the_version_in_the_payload(self, worker, lab, vertex):
        lab.add(messages.answer("a"))
        payload = {"model": "claude@2025/x", "max_tokens": 9, "messages": []}

        assert worker.outcome(vertex, json.dumps(payload).encode())[0] == "a"
        sent = lab.requests[0]
        assert sent.path == (
            "/v1/projects/my%20project/locations/us-east5/publishers/anthropic/models/"
            "claude@2025%2Fx:streamRawPredict"
        )
        del payload["model"]
        version = {"anthropic_version": "vertex-2023-10-16"}
        assert sent.json() == {"stream": True, **payload, **version}
        assert sent.headers["authorization"] == "Bearer ya29.token"
        assert "anthropic-version" not in sent.headers

    def test_plain_request_has_an_address_of_its_own(self, worker, lab, vertex):
        lab.add(Answer.json(messages.message("Hello")))
        body = b'{"model":"claude","anthropic_version":"vertex-later"}'

        assert worker.outcome(vertex, body, stream=False)[0] == "Hello"
        assert lab.requests[0].path.endswith("/models/claude:rawPredict")
        assert lab.requests[0].json() == {"anthropic_version": "vertex-later"}


class TestRefusals:
    @pytest.mark.parametrize(
        ("status", "code", "kind", "retryable"),
        [
            (400, "invalid_request_error", FailureKind.BAD_REQUEST, False),
            (401, "authentication_error", FailureKind.AUTH, False),
            (402, "billing_error", FailureKind.QUOTA_EXHAUSTED, False),
            (403, "permission_error", FailureKind.AUTH, False),
            (404, "not_found_error", FailureKind.BAD_REQUEST, False),
            (413, "request_too_large", FailureKind.BAD_REQUEST, False),
            (429, "rate_limit_error", FailureKind.RATE_LIMITED, True),
            (500, "api_error", FailureKind.SERVER_ERROR, True),
            (504, "timeout_error", FailureKind.SERVER_ERROR, True),
            (529, "overloaded_error", FailureKind.OVERLOADED, True),
        ],
    )
    def test_status_and_type_say_what_it_is(
        self, worker, lab, target, *, status, code, kind, retryable
    ):
        lab.add(messages.error_answer(status, code, "no", {"retry-after": "7"}))
        failure = worker.failure(target, BODY)

        assert (failure.kind, failure.retryable) == (kind, retryable)
        assert (failure.status, failure.code, failure.detail) == (status, code, "no")
        assert (failure.request_id, failure.retry_after_s) == ("req_lab", 7.0)

    def test_prompt_that_is_too_long_is_a_kind_of_its_own(self, worker, lab, target):
        text = "prompt is too long: 208310 tokens > 200000 maximum"
        lab.add(messages.error_answer(400, "invalid_request_error", text))

        assert worker.failure(target, BODY).kind is FailureKind.CONTEXT_OVERFLOW

    def test_streaming_that_is_refused_is_known(self, worker, lab, target):
        text = "streaming is not supported for this model"
        lab.add(messages.error_answer(400, "invalid_request_error", text))

        assert worker.outcome(target, BODY)[1].refused == "streaming"

    def test_key_is_never_told(self, worker, lab, target):
        lab.add(messages.error_answer(401, "authentication_error", f"invalid bearer {KEY}"))

        assert worker.failure(target, BODY).detail == "invalid bearer ***"

    def test_nobody_listens(self, worker, dead_port):
        target = Target("messages", base_url=f"http://127.0.0.1:{dead_port}")
        failure = worker.failure(target, BODY)

        assert (failure.kind, failure.reason) == (FailureKind.CONNECTION_LOST, "connect")

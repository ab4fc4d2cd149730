"""The opening of a response: addresses, credentials, statuses, and what errors mean."""

import contextlib
import json
import ssl
import tracemalloc
import zlib

import pytest

from tidegate.actors.provider.exceptions import failure_from
from tidegate.actors.provider.scrubbing import scrubbed, secrets_of
from tidegate.lab import Answer, End, HttpDate, chat, gate, raw, send
from tidegate.protocol.attempts import Ended, Target
from tidegate.protocol.failures import Failure, FailureKind


KEY = "sk-test-0123456789"


def body_of(lab, index=-1):
    return lab.requests[index].json()


def page(text="<html><body>Bad gateway</body></html>", status=200):
    return Answer.whole(text.encode(), "text/html", status)


@contextlib.contextmanager
def tracing():
    """Yield what tells how many bytes were in use at most."""
    tracemalloc.start()
    try:
        yield lambda: tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def at(port, scheme="http"):
    return Target("chat", base_url=f"{scheme}://127.0.0.1:{port}/v1")


class TestRequest:
    def test_payload_is_sent_as_it_is_with_streaming_in_front(self, worker, lab):
        lab.add(chat.answer("a"))
        body = b'{"model":"m","seed":1.50,"messages":[]}'
        worker.outcome(lab, body, stream_options=b'{"include_usage":true}')

        sent = lab.requests[0]
        assert sent.path == "/v1/chat/completions"
        assert sent.body == b'{"stream":true,"stream_options":{"include_usage":true},' + body[1:]

    def test_empty_payload_is_still_an_object(self, worker, lab):
        lab.add(chat.answer("a"))
        worker.outcome(lab, b"{}")

        assert body_of(lab) == {"stream": True}

    def test_plain_request_says_nothing_of_streaming(self, worker, lab):
        lab.add(Answer.json(chat.completion("Hello", tokens=(1, 2))))

        text, end = worker.outcome(lab, stream=False, stream_options=b"{}")

        assert (text, end) == ("Hello", Ended(1, 1))
        assert body_of(lab) == {"model": "m", "messages": []}

    def test_headers_query_and_identity_go_along(self, worker, lab, target_of):
        lab.add(chat.answer("a"))
        target = target_of(
            lab,
            api_key=KEY,
            headers=(("X-Team", "blue"),),
            query=(("trace", "1 2"),),
            organization="org-1",
            project="proj-1",
        )
        worker.outcome(target)

        sent = lab.requests[0]
        assert sent.headers["authorization"] == f"Bearer {KEY}"
        assert sent.headers["x-team"] == "blue"
        assert sent.headers["openai-organization"] == "org-1"
        assert sent.headers["openai-project"] == "proj-1"
        assert sent.headers["accept-encoding"] == "identity"
        assert sent.headers["content-type"] == "application/json"
        assert sent.target.partition("?")[2] in ("trace=1+2", "trace=1%202")

    def test_without_a_key_no_authorization_is_sent(self, worker, lab, monkeypatch):
        monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-environment")
        lab.add(chat.answer("a"))
        worker.outcome(lab)

        assert "authorization" not in lab.requests[0].headers
        assert "api-key" not in lab.requests[0].headers

    def test_own_authorization_header_is_sent_without_a_key(self, worker, lab, target_of):
        lab.add(chat.answer("a"))
        worker.outcome(target_of(lab, headers=(("Authorization", "Basic eDp5"),)))

        assert lab.requests[0].headers["authorization"] == "Basic eDp5"

    def test_azure_has_the_deployment_in_the_path(self, worker, lab):
        lab.add(chat.answer("a"))
        target = Target("chat", base_url=lab.base, api_key=KEY, api_version="2024-10-21")
        worker.outcome(target, b'{"messages":[],"model":"my gpt"}')

        sent = lab.requests[0]
        assert sent.path == "/openai/deployments/my%20gpt/chat/completions"
        assert sent.target.partition("?")[2] == "api-version=2024-10-21"
        assert sent.headers["api-key"] == KEY

    @pytest.mark.parametrize("path", ["/openai/deployments/d", "/openai/deployments/d/"])
    def test_azure_address_with_a_deployment_is_taken_as_it_is(self, worker, lab, path):
        lab.add(chat.answer("a"))
        target = Target("chat", base_url=lab.base + path, api_version="2024-10-21")
        worker.outcome(target)

        assert lab.requests[0].path == "/openai/deployments/d/chat/completions"
        assert "api-key" not in lab.requests[0].headers

    def test_proxy_takes_the_request(self, worker, lab):
        lab.add(chat.answer("a"))
        target = Target("chat", base_url="http://far.invalid/v1", proxy=lab.base)

        assert worker.outcome(target)[0] == "a"
        assert lab.requests[0].target == "http://far.invalid/v1/chat/completions"

    def test_proxy_of_the_environment_is_for_the_outside(self, worker, lab, monkeypatch):
        for name in ("NO_PROXY", "no_proxy", "http_proxy"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("http_proxy", lab.base)
        lab.add(chat.answer("near"), chat.answer("far"))

        assert worker.outcome(lab)[0] == "near"
        assert worker.outcome(Target("chat", base_url="http://far.invalid/v1"))[0] == "far"
        assert [each.target.startswith("http://far") for each in lab.requests] == [False, True]


class TestStatus:
    @pytest.mark.parametrize(
        ("status", "kind", "retryable"),
        [
            (400, FailureKind.BAD_REQUEST, False),
            (401, FailureKind.AUTH, False),
            (403, FailureKind.AUTH, False),
            (404, FailureKind.BAD_REQUEST, False),
            (408, FailureKind.SERVER_ERROR, True),
            (409, FailureKind.SERVER_ERROR, True),
            (429, FailureKind.RATE_LIMITED, True),
            (500, FailureKind.SERVER_ERROR, True),
            (502, FailureKind.SERVER_ERROR, True),
            (503, FailureKind.SERVER_ERROR, True),
            (529, FailureKind.OVERLOADED, True),
        ],
    )
    def test_error_status_with_and_without_json(self, worker, lab, status, kind, retryable):
        headers = {"x-request-id": "req-9"}
        error = {"error": {"message": "no luck", "code": "the_code"}}
        lab.add(Answer.json(error, status, headers), page(status=status))

        with_json = worker.failure(lab)
        with_page = worker.failure(lab)

        for failure in (with_json, with_page):
            assert (failure.kind, failure.retryable, failure.status) == (kind, retryable, status)
        assert (with_json.code, with_json.request_id) == ("the_code", "req-9")
        assert "no luck" in with_json.detail
        assert len(lab.requests) == 2, "the SDK retries nothing"

    def test_retry_after_is_told(self, worker, lab):
        error = {"error": {"message": "slow down"}}
        lab.add(Answer.json(error, 429, {"retry-after": "7"}))
        lab.add(Answer.json(error, 503, {"retry-after": HttpDate(100)}))

        assert worker.failure(lab).retry_after_s == 7
        assert 90 < worker.failure(lab).retry_after_s <= 100

    @pytest.mark.parametrize(
        ("message", "refused"),
        [
            ("Unrecognized request argument supplied: stream_options", "stream_options"),
            ("streaming is not supported for this model", "streaming"),
            ("temperature is too high", ""),
        ],
    )
    def test_refusal_that_a_compatibility_retry_helps_is_told(self, worker, lab, message, refused):
        lab.add(chat.error_answer(400, message))

        assert worker.outcome(lab)[1].refused == refused

    def test_error_text_that_never_ends_is_cut(self, worker, lab):
        lab.add(Answer((raw(b"x" * (1 << 20)), End.HOLD), status=500, headers={}))

        failure = worker.failure(lab)

        assert (failure.kind, failure.status) == (FailureKind.SERVER_ERROR, 500)
        assert len(failure.detail) <= 4096
        lab.wait_closed(0)

    @pytest.mark.parametrize("end", [End.CUT, End.RESET])
    def test_error_text_that_breaks_is_still_that_error(self, worker, lab, end):
        lab.add(Answer((send("it is "), gate("go"), end), status=503, headers={}))
        token = worker.start(lab)
        lab.reached("go")
        lab.open("go")

        assert worker.end_of(token).failure.status == 503

    @pytest.mark.parametrize("status", [400, 307])
    def test_error_that_inflates_without_end_is_read_in_part(self, worker, lab, status):
        packed = zlib.compress(b"x" * (64 << 20))
        headers = {"content-encoding": "deflate", "location": "/v2"}
        lab.add(Answer.whole(packed, "text/plain", status, headers), page("y", 400))
        # What httpx2 decompresses in one go would be all of it.
        with tracing() as peak:
            failure = worker.failure(lab)

        assert failure.status == 400
        assert peak() < 16 << 20

    def test_gzipped_error_is_read(self, worker, lab):
        text = zlib.compress(b'{"error":{"message":"packed"}}', wbits=31)
        lab.add(Answer.whole(text, "application/json", 400, {"content-encoding": "gzip"}))

        assert "packed" in worker.failure(lab).detail


class TestSecrets:
    def test_key_does_not_get_into_a_failure(self, worker, lab, target_of):
        target = target_of(lab, api_key=KEY, headers=(("x-token", "Bearer other-secret"),))
        lab.add(chat.error_answer(401, f"wrong key {KEY}, and other-secret", code=KEY))
        lab.add(page(f"<p>{KEY}"))

        denied, malformed = worker.failure(target), worker.failure(target)

        assert denied.detail.count("***") == 2
        assert malformed.raw_text == "<p>***"
        assert not any(secret in str((denied, malformed)) for secret in (KEY, "other-secret"))

    @pytest.mark.parametrize("status", [200, 401])
    def test_key_does_not_get_into_the_name_of_a_request(self, worker, lab, target_of, status):
        headers = {"x-request-id": f"req-{KEY}"}
        lab.add(Answer.json({"error": {"message": "no"}}, status, headers))
        token = worker.start(target_of(lab, api_key=KEY))
        worker.end_of(token)

        heard = str(worker.heard(token))
        assert "req-***" in heard
        assert KEY not in heard

    def test_secret_that_was_cut_before_is_masked_to_the_end(self):
        text = "x" * (4096 - 10) + KEY[:10]
        failure = Failure(kind=FailureKind.MALFORMED, raw_text=text)

        cleaned = scrubbed(failure, [KEY]).raw_text

        assert "sk-te" not in cleaned
        assert len(cleaned) <= 4096

    def test_password_of_a_proxy_and_quoted_forms_are_secrets(self):
        target = Target(
            "chat", api_key="a/b+c/d", query=(("key", "quell"),), proxy="http://me:pa55word@p:1"
        )

        assert set(secrets_of(target)) >= {"a/b+c/d", "a%2Fb%2Bc%2Fd", "quell", "pa55word"}

    def test_short_values_are_left_alone(self):
        assert secrets_of(Target("chat", headers=(("x-n", "1"),))) == ()


class TestExceptions:
    @pytest.mark.parametrize(
        ("error", "kind", "reason"),
        [
            (ssl.SSLError("bad"), FailureKind.CONNECTION_LOST, "tls"),
            (BrokenPipeError(), FailureKind.CONNECTION_LOST, "reset"),
            (OSError("unreachable"), FailureKind.CONNECTION_LOST, "connect"),
            (TimeoutError(), FailureKind.CONNECTION_LOST, "connect"),
            (json.JSONDecodeError("x", "", 0), FailureKind.MALFORMED, "json"),
            (UnicodeEncodeError("ascii", "\u201c", 0, 1, "no"), FailureKind.BAD_REQUEST, "header"),
            (KeyError("x"), FailureKind.INTERNAL, ""),
        ],
        ids=lambda value: type(value).__name__ if isinstance(value, Exception) else None,
    )
    def test_kind_and_reason(self, error, kind, reason):
        failure = failure_from(error)

        assert (failure.kind, failure.reason, failure.cause) == (kind, reason, type(error).__name__)

    def test_cause_of_a_cause_counts_and_speaks(self):
        wrapped = RuntimeError()
        wrapped.__cause__ = ValueError()
        wrapped.__cause__.__context__ = ConnectionResetError("the peer hung up")

        failure = failure_from(wrapped)

        assert (failure.reason, failure.detail) == (
            "reset",
            "the connection was lost: the peer hung up",
        )

    def test_circle_of_causes_ends(self):
        one, other = ValueError(), ValueError()
        one.__context__, other.__context__ = other, one

        assert failure_from(one).kind is FailureKind.INTERNAL

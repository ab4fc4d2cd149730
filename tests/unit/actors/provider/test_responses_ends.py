"""How answers of the Responses wire end: evidence, errors, and those that were not streamed."""

import json

import pytest

from tests.unit.actors.provider.responses_golden import (
    FIGURES,
    USAGE,
    answer_of,
    completed,
    decode,
    done,
    event,
    frame,
    message,
    response,
    text,
    words,
)
from tidegate.actors.provider.dialects.responses import decode_response
from tidegate.protocol.deltas import Text
from tidegate.protocol.failures import FailureKind


class TestEnds:
    def test_usage_and_evidence_come_together_and_end_the_stream(self):
        batch = decode(text("a", 0), completed(), b"data: nonsense\n\n", event("failed"))

        assert (batch.finishes, batch.usage, batch.failure) == (("stop",), USAGE, None)
        assert batch.done

    @pytest.mark.parametrize(
        ("reason", "finish"),
        [
            ({"reason": "max_output_tokens"}, "length"),
            ({"reason": "content_filter"}, "content_filter"),
            ({"reason": "steered"}, "length"),
            (None, "length"),
        ],
    )
    def test_incomplete_is_evidence_with_its_reason(self, reason, finish):
        end = event("incomplete", response=response("incomplete", incomplete_details=reason))
        batch = decode(text("a", 0), end)

        assert (batch.finishes, batch.failure) == ((finish,), None)
        assert answer_of(batch).native()["status"] == "incomplete"

    def test_status_counts_for_more_than_the_name_of_the_event(self):
        assert decode(event("completed", response=response("incomplete"))).finishes == ("length",)
        assert decode(event("done", response=response("completed"))).finishes == ("stop",)
        failed = decode(event("completed", response=response("failed")))
        assert failed.failure.kind is FailureKind.SERVER_ERROR

    @pytest.mark.parametrize("frames", [[], [b"data: [DONE]\n\n"]], ids=["body", "done"])
    def test_end_without_evidence_is_no_answer(self, frames):
        batch = decode(text("a", 0), done(message("a"), 0), *frames)

        assert batch.finishes is None
        assert batch.failure.kind is FailureKind.TRUNCATED

    def test_life_alone_is_empty(self):
        batch = decode(event("created", response=response("in_progress")), event("in_progress"))

        assert batch.failure.kind is FailureKind.EMPTY
        assert not batch.contentless
        assert decode(b"data:\n\n", b"event: ping\n\n").contentless

    @pytest.mark.parametrize(
        ("code", "kind", "retryable"),
        [
            ("server_error", FailureKind.SERVER_ERROR, True),
            ("rate_limit_exceeded", FailureKind.RATE_LIMITED, True),
            ("insufficient_quota", FailureKind.QUOTA_EXHAUSTED, False),
            ("usage_limit_reached", FailureKind.QUOTA_EXHAUSTED, False),
            ("context_length_exceeded", FailureKind.CONTEXT_OVERFLOW, False),
            ("invalid_prompt", FailureKind.BAD_REQUEST, False),
            ("image_too_large", FailureKind.BAD_REQUEST, False),
            ("image_content_policy_violation", FailureKind.CONTENT_REFUSED, False),
            ("bio_policy", FailureKind.CONTENT_REFUSED, False),
            ("vector_store_timeout", FailureKind.SERVER_ERROR, True),
        ],
    )
    def test_failed_response_is_a_failure_by_its_code(self, code, kind, retryable):
        told = response("failed", error={"code": code, "message": "sorry"}, usage=FIGURES)
        batch = decode(text("a", 0), event("failed", response=told))

        assert (batch.finishes, batch.usage) == (None, USAGE)
        failure = batch.failure
        assert (failure.kind, failure.retryable) == (kind, retryable)
        assert (failure.code, failure.detail) == (code, "sorry")

    def test_failed_response_may_say_nothing(self):
        for name in ("failed", "cancelled"):
            failure = decode(event(name, response=None)).failure
            assert (failure.kind, failure.code) == (FailureKind.SERVER_ERROR, name)

    @pytest.mark.parametrize(
        "fields",
        [
            {"code": "invalid_value", "message": "no", "param": "input[0]"},
            {"error": {"code": "invalid_value", "message": "no", "param": "input[0]"}},
        ],
        ids=["flat", "nested"],
    )
    @pytest.mark.parametrize("name", ["error", None])
    def test_error_event_tells_code_and_parameter(self, fields, name):
        failure = decode(text("a", 0), frame({"type": "error", **fields}, name)).failure

        assert (failure.kind, failure.code) == (FailureKind.BAD_REQUEST, "invalid_value")
        assert failure.detail == "no (param: input[0])"

    def test_error_without_a_type_is_one_all_the_same(self):
        assert decode(frame({"error": {"code": "server_error"}})).failure.code == "server_error"
        assert decode(b"event: error\ndata: oops\n\n").failure.detail == "oops"

    def test_frame_that_is_no_json_is_malformed(self):
        failure = decode(text("a", 0), b"data: <html>\n\n").failure

        assert (failure.kind, failure.raw_text) == (FailureKind.MALFORMED, "<html>")
        assert not failure.retryable

    def test_chat_completion_is_refused_with_the_way_out(self):
        failure = decode(frame({"id": "c", "choices": [{"delta": {"content": "a"}}]})).failure

        assert failure.kind is FailureKind.MALFORMED
        assert "Endpoint.chat" in failure.detail


class TestDocuments:
    def decode(self, value):
        return decode_response(json.dumps(value).encode())

    def test_status_decides(self):
        limit = response("incomplete", [message("a")], incomplete_details={"reason": "x"})

        assert self.decode(response("completed", [message("a")])).finishes == ("stop",)
        assert self.decode(limit).finishes == ("length",)
        failed = self.decode(response("failed", error={"code": "server_error", "message": "no"}))
        assert (failed.failure.code, failed.failure.detail) == ("server_error", "no")

    def test_status_may_be_missing(self):
        batch = self.decode({"output": [message("a")]})

        assert (words(batch), batch.finishes) == ([Text("a")], ("stop",))

    def test_response_in_the_background_is_none_yet(self):
        failure = self.decode(response("queued")).failure

        assert (failure.kind, failure.retryable) == (FailureKind.MALFORMED, False)
        assert "background" in failure.detail

    @pytest.mark.parametrize("body", [{"error": {"message": "no", "code": 429}}, {"error": "no"}])
    def test_error_is_a_failure(self, body):
        assert self.decode(body).failure.detail == "no"

    @pytest.mark.parametrize("body", [{}, [], 5, {"choices": []}, {"status": "odd"}])
    def test_anything_else_is_malformed(self, body):
        assert self.decode(body).failure.kind is FailureKind.MALFORMED

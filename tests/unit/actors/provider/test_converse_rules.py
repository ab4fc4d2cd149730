"""The rules of the converse wire, one by one: blocks, stop reasons, figures and exceptions."""

import json

import msgspec
import pytest

from tests.unit.actors.provider.test_converse_bodies import body_of, decode
from tidegate.actors.provider.dialects.converse_document import decode_document
from tidegate.actors.provider.dialects.converse_faults import failure_from_answer, refused_from
from tidegate.lab import converse
from tidegate.protocol.answers import Usage
from tidegate.protocol.deltas import ENVELOPE, Block, Reasoning, Text, Tool
from tidegate.protocol.failures import FailureKind


NOW_S = 1_800_000_000.0
DENIED = {
    "message": "User: arn:aws:iam::1:user/u is not authorized to perform: "
    "bedrock:InvokeModelWithResponseStream on resource: arn:aws:bedrock:us-east-1::model/m"
}


def deltas_of(*steps):
    return decode(body_of(*steps)).deltas


def data_of(delta):
    return json.loads(delta.data) if delta.data else {}


class TestBlocks:
    def test_blocks_without_a_start_are_told_apart_by_their_index(self):
        assert deltas_of(converse.text("a"), converse.text("b", block=1), converse.text("c")) == [
            Block(0),
            Text("a"),
            Block(1),
            Text("b"),
            Block(0),
            Text("c"),
        ]

    def test_delta_without_an_index_belongs_to_the_block_before(self):
        nameless = converse.event("contentBlockDelta", {"delta": {"text": "b"}})

        assert deltas_of(nameless) == [Block(0), Text("b")]
        assert deltas_of(converse.text("a", block=4), nameless) == [
            Block(4),
            Text("a"),
            Text("b"),
        ]

    @pytest.mark.parametrize("index", [-1, 1 << 31, 1 << 70, "0", 1.5])
    def test_index_that_is_none_is_malformed(self, index):
        batch = decode(converse.text("a", block=index).data)

        assert (batch.failure.kind, batch.deltas) == (FailureKind.MALFORMED, [])

    def test_what_has_no_content_is_no_delta(self):
        start = converse.event("contentBlockStart", {"contentBlockIndex": 0, "start": {}})
        batch = decode(
            body_of(
                converse.message_start(),
                start,
                converse.text(""),
                converse.arguments(""),
                converse.delta({}),
                converse.delta({"somethingNew": 1}),
                converse.event("somethingNew", {}),
                converse.block_stop(),
            )
        )

        assert batch.deltas == []
        assert batch.events == 8
        assert batch.failure.kind is FailureKind.EMPTY

    def test_arguments_of_a_call_that_nobody_announced_are_a_call_without_a_name(self):
        assert deltas_of(converse.arguments("{}", block=1)) == [
            Block(1),
            Tool(0),
            Tool(0, arguments="{}"),
        ]

    def test_start_that_is_repeated_is_one_call_and_another_id_is_another(self):
        calls = deltas_of(
            converse.tool("f", id="a"),
            converse.tool("f", id="a"),
            converse.arguments("1"),
            converse.tool("g", id="b"),
            converse.arguments("2"),
        )

        assert calls[1:] == [
            Tool(0, "a", "f"),
            Tool(0, arguments="1"),
            Tool(1, "b", "g"),
            Tool(1, arguments="2"),
        ]

    def test_calls_in_turn_keep_their_arguments_apart(self):
        calls = deltas_of(
            converse.tool("f", id="a", block=1),
            converse.tool("g", id="b", block=2),
            converse.arguments("1", block=1),
            converse.arguments("2", block=2),
            converse.arguments("3", block=1),
        )

        assert [each for each in calls if isinstance(each, Tool) and each.arguments] == [
            Tool(0, arguments="1"),
            Tool(1, arguments="2"),
            Tool(0, arguments="3"),
        ]

    def test_call_that_the_provider_carries_out_is_nobody_elses(self):
        start = {"toolUseId": "s1", "name": "search", "type": "server_tool_use"}
        result = {"toolUseId": "s1", "type": "search_result", "status": "success"}
        deltas = deltas_of(
            converse.event(
                "contentBlockStart", {"contentBlockIndex": 0, "start": {"toolUse": start}}
            ),
            converse.arguments('{"q":'),
            converse.arguments("1}"),
            converse.event(
                "contentBlockStart", {"contentBlockIndex": 1, "start": {"toolResult": result}}
            ),
            converse.delta({"toolResult": [{"text": "found"}]}, block=1),
        )

        assert [(each.index, data_of(each)) for each in deltas] == [
            (0, {"toolUse": start}),
            (0, {"input": ['{"q":']}),
            (0, {"input": ["1}"]}),
            (1, {"toolResult": result}),
            (1, {"toolResult": {"content": [{"text": "found"}]}}),
        ]

    def test_signatures_redactions_citations_and_images_are_kept_with_their_block(self):
        deltas = deltas_of(
            converse.delta({"reasoningContent": {"redactedContent": "AAE="}}),
            converse.delta({"reasoningContent": {"text": "hm", "signature": "s"}}, block=1),
            converse.text("see", block=2),
            converse.delta({"citation": {"title": "T"}}, block=2),
            converse.event(
                "contentBlockStart", {"contentBlockIndex": 3, "start": {"image": {"format": "png"}}}
            ),
            converse.delta({"image": {"source": {"bytes": "AAE="}}}, block=3),
            converse.delta({"image": {"error": {"message": "no"}}}, block=3),
        )

        assert [each for each in deltas if not isinstance(each, Block)] == [
            Reasoning("hm"),
            Text("see"),
        ]
        assert [(each.index, data_of(each)) for each in deltas if isinstance(each, Block)] == [
            (0, {"redacted": ["AAE="]}),
            (1, {}),
            (1, {"signature": ["s"]}),
            (2, {}),
            (2, {"citations": [{"title": "T"}]}),
            (3, {"image": {"format": "png"}}),
            (3, {"image": {"source": {}}, "bytes": ["AAE="]}),
            (3, {"image": {"error": {"message": "no"}}}),
        ]


@pytest.mark.parametrize(
    ("reason", "finish"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("tool_use", "tool_calls"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("content_filtered", "content_filter"),
        ("guardrail_intervened", "content_filter"),
        ("malformed_model_output", "error"),
        ("malformed_tool_use", "error"),
        ("something_new", "stop"),
        ("", "stop"),
    ],
)
def test_stop_reason_is_the_finish(reason, finish):
    assert decode(converse.message_stop(reason).data).finishes == (finish,)
    document = json.dumps(converse.completion({"text": "a"}, reason=reason)).encode()
    assert decode_document(document).finishes == (finish,)


class TestMetadata:
    def test_figures_are_as_the_wire_counts_them(self):
        figures = converse.metadata(
            3, 2, cacheReadInputTokens=40, cacheWriteInputTokens=9, cacheDetails=[]
        )
        batch = decode(body_of(converse.message_stop(), figures))

        assert batch.usage == Usage(input_tokens=3, output_tokens=2, cached_input_tokens=40)
        assert batch.done

    @pytest.mark.parametrize("usage", [None, {}, {"inputTokens": "many"}, 5])
    def test_figures_that_are_none_harm_nothing(self, usage):
        batch = decode(
            body_of(converse.message_stop(), converse.event("metadata", {"usage": usage}))
        )

        assert (batch.usage, batch.failure, batch.done) == (None, None, True)

    def test_figures_before_the_evidence_end_nothing(self):
        batch = decode(
            body_of(converse.metadata(1, 1), converse.text("a"), converse.message_stop())
        )

        assert batch.usage == Usage(input_tokens=1, output_tokens=1)
        assert Text("a") in batch.deltas
        assert batch.finishes == ("stop",)
        assert not batch.done

    def test_what_models_add_is_kept_around_the_answer(self):
        stop = {"stopReason": "end_turn", "additionalModelResponseFields": {"k": [1]}, "p": "abc"}
        [envelope] = deltas_of(converse.event("messageStop", stop))

        assert (envelope.index, data_of(envelope)) == (
            ENVELOPE,
            {"stopReason": "end_turn", "additionalModelResponseFields": {"k": [1]}},
        )


EXCEPTIONS = [
    ("internalServerException", FailureKind.SERVER_ERROR, 500, True),
    ("modelStreamErrorException", FailureKind.SERVER_ERROR, 424, True),
    ("modelTimeoutException", FailureKind.SERVER_ERROR, 408, True),
    ("serviceUnavailableException", FailureKind.SERVER_ERROR, 503, True),
    ("throttlingException", FailureKind.RATE_LIMITED, 429, True),
    ("validationException", FailureKind.BAD_REQUEST, 400, False),
    ("accessDeniedException", FailureKind.AUTH, 403, False),
    ("modelNotReadyException", FailureKind.OVERLOADED, 429, True),
    ("resourceNotFoundException", FailureKind.BAD_REQUEST, 404, False),
    ("serviceQuotaExceededException", FailureKind.QUOTA_EXHAUSTED, 400, False),
]


class TestExceptions:
    @pytest.mark.parametrize(("name", "kind", "status", "retryable"), EXCEPTIONS)
    def test_kind_is_the_same_before_a_stream_and_in_it(self, name, kind, status, retryable):
        streamed = decode(converse.exception(name, "try later").data).failure
        answered = failure_from_answer(
            status,
            b'{"message":"try later"}',
            {"x-amzn-ErrorType": f"{name[0].upper()}{name[1:]}:http://aws/doc/"},
            now_s=NOW_S,
        )

        for failure in (streamed, answered):
            assert (failure.kind, failure.status, failure.retryable) == (kind, status, retryable)
            assert failure.detail == "try later"
        assert streamed.code == name
        assert answered.code == name[0].upper() + name[1:]

    def test_model_error_tells_what_the_model_said(self):
        frame = converse.exception(
            "modelStreamErrorException", "failed", originalStatusCode=500, originalMessage="oom"
        )
        failure = decode(frame.data).failure

        assert (failure.status, failure.detail) == (424, "failed: oom")

    def test_context_overflow_is_known_by_its_words(self):
        failure = decode(
            converse.exception("validationException", "Input is too long for this model.").data
        ).failure

        assert (failure.kind, failure.code) == (
            FailureKind.CONTEXT_OVERFLOW,
            "validationException",
        )

    def test_unknown_exception_is_the_servers(self):
        failure = decode(converse.exception("somethingNewException", "hm").data).failure

        assert (failure.kind, failure.retryable) == (FailureKind.SERVER_ERROR, True)
        assert failure.code == "somethingNewException"

    def test_error_that_is_not_modelled_is_in_the_headers(self):
        headers = {
            ":message-type": "error",
            ":error-code": "InternalServerException",
            ":error-message": "broken",
        }
        failure = decode(converse.encode(headers, b"")).failure

        assert (failure.kind, failure.status, failure.detail) == (
            FailureKind.SERVER_ERROR,
            500,
            "broken",
        )

    def test_deltas_before_an_exception_are_kept(self):
        batch = decode(
            body_of(converse.text("par"), converse.exception("internalServerException", "later"))
        )

        assert batch.deltas == [Block(0), Text("par")]
        assert batch.failure.kind is FailureKind.SERVER_ERROR

    def test_answer_without_a_name_goes_by_its_status(self):
        failure = failure_from_answer(503, b"<html>busy</html>", {"retry-after": "7"}, now_s=NOW_S)

        assert (failure.kind, failure.retry_after_s) == (FailureKind.SERVER_ERROR, 7.0)
        assert failure.detail == "<html>busy</html>"

    def test_name_in_the_body_counts_without_its_name_space(self):
        body = {"__type": "com.amazon.coral.service#ExpiredTokenException", "Message": "expired"}
        failure = failure_from_answer(403, msgspec.json.encode(body), {}, now_s=NOW_S)

        assert (failure.kind, failure.code, failure.detail) == (
            FailureKind.AUTH,
            "ExpiredTokenException",
            "expired",
        )

    def test_request_id_is_amazons(self):
        headers = {"X-Amzn-RequestId": "r-1"}

        assert failure_from_answer(500, b"{}", headers, now_s=NOW_S).request_id == "r-1"


class TestRefused:
    def test_denial_of_streaming_alone_is_a_refusal_of_streaming(self):
        assert refused_from(403, msgspec.json.encode(DENIED)) == "streaming"

    @pytest.mark.parametrize(
        ("status", "message"),
        [
            (403, "not authorized to perform: bedrock:InvokeModel on resource"),
            (403, "The security token included in the request is invalid."),
            (429, DENIED["message"]),
            (400, "nothing of it"),
        ],
    )
    def test_other_denials_are_final(self, status, message):
        assert refused_from(status, msgspec.json.encode({"message": message})) == ""

    def test_model_that_does_not_stream_says_so(self):
        body = msgspec.json.encode({"message": "The model doesn't support streaming."})

        assert refused_from(400, body) == "streaming"

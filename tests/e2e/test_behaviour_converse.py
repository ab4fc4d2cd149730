"""The converse wire as a caller sees it: blocks, calls, errors, retries, partial answers."""

import dataclasses
import json

import pytest

import tidegate as tg
from tests.e2e.converse_checks import valid
from tests.e2e.scripts import LEFT, in_order
from tidegate.lab import Answer, End, Lab, converse, gate
from tidegate.testing.eventually import eventually
from tidegate.testing.reading import Reading


PROMPT = {"modelId": "m", "messages": [{"role": "user", "content": [{"text": "Hello"}]}]}
START = converse.message_start()
DENIED = converse.error_answer(
    403,
    "AccessDeniedException",
    "User: arn:aws:iam::1:user/u is not authorized to perform: "
    "bedrock:InvokeModelWithResponseStream on resource: arn:aws:bedrock:us-east-1::model/m",
)


@pytest.fixture(scope="module")
def runtime():
    with tg.Runtime(workers=1, settings=tg.Settings(preload=("converse",))) as runtime:
        yield runtime


@pytest.fixture
def endpoint_at(own):
    return lambda lab: tg.Endpoint.converse("us-east-1", lab.base, api_key="key", **own)


@pytest.fixture
def prompt():
    return PROMPT


def operations(lab):
    return [request.path.rpartition("/")[2] for request in lab.requests]


class TestStreams:
    def test_all_kinds_of_blocks(self, runtime, ask):
        search = {"toolUseId": "s1", "name": "search", "type": "server_tool_use"}
        steps = [
            START,
            converse.delta({"reasoningContent": {"redactedContent": "AAE="}}),
            converse.delta({"reasoningContent": {"redactedContent": "Ag=="}}),
            converse.reasoning("hm, ", block=1),
            converse.reasoning("six", block=1),
            converse.signature("c2ln", block=1),
            converse.event(
                "contentBlockStart", {"contentBlockIndex": 2, "start": {"toolUse": search}}
            ),
            converse.arguments('{"q": 1}', block=2),
            converse.text("High ", block=3),
            converse.text("at six.", block=3),
            converse.block_stop(block=3),
            converse.text("Truly.", block=4),
            converse.delta({"citation": {"title": "Tides"}}, block=4),
            converse.tool("clock", id="t1", block=5),
            converse.arguments('{"zone"', block=5),
            converse.arguments(': "UTC"}', block=5),
            converse.block_stop(block=5),
            converse.tool("list_all", id="t2", block=6),
            converse.block_stop(block=6),
            converse.message_stop("tool_use"),
            converse.metadata(12, 31, cacheReadInputTokens=4, cacheWriteInputTokens=2),
        ]
        with Lab([converse.stream(*steps)]) as lab:
            answer = runtime.run(ask(lab))

        assert (answer.text, answer.reasoning) == ("High at six.Truly.", "hm, six")
        assert answer.finish == "tool_calls"
        assert [(call.id, call.name, call.parsed()) for call in answer.tool_calls] == [
            ("t1", "clock", {"zone": "UTC"}),
            ("t2", "list_all", {}),
        ]
        assert answer.usage == tg.Usage(input_tokens=12, output_tokens=31, cached_input_tokens=4)
        native = valid(answer.native())
        assert native["output"]["message"]["content"] == [
            {"reasoningContent": {"redactedContent": b"\x00\x01\x02"}},
            {"reasoningContent": {"reasoningText": {"text": "hm, six", "signature": "c2ln"}}},
            {"toolUse": {**search, "input": {"q": 1}}},
            {"text": "High at six."},
            {
                "citationsContent": {
                    "content": [{"text": "Truly."}],
                    "citations": [{"title": "Tides"}],
                }
            },
            {"toolUse": {"toolUseId": "t1", "name": "clock", "input": {"zone": "UTC"}}},
            {"toolUse": {"toolUseId": "t2", "name": "list_all", "input": {}}},
        ]
        assert native["stopReason"] == "tool_use"
        assert native["usage"]["cacheWriteInputTokens"] == 2
        assert native["metrics"] == {"latencyMs": 5}

    def test_one_provider_delta_is_one_event(self, runtime, ask):
        with Lab([converse.answer("Hel", "lo", " you")]) as lab:
            reading = Reading(runtime.start(ask(lab)))
            terminal = reading.to_end()

        assert reading.texts == ["Hel", "lo", " you"]
        assert isinstance(terminal, tg.TurnCompleted)
        assert terminal.answer.usage == tg.Usage(input_tokens=3, output_tokens=2)

    def test_connection_serves_the_next_turn(self, runtime, ask):
        with Lab(in_order(converse.answer("Hello"))) as lab:
            answers = [runtime.run(ask(lab)).text for _ in range(3)]

            assert answers == ["Hello"] * 3
            assert len({request.connection for request in lab.requests}) == 1

    def test_finish_comes_with_the_evidence_and_not_with_the_figures(self, runtime, ask):
        steps = [START, converse.text("Hello"), converse.message_stop(), gate("never"), End.HOLD]
        with Lab([converse.stream(*steps)]) as lab:
            answer = runtime.run(ask(lab, finish_grace_s=0.01))

        assert (answer.text, answer.finish, answer.partial) == ("Hello", "stop", False)
        assert answer.usage is None

    def test_request_id_is_told(self, runtime, ask):
        headers = {**converse.EVENT_STREAM, "x-amzn-RequestId": "r-1"}
        with Lab([dataclasses.replace(converse.answer("Hello"), headers=headers)]) as lab:
            answer = runtime.run(ask(lab))

        assert answer.attempts[0].request_id == "r-1"

    def test_call_without_evidence_is_lost_and_told(self, runtime, ask):
        call = [converse.tool("pay", id="t1"), converse.arguments('{"sum":10}')]
        streams = [converse.stream(START, *call)]
        with Lab(streams) as lab, pytest.raises(tg.StreamTruncated) as raised:
            runtime.run(ask(lab))

        answer = raised.value.answer
        assert (answer.tool_calls, answer.lost_tools) == ((), ("pay",))
        assert answer.incomplete_tool_calls[0].arguments == '{"sum":10}'

    def test_call_whose_arguments_are_cut_by_the_limit_is_no_call(self, runtime, ask):
        call = [converse.tool("pay", id="t1"), converse.arguments('{"sum":')]
        steps = [START, *call, converse.message_stop("max_tokens")]
        with Lab([converse.stream(*steps)]) as lab:
            answer = runtime.run(ask(lab))

        assert (answer.finish, answer.tool_calls, answer.lost_tools) == ("length", (), ("pay",))
        assert valid(answer.native() | {"usage": USAGE})["output"]["message"]["content"] == []


USAGE = {"inputTokens": 1, "outputTokens": 1, "totalTokens": 2}


class TestPlain:
    def test_document_is_the_same_events(self, runtime, ask):
        document = converse.completion(
            {"text": "Hello"},
            {"toolUse": {"toolUseId": "t", "name": "clock", "input": {"zone": "UTC"}}},
            {"image": {"format": "png", "source": {"bytes": "AAE="}}},
            reason="tool_use",
        )
        with Lab([Answer.json(document)]) as lab:
            answer = runtime.run(ask(lab, stream=False))

            assert operations(lab) == ["converse"]
        assert (answer.text, answer.finish) == ("Hello", "tool_calls")
        assert [call.parsed() for call in answer.tool_calls] == [{"zone": "UTC"}]
        assert answer.usage == tg.Usage(input_tokens=3, output_tokens=2)
        assert answer.native() == document
        valid(document)

    def test_denied_stream_is_asked_for_plainly_in_the_same_turn(self, runtime, ask):
        plain = Answer.json(converse.completion({"text": "hi"}))
        with Lab([DENIED, plain, plain]) as lab:
            reading = Reading(runtime.start(ask(lab)))
            answer = reading.to_end().answer
            again = runtime.run(ask(lab))

            assert operations(lab) == ["converse-stream", "converse", "converse"]
        assert (answer.text, again.text) == ("hi", "hi")
        assert [each.kind for each in reading.all(tg.Notice)] == ["streaming_disabled"]
        assert [each.free for each in answer.attempts] == [False, True]
        assert answer.attempts[0].failure.kind is tg.FailureKind.AUTH
        assert answer.attempts[0].failure.code == "AccessDeniedException"

    def test_whoever_may_not_call_the_model_at_all_is_told(self, runtime, ask):
        no = converse.error_answer(
            403, "AccessDeniedException", "not authorized to perform: bedrock:InvokeModel on m"
        )
        with Lab([DENIED, no]) as lab:
            with pytest.raises(tg.AuthRejected, match="bedrock:InvokeModel on m"):
                runtime.run(ask(lab, retries=5))

            assert operations(lab) == ["converse-stream", "converse"]

    def test_document_in_the_place_of_a_stream_is_taken(self, runtime, ask):
        plain = Answer.json(converse.completion({"text": "hi"}))
        with Lab([plain, plain]) as lab:
            answers = [runtime.run(ask(lab)).text for _ in range(2)]

            assert answers == ["hi", "hi"]
            assert operations(lab) == ["converse-stream", "converse"]

    def test_page_in_the_place_of_a_stream_is_malformed(self, runtime, ask):
        page = Answer.whole(b"<html>sign in</html>", "text/html")
        with Lab([page]) as lab, pytest.raises(tg.MalformedStream, match="text/html"):
            runtime.run(ask(lab))


TRANSIENT = {
    "nothing at all": (converse.stream(), tg.EmptyStream),
    "only life": (converse.stream(START), tg.EmptyStream),
    "a cut": (converse.stream(START, converse.text("a"), End.CUT), tg.StreamTruncated),
    "a reset": (converse.stream(START, End.RESET), tg.StreamTruncated),
    "an end before messageStop": (converse.stream(START, converse.text("a")), tg.StreamTruncated),
    "damage": (
        converse.stream(START, converse.Send(converse.text("a").data[:-1] + b"?")),
        tg.MalformedStream,
    ),
    "throttled": (
        converse.error_answer(429, "ThrottlingException", "slow", {"retry-after": "0"}),
        tg.RateLimited,
    ),
    "not ready": (converse.error_answer(429, "ModelNotReadyException", "wait"), tg.Overloaded),
    "model error": (converse.error_answer(424, "ModelErrorException", "oom"), tg.ServerFault),
} | {
    f"{name} in the stream": (converse.stream(START, converse.exception(name, "hm")), error)
    for name, error in {
        "throttlingException": tg.RateLimited,
        "internalServerException": tg.ServerFault,
        "modelStreamErrorException": tg.ServerFault,
        "modelTimeoutException": tg.ServerFault,
        "serviceUnavailableException": tg.ServerFault,
    }.items()
}


class TestFailures:
    @pytest.mark.parametrize("name", TRANSIENT)
    def test_transient_failure_is_raised_after_one_attempt_unless_retries_are_given(
        self, runtime, ask, name
    ):
        failing, error = TRANSIENT[name]
        with Lab([failing, failing, converse.answer("Hello")]) as lab:
            with pytest.raises(error) as raised:
                runtime.run(ask(lab))
            answer = runtime.run(ask(lab, retries=1))

            assert (answer.text, len(lab.requests)) == ("Hello", 3)
        assert raised.value.failure.retryable

    @pytest.mark.parametrize(
        ("failing", "error"),
        [
            (converse.error_answer(400, "ValidationException", "no"), tg.BadRequest),
            (
                converse.stream(START, converse.exception("validationException", "no")),
                tg.BadRequest,
            ),
            (converse.error_answer(403, "ExpiredTokenException", "no"), tg.AuthRejected),
            (converse.error_answer(404, "ResourceNotFoundException", "no"), tg.BadRequest),
            (
                converse.error_answer(400, "ServiceQuotaExceededException", "no"),
                tg.QuotaExhausted,
            ),
            (
                converse.error_answer(400, "ValidationException", "no: input is too long"),
                tg.ContextOverflow,
            ),
        ],
    )
    def test_final_failure_is_raised_at_once(self, runtime, ask, failing, error):
        with Lab(in_order(failing)) as lab:
            with pytest.raises(error, match="no"):
                runtime.run(ask(lab, retries=5))

            assert len(lab.requests) == 1

    @pytest.mark.parametrize(
        ("name", "status"),
        [
            ("internalServerException", 500),
            ("modelStreamErrorException", 424),
            ("serviceUnavailableException", 503),
        ],
    )
    def test_exception_keeps_what_was_shown(self, runtime, ask, name, status):
        steps = [START, converse.text("par"), gate("taken"), converse.exception(name, "later")]
        with Lab([converse.stream(*steps)]) as lab:
            turn = runtime.start(ask(lab, retries=5))
            reading = Reading(turn)
            reading.until(tg.TextDelta)
            lab.open("taken")
            reading.to_end()
            answer = turn.result()

        assert (answer.text, answer.partial, answer.finish) == ("par", True, "incomplete")
        failure = answer.failure
        assert (failure.kind, failure.status, failure.code, failure.retryable) == (
            tg.FailureKind.SERVER_ERROR,
            status,
            name,
            True,
        )
        assert answer.native()["stopReason"] is None
        assert answer.native()["output"]["message"]["content"] == [{"text": "par"}]

    def test_call_that_was_cut_is_asked_for_again(self, runtime, ask):
        cut = [START, converse.tool("pay", id="tu1"), converse.arguments('{"sum":10}')]
        whole = [
            *(START, converse.tool("pay", id="tu2"), converse.arguments('{"sum":10}')),
            *(converse.block_stop(), converse.message_stop("tool_use"), converse.metadata(4, 4)),
        ]
        with Lab([converse.stream(*cut), converse.stream(*whole)]) as lab:
            answer = runtime.run(ask(lab, retries=1))

        assert [(call.id, call.parsed()) for call in answer.tool_calls] == [("tu2", {"sum": 10})]
        assert [each.failure and each.failure.kind for each in answer.attempts] == [
            tg.FailureKind.TRUNCATED,
            None,
        ]
        assert "tu1" not in json.dumps(answer.native())

    @pytest.mark.parametrize(
        ("payload", "message"),
        [
            ({"messages": []}, 'Missing required parameter in input: "modelId"'),
            ({**PROMPT, "messages": [{"role": "user", "content": "Hi"}]}, "messages.0..content"),
            ({**PROMPT, "temprature": 1}, 'Unknown parameter in input: "temprature"'),
            (
                {
                    **PROMPT,
                    "messages": [
                        {
                            "role": "user",
                            "content": [
                                {"image": {"format": "png", "source": {"bytes": "no base64"}}}
                            ],
                        }
                    ],
                },
                "bytes.* is no base64",
            ),
        ],
    )
    def test_payload_that_botocore_refuses_is_never_sent(self, runtime, ask, payload, message):
        with Lab() as lab:
            with pytest.raises(tg.BadRequest, match=message) as raised:
                runtime.run(ask(lab, payload, retries=5))

            assert lab.requests == []
        assert raised.value.failure.reason == "payload"


FIRST = converse.answer("a client is made for each address, which may take longer than a stall")


class TestEnds:
    def test_silence_is_a_stall_after_exactly_one_attempt(self, runtime, ask):
        with Lab(in_order(FIRST, converse.stream(START, End.HOLD))) as lab:
            runtime.run(ask(lab))
            with pytest.raises(tg.StreamStalled) as raised:
                runtime.run(ask(lab, stale_after_s=0.3))

            assert isinstance(raised.value, TimeoutError)
            assert len(lab.requests) == 2
            assert eventually(lambda: lab.requests[1].closed).how in LEFT

    def test_events_behind_a_stall_are_never_delivered(self, runtime, ask):
        late = [START, converse.text("so far"), gate("late"), converse.text("too late"), End.HOLD]
        with Lab([FIRST, converse.stream(*late)]) as lab:
            runtime.run(ask(lab))
            turn = runtime.start(ask(lab, stale_after_s=0.3))
            reading = Reading(turn)
            reading.to_end()
            lab.open("late")
            answer = turn.result()

            assert (reading.texts, answer.text, answer.partial) == (["so far"], "so far", True)
            assert answer.failure.kind is tg.FailureKind.STALLED

    def test_interrupt_closes_the_socket(self, runtime, ask):
        with Lab([converse.stream(START, converse.reasoning("hm"), End.HOLD)]) as lab:
            turn = runtime.start(ask(lab))
            reading = Reading(turn)
            reading.until(tg.ReasoningDelta)

            assert turn.interrupt("enough")
            with pytest.raises(tg.Interrupted) as raised:
                turn.result()
            assert eventually(lambda: lab.requests[0].closed).how in LEFT
        assert raised.value.answer.reasoning == "hm"

    def test_interrupt_before_the_head_closes_the_socket(self, runtime, ask):
        held = dataclasses.replace(
            converse.stream(gate("never"), START), headers_with_first_frame=True
        )
        with Lab([held]) as lab:
            turn = runtime.start(ask(lab))
            eventually(lambda: lab.requests)

            turn.interrupt()
            with pytest.raises(tg.Interrupted):
                turn.result()
            assert eventually(lambda: lab.requests[0].closed).how in LEFT

"""Turns on the Responses wire: what a caller sees of answers, failures, retries and interrupts."""

import pytest
from openai.types.responses import Response

import tidegate as tg
from tests.e2e.scripts import GUARD_S, LEFT, in_order, refusal, streamed
from tidegate.lab import Answer, End, Lab, gate, responses, send
from tidegate.testing.reading import Reading
from tidegate.testing.warm import warm


@pytest.fixture(scope="module")
def runtime():
    with tg.Runtime(workers=1) as runtime:
        warm(runtime, 1)
        yield runtime


@pytest.fixture
def endpoint_at():
    return lambda lab, **options: tg.Endpoint.responses(lab.url, "test-key", **options)


@pytest.fixture
def prompt():
    return {"model": "test-model", "input": "Hello"}


THOUGHT = responses.thought("First think.", "Then speak.", encrypted_content="gAAA")
SAID = responses.said("Hello, world", item_id="msg_1")
CALLS = [
    responses.call("call_1", "read", '{"path":"a"}', item_id="fc_1"),
    responses.call("call_2", "list", "{}", item_id="fc_2"),
]
WHOLE = [
    responses.created(),
    responses.added(responses.thought(), 0),
    responses.summary("First think."),
    responses.summary("Then speak.", part=1),
    responses.item_done(THOUGHT, 0),
    responses.added(responses.message(), 1),
    responses.text("Hello, ", 1),
    responses.text("world", 1),
    responses.item_done(SAID, 1),
    responses.added(responses.call("call_1", "read"), 2),
    responses.arguments('{"path":', 2),
    responses.arguments('"a"}', 2),
    responses.item_done(CALLS[0], 2),
    responses.item_done(CALLS[1], 3),
    responses.completed(THOUGHT, SAID, *CALLS, usage=responses.usage(9, 4, 5, 3)),
]


class TestAnswers:
    def test_stream_becomes_events_and_an_answer(self, runtime, ask):
        with Lab([streamed(*WHOLE)]) as lab:
            turn = runtime.start(ask(lab))
            reading = Reading(turn)
            reading.to_end()
            answer = turn.result()

            [request] = lab.requests
            assert request.path == "/v1/responses"
            assert request.json() == {"stream": True, "model": "test-model", "input": "Hello"}
            assert request.headers["authorization"] == "Bearer test-key"
            assert reading.texts == ["Hello, ", "world"]
            assert answer.reasoning == "First think.\n\nThen speak."
            assert [(each.id, each.name, each.parsed()) for each in answer.tool_calls] == [
                ("call_1", "read", {"path": "a"}),
                ("call_2", "list", {}),
            ]
            assert (answer.finish, answer.response_id) == ("tool_calls", "resp_lab")
            assert answer.usage == tg.Usage(
                input_tokens=9, output_tokens=4, cached_input_tokens=5, reasoning_tokens=3
            )

    def test_native_form_is_what_a_plain_request_would_have_got(self, runtime, ask):
        document = responses.response(THOUGHT, SAID, *CALLS, usage=responses.usage(9, 4, 5, 3))
        with Lab([streamed(*WHOLE), Answer.json(document)]) as lab:
            streams = runtime.run(ask(lab))
            plain = runtime.run(ask(lab, stream=False))

            assert "stream" not in lab.requests[1].json()
            assert Response.model_validate(streams.native(), strict=True)
            assert streams.native()["output"] == document["output"]
            assert streams.native() == plain.native()
            assert (streams.text, streams.tool_calls) == (plain.text, plain.tool_calls)

    def test_arguments_that_are_taken_back_are_never_in_the_answer(self, runtime, ask):
        steps = [
            responses.added(responses.call(), 0),
            responses.arguments('{"at": "noon"}'),
            responses.arguments_done('{"at": "dawn"}'),
            responses.completed(),
        ]
        with Lab([streamed(*steps)]) as lab:
            heard = []
            answer = runtime.run(ask(lab), heard.append)

            assert [each.parsed() for each in answer.tool_calls] == [{"at": "dawn"}]
            told = [each for each in heard if isinstance(each, tg.ToolCallDelta)]
            assert [(each.arguments, each.whole) for each in told] == [
                ("", False),
                ('{"at": "noon"}', False),
                ('{"at": "dawn"}', True),
            ]

    def test_limit_is_a_finish_and_its_cut_call_is_lost(self, runtime, ask):
        steps = [
            responses.text("So far"),
            responses.added(responses.call(), 1),
            responses.arguments('{"at":', 1),
            responses.incomplete(),
        ]
        with Lab([streamed(*steps)]) as lab:
            answer = runtime.run(ask(lab))

            assert (answer.text, answer.finish, answer.partial) == ("So far", "length", False)
            assert (answer.tool_calls, answer.lost_tools) == ((), ("clock",))
            assert answer.native()["incomplete_details"] == {"reason": "max_output_tokens"}
            assert Response.model_validate(answer.native())

    def test_what_comes_behind_the_end_changes_nothing(self, runtime, ask):
        end = [responses.completed(), send("data: nonsense\n\n")]
        with Lab([streamed(responses.text("Hello"), *end, end=End.RESET)]) as lab:
            answer = runtime.run(ask(lab))

            assert (answer.text, answer.finish, len(answer.attempts)) == ("Hello", "stop", 1)

    def test_one_connection_serves_many_turns(self, runtime, ask, own):
        with Lab(in_order(responses.answer("Hello"))) as lab:
            texts = [runtime.run(ask(lab, options=own)).text for _ in range(4)]

            assert texts == ["Hello"] * 4
            assert len({each.connection for each in lab.requests}) == 1


class TestFailures:
    @pytest.mark.parametrize(
        ("answer", "error"),
        [
            pytest.param(
                streamed(responses.failed("sorry")), tg.ServerFault, id="response that failed"
            ),
            pytest.param(
                streamed(responses.error("slow down", code="rate_limit_exceeded")),
                tg.RateLimited,
                id="error in the stream",
            ),
            pytest.param(
                streamed(responses.text("lost"), end=End.CUT), tg.StreamTruncated, id="cut"
            ),
            pytest.param(
                streamed(responses.text("lost"), responses.item_done(responses.said("lost"))),
                tg.StreamTruncated,
                id="no end",
            ),
            pytest.param(streamed(responses.created()), tg.EmptyStream, id="only life"),
            pytest.param(refusal(503), tg.ServerFault, id="before the stream"),
        ],
    )
    def test_transient_one_is_retried_once(self, runtime, ask, answer, error):
        with Lab(in_order(answer)) as lab:
            with pytest.raises(tg.TurnError) as raised:
                runtime.run(ask(lab))

            assert type(raised.value) is error
            assert len(lab.requests) == 2

    @pytest.mark.parametrize(
        ("answer", "error"),
        [
            (streamed(responses.error("no", code="invalid_prompt")), tg.BadRequest),
            (streamed(responses.failed("no", "context_length_exceeded")), tg.ContextOverflow),
            (streamed(send("data: sorry\n\n")), tg.MalformedStream),
            (refusal(401), tg.AuthRejected),
            (refusal(429, code="usage_limit_reached"), tg.QuotaExhausted),
        ],
    )
    def test_other_one_is_raised_at_once(self, runtime, ask, answer, error):
        with Lab([answer]) as lab, pytest.raises(tg.TurnError) as raised:
            runtime.run(ask(lab, retries=5))

        assert type(raised.value) is error

    def test_retry_brings_the_whole_answer(self, runtime, ask):
        with Lab([streamed(*WHOLE[:-1], end=End.CUT), streamed(*WHOLE)]) as lab:
            answer = runtime.run(ask(lab))

            assert answer.text == "Hello, world"
            assert [each.id for each in answer.tool_calls] == ["call_1", "call_2"]
            assert answer.native()["output"] == [THOUGHT, SAID, *CALLS]
            assert [each.outcome for each in answer.attempts] == ["failed", "completed"]

    def test_failure_behind_visible_text_is_a_partial_answer(self, runtime, ask):
        steps = [responses.added(responses.message()), responses.text("So far"), gate("taken")]
        with Lab([streamed(*steps, responses.failed("crashed"))]) as lab:
            turn = runtime.start(ask(lab))
            reading = Reading(turn)
            reading.until(tg.TextDelta)
            lab.open("taken")
            reading.to_end()
            answer = turn.result()

            assert (answer.text, answer.partial, answer.finish) == ("So far", True, "incomplete")
            assert answer.failure.code == "server_error"
            native = Response.model_validate(answer.native())
            assert (native.status, native.output_text) == ("incomplete", "So far")
            assert native.output[0].status == "incomplete"

    def test_tool_in_flight_is_asked_for_again(self, runtime, ask):
        steps = [responses.text("Wait. "), responses.added(responses.call(), 1), gate("taken")]
        with Lab([streamed(*steps, end=End.CUT), streamed(*WHOLE)]) as lab:
            turn = runtime.start(ask(lab))
            reading = Reading(turn)
            reading.until(tg.ToolCallDelta)
            lab.open("taken")
            reading.to_end()

            [superseded] = reading.all(tg.AttemptSuperseded)
            assert superseded.retracts == len("Wait. ")
            assert [each.name for each in turn.result().tool_calls] == ["read", "list"]

    def test_life_is_no_progress(self, runtime, ask, own):
        silent = streamed(responses.created(), responses.event("in_progress"), end=End.HOLD)
        with Lab([silent, responses.answer("Hello")]) as lab:
            answer = runtime.run(ask(lab, options=own, stale_after_s=1.0))

            assert answer.text == "Hello"
            failure = answer.attempts[0].failure
            assert failure.kind is tg.FailureKind.STALLED
            assert lab.wait_closed(0).how in LEFT

    def test_no_event_at_all_is_told_apart(self, runtime, ask, own):
        with Lab([streamed(end=End.HOLD)]) as lab:
            with pytest.raises(tg.StreamStalled) as raised:
                runtime.run(ask(lab, options=own, retries=0, first_event_timeout_s=0.3))

            assert raised.value.failure.reason == "first_byte"


class TestPlain:
    def test_refused_streaming_is_asked_for_plainly_in_the_same_turn(self, runtime, ask, own):
        no = refusal(400, "stream: streaming is not supported", param="stream")
        plain = Answer.json(responses.response(SAID))
        with Lab([no, plain, plain]) as lab:
            heard = []
            answer = runtime.run(ask(lab, options=own, retries=0), heard.append)
            runtime.run(ask(lab, options=own))

            assert answer.text == "Hello, world"
            assert [each.free for each in answer.attempts] == [False, True]
            asked = [each.json().get("stream", False) for each in lab.requests]
            assert asked == [True, False, False]
            notices = [each.kind for each in heard if isinstance(each, tg.Notice)]
            assert notices == ["streaming_disabled"]

    def test_options_of_the_stream_are_the_callers_and_go_with_it(self, runtime, ask, own):
        options = {"include_obfuscation": False}
        payload = {"model": "m", "input": "Hello", "stream_options": options}
        plain = Answer.json(responses.response(SAID))
        with Lab([refusal(400, "streaming is not supported"), plain]) as lab:
            runtime.run(ask(lab, payload, options=own))

            first, second = (each.json() for each in lab.requests)
            assert first["stream_options"] == options
            assert "stream_options" not in second

    def test_response_that_failed_is_raised(self, runtime, ask):
        document = responses.response(status="failed", error={"code": "invalid_prompt"})
        with Lab([Answer.json(document)]) as lab, pytest.raises(tg.BadRequest):
            runtime.run(ask(lab, stream=False))


class TestInterrupt:
    def test_closes_the_socket_and_keeps_what_there_is(self, runtime, ask):
        with Lab([streamed(*WHOLE[:7], end=End.HOLD)]) as lab:
            turn = runtime.start(ask(lab))
            reading = Reading(turn)
            reading.until(tg.TextDelta)

            assert turn.interrupt("enough")

            with pytest.raises(tg.Interrupted, match="interrupted: enough") as raised:
                turn.result(GUARD_S)
            assert lab.wait_closed(0).how in LEFT
            assert raised.value.answer.text == "Hello, "
            native = Response.model_validate(raised.value.answer.native())
            assert native.output_text == "Hello, "

    def test_within_a_callback_lets_nothing_more_in(self, runtime, ask):
        with Lab([streamed(responses.text("first"), *[responses.text("later")] * 50)]) as lab:
            texts = []

            def stop(event):
                texts.extend([event.text] if isinstance(event, tg.TextDelta) else [])
                if texts:
                    raise ValueError("enough")

            with pytest.raises(ValueError, match="enough"):
                runtime.run(ask(lab), stop)

            assert texts == ["first"]


def test_azure_has_no_deployment_in_the_path(runtime):
    with Lab([responses.answer("Hello")]) as lab:
        endpoint = tg.Endpoint.responses(lab.base, "key", api_version="2025-04-01-preview")
        answer = runtime.run(tg.Request(endpoint, {"model": "gpt-x", "input": "Hello"}))

        assert answer.text == "Hello"
        [request] = lab.requests
        assert request.target == "/openai/responses?api-version=2025-04-01-preview"
        assert request.headers["api-key"] == "key"

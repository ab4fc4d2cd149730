"""What users build on, word for word: to change a line here is to change the public surface."""

import inspect
import pickle
import subprocess
import sys

import msgspec
import pytest

import tidegate as tg
from tidegate.protocol.failures import error_from


EXPORTED = """
    Answer AnyEvent AttemptReport AttemptStarted AttemptSuperseded AuthRejected BadRequest Choice
    CircuitOpen ConfigurationError ConnectionLost ContentRefused ContextOverflow EmptyStream
    Endpoint Event Failure FailureKind ForkedRuntime InternalError Interrupted MalformedStream
    MalformedToolCall Notice Observer Overloaded Policy QuotaExhausted RateLimited ReasoningDelta
    RefusalDelta Request RetryScheduled Runtime RuntimeStopped Secret ServerFault Settings
    SlowClient Statistics StreamStalled StreamTruncated TextDelta TidegateError ToolCall
    ToolCallDelta Turn TurnCompleted TurnError TurnFailed TurnInterrupted Usage UsageReported
    WorkerLost
"""

OPTIONS = (
    "*, headers=None, query=None, organization=None, project=None, api_version=None, proxy=None, "
    "verify=True"
)

SIGNATURES = {
    tg.Runtime: "(*, workers=None, settings=None, observers=(), capture=None)",
    tg.Runtime.start: "(self, request, *, session=None, scope=None)",
    tg.Runtime.run: "(self, request, on_event=None)",
    tg.Runtime.arun: "(self, request, on_event=None)",
    tg.Runtime.statistics: "(self)",
    tg.Runtime.stop: "(self, drain_s=0)",
    tg.Observer.started: "(self, turn_id, attempt)",
    tg.Observer.chunk: "(self, turn_id, attempt, chunk)",
    tg.Observer.ended: "(self, turn_id, attempt, response)",
    tg.Turn.text: "(self)",
    tg.Turn.result: "(self, timeout=None)",
    tg.Turn.interrupt: "(self, reason='')",
    tg.Turn.snapshot: "(self)",
    tg.Endpoint.chat: f"(base_url=None, api_key=None, {OPTIONS})",
    tg.Endpoint.responses: "(base_url=None, api_key=None, **options)",
    tg.Endpoint.messages: "(base_url=None, api_key=None, **options)",
    tg.Endpoint.converse: "(region=None, endpoint_url=None, **options)",
    tg.Endpoint.local: "(model='smollm2')",
    tg.Endpoint.custom: "(factory, placement='worker')",
    tg.Request: "(endpoint, payload, *, policy=None, stream=True, metadata=<factory>)",
    tg.Policy.resolved: "(self, request, settings=None, *, environ=None)",
    tg.ToolCall.parsed: "(self)",
    tg.Answer.native: "(self)",
}

FIELDS = {
    tg.Policy: """
        retries backoff_s backoff_jitter retry_after_cap_s connect_timeout_s first_event_timeout_s
        stale_after_s alive_timeout_s deadline_s finish_grace_s kill_grace_s stale_giveup
        giveup_cooldown_s after_visible_text window_bytes event_bytes_max
    """,
    tg.Settings: "policy workers worker_restarts_max worker_restarts_period_s preload",
    tg.Answer: """
        text display_text reasoning refusal tool_calls incomplete_tool_calls lost_tools finish usage
        usage_all_attempts model response_id partial failure attempts choices parts wire created
    """,
    tg.Choice: """
        index text reasoning refusal tool_calls incomplete_tool_calls finish wire_finish
    """,
    tg.ToolCall: "id name arguments",
    tg.Usage: "input_tokens output_tokens cached_input_tokens reasoning_tokens origin",
    tg.AttemptReport: """
        number token endpoint free request_id started_at_s first_progress_s ended_s outcome failure
        usage
    """,
    tg.Failure: """
        kind reason retryable status code detail cause request_id retry_after_s raw_text
    """,
}

PLACE = "turn_id attempt offset at_s"

EVENTS = {
    tg.AttemptStarted: ("attempt.started", "token"),
    tg.TextDelta: ("text.delta", "text choice"),
    tg.ReasoningDelta: ("reasoning.delta", "text choice"),
    tg.RefusalDelta: ("refusal.delta", "text choice"),
    tg.ToolCallDelta: ("tool_call.delta", "index id name arguments choice whole"),
    tg.UsageReported: ("usage.reported", "usage"),
    tg.Notice: ("notice", "kind text"),
    tg.RetryScheduled: ("retry.scheduled", "cause delay_s"),
    tg.AttemptSuperseded: ("attempt.superseded", "retracts"),
    tg.TurnCompleted: ("turn.completed", "answer"),
    tg.TurnFailed: ("turn.failed", "error answer"),
    tg.TurnInterrupted: ("turn.interrupted", "reason answer"),
}

ERRORS_OF_TURNS = {
    "interrupted": (tg.Interrupted, InterruptedError),
    "stalled": (tg.StreamStalled, TimeoutError),
    "connection_lost": (tg.ConnectionLost, ConnectionError),
    "truncated": (tg.StreamTruncated, Exception),
    "empty": (tg.EmptyStream, Exception),
    "malformed": (tg.MalformedStream, Exception),
    "malformed_tool_call": (tg.MalformedToolCall, Exception),
    "rate_limited": (tg.RateLimited, Exception),
    "quota_exhausted": (tg.QuotaExhausted, Exception),
    "overloaded": (tg.Overloaded, Exception),
    "server_error": (tg.ServerFault, Exception),
    "bad_request": (tg.BadRequest, Exception),
    "auth": (tg.AuthRejected, Exception),
    "context_overflow": (tg.ContextOverflow, Exception),
    "content_refused": (tg.ContentRefused, Exception),
    "circuit_open": (tg.CircuitOpen, RuntimeError),
    "worker_lost": (tg.WorkerLost, Exception),
    "slow_client": (tg.SlowClient, Exception),
    "internal": (tg.InternalError, Exception),
}

ERRORS_OF_CALLS = {
    tg.ConfigurationError: ValueError,
    tg.RuntimeStopped: Exception,
    tg.ForkedRuntime: Exception,
}


def signature_of(function):
    signature = inspect.signature(function)
    bare = [
        parameter.replace(annotation=parameter.empty) for parameter in signature.parameters.values()
    ]
    return str(inspect.Signature(bare))


def test_names():
    assert sorted(tg.__all__) == sorted(EXPORTED.split())
    assert [name for name in tg.__all__ if not hasattr(tg, name)] == []


@pytest.mark.parametrize("function", SIGNATURES, ids=lambda function: function.__qualname__)
def test_signature(function):
    assert signature_of(function) == SIGNATURES[function]


def test_turn_and_runtime_are_what_python_calls_them():
    for name in ("__iter__", "__aiter__", "__await__", "__enter__", "__aenter__"):
        assert hasattr(tg.Turn, name)
    for name in ("__enter__", "__exit__", "__aenter__", "__aexit__"):
        assert hasattr(tg.Runtime, name)
    assert isinstance(inspect.getattr_static(tg.Turn, "id"), property)


@pytest.mark.parametrize("record", FIELDS, ids=lambda record: record.__name__)
def test_fields(record):
    assert list(record.__struct_fields__) == FIELDS[record].split()


def test_policy_of_defaults_leaves_everything_open():
    assert {getattr(tg.Policy(), name) for name in tg.Policy.__struct_fields__} == {None}


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: event.__name__)
def test_event(event):
    tag, fields = EVENTS[event]

    assert (event.__struct_config__.tag_field, event.__struct_config__.tag) == ("type", tag)
    assert list(event.__struct_fields__) == [*PLACE.split(), *fields.split()]
    assert issubclass(event, tg.Event)


def test_events_are_all_there_are():
    assert set(tg.AnyEvent.__args__) == set(EVENTS)


def test_event_is_json_with_its_tag():
    event = tg.TextDelta("turn_1", 1, 0, 0.0, "Hello")
    encoded = msgspec.json.encode(event)

    assert msgspec.json.decode(encoded)["type"] == "text.delta"
    assert msgspec.json.decode(encoded, type=tg.AnyEvent) == event


def test_failure_kinds():
    assert [kind.value for kind in tg.FailureKind] == list(ERRORS_OF_TURNS)


@pytest.mark.parametrize("kind", ERRORS_OF_TURNS)
def test_error_of_a_turn(kind):
    expected, builtin = ERRORS_OF_TURNS[kind]
    failure = tg.Failure(
        kind=tg.FailureKind(kind), detail="why", retry_after_s=2.5, raw_text="<html>"
    )
    answer = tg.Answer(text="so far", failure=failure)

    error = error_from(failure, answer)
    again = pickle.loads(pickle.dumps(error))

    assert type(error) is type(again) is expected
    assert isinstance(error, builtin)
    assert isinstance(error, tg.TurnError)
    assert isinstance(error, tg.TidegateError)
    assert (again.failure, again.answer, str(again)) == (failure, answer, str(error))
    assert "why" in str(error)


@pytest.mark.parametrize("kind", ERRORS_OF_CALLS, ids=lambda kind: kind.__name__)
def test_error_of_a_call(kind):
    again = pickle.loads(pickle.dumps(kind("what to do")))

    assert type(again) is kind
    assert str(again) == "what to do"
    assert isinstance(again, ERRORS_OF_CALLS[kind])
    assert isinstance(again, tg.TidegateError)
    assert not isinstance(again, tg.TurnError)


def test_errors_with_facts_of_their_own():
    failure = tg.Failure(kind=tg.FailureKind.RATE_LIMITED, retry_after_s=2.5, raw_text="<html>")

    assert tg.RateLimited("", failure, tg.Answer()).retry_after_s == 2.5
    assert tg.MalformedStream("", failure, tg.Answer()).raw_text == "<html>"


def test_native_answer_is_a_chat_completion():
    answer = tg.Answer(
        text="It is",
        reasoning="Hm",
        tool_calls=(tg.ToolCall(id="call_1", name="clock", arguments="{}"),),
        finish="tool_calls",
        usage=tg.Usage(input_tokens=7, output_tokens=5, cached_input_tokens=3, reasoning_tokens=2),
        model="the-model",
        response_id="chatcmpl-1",
        created=1_700_000_000,
    )

    assert answer.native() == {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1_700_000_000,
        "model": "the-model",
        "choices": [
            {
                "index": 0,
                "message": {
                    "role": "assistant",
                    "content": "It is",
                    "refusal": None,
                    "reasoning_content": "Hm",
                    "tool_calls": [
                        {
                            "id": "call_1",
                            "type": "function",
                            "function": {"name": "clock", "arguments": "{}"},
                        }
                    ],
                },
                "finish_reason": "tool_calls",
                "logprobs": None,
            }
        ],
        "usage": {
            "prompt_tokens": 7,
            "completion_tokens": 5,
            "total_tokens": 12,
            "prompt_tokens_details": {"cached_tokens": 3},
            "completion_tokens_details": {"reasoning_tokens": 2},
        },
    }


def test_native_answer_leaves_out_what_cannot_be_trusted():
    cut = tg.ToolCall(id="call_1", name="clock", arguments='{"zone')
    answer = tg.Answer(
        text="It is", incomplete_tool_calls=(cut,), partial=True, finish="incomplete"
    )

    (choice,) = answer.native()["choices"]

    assert "tool_calls" not in choice["message"]
    assert choice["finish_reason"] is None
    assert "usage" not in answer.native()


def test_import_brings_no_sdk():
    """Users pay for an SDK in a worker that needs it, never in their own process."""
    source = "import sys, tidegate; print(*sys.modules)"
    modules = subprocess.run(
        [sys.executable, "-c", source], check=True, capture_output=True, text=True
    ).stdout.split()

    assert "tidegate" in modules
    assert {"openai", "anthropic", "boto3", "aiohttp", "httpx", "xllamacpp"}.isdisjoint(modules)

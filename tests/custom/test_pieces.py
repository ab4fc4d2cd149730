"""What every custom stream may say and do, wherever it is placed."""

import pytest

import tidegate as tg
from tidegate.lab import Answer, End, Lab, chat, keepalive
from tidegate.testing.reading import Reading


PLACES = ["worker", "inline"]
READERS = ["sync", "asynchronous", "interruptible"]


@pytest.fixture(params=PLACES)
def ask(ask_at, request):
    def make(how, *pieces, **options):
        return ask_at(request.param, how, *pieces, **options)

    return make


@pytest.fixture(params=READERS)
def how(request):
    return request.param


@pytest.mark.parametrize("how", ["told", "told_async", "awaited"])
def test_pieces_become_an_answer(runtime, ask, notes, how):
    pieces = [
        ("response", "r-1", "some-model", 1_700_000_000),
        ("reasoning", "Well"),
        ("text", "It is "),
        ("plain", "sunny."),
        ("tool", 0, "a", "weather", '{"in":'),
        ("tool", 1, "b", "time", "{}"),
        ("tool", 0, None, None, '"Bern"}'),
        ("usage", 3, 9),
        ("finish", "tool_calls"),
    ]
    turn = runtime.start(ask(how, *pieces))
    reading = Reading(turn)
    reading.to_end()
    answer = turn.result()

    assert (answer.text, answer.reasoning, answer.finish) == ("It is sunny.", "Well", "tool_calls")
    assert [(call.id, call.name, call.parsed()) for call in answer.tool_calls] == [
        ("a", "weather", {"in": "Bern"}),
        ("b", "time", {}),
    ]
    assert (answer.response_id, answer.model) == ("r-1", "some-model")
    assert (answer.usage.input_tokens, answer.usage.output_tokens) == (3, 9)
    assert reading.texts == ["It is ", "sunny."]
    assert reading.kinds[:3] == ["AttemptStarted", "ReasoningDelta", "TextDelta"]
    assert reading.kinds[-2:] == ["UsageReported", "TurnCompleted"]
    assert [event.offset for event in reading.events] == [*range(len(reading.events))]
    assert notes.lines == ["closed"]


def test_usage_behind_the_finish_counts_and_nothing_else(runtime, ask):
    turn = runtime.start(ask("told", ("text", "a"), ("finish",), ("text", "b"), ("usage", 1, 2)))

    answer = turn.result()

    assert (answer.text, answer.usage.output_tokens) == ("a", 2)


def test_refusal_is_no_text(runtime, ask):
    answer = runtime.run(ask("told", ("refusal", "No."), ("finish",)))

    assert (answer.text, answer.refusal) == ("", "No.")


def test_stream_over_a_real_socket_is_read_to_its_end(runtime, ask, how):
    with Lab([chat.answer("hello", " world", steps=[chat.usage(3, 2)])]) as lab:
        answer = runtime.run(ask(how, url=f"{lab.url}/chat/completions"))

        assert (answer.text, answer.finish) == ("hello world", "stop")
        assert len(lab.requests) == 1


def test_end_without_a_finish_is_truncated(runtime, ask, notes):
    with pytest.raises(tg.StreamTruncated, match="without a Finish"):
        runtime.run(ask("told", ("text", "half an ans")))

    assert notes.lines == ["closed"]


def test_end_without_anything_is_empty(runtime, ask):
    with pytest.raises(tg.EmptyStream):
        runtime.run(ask("told", ("plain", ""), ("usage", 1, 0)))


def test_call_that_is_cut_is_lost_and_not_called(runtime, ask):
    with pytest.raises(tg.StreamTruncated) as raised:
        runtime.run(ask("told", ("tool", 0, "a", "delete", '{"all": tr')))

    assert raised.value.answer.tool_calls == ()
    assert raised.value.answer.lost_tools == ("delete",)


def test_call_that_is_no_json_is_lost_in_spite_of_the_finish(runtime, ask):
    answer = runtime.run(ask("told", ("tool", 0, "a", "delete", "{"), ("finish", "tool_calls")))

    assert (answer.tool_calls, answer.lost_tools) == ((), ("delete",))


def test_nothing_is_retried_unless_the_policy_says_so(runtime, ask):
    cut, whole = Answer([chat.text("a"), End.CUT]), chat.answer("whole")
    with Lab([cut, cut, whole]) as lab:
        url = f"{lab.url}/chat/completions"
        with pytest.raises(tg.StreamTruncated):
            runtime.run(ask("sync", url=url))

        answer = runtime.run(ask("sync", url=url, retries=1))

        assert (answer.text, [report.outcome for report in answer.attempts]) == (
            "whole",
            ["failed", "completed"],
        )


def test_partial_text_that_was_seen_is_a_partial_answer(runtime, ask, how):
    with Lab([Answer([chat.text("half"), End.CUT])]) as lab:
        turn = runtime.start(ask(how, url=f"{lab.url}/chat/completions"))
        Reading(turn).to_end()
        answer = turn.result()

    assert (answer.text, answer.partial, answer.failure.kind) == ("half", True, "truncated")
    assert answer.failure.detail == "the connection ended in the middle of the answer"


@pytest.mark.parametrize(
    ("status", "error"),
    [(401, tg.AuthRejected), (400, tg.BadRequest), (429, tg.RateLimited), (503, tg.ServerFault)],
)
def test_status_is_the_error_that_it_is_on_other_wires(runtime, ask, how, status, error):
    refusal = Answer.json({"error": {"message": "no"}}, status)
    with Lab([refusal]) as lab, pytest.raises(error) as raised:
        runtime.run(ask(how, url=f"{lab.url}/chat/completions"))

    failure = raised.value.failure
    assert (failure.status, failure.cause) == (status, "HTTPStatusError")
    assert failure.detail.endswith(f"' for url '{lab.url}/chat/completions'")
    assert "\n" not in failure.detail


def test_nobody_who_listens_is_a_lost_connection(runtime, ask, how):
    with Lab([]) as lab:
        url = f"{lab.url}/chat/completions"
    with pytest.raises(tg.ConnectionLost) as raised:
        runtime.run(ask(how, url=url))

    assert (raised.value.failure.reason, raised.value.failure.retryable) == ("connect", True)
    # An asynchronous client tries all addresses, and says of none why.
    why = "" if how == "asynchronous" else ": Connection refused"
    assert raised.value.failure.detail == f"no connection to 127.0.0.1:{lab.port}{why}"


def test_what_the_stream_s_own_code_raises_is_named(runtime, ask, notes):
    with pytest.raises(tg.InternalError, match="the custom stream raised ValueError: odd"):
        runtime.run(ask("told", ("text", "a"), ("fail", "odd")))

    assert notes.lines == ["closed"]


@pytest.mark.parametrize("how", ["told", "told_async"])
def test_error_that_cannot_be_asked_what_it_means_ends_the_attempt(runtime, ask, how):
    with pytest.raises(tg.InternalError, match="raised Riddle, which itself raises LookupError"):
        runtime.run(ask(how, ("text", "a"), ("riddle",)))


def test_what_is_no_piece_is_named(runtime, ask, notes):
    with pytest.raises(tg.MalformedStream, match=r"builtins\.complex is no piece of an answer"):
        runtime.run(ask("told", ("odd", 1)))

    assert notes.lines == ["closed"]


@pytest.mark.parametrize(
    ("factory", "words"),
    [
        ("no_such_module:make", "No module named 'no_such_module'"),
        ("lab_streams:nothing", "has no attribute 'nothing'"),
        ("lab_streams:not_callable", "is a int: name what can be called"),
        ("lab_streams:NoStream", "returned a NoStream: return an object with stream"),
        ("lab_streams:Streams.stream", "needs self, payload, and a factory is called without arg"),
        ("lab_streams:Demanding", "needs url, key, and a factory is called without arguments"),
    ],
)
def test_factory_that_is_none_is_named(runtime, ask, factory, words):
    with pytest.raises(tg.BadRequest, match=words) as raised:
        runtime.run(ask("told", factory=factory))

    assert raised.value.failure.reason == "factory"
    assert factory in str(raised.value)


@pytest.mark.parametrize("how", ["number", "awaited_number"])
def test_stream_that_is_none_is_named(runtime, ask, how):
    with pytest.raises(tg.BadRequest, match=r"stream\(\) of 'lab_streams:Streams' returned a int"):
        runtime.run(ask(how))


def test_factory_that_fails_is_asked_again_for_the_next_stream(runtime, ask):
    for _ in range(2):
        with pytest.raises(tg.ConnectionLost, match="the factory has no network"):
            runtime.run(ask("told", factory="lab_streams:raises"))


def test_close_that_fails_changes_nothing(runtime, ask):
    answer = runtime.run(ask("bad_close"))

    assert (answer.text, answer.finish) == ("fine", "stop")


def test_asynchronous_stream_is_entered_and_left_in_one_task(runtime, ask, notes):
    turn = runtime.start(ask("in_one_task"))
    reading = Reading(turn)
    reading.until(tg.TextDelta, times=2)

    turn.interrupt()

    notes.wait("closed")
    *tasks, _ = notes.lines
    assert len(tasks) >= 3
    assert len({*tasks}) == 1


def test_stale_stream_is_ended_and_its_socket_closed(runtime, ask):
    pings_only = Answer([chat.text("a"), keepalive(0.02, 10_000), End.HOLD])
    with Lab([pings_only]) as lab:
        request = ask(
            "interruptible",
            url=f"{lab.url}/chat/completions",
            stale_after_s=1.0,
            first_event_timeout_s=30,
            alive_timeout_s=30,
        )

        with pytest.raises(tg.StreamStalled) as raised:
            runtime.run(request)

        assert raised.value.failure.reason == "no_progress"
        assert lab.wait_closed(0).how in ("eof", "reset")
        assert len(lab.requests) == 1

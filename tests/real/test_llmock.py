"""Three wires against LLMock, which breaks what it is told to and judges its client."""

import pytest

import tidegate as tg
from tests.real.wires import CHAT, MESSAGES, RESPONSES
from tidegate.testing.eventually import eventually
from tidegate.testing.reading import Reading


pytestmark = [pytest.mark.real, pytest.mark.timeout(120)]

WIRES = (CHAT, RESPONSES, MESSAGES)
TEXT = "High water is at six tonight."
ARGUMENTS = {"city": "Malmö", "hours": [6, 18]}
SAYS = {"type": "reply", "text": TEXT, "times": None}
CALLS = SAYS | {"text": "", "tool_calls": [{"name": "get_weather", "arguments": ARGUMENTS}]}


@pytest.fixture(params=WIRES, ids=[wire.name for wire in WIRES])
def wire(request):
    return request.param


@pytest.fixture(scope="module")
def runtime(llmock):
    """One in whose worker every SDK is there: a first turn would wait for it."""
    names = tuple(wire.name for wire in WIRES)
    with tg.Runtime(workers=1, settings=tg.Settings(preload=names)) as runtime:
        for wire in WIRES:
            runtime.run(wire.request(_base(llmock, wire), "hello"))
        yield runtime


def _base(llmock, wire):
    return llmock.base + ("/anthropic" if wire is MESSAGES else "")


@pytest.fixture
def ask(llmock, wire, request):
    """Tell the server what to say and do, and make a request."""

    def make(reply, *faults, **options):
        llmock.post("/_llmock/reset", {})
        llmock.post("/_llmock/scenario", {"behaviors": [reply, *faults]})
        headers = {"x-test": request.node.name}
        tools = reply is CALLS
        return wire.request(_base(llmock, wire), "hello", tools=tools, headers=headers, **options)

    return make


@pytest.fixture
def served(llmock):
    """Return how each request went, as the server saw it, once it finds nothing wrong with us."""

    def look(count):
        journal = eventually(lambda: whole(llmock.get("/_llmock/requests"), count))
        verdict = llmock.get("/_llmock/verdict")
        assert verdict["passed"], verdict
        return [(each["status"], each["completed"]) for each in journal]

    return look


def whole(journal, count):
    return journal["requests"] if journal["count"] == count else None


def breaks(kind, after_chunks=7, **fields):
    return {"type": "stream_fault", "kind": kind, "after_chunks": after_chunks} | fields


def fates(answer):
    return [each.failure and (each.failure.kind, each.failure.status) for each in answer.attempts]


def test_text(runtime, ask, wire, served):
    answer = runtime.run(ask(SAYS))

    assert (answer.text, answer.finish) == (TEXT, "stop")
    assert answer.usage.output_tokens > 0
    assert wire.kinds(answer.native()) == ["text"]
    assert wire.valid(answer.native())
    assert served(1) == [(200, True)]


@pytest.mark.parametrize("kind", ["disconnect", "truncate"])
def test_text_that_ends_early_is_asked_for_again(runtime, ask, wire, served, kind):
    answer = runtime.run(ask(SAYS, breaks(kind)))

    assert (answer.text, answer.finish, answer.partial) == (TEXT, "stop", False)
    assert fates(answer) == [("truncated", None), None]
    assert wire.valid(answer.native())
    assert served(2) == [(200, False), (200, True)]


@pytest.mark.parametrize("kind", ["disconnect", "truncate"])
@pytest.mark.parametrize("after_chunks", [4, 5, 6])
def test_call_that_ends_early_is_asked_for_again(runtime, ask, served, kind, after_chunks):
    answer = runtime.run(ask(CALLS, breaks(kind, after_chunks)))

    assert [(call.name, call.parsed()) for call in answer.tool_calls] == [
        ("get_weather", ARGUMENTS)
    ]
    assert answer.finish == "tool_calls"
    assert fates(answer) == [("truncated", None), None]
    assert served(2) == [(200, False), (200, True)]


def test_call_that_ends_early_each_time_is_lost(runtime, ask, wire):
    with pytest.raises(tg.StreamTruncated) as raised:
        runtime.run(ask(CALLS, breaks("truncate", 6, times=None)))

    answer = raised.value.answer
    assert answer.tool_calls == ()
    assert answer.lost_tools == ("get_weather",)


def test_stream_without_anything_is_asked_for_again(runtime, ask, served):
    answer = runtime.run(ask(SAYS, breaks("truncate", 0)))

    assert answer.text == TEXT
    assert fates(answer) == [("empty", None), None]
    assert served(2) == [(200, False), (200, True)]


def test_frame_that_is_no_json(runtime, ask, wire):
    asked = ask(SAYS, breaks("malformed"))
    if wire is MESSAGES:  # known to break a frame now and then
        answer = runtime.run(asked)
        assert (answer.text, fates(answer)) == (TEXT, [("malformed", None), None])
        return
    with pytest.raises(tg.MalformedStream) as raised:
        runtime.run(asked)
    assert fates(raised.value.answer) == [("malformed", None)]
    assert raised.value.failure.raw_text


def test_arguments_that_are_no_json_are_no_call(runtime, ask, wire):
    answer = runtime.run(ask(CALLS, {"type": "tool_fault", "kind": "malformed_arguments"}))

    if wire is MESSAGES:  # whose next attempt asks for inputs that are checked
        assert [call.parsed() for call in answer.tool_calls] == [ARGUMENTS]
        assert fates(answer) == [("malformed_tool_call", None), None]
    else:
        assert (answer.tool_calls, answer.lost_tools) == ((), ("get_weather",))
    assert wire.valid(answer.native())


@pytest.mark.parametrize(
    "fault",
    [breaks("stall", stall_seconds=60), {"type": "slow_first_token", "seconds": 60}],
    ids=["in the stream", "before it"],
)
def test_silence_ends_the_attempt_and_the_connection(runtime, ask, served, fault):
    answer = runtime.run(ask(SAYS, fault, stale_after_s=1.5))

    assert (answer.text, answer.partial) == (TEXT, False)
    assert fates(answer) == [("stalled", None), None]
    assert served(2) == [(200, False), (200, True)]


def test_text_that_was_taken_before_a_silence_is_kept(runtime, ask, served):
    turn = runtime.start(ask(SAYS, breaks("stall", stall_seconds=60), stale_after_s=1.5))
    reading = Reading(turn)
    assert isinstance(reading.to_end(), tg.TurnFailed)

    answer = turn.result()
    assert (answer.partial, answer.failure.kind) == (True, "stalled")
    assert answer.text == "".join(reading.texts)
    assert answer.text
    assert TEXT.startswith(answer.text)
    assert served(1) == [(200, False)]


def test_interrupt_closes_the_connection_as_the_server_sees_it(runtime, ask, served):
    turn = runtime.start(ask(SAYS, breaks("stall", stall_seconds=60)))
    reading = Reading(turn)
    reading.until(tg.TextDelta)

    turn.interrupt("enough")

    assert isinstance(reading.to_end(), tg.TurnInterrupted)
    assert served(1) == [(200, False)]


@pytest.mark.parametrize(
    ("status", "kind"),
    [(429, "rate_limited"), (500, "server_error"), (529, "overloaded")],
)
def test_refused_once(runtime, ask, served, status, kind):
    """The verdict says whether the wait that was asked for was kept."""
    answer = runtime.run(ask(SAYS, {"type": "fail", "status": status, "retry_after": 1}))

    assert answer.text == TEXT
    assert fates(answer) == [(kind, status), None]
    assert served(2) == [(status, True), (200, True)]


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (400, tg.BadRequest),
        (401, tg.AuthRejected),
        (403, tg.AuthRejected),
        (413, tg.BadRequest),
    ],
)
def test_refused_for_good(runtime, ask, served, status, error):
    with pytest.raises(error) as raised:
        runtime.run(ask(SAYS, {"type": "fail", "status": status}))

    assert raised.value.failure.status == status
    assert served(1) == [(status, True)]

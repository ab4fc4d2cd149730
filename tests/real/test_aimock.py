"""Every wire against aimock, which speaks all of them from one script."""

import pytest

import tidegate as tg
from tests.real.wires import MESSAGES, WIRES
from tidegate.testing.eventually import eventually
from tidegate.testing.reading import Reading


pytestmark = [pytest.mark.real, pytest.mark.timeout(120)]

CUT = "The tide turns, and nobody hears the end of it."


@pytest.fixture(params=WIRES, ids=[wire.name for wire in WIRES])
def wire(request):
    return request.param


@pytest.fixture(scope="module")
def runtime(aimock):
    """One in whose worker every SDK is there: a first turn would wait for it."""
    names = tuple(wire.name for wire in WIRES)
    with tg.Runtime(workers=1, settings=tg.Settings(preload=names)) as runtime:
        for wire in WIRES:
            runtime.run(wire.request(aimock.base, "greet"))
        yield runtime


@pytest.fixture
def ask(aimock, wire, request):
    """Make a request; what the script plays once, it plays once for each test."""

    def make(words, **options):
        headers = {"x-test-id": request.node.name}
        return wire.request(aimock.base, words, headers=headers, **options)

    return make


@pytest.fixture(params=[True, False], ids=["streamed", "plain"])
def stream(request):
    return request.param


def fates(answer):
    return [each.failure and (each.failure.kind, each.failure.status) for each in answer.attempts]


def test_text(runtime, ask, wire, stream):
    answer = runtime.run(ask("greet", stream=stream))

    assert (answer.text, answer.finish, answer.partial) == ("High water is at six.", "stop", False)
    assert answer.usage == tg.Usage(input_tokens=12, output_tokens=7)
    assert wire.kinds(answer.native()) == ["text"]
    assert wire.valid(answer.native())


def test_stream_comes_in_pieces(runtime, ask):
    reading = Reading(runtime.start(ask("greet")))
    reading.to_end()

    assert reading.texts == ["High", " wat", "er i", "s at", " six", "."]


def test_reasoning(runtime, ask, wire, stream):
    answer = runtime.run(ask("think", stream=stream))

    assert (answer.reasoning, answer.text) == ("Noon plus six hours.", "At six.")
    assert (answer.usage.input_tokens, answer.usage.output_tokens) == (9, 20)
    assert wire.kinds(answer.native()) == ["reasoning", "text"]
    assert wire.valid(answer.native())


def test_limit(runtime, ask, wire, stream):
    answer = runtime.run(ask("too long", stream=stream))

    assert (answer.text, answer.finish) == ("High water is", "length")
    assert wire.valid(answer.native())


def test_tools_are_called_and_their_results_told(runtime, ask, wire, stream):
    asked = ask("weather", tools=True, stream=stream)
    answer = runtime.run(asked)

    assert (answer.text, answer.finish) == ("Let me look.", "tool_calls")
    assert [(call.id, call.name, call.parsed()) for call in answer.tool_calls] == [
        ("call_1", "get_weather", {"city": "Malmö", "hours": [6, 18]}),
        ("call_2", "get_weather", {}),
    ]
    assert wire.kinds(answer.native()) == ["text", "call", "call"]
    assert wire.valid(answer.native())
    assert runtime.run(wire.after_tool(asked, answer, "rain")).text == "Rain in both."


def test_all_wires_at_once(runtime, aimock):
    turns = [
        runtime.start(wire.request(aimock.base, "weather", tools=True))
        for wire in WIRES
        for _ in range(5)
    ]
    answers = [turn.result() for turn in turns]

    assert {tuple(call.id for call in answer.tool_calls) for answer in answers} == {
        ("call_1", "call_2")
    }


@pytest.mark.parametrize(
    ("words", "told"),
    [("limited", ("rate_limited", 429)), ("overloaded", ("overloaded", 529))],
)
def test_refused_once(runtime, ask, words, told):
    answer = runtime.run(ask(f"{words} once"))

    assert answer.text == "Now then."
    assert fates(answer) == [told, None]


@pytest.mark.parametrize(
    ("words", "error", "told"),
    [
        ("out of order", tg.ServerFault, [("server_error", 500)] * 2),
        ("refused", tg.BadRequest, [("bad_request", 400)]),
        ("unknown key", tg.AuthRejected, [("auth", 401)]),
    ],
)
def test_refused(runtime, ask, words, error, told):
    with pytest.raises(error) as raised:
        runtime.run(ask(words))

    assert fates(raised.value.answer) == told


def test_body_that_is_no_json(runtime, ask, wire):
    with pytest.raises(tg.MalformedStream) as raised:
        runtime.run(ask("no json"))

    # Of the wires only one is known to break a frame now and then.
    attempts = 2 if wire is MESSAGES else 1
    assert fates(raised.value.answer) == [("malformed", None)] * attempts


def test_connection_that_is_reset(runtime, ask):
    with pytest.raises(tg.ConnectionLost) as raised:
        runtime.run(ask("reset"))

    assert fates(raised.value.answer) == [("connection_lost", None)] * 2


def test_stream_that_is_cut(runtime, ask):
    reading = Reading(runtime.start(ask("cut words", retries=0)))
    terminal = reading.to_end()

    assert isinstance(terminal, tg.TurnFailed)
    assert terminal.error.kind == "truncated"
    assert reading.texts
    assert CUT.startswith("".join(reading.texts))
    assert "".join(reading.texts) != CUT
    assert terminal.answer.text == "".join(reading.texts)


def test_call_that_is_cut_is_lost(runtime, ask):
    with pytest.raises(tg.StreamTruncated) as raised:
        runtime.run(ask("cut call", tools=True))

    answer = raised.value.answer
    assert answer.tool_calls == ()
    assert answer.lost_tools == ("get_weather",)
    assert fates(answer) == [("truncated", None)] * 2


def test_stalled_stream_is_closed_as_the_server_sees_it(runtime, wire, quiet_aimock):
    with pytest.raises(tg.StreamStalled) as raised:
        runtime.run(wire.request(quiet_aimock.base, "stall", stale_after_s=1.0))

    assert fates(raised.value.answer) == [("stalled", None)] * 2
    eventually(lambda: not quiet_aimock.connections())


def test_interrupt_closes_the_connection_as_the_server_sees_it(runtime, wire, quiet_aimock):
    turn = runtime.start(wire.request(quiet_aimock.base, "slow"))
    reading = Reading(turn)
    reading.until(tg.TextDelta, times=2)
    assert len(quiet_aimock.connections()) == 1

    turn.interrupt("enough")

    terminal = reading.to_end()
    assert isinstance(terminal, tg.TurnInterrupted)
    assert terminal.reason == "enough"
    assert terminal.answer.text == "".join(reading.texts)
    eventually(lambda: not quiet_aimock.connections())

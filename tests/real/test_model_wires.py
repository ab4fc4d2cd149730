"""The real model on every wire that its server speaks: chat, responses, messages."""

import os
import signal

import pytest

import tidegate as tg
from tests.real import processes
from tests.real.wires import CHAT, MESSAGES, RESPONSES
from tidegate.local.weights import fetch
from tidegate.testing.eventually import eventually
from tidegate.testing.reading import Reading


pytestmark = [pytest.mark.real, pytest.mark.timeout(240)]

WIRES = (CHAT, RESPONSES, MESSAGES)
STORY = "Tell a long story about a lighthouse."
# What its server says of an answer that came to its limit: on one wire, that it is complete.
AT_THE_LIMIT = {"chat": "length", "responses": "stop", "messages": "length"}
# So small a model calls a tool only if it has seen how.
WORKED = (
    ("London", "12 C, rain", "12 C and rain in London."),
    ("Rome", "25 C, sun", "25 C and sun in Rome."),
)


@pytest.fixture(params=WIRES, ids=[wire.name for wire in WIRES])
def wire(request):
    return request.param


@pytest.fixture(scope="module")
def base(tool_model):
    return tool_model.base


@pytest.fixture(scope="module")
def runtime(base):
    """One in whose worker every SDK is there: a first turn would wait for it."""
    names = tuple(wire.name for wire in WIRES)
    with tg.Runtime(workers=1, settings=tg.Settings(preload=names)) as runtime:
        for wire in WIRES:
            runtime.run(wire.request(base, "Hello", limit=1))
        yield runtime


def _asks(city):
    return {"role": "user", "content": f"What is the weather in {city}?"}


def _chat_worked(city, result, reply):
    function = {"name": "get_weather", "arguments": f'{{"city": "{city}"}}'}
    call = {"id": city, "type": "function", "function": function}
    return [
        _asks(city),
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": city, "content": result},
        {"role": "assistant", "content": reply},
    ]


def _responses_worked(city, result, reply):
    arguments = f'{{"city": "{city}"}}'
    said = [{"type": "output_text", "text": reply}]
    return [
        _asks(city),
        {
            "type": "function_call",
            "call_id": city,
            "name": "get_weather",
            "arguments": arguments,
        },
        {"type": "function_call_output", "call_id": city, "output": result},
        {"type": "message", "role": "assistant", "content": said},
    ]


def _messages_worked(city, result, reply):
    use = {"type": "tool_use", "id": city, "name": "get_weather", "input": {"city": city}}
    told = {"type": "tool_result", "tool_use_id": city, "content": result}
    return [
        _asks(city),
        {"role": "assistant", "content": [use]},
        {"role": "user", "content": [told]},
        {"role": "assistant", "content": reply},
    ]


_HISTORIES = {
    "chat": ("messages", _chat_worked),
    "responses": ("input", _responses_worked),
    "messages": ("messages", _messages_worked),
}


def weather_in_paris(wire, base):
    asked = wire.request(base, _asks("Paris")["content"], tools=True)
    field, form = _HISTORIES[wire.name]
    worked = [each for example in WORKED for each in form(*example)]
    payload = asked.payload | {field: [*worked, *asked.payload[field]]}
    return tg.Request(asked.endpoint, payload, policy=asked.policy)


def test_streamed_and_plain_answers_agree(runtime, base, wire):
    streamed = runtime.run(wire.request(base, STORY, limit=20))
    plain = runtime.run(wire.request(base, STORY, limit=20, stream=False))

    assert len(streamed.text.split()) > 5
    assert plain.text == streamed.text
    for answer in (streamed, plain):
        assert answer.finish == AT_THE_LIMIT[wire.name]
        assert answer.usage.output_tokens == 20
        assert wire.kinds(answer.native()) == ["text"]
        assert wire.valid(answer.native())


def test_wires_agree(runtime, base):
    turns = [runtime.start(wire.request(base, STORY, limit=20)) for wire in WIRES]
    answers = [turn.result() for turn in turns]

    assert len({answer.text for answer in answers}) == 1
    assert len({input_tokens(answer) for answer in answers}) == 1


def input_tokens(answer):
    # Messages counts what came from a cache apart, as Anthropic does.
    apart = answer.usage.cached_input_tokens if answer.wire == "messages" else 0
    return answer.usage.input_tokens + apart


def test_tool_is_called_and_its_result_told(runtime, base, wire):
    asked = weather_in_paris(wire, base)
    reading = Reading(runtime.start(asked))
    terminal = reading.to_end()

    assert isinstance(terminal, tg.TurnCompleted)
    answer = terminal.answer
    assert [(call.name, call.parsed()) for call in answer.tool_calls] == [
        ("get_weather", {"city": "Paris"})
    ]
    assert answer.finish == "tool_calls"
    assert len(reading.all(tg.ToolCallDelta)) > 2
    assert "call" in wire.kinds(answer.native())
    assert wire.valid(answer.native())
    last = runtime.run(wire.after_tool(asked, answer, "20 C, wind"))
    assert "20 C" in last.text
    assert last.tool_calls == ()


def test_interrupt_frees_the_models_slot(runtime, base, wire, busy_slots):
    turn = runtime.start(wire.request(base, STORY, limit=900))
    reading = Reading(turn)
    reading.until(tg.TextDelta, times=3)
    assert busy_slots(base) == 1

    turn.interrupt("enough")

    terminal = reading.to_end()
    assert isinstance(terminal, tg.TurnInterrupted)
    assert terminal.answer.text == "".join(reading.texts)
    eventually(lambda: busy_slots(base) == 0)


def test_prompt_that_is_too_long(runtime, base, wire):
    with pytest.raises(tg.ContextOverflow) as raised:
        runtime.run(wire.request(base, "lighthouse " * 20_000))

    assert raised.value.failure.status == 400
    assert len(raised.value.answer.attempts) == 1


def test_server_that_stands_still_and_then_dies(runtime, tmp_path):
    """Of each wire one turn hears nothing any more, and another one hears of the end."""
    with processes.tool_model(fetch(), tmp_path / "log") as server:
        # Long enough for a model whose machine has much to do, and to begin with longer still.
        impatient = started(runtime, server, stale_after_s=4.0, first_event_timeout_s=30.0)
        patient = started(runtime, server)
        os.kill(server.pid, signal.SIGSTOP)
        stalled = [reading.to_end() for reading in impatient]
        os.kill(server.pid, signal.SIGKILL)
        ended = [reading.to_end() for reading in patient]

    for reading, terminal in zip(impatient + patient, stalled + ended, strict=True):
        assert isinstance(terminal, tg.TurnFailed)
        assert terminal.answer.partial
        assert terminal.answer.text == "".join(reading.texts)
    assert [terminal.error.kind for terminal in stalled] == ["stalled"] * len(WIRES)
    assert [terminal.error.kind for terminal in ended] == ["truncated"] * len(WIRES)


def started(runtime, server, **policy):
    """Start a turn on each wire, and take the beginning of each."""
    requests = [wire.request(server.base, STORY, limit=600, **policy) for wire in WIRES]
    readings = [Reading(runtime.start(request)) for request in requests]
    for reading in readings:
        reading.until(tg.TextDelta, times=2)
    return readings

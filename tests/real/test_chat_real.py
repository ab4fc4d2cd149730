"""The chat wire against a real model, directly and through a real proxy that cuts."""

import os
import signal

import pytest

import tidegate as tg
from tidegate.testing import Answer, End, Lab, chat
from tidegate.testing.eventually import eventually
from tidegate.testing.reading import Reading


pytestmark = pytest.mark.real

CUTTING = "proxy_buffering off; proxy_read_timeout 1s;"
STOCK = ""


@pytest.fixture
def model_stopped(model_server):
    """Stop the model's server in the middle of whatever it does, until the test is over."""
    [pid] = model_server.pids()
    yield lambda: os.kill(pid, signal.SIGSTOP)
    os.kill(pid, signal.SIGCONT)


def test_stream(runtime, story, model_url):
    turn = runtime.start(story(model_url, max_tokens=40))
    reading = Reading(turn)
    terminal = reading.to_end()

    answer = turn.result()
    assert isinstance(terminal, tg.TurnCompleted)
    assert len(reading.texts) > 10
    assert "".join(reading.texts) == answer.text
    assert answer.finish == "length"
    assert answer.usage.output_tokens == 40
    assert answer.tool_calls == ()
    assert len(answer.attempts) == 1


def test_plain_answer_is_the_same(runtime, model_url, story):
    streamed = story(model_url, max_tokens=30)
    plain = tg.Request(streamed.endpoint, streamed.payload, stream=False)

    assert runtime.run(plain).text == runtime.run(streamed).text


def test_several_at_once(runtime, story, model_url):
    turns = [runtime.start(story(model_url, max_tokens=30)) for _ in range(6)]
    answers = [turn.result() for turn in turns]

    assert {answer.finish for answer in answers} == {"length"}
    assert all(answer.usage.output_tokens == 30 for answer in answers)


def test_interrupt_frees_the_models_slot(runtime, story, model_url, busy_slots):
    turn = runtime.start(story(model_url, max_tokens=4000))
    reading = Reading(turn)
    reading.until(tg.TextDelta, times=5)
    assert busy_slots(model_url) == 1

    turn.interrupt("enough")

    terminal = reading.to_end()
    assert terminal.reason == "enough"
    assert terminal.answer.text == "".join(reading.texts)
    eventually(lambda: busy_slots(model_url) == 0)


def test_prompt_that_is_too_long(runtime, model_url):
    payload = {"messages": [{"role": "user", "content": "lighthouse " * 20_000}]}
    with pytest.raises(tg.ContextOverflow) as raised:
        runtime.run(tg.Request(tg.Endpoint.chat(model_url), payload))

    assert raised.value.failure.status == 400
    assert len(raised.value.answer.attempts) == 1


def test_model_that_stands_still(runtime, story, model_url, model_stopped):
    turn = runtime.start(story(model_url, stale_after_s=1.0))
    reading = Reading(turn)
    reading.until(tg.TextDelta, times=3)

    model_stopped()

    answer = turn.result()
    assert (answer.partial, answer.failure.kind) == (True, "stalled")
    assert answer.text == "".join(reading.texts + [text.text for text in rest(reading)])


def rest(reading):
    before = len(reading.events)
    reading.to_end()
    return [each for each in reading.events[before:] if isinstance(each, tg.TextDelta)]


@pytest.fixture
def local(story):
    """A request for a long answer to the local model."""
    return tg.Request(tg.Endpoint.local(), story("http://unused").payload)


def test_local_endpoint_whose_server_is_killed(local):
    with tg.Runtime(workers=1) as runtime:
        turn = runtime.start(local)
        Reading(turn).until(tg.TextDelta, times=3)
        [pid] = runtime._locals._servers.pids()
        os.kill(pid, signal.SIGKILL)

        answer = turn.result()
        assert (answer.partial, answer.failure.kind) == (True, "truncated")
        eventually(lambda: not runtime._locals._servers.pids())
        again = runtime.run(tg.Request(local.endpoint, local.payload | {"max_tokens": 5}))
        assert again.finish == "length"
        assert runtime._locals._servers.pids() != (pid,)


@pytest.mark.timeout(300)
def test_local_turn_with_nothing_taken_survives_the_death_of_its_server(local, busy_slots):
    with tg.Runtime(workers=1) as runtime:
        turn = runtime.start(tg.Request(local.endpoint, local.payload | {"max_tokens": 150}))
        url = runtime._locals.address(local.endpoint).result(20)
        eventually(lambda: busy_slots(url))
        [pid] = runtime._locals._servers.pids()
        os.kill(pid, signal.SIGKILL)

        answer = turn.result()
        assert (answer.finish, answer.partial) == ("length", False)
        assert [attempt.outcome for attempt in answer.attempts] == ["failed", "completed"]
        assert runtime._locals._servers.pids() != (pid,)


def test_proxy_with_stock_settings(runtime, story, model_url, nginx):
    """It holds the stream back, which is slow and no fault."""
    direct = runtime.run(story(model_url, max_tokens=40))
    answer = runtime.run(story(nginx(model_url, STOCK), max_tokens=40))

    assert answer.text == direct.text
    assert (answer.finish, answer.usage.output_tokens) == ("length", 40)
    assert len(answer.attempts) == 1


def test_interrupt_through_a_proxy_frees_the_models_slot(
    runtime, story, model_url, nginx, busy_slots
):
    turn = runtime.start(story(nginx(model_url), max_tokens=4000))
    Reading(turn).until(tg.TextDelta, times=5)
    assert busy_slots(model_url) == 1

    turn.interrupt()

    eventually(lambda: busy_slots(model_url) == 0)


def test_proxy_that_cuts_a_slow_stream(runtime, story, model_url, nginx, model_stopped):
    turn = runtime.start(story(nginx(model_url, CUTTING)))
    reading = Reading(turn)
    reading.until(tg.TextDelta, times=3)

    model_stopped()

    answer = turn.result()
    assert isinstance(reading.to_end(), tg.TurnFailed)
    assert (answer.partial, answer.finish) == (True, "incomplete")
    assert answer.failure.kind == "truncated"
    assert answer.text == "".join(reading.texts)


def test_tool_call_that_a_proxy_cuts_is_recovered(runtime, nginx):
    half = [chat.tool(id="call_1", name="look", arguments='{"where": "li'), End.HOLD]
    whole = chat.tool(id="call_2", name="look", arguments='{"where": "lighthouse"}')
    with Lab([Answer(half), Answer([whole, chat.finish("tool_calls"), chat.done()])]) as lab:
        endpoint = tg.Endpoint.chat(nginx(lab.url, CUTTING))
        policy = tg.Policy(backoff_s=(0.05,))
        turn = runtime.start(tg.Request(endpoint, {"model": "m", "messages": []}, policy=policy))
        reading = Reading(turn)
        reading.to_end()

        answer = turn.result()
        assert [call.parsed() for call in answer.tool_calls] == [{"where": "lighthouse"}]
        assert [each.failure and each.failure.kind for each in answer.attempts] == [
            "truncated",
            None,
        ]
        assert reading.kinds.count("AttemptSuperseded") == 1


def test_proxy_whose_upstream_is_gone(runtime, story, nginx):
    with Lab([]) as lab:
        gone = lab.url
    with pytest.raises(tg.ServerFault) as raised:
        runtime.run(story(nginx(gone), retries=1))

    failure = raised.value.failure
    assert (failure.status, failure.retryable) == (502, True)
    assert "Bad Gateway" in failure.detail
    assert len(raised.value.answer.attempts) == 2


def test_proxy_whose_upstream_never_answers(runtime, nginx):
    """nginx gives up first, and says so with a status that is tried again."""
    silent = Answer([End.HOLD], headers_with_first_frame=True)
    with Lab([silent, chat.answer("at last")]) as lab:
        endpoint = tg.Endpoint.chat(nginx(lab.url, CUTTING))
        policy = tg.Policy(backoff_s=(0.05,))
        answer = runtime.run(tg.Request(endpoint, {"messages": []}, policy=policy))

        assert answer.text == "at last"
        assert answer.attempts[0].failure.status == 504

"""Well-known servers over a real socket: what goes to them, and what comes of what they send."""

import itertools
import json

import pytest

import tidegate as tg
from tests.e2e.scripts import streamed
from tests.unit.actors.provider.servers_golden import DONE, GOOGLE, SERVERS, chunk, data
from tidegate.testing import Answer, Lab, chat, raw, responses
from tidegate.testing.reading import Reading
from tidegate.testing.warm import warm


HELLO = {"model": "m", "messages": [{"role": "user", "content": "Hello"}]}
IMPATIENT = tg.Policy(backoff_s=(0.01,), backoff_jitter=0.0)


@pytest.fixture(scope="module")
def runtime():
    with tg.Runtime(workers=1) as runtime:
        warm(runtime, 1)
        yield runtime


def played(*frames):
    return streamed(raw(b"".join(frames)))


def request_to(endpoint, payload=HELLO, **options):
    return tg.Request(endpoint, payload, policy=IMPATIENT, **options)


@pytest.mark.parametrize("name", SERVERS)
def test_answer_of_a_server(runtime, name):
    golden = SERVERS[name]
    with Lab([played(*golden.frames)]) as lab:
        answer = runtime.run(request_to(tg.Endpoint.chat(lab.url)))

    assert (answer.text, answer.reasoning, answer.finish) == (*golden[1:3], golden.finish)
    assert len(answer.attempts) == 1
    calls = [(each.name, each.arguments) for each in answer.tool_calls]
    assert calls == [each[1:] for each in golden.calls]
    assert (answer.lost_tools, answer.usage) == ((), golden.usage)
    message = answer.native()["choices"][0]["message"]
    assert {part: message.get(part) for part in golden.native} == golden.native


@pytest.mark.parametrize(
    ("make", "lab_of", "payload", "path"),
    [
        (tg.Endpoint.chat, chat, HELLO, "/openai/deployments/m/chat/completions"),
        (tg.Endpoint.responses, responses, {"model": "m", "input": "Hi"}, "/openai/responses"),
    ],
)
def test_token_of_azure_is_asked_for_at_each_start(runtime, make, lab_of, payload, path):
    tokens = (f"eyJhbGciOiJub25lIn0.e30.{number}" for number in itertools.count())
    with Lab([lab_of.answer("one"), lab_of.answer("two")]) as lab:
        endpoint = make(lab.base, lambda: next(tokens), api_version="2024-10-21")
        answers = [runtime.run(request_to(endpoint, payload)).text for _ in range(2)]
        seen = list(lab.requests)

    assert answers == ["one", "two"]
    assert [each.target for each in seen] == [f"{path}?api-version=2024-10-21"] * 2
    assert [each.headers["authorization"][-2:] for each in seen] == [".0", ".1"]
    assert ["api-key" in each.headers for each in seen] == [False, False]


def test_environment_is_enough_for_azure(runtime, monkeypatch):
    with Lab([chat.answer("Hello")]) as lab:
        monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", lab.base)
        monkeypatch.setenv("AZURE_OPENAI_API_KEY", "azure-key")
        monkeypatch.delenv("AZURE_OPENAI_AD_TOKEN", raising=False)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-openai")
        answer = runtime.run(request_to(tg.Endpoint.chat(api_version="2024-10-21")))
        [request] = lab.requests

    assert answer.text == "Hello"
    assert request.headers["api-key"] == "azure-key"
    assert "sk-openai" not in str(request.headers)


def test_headers_of_openrouter_go_along_and_its_error_in_a_stream_is_retried(runtime):
    headers = {"HTTP-Referer": "https://my-app.example", "X-Title": "My app"}
    broken = played(
        b": OPENROUTER PROCESSING\n\n",
        chunk({"content": ""}, "error", error={"code": 502, "message": "Provider disconnected"}),
        DONE,
    )
    with Lab([broken, chat.answer("Hello")]) as lab:
        endpoint = tg.Endpoint.chat(f"{lab.base}/api/v1", "or-key", headers=headers)
        answer = runtime.run(request_to(endpoint))
        seen = list(lab.requests)

    assert answer.text == "Hello"
    assert answer.attempts[0].failure.status == 502
    for request in seen:
        assert request.path == "/api/v1/chat/completions"
        assert request.headers["http-referer"] == "https://my-app.example"
        assert request.headers["x-title"] == "My app"


def test_wait_that_gemini_asks_for_is_kept(runtime):
    details = [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "0.025s"}]
    error = {"code": 429, "message": "busy", "status": "RESOURCE_EXHAUSTED", "details": details}
    busy = Answer.json([{"error": error}], status=429)
    with Lab([busy, chat.answer("Hello")]) as lab:
        endpoint = tg.Endpoint.chat(f"{lab.base}/v1beta/openai/", "gemini-key")
        reading = Reading(runtime.start(request_to(endpoint)))
        reading.to_end()
        seen = list(lab.requests)

    [scheduled] = [each for each in reading.events if isinstance(each, tg.RetryScheduled)]
    assert scheduled.delay_s == 0.025
    assert reading.texts == ["Hello"]
    assert {each.path for each in seen} == {"/v1beta/openai/chat/completions"}


def test_call_that_gemini_has_thrown_away_is_asked_for_again(runtime):
    gone = played(
        chunk({"role": "assistant", "extra_content": GOOGLE}),
        chunk({}, "function_call_filter: MALFORMED_FUNCTION_CALL"),
        DONE,
    )
    with Lab([gone, played(*SERVERS["gemini, calls"].frames)]) as lab:
        answer = runtime.run(request_to(tg.Endpoint.chat(lab.url)))

    assert [each.failure and each.failure.kind for each in answer.attempts] == [
        "malformed_tool_call",
        None,
    ]
    assert [each.arguments for each in answer.tool_calls] == ['{"path":"a"}', '{"path":"b"}']


def test_message_of_gemini_can_be_sent_back_as_it_is(runtime):
    frames = SERVERS["gemini, calls"].frames
    with Lab([played(*frames), chat.answer("Hello")]) as lab:
        endpoint = tg.Endpoint.chat(lab.url)
        message = runtime.run(request_to(endpoint)).native()["choices"][0]["message"]
        runtime.run(request_to(endpoint, HELLO | {"messages": [*HELLO["messages"], message]}))
        sent = lab.requests[1].json()["messages"][1]

    assert sent["tool_calls"][0]["extra_content"] == GOOGLE
    assert "extra_content" not in sent["tool_calls"][1]


@pytest.mark.parametrize("stream", [False, True])
def test_empty_lines_of_deepseek_come_before_the_answer(runtime, stream):
    document = json.dumps(chat.completion("Hello", tokens=(1, 1))).encode()
    frames = chunk({"content": "Hello"}, "stop") + data({"choices": []}) + DONE
    steps = [*[raw(b"\n")] * 100, raw(frames if stream else document)]
    kind = "text/event-stream" if stream else "application/json"
    with Lab([Answer(steps, headers={"content-type": kind})]) as lab:
        answer = runtime.run(request_to(tg.Endpoint.chat(lab.url), stream=stream))

    assert answer.text == "Hello"
    assert len(answer.attempts) == 1

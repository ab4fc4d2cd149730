"""The compatible APIs as their own clients use them, in front of a scripted provider."""

import json
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import anthropic
import openai
import pytest

from tests.daemon.e2e.conftest import IMPATIENT, endpoint
from tests.daemon.hosting import PROMPT, Frames
from tidegate.lab import Answer, End, Lab, chat, messages, responses
from tidegate.lab.script import Gate
from tidegate.testing.eventually import eventually


class Broken(NamedTuple):
    """What begins well, and what takes its place."""

    begin: list
    answer: Answer


WHOLE = {
    "chat": (
        Broken([chat.role(), chat.text("first")], chat.answer("second")),
        "/v1/chat/completions",
        PROMPT,
    ),
    "messages": (
        Broken(
            [messages.start(), messages.text_start(), messages.text("first")],
            messages.answer("second"),
        ),
        "/v1/messages",
        {**PROMPT, "max_tokens": 99},
    ),
    "responses": (
        Broken(
            [responses.created(), responses.added(responses.message()), responses.text("first")],
            responses.answer("second"),
        ),
        "/v1/responses",
        {"model": "test-model", "input": "Hello"},
    ),
}
FAILED = 'tidegate_turn_failures_total{endpoint="main",kind="truncated",wire="chat"} 1.0'
CALL = {"index": 0, "id": "call_1", "name": "look", "arguments": '{"at": "me"}'}


@pytest.fixture
def sdk(house):
    """Return the clients of the official SDKs, by wire."""
    daemon = house.daemon
    with (
        openai.OpenAI(base_url=f"{daemon.url}/v1", api_key="any", max_retries=0) as of_openai,
        anthropic.Anthropic(base_url=daemon.url, api_key="any", max_retries=0) as of_anthropic,
    ):
        yield {"chat": of_openai, "responses": of_openai, "messages": of_anthropic}


def test_chat_client_streams_text_tools_and_usage(house, sdk):
    steps = [
        chat.role(),
        chat.reasoning("hm"),
        chat.text("Hel"),
        chat.text("lo"),
        chat.tool(0, id="call_1", name="look", arguments='{"at": '),
        chat.tool(0, arguments='"me"}'),
        chat.finish("tool_calls"),
        chat.usage(3, 5),
        chat.done(),
    ]
    house.chat.add(Answer(steps))
    client = sdk["chat"]

    chunks = list(
        client.chat.completions.create(
            **PROMPT, stream=True, stream_options={"include_usage": True}
        )
    )

    deltas = [chunk.choices[0].delta for chunk in chunks if chunk.choices]
    assert "".join(delta.content or "" for delta in deltas) == "Hello"
    assert "".join(getattr(delta, "reasoning_content", None) or "" for delta in deltas) == "hm"
    calls = [call for delta in deltas for call in delta.tool_calls or ()]
    assert calls[0].id == "call_1"
    assert calls[0].function.name == "look"
    assert "".join(call.function.arguments or "" for call in calls) == CALL["arguments"]
    assert [c.choices[0].finish_reason for c in chunks if c.choices][-1] == "tool_calls"
    assert chunks[-1].choices == []
    assert (chunks[-1].usage.prompt_tokens, chunks[-1].usage.completion_tokens) == (3, 5)


def test_chat_client_gets_a_whole_answer(house, sdk):
    house.chat.add(chat.answer("Hel", "lo"))
    client = sdk["chat"]

    completion = client.chat.completions.create(**PROMPT)

    assert completion.choices[0].message.content == "Hello"
    assert completion.choices[0].finish_reason == "stop"
    # It is streamed from the provider all the same, so that a stall is noticed.
    assert json.loads(house.chat.requests[-1].body)["stream"] is True


def test_messages_client_streams(house, sdk):
    steps = [
        messages.start(),
        messages.thinking_start(0),
        messages.thinking("hm", 0),
        messages.signature("signed", 0),
        messages.block_stop(0),
        *messages.words("Hel", "lo", index=1),
        *messages.call(2, "toolu_1", "look", '{"at": ', '"me"}'),
        messages.stop_reason("tool_use"),
        messages.stop(),
    ]
    house.messages.add(Answer(steps))
    client = sdk["messages"]

    with client.messages.stream(**PROMPT, max_tokens=99) as stream:
        text = "".join(stream.text_stream)
        message = stream.get_final_message()

    assert text == "Hello"
    thinking, words, call = message.content
    assert (thinking.thinking, thinking.signature) == ("hm", "signed")
    assert words.text == "Hello"
    assert (call.id, call.name, call.input) == ("toolu_1", "look", {"at": "me"})
    assert message.stop_reason == "tool_use"


def test_messages_client_gets_a_whole_answer(house, sdk):
    house.messages.add(messages.answer("Hel", "lo"))
    client = sdk["messages"]

    message = client.messages.create(**PROMPT, max_tokens=99)

    assert message.content[0].text == "Hello"
    assert message.stop_reason == "end_turn"


def test_responses_client_streams(house, sdk):
    house.responses.add(responses.answer("Hel", "lo"))
    client = sdk["responses"]

    with client.responses.stream(model="test-model", input="Hello") as stream:
        events = list(stream)
        response = stream.get_final_response()

    assert [event.sequence_number for event in events] == [*range(len(events))]
    assert response.output_text == "Hello"
    assert response.status == "completed"


def test_responses_client_gets_a_whole_answer(house, sdk):
    house.responses.add(responses.answer("Hel", "lo"))
    client = sdk["responses"]

    response = client.responses.create(model="test-model", input="Hello")

    assert response.output_text == "Hello"


@pytest.mark.parametrize("stream", [False, True])
def test_error_before_the_first_byte_has_its_true_status(house, sdk, stream):
    refusal = chat.error_answer(429, "slow down", code="rate_limit_exceeded")
    house.chat.add(refusal)
    with pytest.raises(openai.RateLimitError, match="slow down") as raised:
        sdk["chat"].chat.completions.create(**PROMPT, stream=stream)

    assert raised.value.status_code == 429
    assert raised.value.body["code"] == "rate_limit_exceeded"


def test_cut_stream_ends_with_an_error_and_no_end_mark(house, client):
    house.chat.add(Answer([chat.text("some"), End.CUT]))

    body = client.post("/v1/chat/completions", json={**PROMPT, "stream": True}).text

    assert '"content":"some"' in body
    assert "[DONE]" not in body
    last = json.loads(body.strip().split("\n\n")[-1].removeprefix("data: "))
    assert last["error"]["tidegate"]["kind"] == "truncated"


@pytest.mark.parametrize("rule", ["stop", "restart"])
def test_attempt_that_was_read_is_followed_by_no_other(serve, rule):
    """Not even for the sake of a lost call, and its turn ends by what has ended it."""
    call = chat.tool(0, id="call_1", name="look", arguments='{"a')
    more = [call, chat.tool(0, arguments='t"'), Gate("cut"), End.CUT]
    with Lab([Answer([chat.text("first"), *more]), chat.answer("second")]) as lab:
        policy = f'{IMPATIENT}\nafter_visible_text = "{rule}"\n'
        daemon = serve(endpoint(lab), policy=policy)
        with daemon.client() as client:
            with client.stream(
                "POST", "/v1/chat/completions", json={**PROMPT, "stream": True}
            ) as response:
                frames = Frames(response)
                frames.until(b'"content":"first"')
                frames.until(b"look")
                lab.open("cut")
                got = frames.to_end()
            listed = client.get("/v1/turns").json()["turns"]
            eventually(lambda: FAILED in client.get("/metrics").text.splitlines())

    *_, notice, last = got
    assert b"Stream stalled mid tool-call; lost: look." in notice
    assert json.loads(last.removeprefix(b"data: "))["error"]["tidegate"]["kind"] == "truncated"
    assert b"second" not in b"".join(got)
    assert len(lab.requests) == 1
    assert [each["state"] for each in listed] == ["failed"]


def test_attempt_of_which_nothing_was_read_is_replaced_in_silence(serve):
    begun = [chat.role(), chat.tool(0, id="call_1", name="look", arguments=""), End.CUT]
    with Lab([Answer(begun), chat.answer("second")]) as lab:
        daemon = serve(endpoint(lab))
        with daemon.client() as client:
            body = client.post("/v1/chat/completions", json={**PROMPT, "stream": True}).text

    assert '"content":"second"' in body
    assert body.endswith("data: [DONE]\n\n")
    assert "look" not in body
    assert len(lab.requests) == 2


@pytest.mark.parametrize("wire", ["chat", "messages", "responses"])
def test_attempt_that_a_whole_answer_would_have_held_is_replaced_in_silence(serve, wire):
    """Whoever waits for the whole answer was shown nothing of it."""
    script, path, body = WHOLE[wire]
    with Lab([Answer([*script.begin, End.CUT]), script.answer]) as lab:
        daemon = serve(endpoint(lab, wire))
        with daemon.client() as client:
            response = client.post(path, json=body)
            listed = client.get("/v1/turns").json()["turns"]

    assert response.status_code == 200
    assert "second" in response.text
    assert "first" not in response.text
    assert len(lab.requests) == 2
    assert [(each["state"], each["attempt"]) for each in listed] == [("completed", 2)]


def test_status_is_held_back_until_the_provider_has_answered(serve):
    refusal = chat.error_answer(503, "too busy")
    refusal = Answer([Gate("go"), *refusal.steps], status=503, headers=refusal.headers)
    with Lab([refusal]) as lab, ThreadPoolExecutor() as pool:
        daemon = serve(endpoint(lab), top="commit_after_s = 600", policy="[policy]\nretries = 0\n")
        with daemon.client() as client:
            asked = pool.submit(
                client.post, "/v1/chat/completions", json={**PROMPT, "stream": True}
            )
            lab.reached("go")
            lab.open("go")

            assert asked.result().status_code == 503


def test_status_goes_out_after_a_while_and_heartbeats_follow(serve):
    with Lab([Answer([Gate("go"), *chat.answer("late").steps])]) as lab:
        daemon = serve(endpoint(lab), top="commit_after_s = 0.05\nheartbeat_s = 0.05")
        with (
            daemon.client() as client,
            client.stream(
                "POST", "/v1/chat/completions", json={**PROMPT, "stream": True}
            ) as response,
        ):
            frames = Frames(response)
            frames.until(b": heartbeat")
            lab.open("go")
            got = frames.to_end()

    assert got[-1] == b"data: [DONE]"
    assert b'"content":"late"' in b"".join(got)


def test_turn_of_a_compatible_api_is_listed_under_the_name_in_the_header(house, client):
    house.chat.add(chat.answer("Hello"))

    response = client.post("/v1/chat/completions", json=PROMPT)

    turn = client.get("/v1/turns").json()["turns"][0]
    assert turn["id"] == response.headers["tidegate-turn"]
    assert (turn["state"], turn["api"], turn["endpoint"]) == ("completed", "chat", "chat")
    assert client.get(f"/v1/turns/{turn['id']}").json()["answer"]["text"] == "Hello"


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "empty"),
        (b"{", "JSON"),
        (b"[]", "object"),
        (b'{"model": 7, "messages": []}', "model"),
        (b'{"model": "m", "messages": [], "stream": "yes"}', "stream"),
    ],
)
def test_body_that_makes_no_sense_is_told_what_is_wrong_with_it(client, body, words):
    response = client.post("/v1/chat/completions", content=body)

    assert response.status_code == 400
    assert words in response.json()["error"]["message"]


def test_model_that_no_endpoint_takes_is_not_found(serve):
    with Lab([]) as lab:
        daemon = serve(endpoint(lab, more='models = ["gpt-*"]'))
        with daemon.client() as client:
            response = client.post("/v1/chat/completions", json=PROMPT)

    assert response.status_code == 404
    assert response.json()["error"]["code"] == "model_not_found"
    assert "gpt-*" in response.json()["error"]["message"]


def test_without_a_journal_all_is_the_same_until_the_end(serve, tmp_path):
    with Lab([chat.answer("Hello")]) as lab:
        daemon = serve(endpoint(lab), top='journal = "none"')
        with daemon.client() as client:
            made = client.post("/v1/chat/completions", json=PROMPT)
            shown = client.get(f"/v1/turns/{made.headers['tidegate-turn']}/events").text

    assert "event: turn.completed" in shown
    assert sorted(each.name for each in tmp_path.iterdir()) == ["daemon.log", "tidegate.toml"]

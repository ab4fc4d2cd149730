"""The daemon in front of the real model: its answers, its tools, its slot when a client goes."""

from dataclasses import replace

import pytest

from tests.daemon.sockets import Client
from tests.real.clients import ASKING, LEFT_AFTER, Question
from tests.real.heard import heard
from tests.real.processes import endpoints, model_of
from tests.real.test_model_wires import WORKED, weather_in_paris
from tests.real.wires import CHAT, MESSAGES, RESPONSES
from tidegate.local.weights import fetch
from tidegate.testing.eventually import eventually


pytestmark = [pytest.mark.real, pytest.mark.timeout(240)]

WIRES = (CHAT, RESPONSES, MESSAGES)
TOOLS = "with-tools"
HELLO = Question("Say hello.")
STORY = Question("Tell a long story about a lighthouse.", limit=900)
PATHS = {
    "chat": "/v1/chat/completions",
    "responses": "/v1/responses",
    "messages": "/v1/messages",
}
LOCAL = '[endpoints.local]\nwire = "local"\nmodels = ["smollm2"]\n'


@pytest.fixture(params=WIRES, ids=[wire.name for wire in WIRES])
def wire(request):
    return request.param


@pytest.fixture(params=ASKING, ids="-".join)
def way(request):
    return request.param


@pytest.fixture(scope="module")
def daemon(serve, asking, tool_model):
    """One whose local model is up."""
    fetch()
    daemon = serve(LOCAL, endpoints(tool_model.base, *WIRES, models=TOOLS))
    assert asking["python"].ask(CHAT, daemon.url, replace(HELLO, limit=1), "plain").final
    return daemon


@pytest.fixture(scope="module")
def model(daemon):
    return model_of(daemon)


@pytest.fixture
def left(daemon, model, busy_slots):
    """Say whether the newest turn is interrupted for its client has left, and the model is free."""

    def ended():
        with daemon.client() as client:
            [turn] = client.get("/v1/turns?limit=1").json()["turns"]
            return turn["ended_at"] and client.get(f"/v1/turns/{turn['id']}").json()

    def look():
        turn = eventually(ended)
        assert (turn["state"], turn["reason"]) == ("interrupted", "SSE client disconnected")
        return eventually(lambda: busy_slots(model) == 0)

    return look


def understood(asking, wire, base, question, way):
    client, how = way
    return heard(asking[client], wire.name, how, asking[client].ask(wire, base, question, how))


def test_answer_is_the_models_own(daemon, model, asking, wire, way):
    got = understood(asking, wire, daemon.url, HELLO, way)
    direct = understood(asking, wire, model, HELLO, ("python", "plain"))

    assert len(got.text.split()) > 3
    assert (got.text, got.finish, got.usage[1]) == (direct.text, "stop", direct.usage[1])


def test_tool_is_called(daemon, tool_model, asking, wire, way):
    payload = weather_in_paris(wire, tool_model.base).payload
    field = "input" if wire is RESPONSES else "messages"
    question = Question(
        payload[field][-1]["content"],
        tools=True,
        model=TOOLS,
        more={field: payload[field]},
        before=tuple(each for example in WORKED for each in worked(*example)),
    )

    got = understood(asking, wire, daemon.url, question, way)

    # Vercel's client tells by itself what the tool has said, and so small a model may call again.
    calls = got.calls[:1] if way[0] == "vercel" else got.calls
    assert calls == (("get_weather", {"city": "Paris"}),)


def worked(city, result, _reply):
    """Return how a call was made before, in the words of Vercel's client."""
    call = {"toolCallId": city, "toolName": "get_weather"}
    used = {"type": "tool-call", **call, "input": {"city": city}}
    told = {"type": "tool-result", **call, "output": {"type": "text", "value": result}}
    return (
        {"role": "user", "content": f"What is the weather in {city}?"},
        {"role": "assistant", "content": [used]},
        {"role": "tool", "content": [told]},
        # What was replied is left out: of a message in the form of this client the server of the
        # model cannot tell, on the responses wire, what it is.
    )


def test_prompt_that_is_too_long_is_a_bad_request(daemon, asking, wire, way):
    client, how = way
    question = replace(STORY, words="lighthouse " * 20_000)

    got = asking[client].ask(wire, daemon.url, question, how)

    assert got.final is None
    assert got.error["status"] == 400
    assert got.error["name"] == ("APICallError" if client == "vercel" else "BadRequestError")


@pytest.mark.parametrize("client", ["python", "node"])
def test_sdk_that_leaves_a_stream_frees_the_models_slot(daemon, asking, wire, left, client):
    got = asking[client].ask(wire, daemon.url, STORY, "left")

    assert got.error is None
    assert len(got.events) == LEFT_AFTER
    assert left()


def test_client_that_leaves_before_its_answer_frees_the_models_slot(
    daemon, model, wire, left, busy_slots
):
    payload = STORY.payload(wire, "plain")
    with Client(daemon.port) as client:
        client.ask("POST", PATHS[wire.name], payload, {"Content-Type": "application/json"})
        eventually(lambda: busy_slots(model) == 1)

    assert left()

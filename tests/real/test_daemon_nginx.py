"""nginx as it comes in front of the daemon: nothing is held back, and who leaves is noticed."""

import pytest

from tests.daemon.sockets import Client
from tests.real.clients import Question
from tests.real.processes import endpoints
from tests.real.wires import CHAT, MESSAGES, RESPONSES
from tidegate.lab import Answer, End, Lab, chat, gate, messages, responses
from tidegate.testing.eventually import eventually


pytestmark = [pytest.mark.real, pytest.mark.timeout(120)]

AS_IT_COMES = ""
WIRES = (CHAT, RESPONSES, MESSAGES)
PATHS = {
    "chat": "/v1/chat/completions",
    "responses": "/v1/responses",
    "messages": "/v1/messages",
}
BEGIN = {
    "chat": [chat.role(), chat.text("first")],
    "responses": [
        responses.created(),
        responses.added(responses.message()),
        responses.text("first"),
    ],
    "messages": [messages.start(), messages.text_start(), messages.text("first")],
}
REST = {
    "chat": [chat.text("second"), chat.finish("stop"), chat.done()],
    "responses": [
        responses.text("second"),
        responses.item_done(responses.said("firstsecond")),
        responses.completed(responses.said("firstsecond")),
    ],
    "messages": [
        messages.text("second"),
        messages.block_stop(0),
        messages.stop_reason("end_turn"),
        messages.stop(),
    ],
}
LEFT = ("eof", "reset")
REASON = "SSE client disconnected"


@pytest.fixture(params=WIRES, ids=[wire.name for wire in WIRES])
def wire(request):
    return request.param


@pytest.fixture(scope="module")
def lab():
    with Lab([]) as lab:
        yield lab


@pytest.fixture(scope="module")
def daemon(serve, lab):
    return serve(endpoints(lab.url.removesuffix("/v1"), *WIRES), "[policy]\nretries = 0\n")


@pytest.fixture(scope="module")
def beating(serve, lab):
    """One that gives a sign of life every moment."""
    often = "heartbeat_s = 0.02\ncommit_after_s = 0.02"
    return serve(endpoints(lab.url.removesuffix("/v1"), *WIRES), top=often)


@pytest.fixture
def front(nginx, daemon):
    return nginx(daemon.url, AS_IT_COMES).removesuffix("/v1")


@pytest.fixture
def ended(daemon):
    """Wait for the end of the newest turn."""

    def end():
        with daemon.client() as client:
            [turn] = client.get("/v1/turns?limit=1").json()["turns"]
            return turn["ended_at"] and client.get(f"/v1/turns/{turn['id']}").json()

    return lambda: eventually(end)


@pytest.fixture
def client(asking, wire, front):
    """The official SDK's client, which asks nginx."""
    return asking["python"].client(wire.name, front)


def stream_of(client, wire):
    payload = Question("Hello").payload(wire, "raw")
    payload.pop("temperature")
    resource = client.chat.completions if wire is CHAT else getattr(client, wire.name)
    return resource.create(**payload, stream=True)


def texts(events):
    """Return the words of a stream, as they come."""
    for event in events:
        plain = event.to_dict()
        pieces = [choice["delta"].get("content") for choice in plain.get("choices", ())]
        delta = plain.get("delta")
        pieces.append(delta.get("text") if isinstance(delta, dict) else delta)
        yield from filter(None, pieces)


def test_stream_is_not_held_back(lab, client, wire):
    """The provider is told to go on only after the client has read the beginning."""
    lab.add(Answer([*BEGIN[wire.name], gate(wire.name), *REST[wire.name]]))

    with stream_of(client, wire) as stream:
        words = texts(stream)
        assert next(words) == "first"
        lab.open(wire.name)
        assert list(words) == ["second"]


def test_heartbeats_come_through(beating, lab, nginx, wire):
    front = nginx(beating.url, AS_IT_COMES)
    payload = Question("Hello").payload(wire, "raw") | {"stream": True}
    lab.add(Answer([gate(f"late {wire.name}"), *BEGIN[wire.name], *REST[wire.name]]))

    with Client(int(front.removesuffix("/v1").rpartition(":")[2])) as client:
        client.ask("POST", PATHS[wire.name], payload, {"Content-Type": "application/json"})
        client.until(b"event: ping" if wire is MESSAGES else b": heartbeat")
        lab.open(f"late {wire.name}")
        client.until(b"second")


def test_client_that_leaves_a_stream(lab, client, wire, ended):
    at = len(lab.requests)
    lab.add(Answer([*BEGIN[wire.name], End.HOLD]))

    with stream_of(client, wire) as stream:
        assert next(texts(stream)) == "first"

    assert lab.wait_closed(at).how in LEFT
    turn = ended()
    assert (turn["state"], turn["reason"]) == ("interrupted", REASON)


def test_client_that_leaves_before_its_answer(lab, front, wire, ended):
    at = len(lab.requests)
    lab.add(Answer([*BEGIN[wire.name], End.HOLD]))

    with Client(int(front.rpartition(":")[2])) as client:
        payload = Question("Hello").payload(wire, "plain")
        client.ask("POST", PATHS[wire.name], payload, {"Content-Type": "application/json"})
        lab.wait_requests(at + 1)

    assert lab.wait_closed(at).how in LEFT
    turn = ended()
    assert (turn["state"], turn["reason"]) == ("interrupted", REASON)

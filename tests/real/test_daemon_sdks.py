"""The official SDKs, and the strictest one of others, are served as by the provider itself."""

from concurrent.futures import ThreadPoolExecutor
from functools import partial

import httpx
import pytest

from tests.real.clients import ASKING, STREAMING, Question
from tests.real.heard import heard
from tests.real.processes import endpoints
from tests.real.wires import CHAT, MESSAGES, RESPONSES


pytestmark = [pytest.mark.real, pytest.mark.timeout(120)]

WIRES = (CHAT, RESPONSES, MESSAGES)
GREETING, TURNING = "High water is at six.", "The tide turns."
WEATHER = (("get_weather", {"city": "Malmö", "hours": [6, 18]}), ("get_weather", {}))
IMPATIENT = "[policy]\nretries = 0\n"
ERRORS = {
    400: "BadRequestError",
    401: "AuthenticationError",
    429: "RateLimitError",
    500: "InternalServerError",
}
HEARTBEATS = {"chat": b": heartbeat", "responses": b": heartbeat", "messages": b"event: ping"}
# What joins a stream in Python takes no answer that came to its limit, from whomever it comes.
HELPERS_RAISE = {
    ("python", "joined", "chat"): "LengthFinishReasonError",
    ("python", "joined", "responses"): "RuntimeError",
}
PATHS = {
    "chat": "/v1/chat/completions",
    "responses": "/v1/responses",
    "messages": "/v1/messages",
}


@pytest.fixture(params=WIRES, ids=[wire.name for wire in WIRES])
def wire(request):
    return request.param


@pytest.fixture(scope="module")
def daemon(serve, aimock):
    return serve(endpoints(aimock.base, *WIRES), IMPATIENT)


@pytest.fixture(params=ASKING, ids="-".join)
def way(request):
    return request.param


@pytest.fixture
def ask(asking, wire, way):
    """Ask a server, and return the client, its way, and what it got."""

    def ask(base, question, how=way[1]):
        client = asking[way[0]]
        return client, how, client.ask(wire, base, question, how)

    return ask


@pytest.fixture
def both(daemon, aimock, ask, wire):
    """Ask the daemon; return what the client understood, which is what the provider says to it."""

    def compare(question):
        got = understood(wire, ask(daemon.url, question))
        assert got == understood(wire, ask(aimock.base, question, how="plain"))
        return got

    return compare


def understood(wire, asked):
    client, how, got = asked
    return heard(client, wire.name, how, got)


def test_text(both):
    got = both(Question("greet"))

    assert (got.text, got.finish, got.usage) == (GREETING, "stop", (12, 7))


def test_reasoning(both, wire, way):
    got = both(Question("think"))

    assert (got.text, got.finish, got.usage) == ("At six.", "stop", (9, 20))
    # OpenAI's chat completions have no reasoning, and Vercel's client of them does not look for it.
    unheard = way[0] == "vercel" and wire is CHAT
    assert got.reasoning == ("" if unheard else "Noon plus six hours.")


def test_limit(daemon, ask, wire, way):
    asked = ask(daemon.url, Question("too long"))

    if raised := HELPERS_RAISE.get((*way, wire.name)):
        assert asked[2].error["name"] == raised
        return
    got = understood(wire, asked)
    # aimock does not say why a response is incomplete, and Vercel's client looks for that alone.
    told = "stop" if way[0] == "vercel" and wire is RESPONSES else "length"
    assert (got.text, got.finish) == ("High water is", told)


def test_tools_are_called(both, way):
    got = both(Question("weather", tools=True))

    assert got.calls == WEATHER
    answered = ("Rain in both.", "stop") if way[0] == "vercel" else ("Let me look.", "tool_calls")
    assert (got.text, got.finish) == answered


@pytest.mark.parametrize("client", ["python", "node"])
def test_result_of_a_tool_is_told(daemon, asking, wire, client):
    asked = Question("weather", tools=True)
    called = asking[client].ask(wire, daemon.url, asked, "plain").final
    more = wire.answered(asked.payload(wire, "plain"), called, "rain")

    got = asking[client].ask(wire, daemon.url, Question("", more=more), "joined")

    assert heard(asking[client], wire.name, "joined", got).text == "Rain in both."


@pytest.mark.parametrize(
    ("words", "status"),
    [("refused", 400), ("unknown key", 401), ("limited always", 429), ("out of order", 500)],
)
def test_providers_error_is_the_clients_own_exception(daemon, aimock, ask, words, status):
    client, _, got = ask(daemon.url, Question(words))

    assert got.final is None
    assert got.error["status"] == status
    assert got.error["retry_after"] == ("7" if status == 429 else None)
    assert got.error["name"] == ("APICallError" if client.name == "vercel" else ERRORS[status])
    assert got.error["name"] == ask(aimock.base, Question(words))[2].error["name"]


@pytest.mark.parametrize("words", ["cut words", "cut call"])
def test_cut_stream_never_passes_for_a_finished_answer(daemon, ask, words):
    _, _, got = ask(daemon.url, Question(words, tools=True))

    assert got.final is None
    assert got.error is not None


def test_heartbeats_break_no_client(serve, aimock, asking):
    daemon = serve(
        endpoints(aimock.base, *WIRES), IMPATIENT, top="heartbeat_s = 0.02\ncommit_after_s = 0.02"
    )
    asked = [(wire, *each) for wire in WIRES for each in STREAMING]
    with ThreadPoolExecutor(len(asked) + len(WIRES)) as pool:
        raw = [pool.submit(body_of, daemon, wire) for wire in WIRES]
        got = list(pool.map(partial(halting, daemon, asking), asked))

    assert {(each.text, each.finish) for each in got} == {(TURNING, "stop")}
    for wire, body in zip(WIRES, raw, strict=True):
        first, *between = body.result().split(HEARTBEATS[wire.name])
        assert first == b""
        assert len(between) > 10


def halting(daemon, asking, asked):
    wire, client, way = asked
    got = asking[client].ask(wire, daemon.url, Question("halting"), way)
    return heard(asking[client], wire.name, way, got)


def body_of(daemon, wire):
    payload = Question("halting").payload(wire, "raw") | {"stream": True}
    return httpx.post(f"{daemon.url}{PATHS[wire.name]}", json=payload, timeout=60).content

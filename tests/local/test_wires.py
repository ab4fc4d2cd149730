"""A local model on every wire that its server speaks; the lab answers in the server's place."""

import pytest

import tidegate as tg
from tidegate.testing import Lab, chat, messages, responses


pytestmark = pytest.mark.usefixtures("stand_in")

WIRES = {
    "chat": (chat.answer, "/v1/chat/completions"),
    "responses": (responses.answer, "/v1/responses"),
    "messages": (messages.answer, "/v1/messages"),
}


@pytest.mark.parametrize("wire", WIRES)
def test_turn_finds_the_local_server_on_each_wire(model, wire):
    answer, path = WIRES[wire]
    payload = {"model": "tiny"} | ({"input": "Hi"} if wire == "responses" else {"messages": []})
    with Lab([answer("hello")]) as lab, tg.Runtime(workers=1) as runtime:
        endpoint = tg.Endpoint(wire=wire, local_model=str(model(lab.base)))
        told = runtime.run(tg.Request(endpoint, payload))

        assert (told.text, told.finish) == ("hello", "stop")
        assert [request.path for request in lab.requests] == [path]

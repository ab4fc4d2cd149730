"""Who looks on sees plain JSON, and at the end the answer as if it had not been streamed."""

import json

import tidegate as tg
from tidegate.lab import Answer, Lab, chat
from tidegate.testing.eventually import eventually


class Relay(tg.Observer):
    """Keeps what it is told."""

    def __init__(self):
        self.chunks, self.responses = [], []

    def chunk(self, turn_id, attempt, chunk):
        self.chunks.append(json.loads(json.dumps(chunk)))

    def ended(self, turn_id, attempt, response):
        self.responses.append(response)


def test_relay_finalizer_emits_joined_tool_arguments():
    relay = Relay()
    steps = [
        chat.tool(id="call_1", name="search", arguments='{"q":'),
        chat.tool(arguments='"hello"}'),
        chat.finish("tool_calls"),
        chat.done(),
    ]
    payload = {"model": "m", "messages": []}
    with tg.Runtime(workers=1, observers=[relay]) as runtime, Lab([Answer(steps)]) as lab:
        runtime.run(tg.Request(tg.Endpoint.chat(lab.url, "key"), payload))
        (response,) = eventually(lambda: relay.responses)

    (call,) = response["choices"][0]["message"]["tool_calls"]
    assert call["function"] == {"name": "search", "arguments": '{"q":"hello"}'}
    pieces = [each["arguments"] for each in relay.chunks if each["type"] == "tool_call.delta"]
    assert pieces == ['{"q":', '"hello"}']

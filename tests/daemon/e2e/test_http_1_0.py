"""The daemon as a client of HTTP/1.0 has it, such as a proxy that speaks nothing newer."""

import json

import pytest

from tests.daemon.e2e.reading import events_in, text_of
from tests.daemon.fronts import sdks
from tests.daemon.hosting import PROMPT
from tests.daemon.sockets import Client
from tidegate.lab import chat, messages, responses


ANSWERS = {
    "chat": ("/v1/chat/completions", chat.answer),
    "responses": ("/v1/responses", responses.answer),
    "messages": ("/v1/messages", messages.answer),
}


def asked(house, *request):
    """Return the head and the body of what comes until the connection ends."""
    with Client(house.daemon.port) as client:
        whole = client.ask(*request, version="1.0").to_end()
    head, _, body = whole.partition(b"\r\n\r\n")
    lines = head.lower().split(b"\r\n")
    assert b"connection: close" in lines
    assert b"transfer-encoding: chunked" not in lines
    return lines, body


@pytest.mark.parametrize("wire", ANSWERS)
def test_stream_of_each_api_ends_with_the_connection(house, wire):
    path, answer = ANSWERS[wire]
    getattr(house, wire).add(answer("Hel", "lo"))

    lines, body = asked(house, "POST", path, {**PROMPT, "stream": True})

    assert lines[0].endswith(b"200 ok")
    assert '"Hello"' in json.dumps(sdks.joined(wire, body))


@pytest.mark.parametrize("wire", ANSWERS)
def test_whole_answer_has_its_length(house, wire):
    path, answer = ANSWERS[wire]
    getattr(house, wire).add(answer("Hel", "lo"))

    lines, body = asked(house, "POST", path, PROMPT)

    assert b"content-length: %d" % len(body) in lines
    assert '"Hello"' in json.dumps(json.loads(body))


def test_events_of_a_turn_end_with_the_connection(house):
    house.chat.add(chat.answer("Hel", "lo"))
    _, body = asked(house, "POST", "/v1/turns", {"endpoint": "chat", "payload": PROMPT})

    _, body = asked(house, "GET", f"/v1/turns/{json.loads(body)['id']}/events")

    events = events_in(body)
    assert (text_of(events), events[-1].name) == ("Hello", "turn.completed")

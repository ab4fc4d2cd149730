"""What a caller asks for, checked where it is said."""

import math

import msgspec
import pytest

from tidegate.errors import ConfigurationError
from tidegate.protocol.endpoints import Endpoint
from tidegate.protocol.policy import Policy
from tidegate.protocol.requests import Encoded, Request


ENDPOINT = Endpoint.chat("https://api.example.com/v1")
MESSAGES = [{"role": "user", "content": "Hello"}]


def encoded(payload, endpoint=ENDPOINT, **options):
    return Request(endpoint, payload, **options).encode({})


def test_request_is_encoded_without_what_streaming_adds():
    found = encoded({"model": "m", "messages": MESSAGES, "n": 2, "stream": True})

    assert found == Encoded(
        body=b'{"model":"m","messages":[{"role":"user","content":"Hello"}],"n":2}',
        stream_options=b'{"include_usage":true}',
        choices=2,
        model="m",
    )


def test_payload_may_leave_out_everything():
    assert encoded({}) == Encoded(b"{}", b'{"include_usage":true}', 1, "")


def test_nulls_count_as_left_out():
    found = encoded({"model": None, "n": None, "stream_options": None})

    assert (found.model, found.choices) == ("", 1)
    assert found.stream_options == b'{"include_usage":true}'


def test_stream_options_of_the_user_are_kept():
    payload = {"stream_options": {"include_usage": False, "include_obfuscation": False}}

    assert msgspec.json.decode(encoded(payload).stream_options) == payload["stream_options"]
    merged = encoded({"stream_options": {"include_obfuscation": False}}).stream_options
    assert msgspec.json.decode(merged) == {"include_usage": True, "include_obfuscation": False}


def test_request_without_streaming_has_no_stream_options():
    assert encoded({}, stream=False).stream_options == b""
    assert encoded({"stream": False}, stream=False).body == b"{}"


def test_native_gemini_address_gets_stream_options_only_from_the_user():
    gemini = Endpoint.chat("http://generativelanguage.googleapis.com/v1beta")

    assert encoded({}, gemini).stream_options == b""
    assert encoded({"stream_options": {"a": 1}}, gemini).stream_options == b'{"a":1}'


def test_stream_options_of_the_responses_wire_are_the_users_alone():
    found = encoded({"stream_options": {"a": 1}, "n": "odd"}, Endpoint.responses())

    assert found.stream_options == b'{"a":1}'
    assert found.body == b'{"n":"odd"}'
    assert encoded({}, Endpoint.responses()).stream_options == b""


def test_stream_options_mean_nothing_on_other_wires():
    found = encoded({"stream_options": {"a": 1}}, Endpoint.messages())

    assert (found.stream_options, found.body) == (b"", b'{"stream_options":{"a":1}}')


def test_address_from_the_environment_decides_about_stream_options():
    asked = Request(Endpoint.chat(), {})
    environ = {"OPENAI_BASE_URL": "http://generativelanguage.googleapis.com/v1beta"}

    assert asked.encode(environ).stream_options == b""
    assert asked.encode({}).stream_options != b""


def test_environment_of_the_process_is_the_default(monkeypatch):
    monkeypatch.setenv("OPENAI_BASE_URL", "http://generativelanguage.googleapis.com/v1beta")

    assert Request(Endpoint.chat(), {}).encode().stream_options == b""


@pytest.mark.parametrize(
    ("payload", "named"),
    [
        ({"stream": False}, "stream=False"),
        ({"stream": None}, "stream"),
        ({"stream": 1}, "stream"),
        ({"n": 0}, "'n'"),
        ({"n": 1025}, "from 1 to 1024"),
        ({"n": True}, "'n'"),
        ({"n": "2"}, "'n'"),
        ({"model": 5}, "model"),
        ({"messages": "Hello"}, "messages"),
        ({"messages": {"role": "user"}}, "messages"),
        ({"stream_options": True}, "stream_options"),
        ({"stream_options": {"include_usage": 1}}, "include_usage"),
        ({5: "x"}, "5"),
        ([], "payload"),
        ("Hello", "payload"),
        (None, "payload"),
    ],
)
def test_payload_that_makes_no_sense_is_refused_by_name(payload, named):
    with pytest.raises(ConfigurationError, match=named):
        Request(ENDPOINT, payload)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"endpoint": "https://api.example.com"}, "endpoint"),
        ({"policy": {"retries": 1}}, "policy"),
        ({"stream": 1}, "stream"),
        ({"metadata": None}, "metadata"),
        ({"metadata": {1: 2}}, "metadata"),
    ],
)
def test_argument_of_the_wrong_type_is_refused_by_name(options, named):
    with pytest.raises(ConfigurationError, match=named):
        Request(**({"endpoint": ENDPOINT, "payload": {}} | options))


def test_streaming_is_said_in_one_place():
    with pytest.raises(ConfigurationError, match="stream=True"):
        Request(ENDPOINT, {"stream": True}, stream=False)
    with pytest.raises(ConfigurationError, match="stream_options"):
        Request(ENDPOINT, {"stream_options": {}}, stream=False)


def _holding_itself():
    value = []
    value.append(value)
    return value


@pytest.mark.parametrize(
    ("value", "path"),
    [
        (object(), "['a']"),
        ([{"b": object()}], "['a'][0]['b']"),
        ((1, {"c": 1j}), "['a'][1]['c']"),
        ([None, math.nan], "['a'][1]"),
        ({"b": -math.inf, "c": 1}, "['a']['b']"),
        ({"b": "\ud800"}, "['a']['b']"),
        ({("x",): 1}, "['a']"),
        (_holding_itself(), ""),
    ],
)
def test_what_is_no_json_is_refused_with_its_path(value, path):
    with pytest.raises(ConfigurationError) as caught:
        encoded({"ok": [None, 1.5], "a": value})

    assert f"payload{path} " in str(caught.value)


def test_payload_is_copied_at_the_top_alone():
    payload = {"messages": MESSAGES}
    asked = Request(ENDPOINT, payload)
    payload["model"] = "other"

    assert asked.model == ""
    assert asked.payload["messages"] is MESSAGES


def test_request_is_written_without_its_words():
    asked = Request(
        ENDPOINT, {"model": "m", "messages": MESSAGES}, policy=Policy(), metadata={"a": "b"}
    )

    assert repr(asked) == "<Request chat https://api.example.com/v1 model='m' messages=1>"

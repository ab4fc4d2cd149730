"""What may be in a header of an endpoint, and when it is read."""

import msgspec
import pytest

from tidegate.errors import ConfigurationError
from tidegate.protocol.endpoints import Endpoint
from tidegate.protocol.secrets import MissingKey, Secret
from tidegate.protocol.targets import target_of


URL = "https://api.example.com/v1"


@pytest.mark.parametrize(
    "name",
    [
        "Connection",
        "content-length",
        "expect",
        "keep-alive",
        "proxy-connection",
        "TE",
        "trailer",
        "Transfer-Encoding",
        "upgrade",
    ],
)
@pytest.mark.parametrize("value", ["1", Secret("1")])
def test_header_that_is_the_transports_own_is_refused(name, value):
    with pytest.raises(ConfigurationError, match=f"'{name}' is set by whoever sends"):
        Endpoint.chat(URL, headers={name: value})


def test_header_that_is_given_twice_is_refused():
    with pytest.raises(ConfigurationError, match="'X-A' and 'x-a' are one header"):
        Endpoint.chat(URL, headers={"X-A": "1", "x-b": "1", "x-a": Secret("env:A")})


@pytest.mark.parametrize("value", ["keep-this-ü", "keep-this-\x85-too", "keep-this \N{SNOWMAN}"])
def test_header_that_is_not_ascii_is_refused_by_name_and_not_shown(value):
    with pytest.raises(ConfigurationError, match=r"^headers\['x-a'\]: a header is ASCII") as raised:
        Endpoint.chat(URL, headers={"x-a": value})
    assert "keep" not in str(raised.value)

    with pytest.raises(MissingKey, match=r"^headers\['x-a'\]: .* TOKEN has a char") as missing:
        target_of(Endpoint.chat(URL, headers={"x-a": "env:TOKEN"}), {"TOKEN": value})
    with pytest.raises(MissingKey, match=r"^headers\['x-a'\]: .* gave a key with a char"):
        target_of(Endpoint.chat(URL, headers={"x-a": Secret(lambda: value)}), {})
    assert "keep" not in str(missing.value)


@pytest.mark.parametrize("text", ["münchen", "a\tb"])
def test_other_texts_of_headers_are_ascii_too(text):
    for name in ("organization", "project"):
        with pytest.raises(ConfigurationError, match=f"^{name}=.*give ASCII alone"):
            Endpoint.chat(URL, **{name: text})
    for variable in ("OPENAI_ORG_ID", "OPENAI_PROJECT_ID"):
        with pytest.raises(ConfigurationError, match=f"^{variable}=.*give ASCII alone"):
            target_of(Endpoint.chat(URL), {variable: text})
    with pytest.raises(ConfigurationError, match=r"^ANTHROPIC_VERTEX_PROJECT_ID="):
        target_of(
            Endpoint.messages(region="us-east5", api_key="k"), {"ANTHROPIC_VERTEX_PROJECT_ID": text}
        )


def test_value_that_looks_like_a_reference_is_sent_as_it_is_if_a_function_gives_it():
    headers = {"a": "env:TOKEN", "b": Secret("env:TOKEN"), "c": Secret(lambda: "env:TOKEN")}

    assert target_of(Endpoint.chat(URL, headers=headers), {"TOKEN": "t"}).headers == (
        ("a", "t"),
        ("b", "t"),
        ("c", "env:TOKEN"),
    )


def test_header_that_names_a_variable_is_read_at_each_start():
    endpoint = Endpoint.chat(
        URL,
        headers={
            "authorization": "env:TOKEN",
            "x-b": Secret("env:TOKEN"),
            "x-c": Secret(lambda: "asked"),
            "x-d": "env: prod",
        },
    )

    for token in ("Bearer 1", "Bearer 2"):
        assert target_of(endpoint, {"TOKEN": token}).headers == (
            ("authorization", token),
            ("x-b", token),
            ("x-c", "asked"),
            ("x-d", "env: prod"),
        )
    with pytest.raises(MissingKey, match=r"^headers\['authorization'\]: .* TOKEN is not set"):
        target_of(endpoint, {})


def test_secret_of_a_header_is_stored_as_its_reference_or_not_at_all():
    kept = Endpoint.chat(URL, headers={"a": Secret("env:TOKEN")})
    assert msgspec.json.decode(msgspec.json.encode(kept), type=Endpoint) == kept
    assert kept.headers == {"a": "env:TOKEN"}

    with pytest.raises(ConfigurationError, match="cannot be encoded"):
        msgspec.json.encode(Endpoint.chat(URL, headers={"a": Secret("sk-secret")}))
    with pytest.raises(ConfigurationError, match="query"):
        Endpoint.chat(URL, query={"a": Secret("env:TOKEN")})


def test_headers_are_copied():
    headers = {"a": "b"}
    endpoint = Endpoint.chat(URL, headers=headers)
    headers["a"] = "c"

    assert endpoint.headers == {"a": "b"}

"""Checks of what an endpoint is made of."""

import pytest

from tidegate.errors import ConfigurationError
from tidegate.protocol import addresses


@pytest.mark.parametrize(
    "address",
    [
        "http://localhost",
        "https://api.openai.com/v1/",
        "http://[::1]:80/v1",
        "HTTPS://Example.com",
    ],
)
def test_http_address_is_taken(address):
    addresses.check_base_url("base_url", address)


@pytest.mark.parametrize(
    "address",
    [
        "",
        "localhost:8000",
        "ftp://host",
        "http://",
        "http:///v1",
        "http://host:99999",
        "http://host:0",
        "http://host:port",
        "http://[::1",
        "http://ho st/v1",
        "http://host/v1\n",
        "http://host/\udcff",
        "http://a..b",
        f"http://{'a' * 64}.com",
        "http://host?a=1",
        "http://host#part",
        "http://user:pass@host/v1",
        5,
        None,
    ],
)
def test_other_address_is_refused_by_name(address):
    with pytest.raises(ConfigurationError, match="base_url=") as caught:
        addresses.check_base_url("base_url", address)

    assert "pass" not in str(caught.value).replace("password", "")


def test_proxy_may_have_a_user():
    addresses.check_address("proxy", "http://user:pass@host:3128")


def test_user_of_a_wrong_proxy_is_not_shown():
    with pytest.raises(ConfigurationError) as caught:
        addresses.check_address("proxy", "socks5://user:pass@host:3128")

    assert "pass" not in str(caught.value)


def test_address_is_shown_without_what_is_private():
    assert addresses.shown("https://u:p@host:1/v1/?key=k#f") == "https://host:1/v1"


@pytest.mark.parametrize("text", ["", "a\nb", "\ud800", 5])
def test_text_for_a_header_is_refused_by_name(text):
    with pytest.raises(ConfigurationError, match="project="):
        addresses.check_text("project", text)


def test_text_for_a_header_may_be_missing():
    addresses.check_text("project", None)
    addresses.check_text("project", "proj_1")


@pytest.mark.parametrize(
    "pairs",
    [
        [("a", "b")],
        {"a b": "c"},
        {"a:": "c"},
        {"": "c"},
        {5: "c"},
        {"a\n": "c"},
        {"é": "c"},
        {"a": "secret\r\nx: y"},
        {"a": 5},
        {"a": "secret\ud800"},
    ],
)
def test_headers_that_cannot_be_sent_are_refused_without_their_values(pairs):
    with pytest.raises(ConfigurationError, match="headers") as caught:
        addresses.check_pairs("headers", pairs)

    assert "secret" not in str(caught.value)


def test_pairs_that_can_be_sent_are_taken():
    addresses.check_pairs("headers", {"X-Team_1": "a\tb", "x": ""})
    addresses.check_pairs("query", {"api version": "1"})


@pytest.mark.parametrize(
    ("wire", "address", "wanted"),
    [
        ("chat", "http://host/v1/chat/completions", "http://host/v1"),
        ("chat", "http://host/v1/chat/completions/", "http://host/v1"),
        ("chat", "http://host/v1/completions", "http://host/v1"),
        ("chat", "http://host/v1/messages", "http://host/v1"),
        ("chat", "http://host/openai/deployments/m/chat/completions", None),
        ("responses", "http://host/v1/responses", "http://host/v1"),
        ("chat", "http://host/v1/chat/completions%2F", "http://host/v1"),
        ("chat", "http://host/v1%2fcompletions", "http://host/v1"),
        ("chat", "http://host//chat//completions", "http://host"),
        ("messages", "http://host/v1/messages", "http://host"),
        ("messages", "http://host/v1//messages", "http://host"),
        ("messages", "http://host/v1/messages%2F", "http://host"),
        ("messages", "http://host/api/v1/chat/completions", "http://host/api"),
        ("converse", "http://host/model/a.b:0/converse-stream", "http://host"),
    ],
)
def test_path_of_a_request_is_refused_with_the_address_that_is_meant(wire, address, wanted):
    wanted = wanted or address.removesuffix("/chat/completions")
    with pytest.raises(ConfigurationError) as caught:
        addresses.check_base_of("base_url", address, wire)

    assert str(caught.value) == (
        f"base_url={address!r} ends in the path of a request, which is added to it: give {wanted!r}"
    )


@pytest.mark.parametrize(
    "address",
    [
        "http://responses",
        "http://host/v1",
        "http://host/chat",
        "http://host/messages",
        "http://host/my-responses",
        "http://host/chat/completions/v1",
    ],
)
def test_address_that_only_looks_like_it_is_taken(address):
    for wire in ("chat", "responses", "messages", "converse"):
        addresses.check_base_of("base_url", address, wire)

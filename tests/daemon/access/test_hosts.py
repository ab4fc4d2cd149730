"""Names that mean this machine, and pages that come from it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.daemon.access.hosts import (
    Authority,
    authority_from,
    is_listed,
    is_loopback,
    is_same_origin,
)


@pytest.mark.parametrize(
    ("text", "authority"),
    [
        ("localhost", Authority("localhost")),
        ("LocalHost:8765", Authority("localhost", "8765")),
        (" localhost ", Authority("localhost")),
        ("127.0.0.1:80", Authority("127.0.0.1", "80")),
        ("[::1]", Authority("::1")),
        ("[::1]:8765", Authority("::1", "8765")),
        ("my-host_1.example.", Authority("my-host_1.example.")),
        ("", None),
        ("::1", None),
        ("[::1", None),
        ("[localhost]", None),
        ("[::1]8765", None),
        ("localhost:", None),
        ("localhost:http", None),
        ("localhost:123456", None),
        ("localhost/", None),
        ("user@localhost", None),
        ("localhost, evil.example", None),
        ("-a", None),
        ("ⓛocalhost", None),
    ],
)
def test_value_of_host_is_read(text, authority):
    assert authority_from(text) == authority


@given(st.text())
def test_any_text_is_read_or_refused(text):
    found = authority_from(text)

    assert found is None or found.name.isascii()


@pytest.mark.parametrize("name", ["localhost", "127.0.0.1", "127.8.9.1", "::1"])
def test_name_means_this_machine(name):
    assert is_loopback(name)


@pytest.mark.parametrize(
    "name",
    ["localhost.evil.example", "127.0.0.1.evil.example", "evil.example", "0.0.0.0", "10.0.0.1", ""],
)
def test_name_may_mean_another(name):
    assert not is_loopback(name)


@pytest.mark.parametrize(
    ("host", "listed"),
    [
        ("box", True),
        ("box:99", True),
        ("api.example:443", True),
        ("api.example", False),
        ("api.example:444", False),
        ("[fe80::1]:5", True),
        ("[fe80::2]:7", True),
        ("[fe80::2]:8", False),
    ],
)
def test_hosts_are_listed_with_or_without_a_port(host, listed):
    hosts = frozenset({"box", "api.example:443", "[fe80::1]", "[fe80::2]:7"})

    assert is_listed(authority_from(host), hosts) == listed


@pytest.mark.parametrize(
    ("origin", "host", "same"),
    [
        ("http://localhost:8765", "localhost:8765", True),
        ("https://Tide.Example", "tide.example", True),
        ("http://[::1]:8765", "[::1]:8765", True),
        ("http://localhost:3000", "localhost:8765", False),
        ("http://127.0.0.1:8765", "localhost:8765", False),
        ("http://localhost", "localhost:8765", False),
        ("null", "localhost:8765", False),
        ("file://localhost:8765", "localhost:8765", False),
        ("localhost:8765", "localhost:8765", False),
        ("http://", "", False),
    ],
)
def test_page_is_of_this_server_if_its_origin_is_the_host(origin, host, same):
    assert is_same_origin(origin, host) == same

"""Which proxy of the environment an address is reached by."""

import pytest

from tidegate.actors.provider.exceptions import failure_from
from tidegate.actors.provider.proxies import NoHttpProxy, proxy_for
from tidegate.actors.provider.scrubbing import scrubbed
from tidegate.protocol.failures import Failure, FailureKind


PROXY = "http://proxy.test:3128"


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy", "request_method"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    return monkeypatch.setenv


@pytest.mark.parametrize(
    ("variable", "address", "used"),
    [
        ("HTTPS_PROXY", "https://a.test/v1", True),
        ("https_proxy", "https://a.test/v1", True),
        ("HTTPS_PROXY", "http://a.test/v1", False),
        ("HTTP_PROXY", "http://a.test/v1", True),
        ("HTTP_PROXY", "https://a.test/v1", False),
        ("ALL_PROXY", "http://a.test/v1", True),
        ("ALL_PROXY", "https://a.test/v1", True),
        ("ALL_PROXY", "https://localhost/v1", False),
        ("ALL_PROXY", "https://127.0.0.2/v1", False),
        ("ALL_PROXY", "https://[::1]:8443/v1", False),
    ],
)
def test_proxy_is_that_of_the_scheme(environment, variable, address, used):
    environment(variable, PROXY)

    assert proxy_for(address) == (PROXY if used else "")


def test_proxy_of_the_scheme_comes_before_that_of_all(environment):
    environment("ALL_PROXY", "http://other.test")
    environment("HTTPS_PROXY", "proxy.test:3128")

    assert proxy_for("https://a.test") == PROXY


@pytest.mark.parametrize(
    ("entries", "address", "exempt"),
    [
        ("*", "https://a.test", True),
        ("a.test", "https://a.test", True),
        ("A.Test , b.test", "https://a.test", True),
        ("a.test", "https://sub.a.test", True),
        (".a.test", "https://sub.a.test", True),
        ("*.a.test", "https://sub.a.test", True),
        ("*.a.test", "https://other.test", False),
        ("a.test", "https://not-a.test", False),
        ("a.test:8443", "https://a.test:8443", True),
        ("a.test:8443", "https://a.test", False),
        ("a.test:443", "https://a.test", True),
        ("a.test:80", "http://a.test", True),
        ("10.0.0.0/8", "https://10.1.2.3", True),
        ("10.1.2.3/8", "https://10.9.9.9:8443", True),
        ("10.0.0.0/8", "https://11.1.2.3", False),
        ("10.0.0.0/8", "https://ten.test", False),
        ("10.1.2.3", "https://10.1.2.3", True),
        ("fd00::/8", "https://[fd00::5]/v1", True),
        ("fd00::5", "https://[fd00::5]:8443/v1", True),
        ("fd00::/8", "https://10.1.2.3", False),
        (",, ,", "https://a.test", False),
    ],
)
def test_some_addresses_are_exempt(environment, entries, address, exempt):
    environment("ALL_PROXY", PROXY)
    environment("NO_PROXY", entries)

    assert (proxy_for(address) == "") is exempt


@pytest.mark.parametrize("scheme", ["socks5", "socks5h", "socks4", "ftp"])
def test_proxy_of_another_kind_is_refused_with_a_way_out(environment, scheme):
    environment("ALL_PROXY", f"{scheme}://someone:pass-word@proxy.test:1080")
    with pytest.raises(NoHttpProxy) as raised:
        proxy_for("https://a.test")

    failure = failure_from(raised.value)
    assert (failure.kind, failure.reason) == (FailureKind.BAD_REQUEST, "proxy")
    assert not failure.retryable
    assert f"{scheme}://proxy.test:1080" in failure.detail
    assert "add a.test to NO_PROXY" in failure.detail
    assert "pass-word" not in failure.detail


def test_such_a_proxy_does_no_harm_to_who_is_exempt(environment):
    environment("ALL_PROXY", "socks5://proxy.test")
    environment("NO_PROXY", "a.test")

    assert proxy_for("https://a.test") == ""


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("url='http://me:word@proxy.test:1'", "url='http://***@proxy.test:1'"),
        ("https://me@a.test/x and //b:c@d", "https://***@a.test/x and //***@d"),
        ("https://a.test/@me me@a.test", "https://a.test/@me me@a.test"),
    ],
)
def test_who_logs_in_is_in_no_text(text, shown):
    failure = Failure(kind=FailureKind.CONNECTION_LOST, detail=text)

    assert scrubbed(failure, ()).detail == shown

"""Who is let in, as whom, and what the others are told."""

import base64

import pytest

from tidegate.daemon.access.keys import Keys, owner_of
from tidegate.daemon.access.rate import RateLimit
from tidegate.daemon.access.rules import Allowed, Denied, Facts, Preflight, Rules, decide
from tidegate.errors import ConfigurationError


KEY = "a-key-of-nobody"
BEARER = {"authorization": f"Bearer {KEY}"}
BASIC = {"authorization": "Basic " + base64.b64encode(f"me:{KEY}".encode()).decode()}
PAGE = "https://app.example"

OPEN = Rules(keys=Keys(), loopback=True)
LOCKED = Rules(keys=Keys([KEY]), loopback=True)
PUBLIC = Rules(keys=Keys([KEY]), loopback=False)


def asked(
    path="/v1/turns", method="GET", *, host="localhost:8765", rules=OPEN, rate=None, **headers
):
    named = {"host": host, **headers}
    pairs = [(name.replace("_", "-").encode(), value.encode()) for name, value in named.items()]
    return decide(Facts(method, path, pairs), rules, rate or RateLimit(0), 0.0)


def status(verdict):
    return verdict.status if isinstance(verdict, Denied) else 200


# Keys


def test_without_keys_everybody_on_this_machine_is_let_in():
    assert asked() == Allowed("")
    assert asked(method="POST", authorization="Bearer whatever") == Allowed("")


@pytest.mark.parametrize("rules", [LOCKED, PUBLIC])
@pytest.mark.parametrize("headers", [BEARER, {"x-api-key": KEY}, BASIC])
def test_key_says_whose_a_request_is(rules, headers):
    assert asked(rules=rules, **headers) == Allowed(owner_of(KEY))


@pytest.mark.parametrize("rules", [LOCKED, PUBLIC])
@pytest.mark.parametrize("path", ["/v1/turns", "/v1/models", "/v1/messages", "/nothing", "/livez/"])
def test_no_key_or_a_wrong_one_is_401(rules, path):
    for headers in ({}, {"authorization": "Bearer other"}):
        denied = asked(path, rules=rules, **headers)
        assert (denied.status, denied.kind) == (401, "auth")
        assert denied.headers == {"www-authenticate": 'Bearer realm="tidegate"'}
        assert "other" not in denied.message


def test_one_right_key_is_enough():
    assert asked(rules=LOCKED, x_api_key="other", **BEARER) == Allowed(owner_of(KEY))


@pytest.mark.parametrize("path", ["/livez", "/readyz"])
@pytest.mark.parametrize("rules", [OPEN, LOCKED, PUBLIC])
def test_probes_need_no_key(path, rules):
    assert asked(path, rules=rules) == Allowed("")


@pytest.mark.parametrize("path", ["/", "/metrics", "/page/live.js"])
class TestWhatIsWatched:
    def test_needs_no_key_on_this_machine(self, path):
        assert asked(path, rules=LOCKED) == Allowed("")

    def test_needs_one_elsewhere_and_browsers_ask_for_it(self, path):
        denied = asked(path, rules=PUBLIC)

        assert denied.status == 401
        assert denied.headers == {"www-authenticate": 'Basic realm="tidegate"'}
        assert asked(path, rules=PUBLIC, **BASIC) == Allowed(owner_of(KEY))

    @pytest.mark.parametrize(
        "headers",
        [{"host": "tide.example"}, {"x-forwarded-for": "10.0.0.1"}, {"via": "1.1 proxy"}],
    )
    def test_needs_one_behind_a_proxy_on_this_machine(self, path, headers):
        rules = Rules(keys=Keys([KEY]), loopback=True, hosts=frozenset({"tide.example"}))

        assert status(asked(path, rules=rules, **headers)) == 401
        assert asked(path, rules=rules, **headers, **BEARER) == Allowed(owner_of(KEY))


def test_daemon_that_others_reach_without_keys_is_refused():
    with pytest.raises(ConfigurationError, match="set keys, or listen on 127"):
        Rules(keys=Keys(), loopback=False)


# Hosts


@pytest.mark.parametrize("rules", [OPEN, LOCKED])
@pytest.mark.parametrize("host", ["evil.example:8765", "127.0.0.1.evil.example", "10.0.0.7:8765"])
def test_name_of_another_is_refused_on_loopback_with_a_key_too(rules, host):
    for path in ("/v1/turns", "/", "/livez"):
        denied = asked(path, rules=rules, host=host, **BEARER)
        assert (denied.status, denied.kind) == (403, "forbidden")
        assert host in denied.message


def test_name_that_is_configured_is_answered():
    rules = Rules(keys=Keys(), loopback=True, hosts=frozenset({"tide.example"}))

    assert asked(rules=rules, host="tide.example:99") == Allowed("")
    assert status(asked(rules=rules, host="tide.example.evil.example")) == 403


def test_any_name_is_answered_off_loopback():
    assert asked(rules=PUBLIC, host="whatever.example", **BEARER) == Allowed(owner_of(KEY))


@pytest.mark.parametrize("host", ["", "a b", "localhost:x"])
def test_host_that_is_none_is_400(host):
    assert status(asked(host=host)) == 400


def test_no_host_is_400():
    assert decide(Facts("GET", "/", []), OPEN, RateLimit(0), 0.0).status == 400


# Pages


@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
@pytest.mark.parametrize(
    "origin", [PAGE, "null", "http://localhost:3000", "http://evil.example:8765"]
)
def test_page_of_another_origin_without_a_key_is_refused(method, origin):
    denied = asked(method=method, origin=origin)

    assert (denied.status, denied.kind) == (403, "forbidden")
    assert "cors_origins" in denied.message


def test_page_of_the_daemon_itself_may_ask():
    assert asked(method="POST", origin="http://localhost:8765") == Allowed("")
    assert asked(method="POST", rules=LOCKED, origin="http://localhost:8765", **BASIC).owner


def test_key_that_a_browser_adds_by_itself_does_not_vouch_for_a_page():
    for rules in (LOCKED, PUBLIC):
        assert status(asked(method="POST", rules=rules, origin=PAGE, **BASIC)) == 403
    everybody = Rules(keys=Keys([KEY]), loopback=False, origins=frozenset({"*"}))
    assert status(asked(method="POST", rules=everybody, origin=PAGE, **BASIC)) == 403
    listed = Rules(keys=Keys([KEY]), loopback=False, origins=frozenset({PAGE}))
    assert status(asked(method="POST", rules=listed, origin=PAGE, **BASIC)) == 200


def test_key_that_a_page_sends_vouches_for_it():
    assert asked(method="POST", rules=LOCKED, origin=PAGE, **BEARER) == Allowed(owner_of(KEY))


def test_page_that_is_listed_may_ask_and_read_the_answer_or_the_refusal():
    rules = Rules(keys=Keys(), loopback=True, origins=frozenset({PAGE}))
    allowed = asked(method="POST", rules=rules, origin=PAGE)
    denied = asked(rules=rules, rate=RateLimit(60), origin=PAGE, idempotency_key="a b")

    for verdict in (allowed, denied):
        assert verdict.headers["access-control-allow-origin"] == PAGE
        assert "tidegate-turn" in verdict.headers["access-control-expose-headers"]
        assert verdict.headers["vary"] == "origin"
    assert asked(rules=rules) == Allowed("", {"vary": "origin"})
    assert (
        "access-control-allow-origin" not in asked(rules=rules, origin="https://b.example").headers
    )


def test_nothing_is_said_about_pages_without_a_list():
    assert asked(origin="http://localhost:8765").headers == {}


def preflight(rules, origin=PAGE, **headers):
    return asked(
        method="OPTIONS",
        rules=rules,
        origin=origin,
        access_control_request_method="POST",
        **headers,
    )


def test_preflight_of_a_listed_page_needs_no_key():
    rules = Rules(keys=Keys([KEY]), loopback=True, origins=frozenset({PAGE}))
    verdict = preflight(
        rules,
        access_control_request_headers="authorization, x-stainless-os",
        access_control_request_private_network="true",
    )

    assert isinstance(verdict, Preflight)
    assert verdict.headers["access-control-allow-origin"] == PAGE
    assert verdict.headers["access-control-allow-headers"] == "authorization, x-stainless-os"
    assert verdict.headers["access-control-allow-methods"] == "GET, POST, DELETE"
    assert verdict.headers["access-control-allow-private-network"] == "true"


def test_preflight_with_names_that_are_none_is_granted_none():
    rules = Rules(keys=Keys([KEY]), loopback=True, origins=frozenset({"*"}))

    for names in ("a b", "a,", "x" * 5000, "a\tb"):
        verdict = preflight(rules, access_control_request_headers=names)
        assert "access-control-allow-headers" not in verdict.headers


def test_preflight_of_another_page_is_refused():
    rules = Rules(keys=Keys([KEY]), loopback=True, origins=frozenset({PAGE}))

    assert status(preflight(rules, origin="https://b.example")) == 403
    assert status(preflight(OPEN)) == 403


def test_all_pages_without_keys_are_refused():
    with pytest.raises(ConfigurationError, match="lets every page"):
        Rules(keys=Keys(), loopback=True, origins=frozenset({"*"}))


# Limits


def test_too_many_requests_are_429_and_told_when_to_come_back():
    rate = RateLimit(2)
    assert [status(asked(rules=LOCKED, rate=rate, **BEARER)) for _ in range(2)] == [200, 200]
    denied = asked(rules=LOCKED, rate=rate, **BEARER)

    assert (denied.status, denied.kind) == (429, "rate_limited")
    assert denied.headers == {"retry-after": "30"}


def test_interrupts_probes_and_pages_are_never_too_many():
    rate = RateLimit(1)
    asked(rules=LOCKED, rate=rate, **BEARER)
    for method, path in [
        ("POST", "/v1/turns/turn_1/interrupt"),
        ("GET", "/livez"),
        ("GET", "/readyz"),
        ("GET", "/metrics"),
        ("GET", "/"),
    ]:
        assert status(asked(path, method, rules=LOCKED, rate=rate, **BEARER)) == 200
    for method, path in [("GET", "/v1/turns/turn_1/interrupt"), ("POST", "/v1/turns//interrupt")]:
        assert status(asked(path, method, rules=LOCKED, rate=rate, **BEARER)) == 429


def test_requests_that_are_not_let_in_do_not_count():
    rate = RateLimit(1)
    for _ in range(3):
        assert status(asked(rules=LOCKED, rate=rate)) == 401

    assert status(asked(rules=LOCKED, rate=rate, **BEARER)) == 200


# Headers


def test_too_many_headers_are_431():
    many = {f"x-{number}": "v" for number in range(200)}

    denied = asked(**many)
    assert (denied.status, denied.kind) == (431, "headers_too_large")
    assert status(asked(x="v" * 70_000)) == 431


@pytest.mark.parametrize(
    "headers",
    [
        {"idempotency-key": "a b"},
        {"idempotency-key": ""},
        {"idempotency-key": "ü"},
        {"idempotency-key": "x" * 256},
        {"last-event-id": " "},
        {"last-event-id": "9" * 65},
        {"tidegate-on-disconnect": "x" * 65},
        {"authorization": "Bearer ü"},
        {"authorization": "Bearer " + "x" * 5000},
        {"origin": "http://ü.example"},
    ],
)
def test_value_that_cannot_be_meant_is_400_and_not_shown(headers):
    denied = asked(**headers)

    [(name, value)] = headers.items()
    assert (denied.status, denied.kind) == (400, "bad_request")
    assert name in denied.message
    assert not value.strip() or value not in denied.message


@pytest.mark.parametrize("name", [b"host", b"authorization", b"x-api-key", b"origin"])
def test_header_that_stands_there_twice_is_400(name):
    pairs = [(b"host", b"localhost"), (name, b"localhost"), (name, b"localhost")]
    denied = decide(Facts("GET", "/v1/turns", pairs), OPEN, RateLimit(0), 0.0)

    assert denied.status == 400
    assert "twice" in denied.message

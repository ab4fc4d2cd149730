"""Proxies and private authorities, on each wire: as the endpoint or the environment has them."""

import ssl
from dataclasses import replace

import pytest

import tidegate as tg
from tests.e2e.test_converse_identity import session_of_role
from tests.e2e.tunnel import Tunnel
from tidegate.lab.tls import write_credentials
from tidegate.testing import Lab, chat, converse, gate, messages, responses
from tidegate.testing.eventually import eventually


HELLO = [{"role": "user", "content": "Hello"}]
LOGIN = "someone:pass-word"
AWS = {"AWS_ACCESS_KEY_ID": "AKIATEST", "AWS_SECRET_ACCESS_KEY": "aws-secret"}
VARIABLES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")


def converse_at(url, **options):
    return tg.Endpoint.converse("eu-west-1", url, **options)


WIRES = {
    "chat": (chat, tg.Endpoint.chat, "/v1", {"model": "m", "messages": HELLO}),
    "responses": (responses, tg.Endpoint.responses, "/v1", {"model": "m", "input": "Hello"}),
    "messages": (
        messages,
        tg.Endpoint.messages,
        "",
        {"model": "m", "max_tokens": 9, "messages": HELLO},
    ),
    "converse": (
        converse,
        converse_at,
        "",
        {"modelId": "m", "messages": [{"role": "user", "content": [{"text": "Hello"}]}]},
    ),
}


@pytest.fixture(params=WIRES)
def wire(request):
    return request.param


@pytest.fixture(autouse=True)
def environment(monkeypatch, tmp_path):
    """Nothing of this machine's counts; what a test sets is there before its workers are."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    for name, value in AWS.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    return monkeypatch.setenv


@pytest.fixture(scope="module")
def runtime():
    """For endpoints that say themselves how they are reached."""
    with tg.Runtime(workers=1) as runtime:
        yield runtime


@pytest.fixture
def lab(wire):
    answer = WIRES[wire][0].answer("through", " and through")
    with Lab([answer], tls=True) as lab:
        yield lab


def request_of(wire, place, **options):
    _, make, path, payload = WIRES[wire]
    key = {} if wire == "converse" else {"api_key": "test-key"}
    endpoint = make(f"{place}{path}", **key, **options)
    return tg.Request(endpoint, payload, policy=tg.Policy(retries=1, backoff_s=(0.01,)))


def failure_of(runtime, request):
    with pytest.raises(tg.TurnError) as raised:
        runtime.run(request)
    return raised.value


def test_private_authority(runtime, wire, lab):
    request = request_of(wire, f"https://localhost:{lab.port}", verify=lab.ca_file)

    assert runtime.run(request).text == "through and through"


def test_private_authority_that_nobody_has_named(runtime, wire, lab):
    error = failure_of(runtime, request_of(wire, f"https://localhost:{lab.port}"))

    assert (error.failure.kind, error.failure.reason) == ("connection_lost", "tls")
    assert len(error.answer.attempts) == 1
    assert lab.requests == []


def test_file_without_certificates(runtime, wire, lab, tmp_path):
    path = tmp_path / "ca.pem"
    path.write_text("none here\n")
    error = failure_of(runtime, request_of(wire, f"https://localhost:{lab.port}", verify=str(path)))

    assert (error.failure.kind, error.failure.reason) == ("bad_request", "verify")
    assert error.failure.detail == f"verify={str(path)!r}: give a file of PEM certificates"
    assert len(error.answer.attempts) == 1


def test_file_of_certificates_that_is_not_there(runtime, wire, lab, tmp_path):
    path = str(tmp_path / "ca.pem")
    error = failure_of(runtime, request_of(wire, f"https://localhost:{lab.port}", verify=path))

    assert (error.failure.kind, error.failure.reason) == ("bad_request", "verify")
    assert error.failure.detail == (
        f"verify={path!r}: No such file or directory: give a file of PEM certificates"
    )


def test_tunnel_with_a_password(runtime, wire, lab):
    with Tunnel(lab.port, login=LOGIN) as tunnel:
        place, proxy = "https://localhost:4430", f"http://{LOGIN}@{tunnel.address}"
        answer = runtime.run(request_of(wire, place, proxy=proxy, verify=lab.ca_file))

        assert answer.text == "through and through"
        assert tunnel.targets == ["localhost:4430"]
        [request] = lab.requests
        assert "proxy-authorization" not in request.headers
        assert request.headers["host"] == "localhost:4430"


def test_proxy_that_is_reached_by_tls(runtime, wire, lab, tmp_path):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*write_credentials(tmp_path))
    with Tunnel(lab.port, tls=context) as tunnel:
        proxy = f"https://{tunnel.address}"
        request = request_of(wire, "https://localhost:4430", proxy=proxy, verify=lab.ca_file)

        assert runtime.run(request).text == "through and through"
        assert tunnel.targets == ["localhost:4430"]


def test_plain_request_by_way_of_a_proxy(runtime, wire):
    with Lab([WIRES[wire][0].answer("Hello")]) as proxy:
        request = request_of(
            wire, "http://far.test", proxy=f"http://{LOGIN}@127.0.0.1:{proxy.port}"
        )

        assert runtime.run(request).text == "Hello"
        [seen] = proxy.requests
        assert seen.target.startswith("http://far.test/")
        assert seen.headers["proxy-authorization"].startswith("Basic ")


@pytest.mark.parametrize(
    ("login", "refusal", "kind", "attempts"),
    [
        ("other:password", "", "auth", 1),
        (LOGIN, "403 Forbidden", "connection_lost", 1),
        (LOGIN, "502 Bad Gateway", "connection_lost", 2),
    ],
)
def test_proxy_that_refuses(runtime, wire, lab, *, login, refusal, kind, attempts):
    with Tunnel(lab.port, login=login, refusal=refusal) as tunnel:
        proxy = f"http://{LOGIN}@{tunnel.address}"
        request = request_of(wire, "https://localhost:4430", proxy=proxy, verify=lab.ca_file)
        error = failure_of(runtime, request)

        assert (error.failure.kind, error.failure.reason) == (kind, "proxy")
        assert len(tunnel.targets) == len(error.answer.attempts) == attempts
        assert "pass-word" not in str(error)
        assert lab.requests == []


def test_interrupt_closes_the_tunnel(runtime, wire):
    held = replace(WIRES[wire][0].answer("never"), steps=(gate("never"),))
    with Lab([held], tls=True) as lab, Tunnel(lab.port) as tunnel:
        proxy = f"http://{tunnel.address}"
        request = request_of(wire, "https://localhost:4430", proxy=proxy, verify=lab.ca_file)
        turn = runtime.start(request)
        lab.reached("never")
        assert tunnel.open_count == 1
        turn.interrupt("enough")

        with pytest.raises(tg.Interrupted, match="enough"):
            turn.result()
        lab.wait_closed()
        eventually(lambda: tunnel.open_count == 0)


ROLE = "arn:aws:iam::123456789012:role/reader"


def test_services_behind_credentials_are_reached_the_same_way(runtime, environment):
    through = {"role_arn": ROLE}
    with (
        Lab([session_of_role()], tls=True) as sts,
        Lab([converse.answer("Hello")], tls=True) as lab,
    ):
        environment("AWS_ENDPOINT_URL_STS", f"https://localhost:{sts.port}")
        place = f"https://localhost:{lab.port}"
        answer = runtime.run(request_of("converse", place, verify=lab.ca_file, **through))

        assert answer.text == "Hello"
        assert "Credential=ASIAROLE/" in lab.requests[0].headers["authorization"]
    with Lab([session_of_role(), converse.answer("Hello")]) as proxy:
        environment("AWS_ENDPOINT_URL_STS", "http://sts.test")
        options = {**through, "proxy": f"http://{LOGIN}@127.0.0.1:{proxy.port}"}
        answer = runtime.run(request_of("converse", "http://far.test", **options))

        assert answer.text == "Hello"
        assert [each.target.partition("/model")[0] for each in proxy.requests] == [
            "http://sts.test/",
            "http://far.test",
        ]


def test_proxy_of_the_environment(environment, wire, lab):
    with Tunnel(lab.port, login=LOGIN) as tunnel:
        environment("HTTPS_PROXY", f"http://{LOGIN}@{tunnel.address}")
        with tg.Runtime(workers=1) as runtime:
            answer = runtime.run(request_of(wire, "https://far.test", verify=False))

        assert answer.text == "through and through"
        assert tunnel.targets == ["far.test:443"]


@pytest.mark.parametrize("wire", ["chat", "converse"])
def test_proxy_of_the_environment_that_refuses_keeps_its_password_to_itself(environment, wire, lab):
    with Tunnel(lab.port, login="other:password") as tunnel:
        environment("HTTPS_PROXY", f"http://{LOGIN}@{tunnel.address}")
        with tg.Runtime(workers=1) as runtime:
            error = failure_of(runtime, request_of(wire, "https://far.test", verify=False))

        assert (error.failure.kind, error.failure.reason) == ("auth", "proxy")
        assert "pass-word" not in str(error)


@pytest.mark.parametrize("wire", ["chat", "converse"])
def test_proxy_of_the_environment_that_is_none_of_http(environment, wire):
    environment("ALL_PROXY", f"socks5://{LOGIN}@127.0.0.1:1080")
    with tg.Runtime(workers=1) as runtime:
        error = failure_of(runtime, request_of(wire, "https://far.test"))

    assert (error.failure.kind, error.failure.reason) == ("bad_request", "proxy")
    assert "socks5://127.0.0.1:1080 is no HTTP proxy" in error.failure.detail
    assert len(error.answer.attempts) == 1

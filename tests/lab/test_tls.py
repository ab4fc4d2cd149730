"""The lab behind TLS, with a certificate that verifies."""

import ssl
from pathlib import Path

import httpx
import pytest

from tidegate.lab import Answer, End, Lab, chat, send
from tidegate.testing.eventually import eventually


@pytest.fixture
def lab():
    with Lab(tls=True) as lab:
        yield lab


@pytest.fixture
def client(lab):
    context = ssl.create_default_context(cafile=lab.ca_file)
    context.verify_flags |= ssl.VERIFY_X509_STRICT
    with httpx.Client(verify=context, trust_env=False) as client:
        yield client


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_client_that_trusts_the_certificate_is_served(lab, client, host):
    lab.add(chat.answer("hello"), chat.answer("again"))

    for word in ("hello", "again"):
        assert word in client.post(f"https://{host}:{lab.port}/v1/chat", json={}).text
    assert {request.connection for request in lab.requests} == {1}


def test_client_that_does_not_trust_it_sends_nothing(lab):
    with (
        httpx.Client(trust_env=False) as client,
        pytest.raises(httpx.ConnectError, match="self-signed"),
    ):
        client.get(lab.url)

    assert lab.requests == []


def test_plain_client_is_refused(lab):
    with httpx.Client(trust_env=False) as client, pytest.raises(httpx.RemoteProtocolError):
        client.get(lab.url.replace("https:", "http:"))

    assert lab.requests == []


@pytest.mark.parametrize("end", [End.CUT, End.RESET])
def test_broken_body_behind_tls(lab, client, end):
    lab.add(Answer([send("x"), end]))

    with pytest.raises(httpx.TransportError):
        client.get(lab.url)

    assert lab.wait_closed().how == "server"


def test_client_that_leaves_is_noticed(lab, client):
    lab.add(Answer([send("x"), End.HOLD]))
    with client.stream("GET", lab.url) as response:
        assert next(response.iter_raw()) == b"x"

    assert lab.wait_closed().how == "eof"
    eventually(lambda: lab.open_connections_count == 0)


def test_certificate_lives_as_long_as_the_lab():
    with Lab(tls=True) as lab:
        path = Path(lab.ca_file)
        assert "BEGIN CERTIFICATE" in path.read_text()

    assert not path.exists()
    with pytest.raises(RuntimeError):
        _ = lab.ca_file

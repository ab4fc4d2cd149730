"""What is sent to Azure: the path for each kind of address, and a key or a token."""

import json

import pytest

from tidegate.lab import chat, responses
from tidegate.protocol.attempts import Target


TOKEN = "eyJhbGciOiJSUzI1NiJ9.eyJhdWQiOiJhenVyZSJ9.c2lnbmVk"
BODIES = {
    "chat": {"model": "my-gpt", "messages": []},
    "responses": {"model": "my-gpt", "input": "Hello"},
}
VERSION = "2024-10-21"


@pytest.fixture
def sent(worker, lab):
    """Send one request, and return it as the server saw it."""

    def send(wire="chat", path="", **fields):
        lab.add({"chat": chat, "responses": responses}[wire].answer("Hello"))
        target = Target(wire, base_url=lab.base + path, **{"api_version": VERSION} | fields)
        text, end = worker.outcome(target, json.dumps(BODIES[wire]).encode())

        assert (text, end.failure) == ("Hello", None)
        return lab.requests[-1]

    return send


@pytest.mark.parametrize(
    ("wire", "path", "expected"),
    [
        ("chat", "", "/openai/deployments/my-gpt/chat/completions"),
        ("chat", "/openai", "/openai/deployments/my-gpt/chat/completions"),
        ("chat", "/openai/deployments/other", "/openai/deployments/other/chat/completions"),
        ("chat", "/openai/v1", "/openai/v1/chat/completions"),
        ("chat", "/openai/v1/", "/openai/v1/chat/completions"),
        ("chat", "/gate", "/gate/openai/deployments/my-gpt/chat/completions"),
        ("responses", "", "/openai/responses"),
        ("responses", "/openai", "/openai/responses"),
        ("responses", "/openai/v1", "/openai/v1/responses"),
    ],
)
def test_path(sent, wire, path, expected):
    request = sent(wire, path, api_key="azure-key")

    assert request.target == f"{expected}?api-version={VERSION}"
    assert request.json() == {"stream": True, **BODIES[wire]}


def test_address_of_the_first_version_needs_no_other(sent):
    request = sent("chat", "/openai/v1", api_version="", api_key=TOKEN)

    assert request.target == "/openai/v1/chat/completions"
    assert request.headers["authorization"] == f"Bearer {TOKEN}"


@pytest.mark.parametrize("wire", ["chat", "responses"])
@pytest.mark.parametrize("path", ["", "/openai/v1"])
def test_key_and_token_go_each_by_its_own_header(sent, wire, path):
    by_key = sent(wire, path, api_key="azure-key").headers
    by_token = sent(wire, path, api_key=TOKEN).headers

    assert (by_key.get("api-key"), by_key.get("authorization")) == ("azure-key", None)
    assert (by_token.get("api-key"), by_token.get("authorization")) == (None, f"Bearer {TOKEN}")


def test_without_a_key_neither_is_sent_whatever_the_environment_of_the_worker(sent, monkeypatch):
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", "of-the-environment")
    monkeypatch.setenv("AZURE_OPENAI_AD_TOKEN", TOKEN)
    headers = sent().headers

    assert "api-key" not in headers
    assert "authorization" not in headers


@pytest.mark.parametrize("name", ["Api-Key", "Authorization"])
def test_header_of_ones_own_is_sent_instead(sent, name):
    headers = sent(headers=((name, "mine"),)).headers

    assert [headers.get("api-key"), headers.get("authorization")].count("mine") == 1

"""Whether the daemon is ready when an endpoint of it is not."""

import os

import httpx
import pytest

from tests.daemon.e2e.conftest import endpoint
from tests.daemon.hosting import PROMPT
from tidegate.lab import Answer, Lab, chat


CHAT = "/v1/chat/completions"
NO_PROXIES = dict.fromkeys(("no_proxy", "NO_PROXY"), "")

BROKEN = {
    "no key": ('wire = "chat"\napi_key = "env:NOT_THERE"', {}),
    "no project": ('wire = "messages"\nregion = "us-east5"\napi_key = "env:K"', {"K": "k"}),
    "no address": ('wire = "chat"\napi_key = "env:K"', {"K": "k", "OPENAI_BASE_URL": "nowhere"}),
    "the path of a request": (
        'wire = "messages"\napi_key = "env:K"',
        {"K": "k", "ANTHROPIC_BASE_URL": "http://127.0.0.1:9/v1/messages"},
    ),
    "no HTTP proxy": (
        'wire = "chat"\nbase_url = "http://api.test/v1"\napi_key = "env:K"',
        {"K": "k", "http_proxy": "socks5://127.0.0.1:9", **NO_PROXIES},
    ),
}


@pytest.fixture
def lab():
    with Lab([Answer(chat.answer("Hello").steps, repeat=True)]) as lab:
        yield lab


@pytest.mark.parametrize("trouble", BROKEN)
def test_endpoint_that_cannot_be_used_is_none_and_another_one_is_enough(serve, lab, trouble):
    table, environ = BROKEN[trouble]
    broken = f"[endpoints.broken]\n{table}"
    alone = serve(broken, environ=environ)
    with alone.client(trust_env=False) as client:
        answer = client.get("/readyz")
        assert (answer.status_code, answer.json()) == (503, {"status": "no_usable_endpoint"})

    alone.end()
    both = serve(broken, endpoint(lab), environ=environ)
    with both.client(trust_env=False) as client:
        assert client.get("/readyz").json() == {"status": "ok"}
    assert "Traceback" not in both.log.read_text()
    assert "Exception" not in both.log.read_text()


def test_key_file_that_becomes_a_pipe_stops_nobody(serve, lab, tmp_path):
    key = tmp_path / "key"
    key.write_text("provider-key")
    other = endpoint(lab, name="other")
    daemon = serve(
        f'[endpoints.main]\nwire = "chat"\nbase_url = "{lab.url}"\napi_key = "file:{key}"',
        other,
    )
    with daemon.client() as client:
        assert client.post(CHAT, json=PROMPT).status_code == 200
        key.unlink()
        os.mkfifo(key)

        refused = client.post(CHAT, json=PROMPT)

        assert "it is no regular file" in refused.json()["error"]["message"]
        assert client.get("/readyz").status_code == 200
        asked = {"endpoint": "other", "payload": PROMPT}
        assert client.post("/v1/turns", json=asked).status_code == 202
    assert httpx.get(f"{daemon.url}/livez").status_code == 200

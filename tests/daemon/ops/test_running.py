"""The running daemon: what it tells systemd, its log, scrapers and those who may not ask."""

import json
import re
import signal
import socket
from dataclasses import replace

import httpx
import pytest

from tests.daemon.hosting import DaemonProcess
from tidegate.daemon.access import owner_of
from tidegate.lab import Lab, chat
from tidegate.testing.eventually import eventually


KEY = "a-key-of-nobody"
PROVIDER_KEY = "provider-key-of-nobody"
PROMPT_TEXT = "what-the-user-has-asked"
ANSWER_TEXT = "what-the-model-has-said"
BEARER = {"authorization": f"Bearer {KEY}"}
GUARD_S = 30.0


@pytest.fixture(scope="module")
def manager(tmp_path_factory):
    """What stands for systemd."""
    path = str(tmp_path_factory.mktemp("systemd") / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(path)
        listening.settimeout(GUARD_S)
        yield listening, path


def heard(manager):
    return dict(line.split("=", 1) for line in manager[0].recv(4096).decode().split("\n"))


@pytest.fixture(scope="module")
def lab():
    with Lab([replace(chat.answer(ANSWER_TEXT), repeat=True)]) as lab:
        yield lab


@pytest.fixture(scope="module")
def daemon(tmp_path_factory, manager, lab):
    config = f"""
        listen = "127.0.0.1:0"
        keys = ["env:TEST_KEY"]
        log_format = "json"
        cors_origins = ["https://app.example"]
        body_bytes_max = 100000
        [endpoints.main]
        wire = "chat"
        base_url = "{lab.url}"
        api_key = "env:TEST_PROVIDER_KEY"
        [policy]
        retries = 0
    """
    environ = {
        "TEST_KEY": KEY,
        "TEST_PROVIDER_KEY": PROVIDER_KEY,
        "NOTIFY_SOCKET": manager[1],
    }
    daemon = DaemonProcess(tmp_path_factory.mktemp("daemon"), config, environ)
    told = heard(manager)
    yield daemon
    if daemon.process.poll() is None:
        daemon.end()
    assert told["READY"] == "1"


@pytest.fixture
def client(daemon):
    with daemon.client() as client:
        yield client


def ask(client, headers=BEARER, **more):
    body = {"model": "m", "messages": [{"role": "user", "content": PROMPT_TEXT}], **more}
    return client.post("/v1/chat/completions", json=body, headers=headers)


@pytest.mark.parametrize(
    ("path", "error"),
    [
        ("/v1/chat/completions", {"type": "authentication_error", "code": "invalid_api_key"}),
        ("/v1/responses", {"type": "authentication_error", "code": "invalid_api_key"}),
        ("/v1/messages", {"type": "authentication_error"}),
        ("/v1/turns", {"type": "auth"}),
    ],
)
def test_no_key_is_401_in_the_words_of_each_api(client, path, error):
    answer = client.post(path, json={})

    assert answer.status_code == 401
    assert answer.json()["error"].items() >= error.items()
    assert "x-api-key: KEY" in answer.json()["error"]["message"]


def test_name_of_another_host_is_403_with_a_key_too(client):
    for path in ("/livez", "/v1/turns", "/"):
        assert client.get(path, headers={**BEARER, "host": "evil.example"}).status_code == 403


def test_page_of_another_origin_is_403_and_one_that_is_listed_can_read(client):
    foreign = client.get("/metrics", headers={"origin": "https://evil.example"})
    listed = client.get("/metrics", headers={"origin": "https://app.example"})

    assert (foreign.status_code, listed.status_code) == (403, 200)
    assert listed.headers["access-control-allow-origin"] == "https://app.example"


@pytest.mark.parametrize(
    ("content", "headers", "status", "words"),
    [
        (b"x" * 200_000, {}, 413, "larger than 100000 bytes"),
        (b'{"model": tru}', {}, 400, "line 1, column 15"),
        (b"[]", {}, 400, "an array: send an object"),
        (b"{}", {"content-type": "text/plain"}, 415, "Content-Type: application/json"),
        (b"{}", {"tidegate-on-disconnect": "x" * 100}, 400, "tidegate-on-disconnect"),
    ],
)
def test_body_that_cannot_be_taken_is_said_why(client, content, headers, status, words):
    given = {"content-type": "application/json", **BEARER, **headers}
    for path in ("/v1/chat/completions", "/v1/messages", "/v1/turns"):
        answer = client.post(path, content=content, headers=given)
        assert answer.status_code == status
        assert words in answer.json()["error"]["message"]


@pytest.mark.parametrize("path", ["/v1/embeddings", "/v1/completions", "/nowhere"])
def test_path_that_is_not_there_is_told_from_those_that_are(client, path):
    answer = client.post(path, headers=BEARER, json={})

    assert answer.status_code == 404
    assert answer.json()["error"]["message"] == (
        f"there is nothing at '{path}': ask for a turn by POST to one of /v1/chat/completions, "
        "/v1/responses, /v1/messages; all other paths are in /openapi.json"
    )


def test_series_are_scraped_without_a_key_on_this_machine(client):
    assert ask(client).status_code == 200
    text = client.get("/metrics").text

    assert re.search(r'^tidegate_turns_total\{.*state="completed".*\} [1-9]', text, re.MULTILINE)
    assert re.search(r"^tidegate_journal_events_total [1-9]", text, re.MULTILINE)


def test_description_names_each_path_that_is_served(client):
    described = client.get("/openapi.json").json()["paths"]

    for path, methods in described.items():
        real = path.replace("{turn}", "turn_none").replace("{model}", "none")
        for method in methods:
            answer = client.request(method, real, headers=BEARER)
            assert answer.status_code != 405
            assert answer.status_code != 404 or "{" in path
            documented = methods[method]["responses"]
            status = str(answer.status_code)
            assert status in documented or f"{status[0]}XX" in documented


def logged(daemon):
    *whole, _ = daemon.log.read_text().split("\n")
    return [json.loads(line) for line in whole]


def is_of(turn, line):
    return line.get("turn") == turn and line.get("method") == "POST"


def test_log_has_each_request_and_no_word_out_of_it(daemon, client):
    answer = ask(client, headers={**BEARER, "x-secret": "secret-of-a-header"})
    turn = answer.headers["tidegate-turn"]
    client.get(f"/v1/turns/{turn}?after=secret-of-a-query", headers=BEARER)
    client.post("/v1/turns", content=b'{"secret-of-a-body', headers=BEARER)
    client.get("/livez")
    # A line is written when its request is over, which may be after its client has the answer.
    [line] = eventually(lambda: [each for each in logged(daemon) if is_of(turn, each)])
    text = daemon.log.read_text()

    assert line["path"] == "/v1/chat/completions"
    assert (line["status"], line["owner"]) == (200, owner_of(KEY))
    assert line["duration_s"] > 0
    assert not [each for each in logged(daemon) if each.get("path") == "/livez"]
    for word in (KEY, PROVIDER_KEY, PROMPT_TEXT, ANSWER_TEXT, "secret-of-a"):
        assert word not in text


def test_reload_is_told_and_done(daemon, manager):
    file = daemon.folder / "tidegate.toml"
    file.write_text(file.read_text().replace("https://app.example", "https://new.example"))
    daemon.process.send_signal(signal.SIGHUP)

    assert heard(manager)["RELOADING"] == "1"
    assert heard(manager)["READY"] == "1"
    headers = {"origin": "https://new.example"}
    assert httpx.get(f"{daemon.url}/metrics", headers=headers).status_code == 200


def test_end_is_told(daemon, manager):
    assert daemon.end() == 0

    assert heard(manager)["STOPPING"] == "1"


def test_what_stands_in_the_way_is_in_the_log_from_the_start(tmp_path):
    config = """
        listen = "127.0.0.1:0"
        [endpoints.main]
        wire = "chat"
        api_key = "env:KEY_THAT_NOBODY_SETS"
    """
    daemon = DaemonProcess(tmp_path, config)
    try:
        eventually(lambda: "KEY_THAT_NOBODY_SETS" in daemon.log.read_text())
    finally:
        assert daemon.end() == 0

    [line] = [line for line in daemon.log.read_text().splitlines() if "KEY_THAT" in line]
    assert "WARNING tidegate.daemon: configuration: endpoints.main: the environment var" in line

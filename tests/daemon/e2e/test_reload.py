"""The configuration is read again on SIGHUP, and holds if it can."""

import os
import signal

import pytest

from tests.daemon.e2e.conftest import endpoint
from tests.daemon.hosting import PROMPT
from tidegate.lab import Answer, Lab, chat, gate
from tidegate.testing.eventually import eventually


CHAT = "/v1/chat/completions"
APPLIED, KEPT = "the configuration was read again", "the configuration stays as it was"


@pytest.fixture
def lab():
    with Lab([Answer(chat.answer("old").steps, repeat=True)]) as lab:
        yield lab


@pytest.fixture
def other():
    with Lab([Answer(chat.answer("new").steps, repeat=True)]) as lab:
        yield lab


def read_again(daemon, text, told):
    """Give the daemon another file, and wait until its log has ``told`` once more."""
    before = daemon.log.read_text().count(told)
    (daemon.folder / "tidegate.toml").write_text(text)
    daemon.process.send_signal(signal.SIGHUP)
    eventually(lambda: daemon.log.read_text().count(told) > before)
    return daemon.log.read_text()


def file_of(*tables, top=""):
    return "\n".join(('listen = "127.0.0.1:0"', top, *tables))


def said(client, **options):
    return client.post(CHAT, json=PROMPT, **options).json()["choices"][0]["message"]["content"]


def test_new_endpoint_is_used_and_the_old_one_serves_what_it_began(serve, lab, other):
    held = [chat.text("Hel"), gate("go"), *chat.answer("lo").steps]
    with Lab([Answer(held)]) as first:
        daemon = serve(endpoint(first))
        with daemon.client() as client:
            asked = {"endpoint": "main", "payload": PROMPT}
            running = client.post("/v1/turns", json=asked).json()["id"]
            first.wait_requests(1)

            read_again(daemon, file_of(endpoint(other)), APPLIED)

            assert said(client) == "new"
            first.open("go")
            eventually(lambda: client.get(f"/v1/turns/{running}").json()["ended_at"])
            assert client.get(f"/v1/turns/{running}").json()["answer"]["text"] == "Hello"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("listen = ", "tidegate.toml"),
        ('lisen = "127.0.0.1:0"', "listen"),
        ('keys = ["env:NOT_THERE"]', "NOT_THERE"),
        ("max_running = 0", "max_running"),
        ('[endpoints.main]\nwire = "morse"', "wire"),
    ],
)
def test_broken_file_changes_nothing(serve, lab, text, words):
    daemon = serve(endpoint(lab))

    log = read_again(daemon, text, KEPT)

    assert words in log.split(KEPT)[-1]
    with daemon.client() as client:
        assert client.get("/readyz").status_code == 200
        assert said(client) == "old"


def test_what_needs_a_restart_stays_and_is_said(serve, lab, other):
    daemon = serve(endpoint(lab))

    text = file_of(endpoint(other), top='journal = "other.db"\nworkers = 7\nmax_running = 5')
    log = read_again(daemon, text, "needs a restart")

    assert "journal" in log.split("needs a restart")[-1]
    assert "workers" in log.split("needs a restart")[-1]
    assert not (daemon.folder / "other.db").exists()
    with daemon.client() as client:
        assert said(client) == "new"


def test_keys_are_changed_with_it(serve, lab):
    keys = {"TEST_KEY_A": "key-of-a-tester", "TEST_KEY_B": "key-of-another"}
    a, b = ({"authorization": f"Bearer {key}"} for key in keys.values())
    daemon = serve(endpoint(lab), top='keys = ["env:TEST_KEY_A"]', environ=keys)
    with daemon.client() as client:
        before = [client.post(CHAT, json=PROMPT, headers=each).status_code for each in (a, b)]
        both = file_of(endpoint(lab), top='keys = ["env:TEST_KEY_A", "env:TEST_KEY_B"]')
        read_again(daemon, both, APPLIED)
        turned = [client.post(CHAT, json=PROMPT, headers=each).status_code for each in (a, b)]
        one = file_of(endpoint(lab), top='keys = ["env:TEST_KEY_B"]')
        read_again(daemon, one, APPLIED)
        after = [client.post(CHAT, json=PROMPT, headers=each).status_code for each in (a, b)]

    assert (before, turned, after) == ([200, 401], [200, 200], [401, 200])


def test_key_file_that_is_gone_changes_nothing(serve, lab, tmp_path):
    (tmp_path / "key").write_text("key-of-a-tester")
    top = 'keys = ["file:key"]'
    daemon = serve(endpoint(lab), top=top)
    (tmp_path / "key").unlink()

    top_now = f'{top}\nmax_running = 1\nlog_level = "error"'
    log = read_again(daemon, file_of(endpoint(lab), top=top_now), KEPT)

    assert "the key file 'key' cannot be read" in log.split(KEPT)[-1]
    with daemon.client(headers={"authorization": "Bearer key-of-a-tester"}) as client:
        assert said(client) == "old"
    after = daemon.log.read_text().split(KEPT)[-1]
    assert "tidegate.daemon.requests" in after  # the level stays too
    assert " ERROR " not in after
    assert "Exception" not in after
    (tmp_path / "key").write_text("key-of-a-tester")


def test_file_that_becomes_a_pipe_changes_nothing(serve, lab):
    daemon = serve(endpoint(lab))
    file = daemon.folder / "tidegate.toml"
    file.unlink()
    os.mkfifo(file)

    daemon.process.send_signal(signal.SIGHUP)
    eventually(lambda: KEPT in daemon.log.read_text())

    assert "it is no regular file" in daemon.log.read_text().split(KEPT)[-1]
    with daemon.client() as client:
        assert said(client) == "old"


def test_limits_are_changed_with_it(serve, lab):
    held = Answer([gate("go"), *chat.answer("late").steps], repeat=True)
    with Lab([held]) as slow:
        daemon = serve(endpoint(slow), top="max_running = 1\nmax_queued = 1")
        asked = {"endpoint": "main", "payload": PROMPT}
        with daemon.client() as client:

            def ask():
                return client.post("/v1/turns", json=asked).status_code

            assert [ask(), ask(), ask()] == [202, 202, 429]
            top = "max_running = 3\nmax_queued = 0\nrate_per_minute = 3"
            read_again(daemon, file_of(endpoint(slow), top=top), APPLIED)
            eventually(lambda: len(slow.requests) == 2)  # what waited has its place now
            assert [ask(), ask()] == [202, 429]
            slow.open("go")


def test_level_of_the_log_is_changed_with_it(serve, lab):
    daemon = serve(endpoint(lab))
    with daemon.client() as client:
        assert said(client) == "old"
        log = read_again(daemon, file_of(endpoint(lab), top='log_level = "error"'), APPLIED)
        assert "tidegate.daemon.requests" in log

        assert said(client) == "old"

    assert daemon.log.read_text() == log

"""The first turn on a wire whose SDK the workers do not have yet, and which takes long to import.

The SDK is the real one. A ``sitecustomize`` of the workers' interpreter, which this process does
not read, holds its import up until the test lets it go on.
"""

import errno
import json
import os

import pytest

import tidegate as tg
from tidegate.lab import Answer, End, Lab, chat, converse, messages
from tidegate.testing.eventually import eventually


LIMIT_S = 2.0
"""Shorter than an import that waits for it to pass, longer than a sound first event takes."""

HOLD_UP = """
import sys


class Gate:
    def find_spec(self, name, path=None, target=None):
        if name == {sdk!r}:
            sys.meta_path.remove(self)
            with open({gate!r}) as gate:
                gate.read()


sys.meta_path.insert(0, Gate())
"""
TURN = [{"role": "user", "content": "Hello"}]
BLOCKS = [{"role": "user", "content": [{"text": "Hello"}]}]
SILENT = Answer([End.HOLD], repeat=True)


class Messages:
    sdk = "anthropic"
    answer = staticmethod(messages.answer)

    @staticmethod
    def request(lab, policy):
        payload = {"model": "m", "max_tokens": 9, "messages": TURN}
        return tg.Request(tg.Endpoint.messages(lab.base, "key"), payload, policy=policy)


class Converse:
    sdk = "botocore"
    answer = staticmethod(converse.answer)

    @staticmethod
    def request(lab, policy):
        endpoint = tg.Endpoint.converse("us-east-1", lab.base, api_key="key")
        return tg.Request(endpoint, {"modelId": "m", "messages": BLOCKS}, policy=policy)


@pytest.fixture(params=[Messages, Converse])
def wire(request):
    return request.param


@pytest.fixture
def runtime(wire, tmp_path, monkeypatch):
    """A runtime of one worker, which meets a gate where it imports the wire's SDK."""
    os.mkfifo(tmp_path / "gate")
    source = HOLD_UP.format(sdk=wire.sdk, gate=str(tmp_path / "gate"))
    (tmp_path / "sitecustomize.py").write_text(source)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with tg.Runtime(workers=1) as runtime:
        yield runtime


@pytest.fixture
def importing(tmp_path):
    """Wait for the import to begin; closing what is returned lets it go on."""

    def opened():
        try:
            return os.open(tmp_path / "gate", os.O_WRONLY | os.O_NONBLOCK)
        except OSError as error:
            if error.errno != errno.ENXIO:
                raise
            return None  # nobody reads there yet

    return lambda: os.fdopen(eventually(opened, within_s=30), "w")


def policy(**fields):
    return tg.Policy(**({"first_event_timeout_s": LIMIT_S, "retries": 0} | fields))


def ask_chat(lab, **fields):
    endpoint = tg.Endpoint.chat(lab.url, "key")
    return tg.Request(endpoint, {"model": "m", "messages": TURN}, policy=policy(**fields))


def stalled(runtime, lab):
    """Return when an attempt has stalled that began now, at a provider that is silent."""
    with pytest.raises(tg.StreamStalled):
        runtime.run(ask_chat(lab))


def test_provider_is_not_blamed_for_an_import_that_outlasts_its_limit(runtime, wire, importing):
    with Lab([wire.answer("Hel", "lo")]) as lab, Lab([SILENT]) as silent:
        turn = runtime.start(wire.request(lab, policy()))
        with importing():
            stalled(runtime, silent)  # so the limit of the other has passed as well
            assert lab.requests == []
        answer = turn.result()

    assert (answer.text, len(answer.attempts)) == ("Hello", 1)


def test_other_streams_of_the_worker_go_on_in_an_import(runtime, wire, importing):
    with Lab([wire.answer("Hello")]) as lab, Lab([chat.answer("on", "ward")]) as other:
        turn = runtime.start(wire.request(lab, policy()))
        with importing():
            assert runtime.run(ask_chat(other)).text == "onward"
        assert turn.result().text == "Hello"


def test_silence_behind_an_import_is_the_providers(runtime, wire, importing):
    with Lab([SILENT]) as lab:
        turn = runtime.start(wire.request(lab, policy()))
        importing().close()
        with pytest.raises(tg.StreamStalled) as caught:
            turn.result()

        assert caught.value.failure.reason == "first_byte"
        assert len(lab.requests) == 1


def test_interrupt_in_an_import_ends_the_turn_and_spares_the_worker(runtime, wire, importing):
    with Lab([wire.answer("Hello")]) as lab:
        turn = runtime.start(wire.request(lab, policy(kill_grace_s=0.05)))
        with importing():
            assert turn.interrupt()
            with pytest.raises(tg.Interrupted):
                turn.result()
            eventually(lambda: not runtime._supervisor.supervision.turns)
            assert lab.requests == []
        answer = runtime.run(wire.request(lab, policy()))

    assert (answer.text, len(lab.requests)) == ("Hello", 1)
    assert runtime.statistics().workers_killed == 0


CREDENTIALS = {"Version": 1, "AccessKeyId": "AKIAFAR", "SecretAccessKey": "secret"}


def test_client_that_takes_long_to_make_is_nobody_s_silence(monkeypatch, tmp_path, importing):
    """A client of botocore is there when it has credentials, which a program may be asked for."""
    os.mkfifo(tmp_path / "gate")
    program = f"[default]\ncredential_process = cat {tmp_path / 'gate'}\n"
    (tmp_path / "config").write_text(program)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_BEARER_TOKEN_BEDROCK"):
        monkeypatch.delenv(name, raising=False)
    settings = tg.Settings(preload=("converse",))
    with (
        Lab([SILENT]) as silent,
        Lab([converse.answer("Hello")]) as lab,
        tg.Runtime(workers=1, settings=settings) as runtime,
    ):
        request = tg.Request(
            tg.Endpoint.converse("us-east-1", lab.base),
            {"modelId": "m", "messages": BLOCKS},
            policy=policy(),
        )
        turn = runtime.start(request)
        with importing() as asking:
            stalled(runtime, silent)  # so the limit of the other has passed as well
            asking.write(json.dumps(CREDENTIALS))
        answer = turn.result()

    assert (answer.text, len(answer.attempts)) == ("Hello", 1)
    assert "Credential=AKIAFAR/" in lab.requests[0].headers["authorization"]

"""Plays a case through the daemon: on a client's own socket, with the turn's events beside it."""

import contextlib
import json
import signal
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

import tidegate as tg
from tests.cases.stage import PAYLOADS, Call, Play, answers_of
from tests.daemon.e2e.reading import body_of, events_in
from tests.daemon.hosting import DaemonProcess
from tests.daemon.sockets import Client
from tidegate.daemon.fronts import front_for
from tidegate.lab import Lab, chat
from tidegate.protocol.events import AnyEvent
from tidegate.testing.eventually import eventually


CHAT = "/v1/chat/completions"
STREAMED = PAYLOADS["chat"] | {"stream": True}


@contextlib.contextmanager
def daemon_before(lab, *, wire="chat", more="", folder=None):
    """Run a daemon in front of a lab; it may be killed meanwhile."""
    with contextlib.ExitStack() as stack:
        place = Path(folder or stack.enter_context(tempfile.TemporaryDirectory()))
        config = (
            f'listen = "127.0.0.1:0"\n{more}\n[endpoints.main]\nwire = "{wire}"\n'
            f'base_url = "{lab.url}"\napi_key = "env:CASE_KEY"\n[policy]\nretries = 0\n'
        )
        daemon = DaemonProcess(place, config, {"CASE_KEY": "test-key"})
        try:
            yield daemon
        finally:
            if daemon.process.poll() is None:
                assert daemon.end(number=signal.SIGTERM) == 0
            else:
                daemon.ended()


@dataclass
class ServedCall(Call):
    """One turn of the daemon, with the frames that its client got."""

    frames: list[str] = field(default_factory=list)

    @property
    def finish(self):
        """How the answer ended for the client, which was told nothing if it did not."""
        choices = [choice for chunk in chunks_in(self.frames) for choice in chunk["choices"]]
        told = [choice["finish_reason"] for choice in choices if choice["finish_reason"]]
        assert len(told) <= 1
        return told[0] if told else None


class ServedStage:
    """A daemon in front of a lab, for one case; what it made is closed by ``closing``."""

    def __init__(self, closing, folder):
        self._closing = closing
        self._folder = folder
        self._labs = []

    @property
    def unexpected(self):
        """The requests for which no answer was left."""
        return [request for lab in self._labs for request in lab.unexpected]

    def log(self):
        """What the daemon has logged."""
        return self.daemon.log.read_text()

    def serve(self, case, wire="chat"):
        """Start what the case needs, and look at it before anything happens."""
        lab = self._closing.enter_context(Lab(answers_of(case)))
        self._labs.append(lab)
        settings = case.given.settings
        more = ""
        if settings.heartbeat_ms is not None:
            # Life is sent from the status line on, which waits for the provider no longer.
            seconds = settings.heartbeat_ms / 1000
            more = f"heartbeat_s = {seconds}\ncommit_after_s = {seconds}\n"
        assert settings.max_attempts == 1
        made = daemon_before(lab, wire=wire, more=more, folder=self._folder)
        self.daemon = self._closing.enter_context(made)
        self.http = self._closing.enter_context(self.daemon.client())
        self._warm()
        self._sockets = self._open_sockets()
        return lab

    def _warm(self):
        """Have the workers load what they need, so that no case waits for it."""
        with Lab([chat.answer("warm")]) as lab:
            text = (self._folder / "tidegate.toml").read_text()
            warm = text.replace(self._labs[-1].url, lab.url).replace('"responses"', '"chat"')
            self._read_again(warm)
            self.http.post(CHAT, json=PAYLOADS["chat"], timeout=60).raise_for_status()
            self._read_again(text)

    def _read_again(self, text):
        before = self.log().count("was read again")
        (self._folder / "tidegate.toml").write_text(text)
        self.daemon.process.send_signal(signal.SIGHUP)
        eventually(lambda: self.log().count("was read again") > before)

    def idle(self):
        """Wait until no turn runs, and no socket is open that was not before."""
        for state in ("queued", "running"):
            eventually(lambda state=state: not self._turns(f"?state={state}"))
        eventually(lambda: self._open_sockets() <= self._sockets)

    def ask(self, body):
        """Ask for a chat completion on a socket of its own."""
        client = self._closing.enter_context(Client(self.daemon.port))
        return client.ask("POST", CHAT, body)

    def newest(self):
        """Return the name of the turn that was asked for last."""
        return self._turns("?limit=1")[0]["id"]

    def call(self, turn_id, began_s):
        """Return a turn as the daemon's own stream tells it, from its first event to its end."""
        ended_s = time.monotonic()
        path = f"/v1/turns/{turn_id}"
        eventually(lambda: self.http.get(path).json()["ended_at"])
        body = self.http.get(f"{path}/events").content
        events = [msgspec.convert(each.data, AnyEvent) for each in events_in(body)]
        answer = events[-1].answer
        return ServedCall(answer, answer.failure, events, began_s, ended_s)

    def _turns(self, query):
        return self.http.get(f"/v1/turns{query}").json()["turns"]

    def _open_sockets(self):
        links = []
        for each in Path(f"/proc/{self.daemon.process.pid}/fd").iterdir():
            with contextlib.suppress(OSError):
                links.append(each.readlink())
        return sum(str(link).startswith("socket:") for link in links)


def play(case, stage):
    """Do what a case says, and return what was seen."""
    return DOWNSTREAM[tuple(case.given.downstream)](case, stage)


def _to_the_end(case, stage):
    """SRV-01, SRV-03, SRV-05: keep all bytes, and when they came."""
    lab = stage.serve(case)
    began_s = time.monotonic()
    client = stage.ask(STREAMED)
    arrivals = []
    while not client.got.endswith(b"\r\n0\r\n\r\n"):
        before = len(client.got)
        client.more()
        arrivals.append((time.monotonic(), client.got[before:]))
    call = stage.call(client.turn_id, began_s)
    head, _, _ = client.got.partition(b"\r\n\r\n")
    client.leave()
    facts = {"head": head.decode(), "arrivals": arrivals, "got": client.got}
    call.frames = body_of(client.got).decode().split("\n\n")[:-1]
    assert text_in(call.frames) == call.answer.text
    return Play(stage, case, lab, [call], facts)


def _leave_mid_stream(case, stage):
    """CAN-01."""
    lab = stage.serve(case)
    began_s = time.monotonic()
    client = stage.ask(STREAMED)
    client.until(b'"content":"x"')
    return _left(case, stage, lab, client, began_s)


def _leave_while_it_waits(case, stage):
    """CAN-03."""
    lab = stage.serve(case)
    began_s = time.monotonic()
    client = stage.ask(PAYLOADS["chat"] | {"stream": False})
    lab.wait_requests(1)
    time.sleep(0.3)  # the case says so
    return _left(case, stage, lab, client, began_s)


def _left(case, stage, lab, client, began_s):
    left_s = time.monotonic()
    client.leave("close")
    closed = lab.wait_closed(0)
    call = stage.call(stage.newest(), began_s)
    facts = {"closed": closed, "closed_after_s": closed.at_s - left_s}
    return Play(stage, case, lab, [call], facts)


def _other_wire(case, stage):
    """SRV-09: nothing is translated between wires here, so a turn of that wire stands for it.

    It is run by the daemon, whose own stream tells of its calls in order; and what it tells is
    rendered by the front of the chat API, as it would be for a client of that.
    """
    lab = stage.serve(case, wire="responses")
    began_s = time.monotonic()
    body = {"endpoint": "main", "payload": PAYLOADS["responses"]}
    call = stage.call(stage.http.post("/v1/turns", json=body).json()["id"], began_s)
    asked = STREAMED | {"stream_options": {"include_usage": True}}
    front = front_for("chat", "turn_1", asked, notices=True, created=0)
    got = b"".join(front.frames(event, tg.Answer) for event in call.events)
    call.frames = got.decode().split("\n\n")[:-1]
    return Play(stage, case, lab, [call])


def chunks_in(frames):
    """Return the chunks of a chat completion, without what is no such chunk."""
    shown = [each.removeprefix("data: ") for each in frames if each.startswith("data: {")]
    return [chunk for each in shown if "choices" in (chunk := json.loads(each))]


def text_in(frames):
    """Return the text that a chat client has got."""
    deltas = [choice["delta"] for chunk in chunks_in(frames) for choice in chunk["choices"]]
    return "".join(delta.get("content") or "" for delta in deltas)


DOWNSTREAM = {
    ("POST stream=true, keep headers and arrival times",): _to_the_end,
    ("POST stream=true, keep the raw bytes",): _to_the_end,
    ("POST stream=true",): _to_the_end,
    (
        "POST /v1/chat/completions stream=true",
        "close the socket after the second content frame",
    ): _leave_mid_stream,
    (
        "POST /v1/chat/completions stream=false",
        "close the socket after 300 ms",
    ): _leave_while_it_waits,
    ("POST /v1/chat/completions stream=true, include_usage",): _other_wire,
}

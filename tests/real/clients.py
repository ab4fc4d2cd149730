"""The clients of others: the official SDKs in Python and in Node, and Vercel's in Node.

Each is asked the same, and says what it got as the same plain data: so one test holds for all.
"""

import json
import subprocess
import threading
from concurrent.futures import Future
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from itertools import count, islice
from typing import Any

import anthropic
import httpx2
import openai

from tests.real.processes import FILES, INSTALLED, node


ANSWERED_S = 60
LEFT_AFTER = 5
"""Events after which a stream is left; ``clients.mjs`` has it too."""

WAYS = ("plain", "raw", "joined")
"""An answer at once; each event of a stream as it is; a stream that the SDK puts together."""

ASKING = tuple(
    (client, way)
    for client in ("python", "node", "vercel")
    for way in WAYS
    if (client, way) != ("vercel", "raw")  # its streams are always put together
)
STREAMING = tuple(each for each in ASKING if each[1] != "plain")


@dataclass(frozen=True)
class Question:
    """What a client is asked to ask.

    Attributes:
        words: the user's.
        tools: whether the tool is offered; Vercel's client then calls it, and tells what it says.
        limit: of tokens.
        model: by name.
        more: fields of the payload in place of those that are made of the words.
        before: what stands before the words, as Vercel's client has it.
    """

    words: str
    tools: bool = False
    limit: int = 60
    model: str = "smollm2"
    more: dict[str, Any] = field(default_factory=dict)
    before: tuple[dict[str, Any], ...] = ()

    def payload(self, wire, way):
        """Return it as the JSON of a wire."""
        payload = wire.prompt(self.words, self.limit) | {"model": self.model} | self.more
        if self.tools:
            payload |= wire.tool
        if wire.name == "chat" and way != "plain":
            payload["stream_options"] = {"include_usage": True}
        return payload

    def vercel(self):
        """Return it as Vercel's client is asked."""
        return {
            "model": self.model,
            "messages": [*self.before, {"role": "user", "content": self.words}],
            "limit": self.limit,
            "tools": self.tools,
        }


@dataclass(frozen=True)
class Got:
    """What a client got.

    Attributes:
        events: of a stream, as plain data; from Vercel's the names of its parts.
        final: the answer, as plain data; None if the client puts none together.
        error: name, status, words and ``Retry-After`` of what was raised, or None.
    """

    events: list[Any] = field(default_factory=list)
    final: dict[str, Any] | None = None
    error: dict[str, Any] | None = None


class Python:
    """The official SDKs of this process."""

    name = "python"

    def __init__(self):
        self._clients = {}

    def ask(self, wire, base, question, way):
        """Ask on a wire; ``base`` is the address of a server, without a version."""
        api, payload = wire.name, question.payload(wire, way)
        if api == "messages":  # the types of this SDK have no temperature any more
            payload["extra_body"] = {"temperature": payload.pop("temperature")}
        client = self.client(api, base)
        resource = client.chat.completions if api == "chat" else getattr(client, api)
        events = []
        try:
            final = _python(resource, payload, way, events)
        except Exception as raised:  # noqa: BLE001 - whatever a client raises is looked at
            answered = getattr(raised, "response", None)
            error = {
                "name": type(raised).__name__,
                "status": answered and answered.status_code,
                "message": str(raised),
                "retry_after": answered and answered.headers.get("retry-after"),
            }
            return Got(events, None, error)
        return Got(events, final, None)

    def client(self, api, base):
        """Return the SDK's client for one of the APIs below ``base``."""
        known = self._clients.get((api == "messages", base))
        if known is None:
            sdk = anthropic if api == "messages" else openai
            # No connection waits for more: what is left open after a test is a mistake of ours.
            http = sdk.DefaultHttpxClient(limits=httpx2.Limits(max_keepalive_connections=0))
            url = base if api == "messages" else f"{base}/v1"
            make = getattr(sdk, "Anthropic" if api == "messages" else "OpenAI")
            known = make(api_key="key", base_url=url, max_retries=0, http_client=http)
            self._clients[api == "messages", base] = known
        return known

    def close(self):
        """Close its connections."""
        for client in self._clients.values():
            client.close()


def _python(resource, payload, way, events):
    if way == "plain":
        return resource.create(**payload).to_dict()
    if way in {"raw", "left"}:
        with resource.create(**payload, stream=True) as stream:
            for event in islice(stream, LEFT_AFTER if way == "left" else None):
                events.append(event.to_dict())
        return None
    with resource.stream(**payload) as stream:
        events += [each.type for each in stream]
        return getattr(stream, _FINAL[type(stream).__name__])().to_dict()


_FINAL = {
    "ChatCompletionStream": "get_final_completion",
    "ResponseStream": "get_final_response",
    "MessageStream": "get_final_message",
}


class Node:
    """A process that asks as programs in Node do.

    Args:
        process: it.
        client: which SDKs it asks with, ``official`` or ``vercel``.
    """

    def __init__(self, process, client):
        self.name = {"official": "node"}.get(client, client)
        self._process = process
        self._client = client

    def ask(self, wire, base, question, way):
        """Ask on a wire; ``base`` is the address of a server, without a version."""
        vercel = self._client == "vercel"
        payload = question.vercel() if vercel else question.payload(wire, way)
        told = self._process.ask(
            client=self._client, api=wire.name, base=base, payload=payload, way=way
        )
        return Got(told["events"], told["final"], told["error"])


class NodeProcess:
    """Runs ``clients.mjs``, which is asked from any number of threads.

    Args:
        log: a file for what it has to say.
    """

    def __init__(self, log):
        command = [node(), FILES / "clients.mjs", INSTALLED / "package.json"]
        self._ids = count()
        self._writing = threading.Lock()
        self._asked = {}
        self._process = subprocess.Popen(
            list(map(str, command)),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
        self._reading = threading.Thread(target=self._read)
        self._reading.start()

    def ask(self, **question):
        """Ask, and wait for what came of it."""
        answer = Future()
        with self._writing:
            number = next(self._ids)
            self._asked[number] = answer
            self._process.stdin.write(json.dumps({"id": number, **question}) + "\n")
            self._process.stdin.flush()
        return answer.result(ANSWERED_S)

    def _read(self):
        for line in self._process.stdout:
            told = json.loads(line)
            self._asked.pop(told["id"]).set_result(told)
        for answer in self._asked.values():
            answer.set_exception(RuntimeError("the clients' process has ended: see its log"))

    def close(self):
        """End it."""
        self._process.stdin.close()
        self._process.wait(20)
        self._reading.join(20)
        self._process.stdout.close()


@contextmanager
def node_clients(log):
    """Run the clients in Node until the block ends."""
    with log.open("wb") as output, closing(NodeProcess(output)) as running:
        yield running

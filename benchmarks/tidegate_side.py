"""tidegate, as its documentation has it: a runtime, turns, and somebody who reads them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import partial
from typing import Any

import tidegate as tg
from benchmarks.histories import payload, times_to_first
from benchmarks.readers import Readers, read_one
from benchmarks.sides import serve
from benchmarks.tidegate_faults import interrupt_many, kill_stale, stop_workers
from benchmarks.tidegate_streams import Streams, first_deltas


SDKS = ("aiohttp", "anthropic", "boto3", "botocore", "httpx", "httpx2", "openai", "pydantic")


ENDPOINTS = {
    "chat": lambda url: tg.Endpoint.chat(url, "none"),
    "responses": lambda url: tg.Endpoint.responses(url, "none"),
    "messages": lambda url: tg.Endpoint.messages(url.removesuffix("/v1"), "none"),
    "converse": lambda url: tg.Endpoint.converse(
        "us-east-1", url.removesuffix("/v1"), api_key="none"
    ),
}


def request(url: str, wire: str = "chat", **more: Any) -> tg.Request:
    """Make the request for a stream; ``more`` is what else the wire takes, or notes of ours."""
    if wire == "converse" and more:
        more = {"requestMetadata": more}
    content = [{"text": "go"}] if wire == "converse" else "go"
    model = "modelId" if wire == "converse" else "model"
    question = {model: "lab", "messages": [{"role": "user", "content": content}], **more}
    return tg.Request(ENDPOINTS[wire](url), question)


class TidegateSide:
    """What it can be asked for.

    Args:
        runtime: runs every turn.
    """

    def __init__(self, runtime: tg.Runtime) -> None:
        self._runtime = runtime
        self._readers: Readers | Streams

    def read(self, url: str, wire: str = "chat") -> dict[str, float]:
        """Read one stream."""
        return read_one(partial(self._texts, wire=wire), url)

    def begin(self, url: str, streams: int) -> dict[str, float]:
        """Begin to read many, a thread each."""
        self._readers = Readers(self._texts, url, streams)
        return self._readers.start()

    def begin_stamped(self, url: str, streams: int) -> dict[str, Any]:
        """Begin to read many in one event loop."""
        self._readers = Streams(self._runtime, request(url), streams)
        return self._readers.start()

    def count(self) -> dict[str, Any]:
        """Return the count so far."""
        return self._readers.count()

    def finish(self) -> dict[str, Any]:
        """Return the count when all is read."""
        return self._readers.finish()

    def first(self, url: str, times: int) -> list[float]:
        """Return the times to first delta of so many turns."""
        return first_deltas(self._runtime, request(url), times)

    def first_long(self, url: str, wire: str, times: int) -> list[float]:
        """Return the times to the first delta of turns with a long history."""
        endpoint, history = ENDPOINTS[wire](url), payload(wire)

        def texts() -> Iterator[str]:
            for event in self._runtime.start(tg.Request(endpoint, history)):
                if isinstance(event, tg.TextDelta):
                    yield event.text

        return times_to_first(texts, times)

    def interrupt(self, url: str, turns: int, samples: int, wire: str) -> list[dict[str, Any]]:
        """Interrupt turns that stream."""
        make = partial(request, wire=wire)
        return interrupt_many(self._runtime, make, url=url, turns=turns, samples=samples)

    def kill_stale(self, url: str, kills: int, budget_s: float) -> list[dict[str, float]]:
        """Let turns go stale."""
        return kill_stale(self._runtime, request, url=url, kills=kills, budget_s=budget_s)

    def stop_workers(self, url: str, samples: int, port: int) -> list[dict[str, float]]:
        """Interrupt turns whose worker is stopped."""
        return stop_workers(self._runtime, request, url=url, samples=samples, port=port)

    def sdks(self) -> list[str]:
        """Return the names of the SDKs that this process has imported."""
        return [name for name in SDKS if name in sys.modules]

    def _texts(self, url: str, wire: str = "chat") -> Iterator[str]:
        for event in self._runtime.start(request(url, wire)):
            if isinstance(event, tg.TextDelta):
                yield event.text


def main() -> None:
    """Serve with one runtime."""
    with tg.Runtime(settings=tg.Settings(worker_restarts_max=10_000)) as runtime:
        serve(TidegateSide(runtime))


if __name__ == "__main__":
    main()

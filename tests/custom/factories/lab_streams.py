"""Streams of a user's own: some speak to a lab with httpx, others do what they are told.

Imported by workers, and by the tests for what is read inline. What happens is noted in a file, for
a test cannot look into a worker.
"""

import asyncio
import contextlib
import json
import os
import threading
import time

import httpx

from tidegate.custom import (
    Finish,
    Interruptible,
    Reasoning,
    Refusal,
    Response,
    Text,
    Tool,
    Usage,
    hang_up,
)


released = threading.Event()
"""What ``held`` waits for, where it is read in the tests' own process."""


GRUMBLE = "close went wrong"


class BrokenOut(BaseException):
    """No ``Exception``, as those with which some frameworks end their tasks."""


class Riddle(Exception):
    """An error that says nothing of itself."""

    @property
    def response(self):
        raise LookupError("no response")


class Streams:
    def __init__(self):
        self.served = 0
        self.payload = {}
        self.client = httpx.Client(timeout=None)
        self.async_client = httpx.AsyncClient(timeout=None)

    def stream(self, payload):
        self.served += 1
        self.payload = payload
        return getattr(self, payload["how"])(payload)

    async def close(self):
        note(self.payload, f"factory closed, client closed: {self.client.is_closed}")
        self.client.close()
        await self.async_client.aclose()

    def told(self, payload):
        """Yield what the payload lists."""
        try:
            for name, *arguments in payload["pieces"]:
                yield self.piece(name, arguments)
        finally:
            note(payload, "closed")

    async def told_async(self, payload):
        try:
            for name, *arguments in payload["pieces"]:
                yield self.piece(name, arguments)
        finally:
            await asyncio.sleep(0)
            note(payload, "closed")

    async def in_one_task(self, payload):
        """Note the task at each step: what is entered in one must be left in the same."""

        def note_task():
            note(payload, f"task {id(asyncio.current_task())}")

        note_task()
        try:
            for piece in ("a", "b"):
                yield piece
                note_task()
            await asyncio.Event().wait()
        finally:
            note_task()
            note(payload, "closed")

    async def awaited(self, payload):
        return self.told_async(payload)

    def piece(self, name, arguments):
        makers = {
            "text": Text,
            "reasoning": Reasoning,
            "refusal": Refusal,
            "tool": Tool,
            "response": Response,
            "finish": Finish,
            "plain": str,
            "odd": complex,
        }
        if name in makers:
            return makers[name](*arguments)
        if name == "usage":
            return Usage(input_tokens=arguments[0], output_tokens=arguments[1])
        if name == "where":
            place = f"{os.getpid()}/{threading.get_ident()}"
            return Response(place, f"{id(self)}", self.served)
        return getattr(self, name)(*arguments)

    def fail(self, words):
        raise ValueError(words)

    def interrupt_key(self):
        raise KeyboardInterrupt

    def exit(self):
        os._exit(7)

    def leave(self):
        raise SystemExit(3)

    def break_out(self):
        raise BrokenOut("of all")

    def riddle(self):
        raise Riddle

    def sync(self, payload):
        """Read a lab's chat stream; cannot be closed while it waits."""
        try:
            with self.client.stream("POST", payload["url"], json={}) as response:
                response.raise_for_status()
                yield from pieces_of(response.iter_lines())
        finally:
            note(payload, "closed")

    async def asynchronous(self, payload):
        try:
            async with self.async_client.stream("POST", payload["url"], json={}) as response:
                response.raise_for_status()
                async for line in response.aiter_lines():
                    for piece in pieces_of([line]):
                        yield piece
        finally:
            note(payload, "closed")

    def interruptible(self, payload):
        request = self.client.build_request("POST", payload["url"], json={})
        response = self.client.send(request, stream=True)

        def unblock():
            note(payload, "unblocked")
            hang_up(response)

        def pieces():
            with contextlib.closing(response):
                response.raise_for_status()
                yield from pieces_of(response.iter_lines())

        return Interruptible(pieces(), unblock)

    def held(self, payload):
        """Wait for the test, whatever is done to it."""
        try:
            yield "held"
            note(payload, "holding")
            released.wait()
            yield "late"
            yield Finish()
        finally:
            note(payload, "closed")

    def stubborn(self, payload):
        """Never return."""
        yield "stubborn"
        note(payload, "stuck")
        while True:
            time.sleep(60)

    async def busy(self, payload):
        """Never return, and never let the loop turn either."""
        yield "busy"
        note(payload, "stuck")
        while True:
            time.sleep(60)  # noqa: ASYNC251 - that is the trouble with it

    def endless(self, payload):
        """Yield kilobytes, and note each."""
        try:
            for number in range(100_000):
                note(payload, str(number))
                yield "x" * 1024
        finally:
            note(payload, "closed")

    def number(self, _payload):
        return 5

    async def awaited_number(self, _payload):
        return 5

    def bad_close(self, _payload):
        return BadClose()

    def bad_async_close(self, _payload):
        return BadAsyncClose()


class BadClose:
    def __iter__(self):
        yield "fine"
        yield Finish()

    def close(self):
        raise RuntimeError(GRUMBLE)


class BadAsyncClose:
    async def __aiter__(self):
        yield "fine"
        yield Finish()

    async def aclose(self):
        raise RuntimeError(GRUMBLE)


class NeverCloses(Streams):
    async def close(self):
        await super().close()
        raise RuntimeError(GRUMBLE)


class NoStream:
    pass


class Demanding(Streams):
    def __init__(self, url, *, key, patience_s=5, **options):
        super().__init__()


not_callable = 5


def raises():
    raise httpx.ConnectError("the factory has no network")


def pieces_of(lines):
    for line in lines:
        if line.startswith(":"):
            yield ""  # it lives
        if not line.startswith("data: {"):
            continue
        chunk = json.loads(line.removeprefix("data: "))
        if chunk.get("usage"):
            usage = chunk["usage"]
            yield Usage(
                input_tokens=usage["prompt_tokens"], output_tokens=usage["completion_tokens"]
            )
        for choice in chunk["choices"]:
            if choice["delta"].get("content"):
                yield choice["delta"]["content"]
            if choice["finish_reason"]:
                yield Finish(choice["finish_reason"])


def note(payload, words):
    if "notes" in payload:
        with open(payload["notes"], "a") as notes:  # noqa: PTH123 - as a user would
            notes.write(f"{words}\n")

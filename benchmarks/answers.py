"""What the provider answers: the path of a request says which stream it wants.

``/flow/EVENTS/PER_WRITE`` as fast as it is read, on the wire that the rest of the path names;
``/paced/EVENTS/EVERY_US`` one write an event, likewise; ``/stamped/EVENTS/EVERY_US`` the same, each
text being the instant of its write; ``/first/AFTER_US`` one event at once and another one a little
later; ``/stall`` two events, then silence; ``/report`` what was seen of each request so far, by its
``user``.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import cached_property, lru_cache
from typing import NamedTuple

from tidegate.lab import Answer, End, Request, chat, converse, messages, pace, responses
from tidegate.lab.script import EVENT_STREAM, FINAL_CHUNK, Blast, Send, Step, Wait


WORDS = (" tide", " gate", " lets", " the", " current", " through", " one", " way")
TURNOVER = 64
"""Of so many events a prepared block consists; fewer blocks are written faster."""


def text_of(count: int) -> str:
    """Return the answer's text after ``count`` events."""
    whole, rest = divmod(count, len(WORDS))
    return "".join(WORDS) * whole + "".join(WORDS[:rest])


def chunk(word: str) -> Send:
    """Write a text delta with all the fields that the large provider sends."""
    choice = {"index": 0, "delta": {"content": word}, "logprobs": None, "finish_reason": None}
    return chat.chunk(
        [choice], service_tier="default", system_fingerprint="fp_44709d6fcb", obfuscation="aB3xY9"
    )


def event(word: str) -> Send:
    """Write a text delta of the Responses wire with all the fields that its maker sends."""
    return responses.event(
        "output_text.delta",
        sequence_number=417,
        item_id="msg_67c9fdcf37fc8190ba82116e33fb28c507b8b0ad4e5eb654",
        output_index=0,
        content_index=0,
        delta=word,
        logprobs=[],
        obfuscation="aB3xY9kQ2m",
    )


def converse_word(word: str) -> Send:
    """Write a text delta with the padding that Bedrock adds."""
    value = {"contentBlockIndex": 0, "delta": {"text": word}, "p": "abcdefghijklmno"}
    return converse.event("contentBlockDelta", value)


class Frames(NamedTuple):
    """How a wire writes a text: what comes first, each word, and what comes last."""

    first: tuple[Send, ...]
    word: Callable[[str], Send]
    last: tuple[Send, ...]
    headers: Mapping[str, str] = EVENT_STREAM


FRAMES = {
    "/v1/chat/completions": Frames((chat.role(),), chunk, (chat.finish(), chat.done())),
    "/v1/responses": Frames(
        (responses.created(), responses.added(responses.message())),
        event,
        (responses.item_done(responses.said("")), responses.completed()),
    ),
    "/v1/messages": Frames(
        (messages.start(), messages.text_start(), messages.ping()),
        messages.text,
        (messages.block_stop(0), messages.stop_reason(), messages.stop()),
    ),
    "/model/lab/converse-stream": Frames(
        (converse.message_start(),),
        converse_word,
        (converse.block_stop(), converse.message_stop(), converse.metadata(9, 9)),
        converse.EVENT_STREAM,
    ),
}
"""By the path that the wire's SDK adds to a base URL."""


@lru_cache
def flow(count: int, per_write: int, path: str = "/v1/chat/completions") -> Answer:
    """Make a coalesced stream: many events a write, each an HTTP chunk of its own."""
    words = [WORDS[place % len(WORDS)] for place in range(per_write)]
    assert count % per_write == 0 == per_write % len(WORDS), "whole writes, each of whole sentences"
    frames = FRAMES[path]
    block = b"".join(_http_chunk(frames.word(word)) for word in words)
    rest = b"".join(map(_http_chunk, frames.last)) + FINAL_CHUNK
    first = Send(b"".join(map(_http_chunk, frames.first)))
    steps = (first, Blast((block,), count // per_write), Send(rest), End.KEEPALIVE)
    return Answer(steps, headers={**frames.headers, "transfer-encoding": "chunked"}, verbatim=True)


@lru_cache
def paced(count: int, every_us: int, path: str = "/v1/chat/completions") -> Answer:
    """Make a stream of one event a write."""
    whole, rest = divmod(count, len(WORDS))
    frames = FRAMES[path]
    words = [frames.word(word) for word in WORDS]
    every_s = every_us / 1e6
    body: list[Step] = [pace(words, every_s, times=whole)] if whole else []
    body += [pace(words[:rest], every_s)] if rest else []
    return Answer((*frames.first, *body, *frames.last, End.KEEPALIVE), headers=frames.headers)


@lru_cache
def first(after_us: int) -> Answer:
    """Make a stream that begins at once, and ends when its beginning has been dealt with."""
    one, two = map(chunk, WORDS[:2])
    return Answer(
        (chat.role(), one, Wait(after_us / 1e6), two, chat.finish(), chat.done(), End.KEEPALIVE)
    )


@lru_cache
def stall() -> Answer:
    """Make a stream that falls silent after two events."""
    return Answer((chat.role(), *map(chunk, WORDS[:2]), End.HOLD))


class _Stamp(Send):
    """A write whose text is the monotonic instant at which it is made."""

    def __init__(self) -> None:
        """Ignore the fields of the base: what is written is not known before."""

    @property
    def data(self) -> bytes:
        """Say what time it is."""
        return _http_chunk(chunk(f"{time.monotonic():.6f}"))


class _Stamped(Answer):
    """A paced stream that says when each of its events was written."""

    @cached_property
    def program(self) -> tuple[Step, ...]:
        """Its steps; each wait is as long as asked for, whatever was late before."""
        first, wait, *_ = self.steps
        assert isinstance(first, Send)
        assert isinstance(wait, Wait)
        rest = b"".join(map(_http_chunk, (chat.finish(), chat.done()))) + FINAL_CHUNK
        count = len(self.steps) - 1
        return (Send(_http_chunk(first)), *(wait, _Stamp()) * count, Send(rest))


@lru_cache
def stamped(count: int, every_us: int) -> Answer:
    """Make a stream whose texts are the instants at which they were written."""
    return _Stamped((chat.role(), *[Wait(every_us / 1e6)] * count))


_ON_ANY_WIRE: dict[str, Callable[..., Answer]] = {"flow": flow, "paced": paced}
_STREAMS: dict[str, Callable[..., Answer]] = {
    "stamped": stamped,
    "first": first,
    "stall": stall,
}


def answer_from(request: Request) -> Answer | None:
    """Return the stream that the path asks for."""
    path = next((path for path in FRAMES if request.path.endswith(path)), "")
    name, *numbers = request.path.removesuffix(path).strip("/").split("/")
    if path and name in _ON_ANY_WIRE:
        return _ON_ANY_WIRE[name](*map(int, numbers), path=path)
    make = _STREAMS.get(name)
    return make(*map(int, numbers)) if make else None


def _http_chunk(event: Send) -> bytes:
    return b"%x\r\n%b\r\n" % (len(event.data), event.data)

"""A conversation of 500 KB, as the payload of each wire."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

from benchmarks.answers import WORDS


MESSAGES = 1_000
CHARS = 480


def payload(wire: str) -> dict[str, Any]:
    """Return a payload with a long history."""
    text = ("".join(WORDS) * CHARS)[:CHARS]
    if wire == "converse":
        return {"modelId": "lab", "messages": _messages([{"text": text}])}
    if wire == "responses":
        return {"model": "lab", "input": _messages(text)}
    more = {"max_tokens": 9} if wire == "messages" else {}
    return {"model": "lab", "messages": _messages(text), **more}


def times_to_first(open_stream: Callable[[], Iterator[str]], times: int) -> list[float]:
    """Return how long each of so many calls takes to its first text; all are read to their end."""
    took_s = []
    for _ in range(times):
        began_s = time.perf_counter()
        texts = open_stream()
        next(texts)
        took_s.append(time.perf_counter() - began_s)
        for _text in texts:
            pass
    return took_s


def _messages(content: Any) -> list[dict[str, Any]]:
    roles = ("user", "assistant")
    return [{"role": roles[place % 2], "content": content} for place in range(MESSAGES - 1)]

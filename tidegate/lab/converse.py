"""Frames of the converse wire, as steps of a script.

Path: a test's words -> this -> ``tidegate.lab.script``
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Any
from zlib import crc32

import msgspec

from tidegate.lab.script import Answer, End, HeaderValue, Send, Step


EVENT_STREAM = {"content-type": "application/vnd.amazon.eventstream"}

_TEXT = 7  # the number of a header's type


def encode(headers: Mapping[str, str], payload: bytes) -> bytes:
    """Return a frame with both its checksums."""
    block = b"".join(map(_header, headers.items()))
    prelude = struct.pack(">II", 16 + len(block) + len(payload), len(block))
    summed = prelude + struct.pack(">I", crc32(prelude)) + block + payload
    return summed + struct.pack(">I", crc32(summed))


def event(kind: str, value: Mapping[str, object]) -> Send:
    """Write one event."""
    return Send(_message({":event-type": kind, ":content-type": _JSON}, "event", value))


def message_start() -> Send:
    """Write what every stream begins with."""
    return event("messageStart", {"role": "assistant"})


def delta(content: Mapping[str, object], *, block: int = 0) -> Send:
    """Write one delta exactly as given."""
    return event("contentBlockDelta", {"contentBlockIndex": block, "delta": content})


def text(content: str, *, block: int = 0) -> Send:
    """Write visible text."""
    return delta({"text": content}, block=block)


def reasoning(content: str, *, block: int = 0) -> Send:
    """Write reasoning."""
    return delta({"reasoningContent": {"text": content}}, block=block)


def signature(content: str, *, block: int = 0) -> Send:
    """Write what proves that reasoning is the model's own."""
    return delta({"reasoningContent": {"signature": content}}, block=block)


def tool(name: str, *, id: str, block: int = 0) -> Send:  # noqa: A002 - as in the other wires
    """Write the start of a call."""
    start = {"toolUse": {"toolUseId": id, "name": name}}
    return event("contentBlockStart", {"contentBlockIndex": block, "start": start})


def arguments(piece: str, *, block: int = 0) -> Send:
    """Write the next characters of a call's arguments."""
    return delta({"toolUse": {"input": piece}}, block=block)


def block_stop(*, block: int = 0) -> Send:
    """Write the end of a block."""
    return event("contentBlockStop", {"contentBlockIndex": block})


def message_stop(reason: str = "end_turn") -> Send:
    """Write the evidence that the answer is complete."""
    return event("messageStop", {"stopReason": reason})


def metadata(input_tokens: int, output_tokens: int, **details: object) -> Send:
    """Write the figures, behind which nothing comes; ``details`` go beside the tokens."""
    usage = _usage(input_tokens, output_tokens, **details)
    return event("metadata", {"usage": usage, "metrics": {"latencyMs": 5}})


def exception(kind: str, message: str, **fields: object) -> Send:
    """Write an exception, in the stream; ``kind`` is such as ``throttlingException``."""
    headers = {":exception-type": kind, ":content-type": _JSON}
    return Send(_message(headers, "exception", {"message": message, **fields}))


def error_answer(
    status: int, kind: str, message: str, headers: Mapping[str, HeaderValue] | None = None
) -> Answer:
    """Make an answer that is an error, instead of a stream; ``kind`` as in ``exception``."""
    return Answer.json({"message": message}, status, {"x-amzn-errortype": kind, **(headers or {})})


def stream(*steps: Step, **options: Any) -> Answer:
    """Make a streamed answer of these steps; ``options`` are further fields of ``Answer``."""
    return Answer(steps, **{"headers": dict(EVENT_STREAM), **options})


def answer(*words: str, reason: str = "end_turn", steps: Sequence[Step] = ()) -> Answer:
    """Make a complete streamed answer.

    Args:
        words: one text delta each.
        reason: the stop reason.
        steps: played between the words and the stop.
    """
    texts = [text(word) for word in words]
    ends = (block_stop(), message_stop(reason), metadata(3, 2), End.KEEPALIVE)
    return stream(message_start(), *texts, *steps, *ends)


def completion(
    *content: Mapping[str, object],
    reason: str = "end_turn",
    tokens: tuple[int, int] = (3, 2),
) -> dict[str, Any]:
    """Return the JSON of an answer that is not streamed; for ``Answer.json``."""
    return {
        "output": {"message": {"role": "assistant", "content": list(content)}},
        "stopReason": reason,
        "usage": _usage(*tokens),
        "metrics": {"latencyMs": 5},
    }


_JSON = "application/json"


def _message(headers: Mapping[str, str], kind: str, value: Mapping[str, object]) -> bytes:
    return encode({**headers, ":message-type": kind}, msgspec.json.encode(value))


def _header(named: tuple[str, str]) -> bytes:
    name, value = (text.encode() for text in named)
    return bytes([len(name)]) + name + struct.pack(">BH", _TEXT, len(value)) + value


def _usage(input_tokens: int, output_tokens: int, **details: object) -> dict[str, object]:
    return {
        "inputTokens": input_tokens,
        "outputTokens": output_tokens,
        "totalTokens": input_tokens + output_tokens,
        **details,
    }

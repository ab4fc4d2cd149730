"""Events of the messages wire, as steps of a script.

Path: a test's words -> this -> ``tidegate.lab.script``
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tidegate.lab.script import Answer, End, Send, Step
from tidegate.lab.steps import frame


def event(kind: str, **fields: object) -> Send:
    """Write one event, named in its line and in its data as the provider does."""
    return frame({"type": kind, **fields}, event=kind)


def start(
    *,
    id: str = "msg_lab",  # noqa: A002  the wire's own word
    model: str = "lab",
    tokens: tuple[int, int] = (10, 1),
    **usage: object,
) -> Send:
    """Write the beginning of a message.

    Args:
        id: the message's id.
        model: the model's name.
        tokens: input tokens, and the first count of output tokens.
        usage: further figures.
    """
    message = _message([], None, id, model, {**_usage(tokens), **usage})
    return event("message_start", message=message)


def ping() -> Send:
    """Write the event that says no more than that the provider is alive."""
    return event("ping")


def block_start(index: int, kind: str, **fields: object) -> Send:
    """Write the beginning of a content block."""
    return event("content_block_start", index=index, content_block={"type": kind, **fields})


def block_delta(index: int, kind: str, **fields: object) -> Send:
    """Write a piece of a content block."""
    return event("content_block_delta", index=index, delta={"type": kind, **fields})


def block_stop(index: int) -> Send:
    """Write the end of a content block."""
    return event("content_block_stop", index=index)


def text_start(index: int = 0) -> Send:
    """Write the beginning of a block of text."""
    return block_start(index, "text", text="")


def text(content: str, index: int = 0) -> Send:
    """Write visible text."""
    return block_delta(index, "text_delta", text=content)


def thinking_start(index: int = 0) -> Send:
    """Write the beginning of a block of thinking."""
    return block_start(index, "thinking", thinking="", signature="")


def thinking(content: str, index: int = 0) -> Send:
    """Write thinking."""
    return block_delta(index, "thinking_delta", thinking=content)


def signature(value: str, index: int = 0) -> Send:
    """Write what vouches for the thinking before it."""
    return block_delta(index, "signature_delta", signature=value)


def tool_start(index: int, id: str, name: str, kind: str = "tool_use") -> Send:  # noqa: A002
    """Write the beginning of a call; one of a tool that the provider runs is of another kind."""
    return block_start(index, kind, id=id, name=name, input={})


def tool_input(partial_json: str, index: int) -> Send:
    """Write a piece of a call's input."""
    return block_delta(index, "input_json_delta", partial_json=partial_json)


def stop_reason(
    reason: str | None = "end_turn",
    output_tokens: int = 5,
    *,
    sequence: str | None = None,
    **usage: object,
) -> Send:
    """Write the reason why the message ends, and the final figures."""
    delta = {"stop_reason": reason, "stop_sequence": sequence}
    return event("message_delta", delta=delta, usage={"output_tokens": output_tokens, **usage})


def stop() -> Send:
    """Write the event that ends a message."""
    return event("message_stop")


def error(kind: str, message: str) -> Send:
    """Write an error, in the stream."""
    return event("error", error={"type": kind, "message": message})


def error_answer(
    status: int, kind: str, message: str, headers: Mapping[str, str] | None = None
) -> Answer:
    """Make an answer that is an error, instead of a stream."""
    body = {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_lab"}
    return Answer.json(body, status, {"request-id": "req_lab", **(headers or {})})


def words(*pieces: str, index: int = 0) -> list[Send]:
    """Write a whole block of text, a delta for each piece."""
    return [text_start(index), *(text(piece, index) for piece in pieces), block_stop(index)]


def call(index: int, id: str, name: str, *pieces: str) -> list[Send]:  # noqa: A002
    """Write a whole call of a tool, its input in these pieces."""
    inputs = [tool_input(piece, index) for piece in pieces]
    return [tool_start(index, id, name), *inputs, block_stop(index)]


def answer(*pieces: str, reason: str = "end_turn", steps: Sequence[Step] = ()) -> Answer:
    """Make a complete streamed answer.

    Args:
        pieces: one delta of text each, all in one block.
        reason: the stop reason.
        steps: played between the text and the stop reason.
    """
    begin = (start(), *(words(*pieces) if pieces else ()))
    return Answer((*begin, *steps, stop_reason(reason), stop(), End.KEEPALIVE))


def message(
    content: Sequence[Mapping[str, object]] | str,
    *,
    reason: str | None = "end_turn",
    tokens: tuple[int, int] = (10, 5),
) -> dict[str, Any]:
    """Return the JSON of a message that is not streamed; for ``Answer.json``.

    Args:
        content: the blocks, or the text of the only one.
        reason: the stop reason.
        tokens: input and output tokens.
    """
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    return _message(blocks, reason, "msg_lab", "lab", _usage(tokens))


def _message(
    content: Sequence[Mapping[str, object]],
    reason: str | None,
    message_id: str,
    model: str,
    usage: Mapping[str, object],
) -> dict[str, Any]:
    return {
        "id": message_id,
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": content,
        "stop_reason": reason,
        "stop_sequence": None,
        "usage": usage,
    }


def _usage(tokens: tuple[int, int]) -> dict[str, object]:
    return {"input_tokens": tokens[0], "output_tokens": tokens[1]}

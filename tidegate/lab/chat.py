"""Chunks of the chat wire, as steps of a script.

Path: a test's words -> this -> ``tidegate.lab.script``
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tidegate.lab.script import Answer, End, Send, Step
from tidegate.lab.steps import frame


ENVELOPE = {"id": "chatcmpl-lab", "object": "chat.completion.chunk", "created": 0, "model": "lab"}


def chunk(choices: Sequence[Mapping[str, object]] = (), **more: object) -> Send:
    """Write one chunk with these choices; ``more`` overrides and adds fields around them."""
    return frame({**ENVELOPE, "choices": choices, **more})


def delta(content: Mapping[str, object], *, choice: int = 0) -> Send:
    """Write one delta exactly as given."""
    return chunk([{"index": choice, "delta": content, "finish_reason": None}])


def role(*, choice: int = 0) -> Send:
    """Write the empty delta with which most servers begin."""
    return delta({"role": "assistant", "content": ""}, choice=choice)


def text(content: str, *, choice: int = 0) -> Send:
    """Write visible text."""
    return delta({"content": content}, choice=choice)


def reasoning(content: str, *, choice: int = 0, field: str = "reasoning_content") -> Send:
    """Write reasoning, in the field that the server in question uses."""
    return delta({field: content}, choice=choice)


def refusal(content: str, *, choice: int = 0) -> Send:
    """Write a refusal."""
    return delta({"refusal": content}, choice=choice)


def tool(
    index: int | None = 0,
    *,
    id: str | None = None,  # noqa: A002  the wire's own word
    name: str | None = None,
    arguments: str | None = None,
    choice: int = 0,
) -> Send:
    """Write a piece of a tool call; what is ``None`` is left out of the chunk."""
    function = _given(name=name, arguments=arguments)
    kind = "function" if id is not None else None
    call = _given(index=index, id=id, type=kind, function=function or None)
    return delta({"tool_calls": [call]}, choice=choice)


def finish(reason: str = "stop", *, choice: int = 0) -> Send:
    """Write the evidence that a choice is complete."""
    return chunk([{"index": choice, "delta": {}, "finish_reason": reason}])


def usage(input_tokens: int, output_tokens: int, **details: object) -> Send:
    """Write the figures in a chunk without choices, as servers do behind the finish."""
    return chunk(usage=_usage(input_tokens, output_tokens, **details))


def done() -> Send:
    """Write the record that ends the stream."""
    return Send(b"data: [DONE]\n\n")


def error(message: str, **fields: object) -> Send:
    """Write an error object, in the stream."""
    return frame({"error": {"message": message, **fields}})


def error_answer(status: int, message: str, **fields: object) -> Answer:
    """Make an answer that is an error, instead of a stream."""
    return Answer.json({"error": {"message": message, **fields}}, status)


def answer(*words: str, reason: str = "stop", steps: Sequence[Step] = ()) -> Answer:
    """Make a complete streamed answer.

    Args:
        words: one text delta each.
        reason: the finish reason.
        steps: played between the words and the finish.
    """
    texts = [text(word) for word in words]
    return Answer((role(), *texts, *steps, finish(reason), done(), End.KEEPALIVE))


def completion(
    content: str | None,
    *,
    tool_calls: Sequence[Mapping[str, object]] = (),
    reason: str = "stop",
    tokens: tuple[int, int] | None = None,
) -> dict[str, Any]:
    """Return the JSON of an answer that is not streamed; for ``Answer.json``.

    Args:
        content: the text.
        tool_calls: as the wire spells them.
        reason: the finish reason.
        tokens: input and output tokens, if usage is to be reported.
    """
    message = _given(role="assistant", content=content, tool_calls=list(tool_calls) or None)
    choice = {"index": 0, "message": message, "finish_reason": reason}
    figures = _usage(*tokens) if tokens else None
    return {
        **ENVELOPE,
        "object": "chat.completion",
        "choices": [choice],
        **_given(usage=figures),
    }


def _usage(input_tokens: int, output_tokens: int, **details: object) -> dict[str, object]:
    return {
        "prompt_tokens": input_tokens,
        "completion_tokens": output_tokens,
        "total_tokens": input_tokens + output_tokens,
        **details,
    }


def _given(**fields: object) -> dict[str, object]:
    return {name: value for name, value in fields.items() if value is not None}

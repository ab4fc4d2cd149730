"""Events of the Responses wire, as steps of a script.

Path: a test's words -> this -> ``tidegate.lab.script``
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tidegate.lab.script import Answer, End, Send, Step
from tidegate.lab.steps import frame


ENVELOPE = {
    "id": "resp_lab",
    "object": "response",
    "created_at": 0,
    "model": "lab",
    "parallel_tool_calls": True,
    "tool_choice": "auto",
    "tools": [],
}


def event(kind: str, **fields: object) -> Send:
    """Write one event of the type ``response.KIND``; what is ``None`` is left out."""
    name = f"response.{kind}"
    return frame({"type": name, **_given(**fields)}, event=name)


def created() -> Send:
    """Write the event with which every server begins."""
    return event("created", response={**ENVELOPE, "status": "in_progress", "output": []})


def message(item_id: str = "msg_1", *, phase: str | None = None) -> dict[str, Any]:
    """Return a message as it is announced."""
    empty: list[object] = []
    fields = _given(id=item_id, phase=phase)
    return {
        "type": "message",
        "role": "assistant",
        "content": empty,
        "status": "in_progress",
    } | fields


def call(
    call_id: str = "call_1", name: str = "clock", arguments: str = "", *, item_id: str = "fc_1"
) -> dict[str, Any]:
    """Return a function call: announced, or with its arguments."""
    status = "completed" if arguments else "in_progress"
    return {
        "type": "function_call",
        "id": item_id,
        "call_id": call_id,
        "name": name,
        "arguments": arguments,
        "status": status,
    }


def thought(*summaries: str, item_id: str = "rs_1", **fields: object) -> dict[str, Any]:
    """Return an item of reasoning with these summaries."""
    summary = [{"type": "summary_text", "text": each} for each in summaries]
    return {"type": "reasoning", "id": item_id, "summary": summary, **fields}


def said(content: str, *, item_id: str = "msg_1", phase: str | None = None) -> dict[str, Any]:
    """Return a message that is whole."""
    part = {"type": "output_text", "text": content, "annotations": []}
    return message(item_id, phase=phase) | {"content": [part], "status": "completed"}


def added(item: Mapping[str, object] | None, at: int | None = 0) -> Send:
    """Announce an item at a place of the output; None is written as null."""
    name = "response.output_item.added"
    return frame({"type": name, "item": item, **_given(output_index=at)}, event=name)


def item_done(item: Mapping[str, object], at: int | None = 0) -> Send:
    """Write an item that is whole."""
    return event("output_item.done", item=item, output_index=at)


def text(content: str, at: int | None = 0, *, part: int = 0, item_id: str = "msg_1") -> Send:
    """Write visible text of the item at a place of the output."""
    return event(
        "output_text.delta",
        item_id=item_id,
        output_index=at,
        content_index=part,
        delta=content,
        logprobs=[],
    )


def refusal(content: str, at: int | None = 0, *, part: int = 0, item_id: str = "msg_1") -> Send:
    """Write a refusal."""
    return event(
        "refusal.delta", item_id=item_id, output_index=at, content_index=part, delta=content
    )


def summary(content: str, at: int | None = 0, *, part: int = 0, item_id: str = "rs_1") -> Send:
    """Write words of a summary of the reasoning."""
    return event(
        "reasoning_summary_text.delta",
        item_id=item_id,
        output_index=at,
        summary_index=part,
        delta=content,
    )


def reasoning(content: str, at: int | None = 0, *, item_id: str = "rs_1") -> Send:
    """Write words of the reasoning itself."""
    return event(
        "reasoning_text.delta", item_id=item_id, output_index=at, content_index=0, delta=content
    )


def arguments(piece: str, at: int | None = 0, *, item_id: str = "fc_1") -> Send:
    """Write a piece of a call's arguments."""
    return event("function_call_arguments.delta", item_id=item_id, output_index=at, delta=piece)


def arguments_done(whole: str, at: int | None = 0, *, item_id: str = "fc_1") -> Send:
    """Write all of a call's arguments."""
    return event("function_call_arguments.done", item_id=item_id, output_index=at, arguments=whole)


def completed(*output: Mapping[str, object], **fields: object) -> Send:
    """Write the evidence that a response is complete; ``fields`` are the response's."""
    return _end("completed", output, fields)


def incomplete(reason: str = "max_output_tokens", **fields: object) -> Send:
    """Write the evidence that a response came to a limit."""
    return _end("incomplete", (), {"incomplete_details": {"reason": reason}, **fields})


def failed(message: str, code: str = "server_error", **fields: object) -> Send:
    """Write that the response has failed."""
    return _end("failed", (), {"error": {"code": code, "message": message}, **fields})


def error(message: str, **fields: object) -> Send:
    """Write an error event."""
    return frame({"type": "error", "message": message, **fields}, event="error")


def usage(
    input_tokens: int, output_tokens: int, cached: int = 0, thought: int = 0
) -> dict[str, Any]:
    """Return the figures of a response, for the event that ends it."""
    return {
        "input_tokens": input_tokens,
        "input_tokens_details": {"cached_tokens": cached, "cache_write_tokens": 0},
        "output_tokens": output_tokens,
        "output_tokens_details": {"reasoning_tokens": thought},
        "total_tokens": input_tokens + output_tokens,
    }


def answer(*words: str, steps: Sequence[Step] = ()) -> Answer:
    """Make a complete streamed answer.

    Args:
        words: one text delta each.
        steps: played between the words and the end.
    """
    texts = [text(word) for word in words]
    whole = said("".join(words))
    end = (item_done(whole), completed(whole), End.KEEPALIVE)
    return Answer((created(), added(message()), *texts, *steps, *end))


def response(*output: Mapping[str, object], **fields: object) -> dict[str, Any]:
    """Return the JSON of an answer that is not streamed; for ``Answer.json``."""
    return {**ENVELOPE, "status": "completed", "output": list(output), **fields}


def _end(status: str, output: Sequence[Mapping[str, object]], fields: Mapping[str, object]) -> Send:
    return event(status, response={**response(*output), "status": status, **fields})


def _given(**fields: object) -> dict[str, object]:
    return {name: value for name, value in fields.items() if value is not None}

"""A body of the Responses wire as its maker sends it, and how tests decode and join one."""

import json

from tidegate.actors.provider.dialects.batch import Batch
from tidegate.actors.provider.dialects.responses import ResponsesDecoder
from tidegate.actors.sink.assembly import Assembly
from tidegate.protocol.answers import Answer, Usage
from tidegate.protocol.base import Token
from tidegate.protocol.deltas import Block


LIMIT = 1 << 16
FIGURES = {
    "input_tokens": 41,
    "input_tokens_details": {"cached_tokens": 32, "cache_write_tokens": 4},
    "output_tokens": 57,
    "output_tokens_details": {"reasoning_tokens": 24},
    "total_tokens": 98,
}
USAGE = Usage(input_tokens=41, output_tokens=57, cached_input_tokens=32, reasoning_tokens=24)


def frame(payload, name=None):
    named = f"event: {name}\n" if name else ""
    return f"{named}data: {json.dumps(payload, ensure_ascii=False)}\n\n".encode()


def event(kind, **fields):
    """Write an event with its name and its type."""
    return frame({"type": f"response.{kind}", **fields}, f"response.{kind}")


def response(status, output=(), **fields):
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1764500000,
        "status": status,
        "model": "gpt-x",
        "output": list(output),
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "error": None,
        "incomplete_details": None,
        "usage": None,
        **fields,
    }


def thought(*summaries, **fields):
    parts = [{"type": "summary_text", "text": each} for each in summaries]
    return {"id": "rs_1", "type": "reasoning", "summary": parts, **fields}


def message(*texts, item_id="msg_1", **fields):
    parts = [
        {"type": "output_text", "text": each, "annotations": [], "logprobs": []} for each in texts
    ]
    known = {"id": item_id, "type": "message", "role": "assistant", "status": "completed"}
    return {**known, "content": parts, **fields}


def call(arguments, item_id="fc_1", call_id="call_1", name="read", **fields):
    known = {"id": item_id, "type": "function_call", "call_id": call_id, "name": name}
    return {**known, "status": "completed", "arguments": arguments, **fields}


def text(delta, at=1, part=0, item_id="msg_1"):
    place = {"item_id": item_id, "output_index": at, "content_index": part}
    return event("output_text.delta", **place, delta=delta, logprobs=[], obfuscation="x7Q")


def summary(delta, part=0):
    place = {"item_id": "rs_1", "output_index": 0, "summary_index": part}
    return event("reasoning_summary_text.delta", **place, delta=delta)


def piece(delta, at=2, item_id="fc_1"):
    return event("function_call_arguments.delta", item_id=item_id, output_index=at, delta=delta)


def arguments_done(arguments, at=2, item_id="fc_1"):
    return event(
        "function_call_arguments.done", item_id=item_id, output_index=at, arguments=arguments
    )


def added(item, at):
    return event("output_item.added", output_index=at, item=item)


def done(item, at):
    return event("output_item.done", output_index=at, item=item)


def completed(*output, **fields):
    return event("completed", response=response("completed", output, usage=FIGURES, **fields))


ITEMS = [
    thought("Tides,\nfirst.", "Then gates."),
    message("Grüße, Welt 🌊"),
    call('{"path":"é"}'),
    call("{}", "fc_2", "call_2", "list"),
]
PLACE = {"item_id": "msg_1", "output_index": 1, "content_index": 0}
GOLDEN = [
    event("created", response={"id": "resp_1", "created_at": 1764500000, "model": "gpt-x"}),
    event("in_progress", response=None),
    added(thought(), 0),
    event("reasoning_summary_part.added", item_id="rs_1", output_index=0, summary_index=0, part={}),
    summary("Tides,\n"),
    summary("first."),
    summary("Then gates.", 1),
    done(ITEMS[0], 0),
    b": keepalive\n\n",
    added(message(status="in_progress"), 1),
    event("content_part.added", **PLACE, part={"type": "output_text", "text": ""}),
    text("Grüße, "),
    text("Welt "),
    text("🌊"),
    event("output_text.done", **PLACE, text="Grüße, Welt 🌊", logprobs=[]),
    done(ITEMS[1], 1),
    added(call("", status="in_progress"), 2),
    piece('{"path":'),
    piece('"é"}'),
    arguments_done('{"path":"é"}'),
    done(ITEMS[2], 2),
    added(call("", "fc_2", "call_2", "list", status="in_progress"), 3),
    arguments_done("", 3, "fc_2"),
    done(call("", "fc_2", "call_2", "list"), 3),
    completed(),
]


def joined(batches):
    """Put batches together, and check what must hold for any sequence of them."""
    whole = Batch()
    for batch in batches:
        assert whole.finishes is None or not (batch.finishes or batch.deltas or batch.failure)
        whole.deltas += batch.deltas
        whole.events += batch.events
        whole.described = batch.described or whole.described
        whole.usage = batch.usage or whole.usage
        whole.finishes = batch.finishes or whole.finishes
        whole.done = whole.done or batch.done
        whole.failure = batch.failure or whole.failure
        whole.contentless = batch.contentless
    return whole


def decode(*pieces, limit=LIMIT):
    decoder = ResponsesDecoder(event_bytes_max=limit)
    return joined([*[decoder.feed(piece) for piece in pieces], decoder.eof()])


def words(batch):
    """Return the deltas that make events."""
    return [delta for delta in batch.deltas if not isinstance(delta, Block)]


def answer_of(batch):
    """Return the answer that the sink makes of a batch."""
    assembly = Assembly(Token(1))
    assembly.add(batch.deltas)
    assembly.finishes = batch.finishes or ()
    choice = assembly.choices()[0]
    response_id, model, created = batch.described or ("", "", 0)
    return Answer(
        text=choice.text,
        reasoning=choice.reasoning,
        refusal=choice.refusal,
        tool_calls=choice.tool_calls,
        incomplete_tool_calls=choice.incomplete_tool_calls,
        finish=choice.finish,
        usage=batch.usage,
        model=model,
        response_id=response_id,
        created=created,
        parts=assembly.parts(),
        wire="responses",
    )

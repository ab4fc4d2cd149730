"""The answer of Converse, whole, as Bedrock sends it when nothing is streamed."""

from __future__ import annotations

from typing import Any

import msgspec

from tidegate.actors.provider.dialects import faults
from tidegate.actors.provider.dialects.batch import (
    NON_JSON_CODE,
    SHAPE_CODE,
    Batch,
    empty,
    malformed,
    truncated,
)
from tidegate.actors.provider.dialects.chat_views import is_cut, value_from, values_from
from tidegate.actors.provider.dialects.converse_blocks import ContentBlocks
from tidegate.actors.provider.dialects.converse_faults import failure_from_exception
from tidegate.actors.provider.dialects.converse_views import (
    FINISHES,
    SERVER_TOOL,
    ContentView,
    DocumentView,
    usage_from,
)
from tidegate.protocol.deltas import ENVELOPE, Block, Delta, Text
from tidegate.protocol.failures import Failure


_document = msgspec.json.Decoder(DocumentView)
_content = msgspec.json.Decoder(ContentView)
_fields = msgspec.json.Decoder(dict[str, msgspec.Raw])


def decode_document(body: bytes) -> Batch:
    """Decode a whole body, whatever is in it."""
    batch = Batch()
    body = body.removeprefix(b"\xef\xbb\xbf").strip()
    if not body or is_cut(body):
        batch.failure = truncated("the document is cut short") if body else empty()
        return batch
    batch.events = 1
    try:
        document = _document.decode(body)
        deltas = _deltas_from(document, body)
        usage = usage_from(document.usage)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        batch.failure = _failure_from(body, error)
        return batch
    batch.deltas = deltas
    batch.usage = usage
    batch.finishes = (FINISHES.get(document.stop_reason or "", "stop"),)
    batch.done = True
    return batch


def _deltas_from(document: DocumentView, body: bytes) -> list[Delta]:
    blocks, deltas = ContentBlocks(), list[Delta]()
    for place, raw in enumerate(document.output.message.content):
        _take(blocks, place, raw, deltas)
    around = _fields.decode(body)
    del around["output"]
    deltas.append(Block(ENVELOPE, msgspec.json.encode(values_from(around))))
    return deltas


def _take(blocks: ContentBlocks, place: int, raw: msgspec.Raw, deltas: list[Delta]) -> None:
    view = _content.decode(raw)
    reasoning, call = view.reasoning_content, view.tool_use
    if view.text is not None or view.citations_content is not None:
        cited = view.citations_content
        texts = [view.text] if cited is None else [each.text for each in cited.content]
        blocks.add(place, {"citations": cited.citations} if cited else {}, deltas)
        deltas += [Text(text) for text in texts if text]
    elif reasoning is not None:
        if reasoning.reasoning_text is not None:
            blocks.take_reasoning(reasoning.reasoning_text, place, deltas)
        if reasoning.redacted_content is not None:
            blocks.add(place, {"redacted": [reasoning.redacted_content]}, deltas)
    elif call is not None and call.type != SERVER_TOOL:
        blocks.take_call(call, bytes(call.input).decode(), place, deltas)
    else:
        blocks.add(place, {"whole": value_from(bytes(raw))}, deltas)


def _failure_from(body: bytes, error: Exception) -> Failure:
    try:
        value: Any = msgspec.json.decode(body)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return malformed(NON_JSON_CODE, "the document is no JSON", body)
    if isinstance(value, dict) and "output" not in value:
        if value.get("error"):
            return faults.failure_from_frame(value)  # of a gateway, for AWS has no such field
        named = value.get("__type") or value.get("code")
        if named or value.get("message") or value.get("Message"):
            return failure_from_exception(str(named or "").rpartition("#")[2], body)
    return malformed(SHAPE_CODE, str(error), body)

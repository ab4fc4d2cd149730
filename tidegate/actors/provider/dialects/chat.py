"""The chat dialect: the body of a chat completion to deltas, evidence and usage.

Evidence is a ``finish_reason`` on every choice, and it is sticky: whatever follows it, an error, a
broken frame or more text, changes nothing, except that usage still counts. ``[DONE]`` ends the
stream and proves nothing.

Path: ``dialects/frames.py`` -> this -> ``provider/machine.py``.
"""

from __future__ import annotations

from typing import Any

import msgspec

from tidegate.actors.provider.dialects import faults
from tidegate.actors.provider.dialects.batch import Batch
from tidegate.actors.provider.dialects.chat_choices import Choices
from tidegate.actors.provider.dialects.chat_views import (
    ChoiceView,
    ChunkView,
    chunk_from,
    chunk_from_value,
    count_from,
    of_groq,
    usage_from,
)
from tidegate.actors.provider.dialects.frames import FramesDecoder, cut_short, tells_error
from tidegate.protocol.answers import Usage
from tidegate.protocol.failures import Failure
from tidegate.wire.sse import SseEvent


class ChatDecoder(FramesDecoder[ChunkView]):
    """Decodes one streamed body.

    Args:
        choices: how many choices must show evidence.
        event_bytes_max: the largest event, in bytes.
    """

    _parted = False  # what its blocks say belongs to the answer around the words

    def __init__(self, *, choices: int = 1, event_bytes_max: int) -> None:
        super().__init__(chunk_from, event_bytes_max)
        self._choices = Choices(choices)
        self._id = self._model = ""
        self._created = 0
        self._usage: Usage | None = None

    def _payload_from_value(self, value: Any) -> ChunkView:
        return chunk_from_value(value)

    def _cut_short(self) -> Failure:
        begun = self._choices.begun or self._done
        return cut_short(begun=begun, wanted="a finish_reason for every choice")

    def _take(self, chunk: ChunkView, event: SseEvent, batch: Batch) -> None:
        if chunk.id != self._id or chunk.model != self._model:
            self._describe(chunk, batch)
        if not self._complete:
            choices = chunk.choices
            if (chunk.error or not choices or event.name == b"error") and tells_error(event):
                self._fail(faults.failure_from_frame(event.data), batch)
                return
            if chunk.x_groq is not None and (error := of_groq(chunk, "error")):
                self._fail(faults.failure_from_frame({"error": error}), batch)
                return
            if choices:
                if choices[0] is not None and choices[0].finish_reason:
                    self._choices.extras.take_chunk(chunk)
                self._take_choices(choices, batch)
            else:
                self._choices.extras.take_chunk(chunk)
        usage = chunk.usage
        if usage is None and chunk.x_groq is not None:
            usage = of_groq(chunk, "usage")
        if usage is not None:
            self._count(usage, batch, chunk.timings)

    def _take_choices(self, choices: list[ChoiceView | None], batch: Batch) -> None:
        before = len(batch.deltas)
        failure = self._choices.take(choices, batch.deltas)
        if failure is not None:
            self._fail(failure, batch)
            return
        if self._choices.finishes is not None:
            batch.finishes = self._choices.finishes
            self._complete = True
            self._choices.extras.settle()
            for choice in choices:
                if choice is not None:
                    self._count(choice.usage, batch)
        extras = self._choices.extras
        # By what is in this frame, not in this read, so that the answer is the same for all reads.
        if extras.any and (len(batch.deltas) > before or self._complete):
            batch.deltas.append(extras.block())

    def _describe(self, chunk: ChunkView, batch: Batch) -> None:
        """Keep the first id and time, and the last model."""
        before = (self._id, self._model, self._created)
        if not self._id and isinstance(chunk.id, str | int):
            self._id = str(chunk.id)
        if isinstance(chunk.model, str) and chunk.model:
            self._model = chunk.model
        self._created = self._created or count_from(chunk.created) or 0
        now = (self._id, self._model, self._created)
        if now != before:
            batch.described = now
        self._choices.extras.take_chunk(chunk)

    def _count(self, value: Any, batch: Batch, timings: Any = None) -> None:
        usage = usage_from(value)
        if usage is not None and usage != self._usage:
            self._usage = batch.usage = usage
            told = {"usage": value} | ({"timings": timings} if timings else {})
            batch.details = msgspec.json.encode(told)


def decode_json(body: bytes, *, choices: int | None = None) -> Batch:
    """Decode a whole ``chat.completion``, as a server sends it that does not stream.

    Args:
        body: the complete body of a successful answer, whatever is in it.
        choices: how many choices must show evidence; None for as many as there are.
    """
    document = body.removeprefix(b"\xef\xbb\xbf").strip()
    if choices is None:
        choices = _count_choices(document)
    decoder = ChatDecoder(choices=choices, event_bytes_max=max(1, len(document)))
    return decoder.take_document(document)


def _count_choices(document: bytes) -> int:
    try:
        return len(chunk_from(document).choices or ()) or 1
    except (msgspec.DecodeError, RecursionError):
        return 1  # whoever decodes it next says what is wrong with it

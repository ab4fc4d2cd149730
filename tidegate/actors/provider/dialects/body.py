"""Finds out what the body of a success is, whatever its headers say, and has it decoded.

A stream that is labelled as text is still a stream, a JSON document labelled as a stream is still
a document, and a page for people is neither.

Path: ``provider/transport.py`` -> this -> ``dialects/chat.py``
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Literal, TypeAlias

from tidegate.actors.provider.dialects.batch import Batch, Decoder
from tidegate.actors.provider.dialects.dialect import Dialect
from tidegate.protocol.attempts import Order
from tidegate.protocol.deltas import EVENT_OVERHEAD_BYTES, Block
from tidegate.protocol.failures import DETAIL_CHARS_MAX, Failure, FailureKind


INFLATED_BYTES_MAX = 1 << 18
"""How much comes out of one step of decompression, however small what goes in."""

BLOCKS_BYTES_MAX = 64 << 20
"""What the structure of a streamed answer may take, which is kept until the answer is complete."""

_BOM = b"\xef\xbb\xbf"
_BLANKS = b" \t\r\n"
_FIELDS = (b":", b"data:", b"event:", b"id:", b"retry:")
_FIELD_BYTES_MAX = max(map(len, _FIELDS))
_GZIP_OR_ZLIB = 47

Form: TypeAlias = Literal["unknown", "events", "json", "other"]


class UnknownEncoding(Exception):
    """The body is compressed in a way that was not asked for and is not known here."""


class BodyDecoder:
    """Decodes one body.

    Args:
        dialect: of the wire that it comes over.
        order: what was asked for, and the largest event or whole document that is taken.
        content_type: the header, or empty.

    Attributes:
        learned: what the body shows about the endpoint: ``streaming_ignored`` or nothing.
    """

    def __init__(self, dialect: Dialect, order: Order, content_type: str) -> None:
        self.learned = ""
        self._dialect = dialect
        self._events: Decoder | None = None
        # Not the order itself, which has the prompt.
        self._decoder = dialect.decoder(order)
        self._bytes_max = order.event_bytes_max
        self._content_type = content_type
        self._labelled = content_type.lower().startswith(dialect.media_type)
        self._asked_stream = order.stream
        self._form: Form = "unknown"
        self._held = bytearray()
        self._block_bytes = 0
        self._evident = False

    def feed(self, data: bytes) -> Batch:
        """Take the next bytes; a batch without events means that nothing is known of them yet."""
        if self._events is not None:
            return self._counted(self._events.feed(data))
        self._held += data
        if self._form == "unknown":
            # Some servers send empty lines, or spaces, for as long as the model has not begun.
            self._held = self._held.lstrip(_BLANKS)
        if self._form == "unknown" and (events := self._settle_form(final=False)) is not None:
            return self._counted(events.feed(self._let_go()))
        if self._form == "other":
            # Whatever the limit: no more of it is held than is shown.
            return self._unusable() if len(self._held) >= DETAIL_CHARS_MAX else Batch()
        if len(self._held) > self._bytes_max:
            return _failed("event_bytes_max", f"a body of over {self._bytes_max} bytes")
        return Batch()

    def eof(self) -> Batch:
        """Take the end of the body."""
        events = self._events
        if events is None and self._form == "unknown":
            events = self._settle_form(final=True)
        if events is not None:
            return events.eof()
        if self._form == "other":
            return self._unusable()
        batch = self._dialect.document(self._let_go())
        if self._asked_stream and batch.failure is None:
            self.learned = "streaming_ignored"
        return batch

    def _counted(self, batch: Batch) -> Batch:
        """End a stream whose blocks never end: the pace of readers holds back words alone."""
        self._evident = self._evident or batch.finishes is not None
        for delta in batch.deltas:
            if isinstance(delta, Block):
                self._block_bytes += len(delta.data) + EVENT_OVERHEAD_BYTES
        if self._block_bytes > BLOCKS_BYTES_MAX and not self._evident and batch.failure is None:
            detail = f"blocks of over {BLOCKS_BYTES_MAX} bytes"
            batch.failure = _failed("answer_too_large", detail).failure
        return batch

    def _settle_form(self, *, final: bool) -> Decoder | None:
        held = bytes(self._held)
        if held and not final and _BOM.startswith(held):
            return None  # a part of it, so far
        text = held.removeprefix(_BOM).lstrip(_BLANKS)[:_FIELD_BYTES_MAX]
        if self._dialect.binary and held.startswith(b"\x00"):
            self._form = "events"  # a frame begins with its length, less than 16 MiB
        elif self._dialect.binary:
            self._form = _form_without_frames(text, final=final)
        else:
            self._form = _form_of(text, final=final, labelled=self._labelled)
        if self._form == "events":
            self._events = self._decoder
        return self._events

    def _let_go(self) -> bytes:
        held = bytes(self._held)
        self._held.clear()
        return held

    def _unusable(self) -> Batch:
        kind = self._content_type.partition(";")[0].strip() or "no content type"
        text = self._let_go().decode("utf-8", "replace")[:DETAIL_CHARS_MAX]
        return _failed("content_type", f"neither events nor JSON, but {kind}", text)


class Inflater:
    """Undoes a content encoding, in pieces of bounded size.

    Args:
        encoding: ``gzip`` or ``deflate``.

    Raises:
        UnknownEncoding: another one; nobody asked for it.
    """

    def __init__(self, encoding: str) -> None:
        if encoding not in ("gzip", "x-gzip", "deflate"):
            raise UnknownEncoding(f"content encoding {encoding!r} is neither gzip nor deflate")
        self._raw_possible = encoding == "deflate"
        self._stream = zlib.decompressobj(_GZIP_OR_ZLIB)

    def pieces(self, data: bytes) -> Iterator[bytes]:
        """Decompress the next bytes.

        Raises:
            zlib.error: they are not what the encoding says.
        """
        while data:
            try:
                piece = self._stream.decompress(data, INFLATED_BYTES_MAX)
            except zlib.error:
                if not self._raw_possible:
                    raise
                # Half of the servers send deflate without the wrapper that it should have.
                self._raw_possible = False
                self._stream = zlib.decompressobj(-zlib.MAX_WBITS)
                continue
            self._raw_possible = False
            if piece:
                yield piece
            data = self._stream.unconsumed_tail
            if self._stream.eof and self._stream.unused_data:
                data = self._stream.unused_data
                self._stream = zlib.decompressobj(_GZIP_OR_ZLIB)


def _form_of(text: bytes, *, final: bool, labelled: bool) -> Form:
    if text[:1] in (b"{", b"["):
        return "json"
    if text[:1] == b"<":
        return "other"
    if labelled and (text or final):
        return "events"
    if text.startswith(_FIELDS):
        return "events"
    if final:
        # Nothing at all is an empty stream, whatever it is called.
        return "other" if text else "events"
    return "other" if len(text) >= _FIELD_BYTES_MAX else "unknown"


def _form_without_frames(text: bytes, *, final: bool) -> Form:
    if text:
        return "json" if text[:1] in (b"{", b"[") else "other"
    return "events" if final else "unknown"


def _failed(reason: str, detail: str, raw_text: str = "") -> Batch:
    batch = Batch()
    batch.failure = Failure(
        kind=FailureKind.MALFORMED, reason=reason, detail=detail, raw_text=raw_text
    )
    return batch

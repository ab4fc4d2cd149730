"""Events as lines of JSON, as they are stored and sent; pure.

Almost every event is encoded by one call for its whole group. What that call cannot encode, such
as half a surrogate pair, is written by the slower standard library, in ASCII.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from typing import Any

import msgspec

from tidegate.protocol.events import TERMINAL, AnyEvent


_log = logging.getLogger("tidegate.journal")
_encoder = msgspec.json.Encoder()
_decoder: msgspec.json.Decoder[AnyEvent] = msgspec.json.Decoder(AnyEvent)
_UNENCODABLE = (UnicodeEncodeError, RecursionError, OverflowError, TypeError, ValueError)
_TYPE_AT = len(b'{"type":"')


def lines_from(events: Sequence[AnyEvent]) -> bytes:
    """Encode ``events`` as one line each, newline included."""
    try:
        return _encoder.encode_lines(events)
    except _UNENCODABLE:
        return b"".join(_line_from(event) for event in events)


def json_from(record: msgspec.Struct) -> bytes:
    """Encode one record, whatever its text holds."""
    try:
        return _encoder.encode(record)
    except _UNENCODABLE:
        return _ascii(msgspec.to_builtins(record))


def events_from(data: bytes) -> list[AnyEvent]:
    """Decode lines.

    Raises:
        ValueError: they are not lines of events.
    """
    try:
        return _decoder.decode_lines(data)
    except msgspec.DecodeError:
        # Half a surrogate pair is no text for the fast decoder.
        return [msgspec.convert(json.loads(line), AnyEvent) for line in data.splitlines()]


def type_of(line: bytes) -> str:
    """Return the type of the event in ``line``, which is always its first field."""
    return line[_TYPE_AT : line.index(b'"', _TYPE_AT)].decode()


def _line_from(event: AnyEvent) -> bytes:
    try:
        return _encoder.encode(event) + b"\n"
    except _UNENCODABLE:
        pass
    try:
        return _ascii(msgspec.to_builtins(event)) + b"\n"
    except _UNENCODABLE:
        # What a provider nested deeper than the stack can follow is in the parts alone.
        if not isinstance(event, TERMINAL):
            raise
        _log.warning("turn %s: its answer's parts cannot be stored", event.turn_id)
        answer = msgspec.structs.replace(event.answer, parts=())
        return _ascii(msgspec.to_builtins(msgspec.structs.replace(event, answer=answer))) + b"\n"


def _ascii(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=True, separators=(",", ":")).encode()

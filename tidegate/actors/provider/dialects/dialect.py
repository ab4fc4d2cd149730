"""A wire, as those who send requests and read bodies see it.

Path: ``provider/actor.py`` -> this -> a wire's own modules.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from tidegate.actors.provider.dialects import (
    chat,
    converse,
    converse_document,
    converse_faults,
    faults,
    messages,
    responses,
)
from tidegate.actors.provider.dialects.batch import Batch, Decoder
from tidegate.protocol.attempts import Order
from tidegate.protocol.failures import Failure


class Dialect(NamedTuple):
    """What differs from wire to wire.

    Attributes:
        decoder: makes the decoder of a streamed body.
        document: decodes a whole body that is not streamed.
        media_type: what a streamed body is labelled as.
        binary: whether a streamed body is frames of bytes and not lines of text.
        rejected: makes the failure of an error status, from status, body, headers and ``now_s``,
            the seconds since the epoch.
        refused: says which compatibility retry would help, from status and body.
    """

    decoder: Callable[[Order], Decoder]
    document: Callable[[bytes], Batch]
    media_type: str = "text/event-stream"
    binary: bool = False
    rejected: Callable[..., Failure] = faults.failure_from_error_body
    refused: Callable[[int | None, Any], str] = faults.refused_from


DIALECTS: Mapping[str, Dialect] = {
    "chat": Dialect(
        decoder=lambda order: chat.ChatDecoder(
            choices=order.choices, event_bytes_max=order.event_bytes_max
        ),
        document=chat.decode_json,
    ),
    "responses": Dialect(
        decoder=lambda order: responses.ResponsesDecoder(event_bytes_max=order.event_bytes_max),
        document=responses.decode_response,
    ),
    "messages": Dialect(
        decoder=lambda order: messages.MessagesDecoder(event_bytes_max=order.event_bytes_max),
        document=messages.decode_json,
    ),
    "converse": Dialect(
        decoder=lambda order: converse.ConverseDecoder(event_bytes_max=order.event_bytes_max),
        document=converse_document.decode_document,
        media_type="application/vnd.amazon.eventstream",
        binary=True,
        rejected=converse_faults.failure_from_answer,
        refused=converse_faults.refused_from,
    ),
}
"""By wire."""

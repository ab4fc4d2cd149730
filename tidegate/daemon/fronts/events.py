"""A turn's own events as server-sent events: live ones, and those out of the journal.

The name is the event's type, the data its JSON, the id its offset, by which a reader comes back.
"""

from __future__ import annotations

from typing import get_args

from tidegate.daemon.fronts.base import encoded, unbroken
from tidegate.protocol.events import AnyEvent


_HEADS = {
    kind: f"event: {kind.__struct_config__.tag}\nid: ".encode() for kind in get_args(AnyEvent)
}


def event_frame(event: AnyEvent) -> bytes:
    """Return the frame of an event."""
    return b"%b%d\ndata: %b\n\n" % (_HEADS[type(event)], event.offset, encoded(event))


def stored_frame(kind: str, offset: int, json: bytes) -> bytes:
    """Return the frame of an event that was kept.

    Args:
        kind: its type, as in ``text.delta``.
        offset: its place in the turn.
        json: the event as it was encoded, on one line.
    """
    return b"event: %b\nid: %d\ndata: %b\n\n" % (kind.encode(), offset, unbroken(json))

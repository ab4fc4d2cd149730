"""The fronts: what a turn looks like to the clients of each API. Pure, no I/O and no clock."""

from tidegate.daemon.fronts.answers import body_of, front_for
from tidegate.daemon.fronts.base import HEARTBEAT, Api, ErrorReply, Front, Opening
from tidegate.daemon.fronts.errors import error_of, refusal_of
from tidegate.daemon.fronts.events import event_frame, stored_frame


__all__ = [
    "HEARTBEAT",
    "Api",
    "ErrorReply",
    "Front",
    "Opening",
    "body_of",
    "error_of",
    "event_frame",
    "front_for",
    "refusal_of",
    "stored_frame",
]

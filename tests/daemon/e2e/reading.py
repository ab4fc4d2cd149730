"""Events of a turn, as a client reads them."""

import json
from typing import NamedTuple


class Event(NamedTuple):
    """One frame of ``/v1/turns/{turn}/events``."""

    name: str
    id: int
    data: dict


def events_in(body):
    """Return the events in what has come of a body; a frame that is not whole is none."""
    found = []
    *frames, _rest = body.split(b"\n\n")
    for frame in frames:
        lines = dict(line.split(": ", 1) for line in frame.decode().split("\n"))
        if "event" in lines:
            at = int(lines["id"]) if "id" in lines else -1
            found.append(Event(lines["event"], at, json.loads(lines["data"])))
    return found


def body_of(got):
    """Return the body in what a socket has got, of a response in chunks."""
    at = got.find(b"\r\n\r\n") + 4
    pieces = []
    while (end := got.find(b"\r\n", at)) >= 0:
        start = end + 2
        at = start + int(got[at:end], 16) + 2
        pieces.append(got[start : at - 2])
    return b"".join(pieces)


def text_of(events):
    """Return the text that the events tell."""
    return "".join(each.data["text"] for each in events if each.name == "text.delta")

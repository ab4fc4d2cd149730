"""The steps of a script, in the words of a test.

Path: a test's steps -> this -> ``tidegate.lab.script``
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

import msgspec

from tidegate.lab.script import Blast, Gate, Pace, Send, Wait, Zip


Frame: TypeAlias = bytes | Send


def frame(value: object, *, event: str | None = None) -> Send:
    r"""Write one server-sent event whose data is ``value`` as JSON.

    >>> frame({"n": 1}, event="tick").data
    b'event: tick\ndata: {"n":1}\n\n'
    """
    name = f"event: {event}\n".encode() if event else b""
    return Send(b"%bdata: %b\n\n" % (name, msgspec.json.encode(value)))


def send(text: str) -> Send:
    """Write this text as it is, in UTF-8, as one chunk."""
    return Send(text.encode())


def raw(data: bytes, *, piece: int | None = None) -> Send:
    """Write these bytes as one chunk, or in chunks of ``piece`` bytes, each a write of its own."""
    return Send(data, piece)


def zipped(data: bytes) -> Zip:
    """Feed the answer's one gzip stream, flush it, and write what comes out as one chunk."""
    return Zip(data)


def wait(wait_s: float) -> Wait:
    """Stay silent for so many seconds."""
    return Wait(wait_s)


def keepalive(every_s: float, times: int) -> Pace:
    """Write a comment so many times, each after ``every_s`` seconds of silence."""
    return Pace((b": keepalive\n\n",), every_s, times)


def gate(name: str) -> Gate:
    """Stand still until the test calls ``lab.open(name)``."""
    return Gate(name)


def pace(frames: Iterable[Frame], every_s: float, *, times: int = 1) -> Pace:
    """Write a frame every ``every_s`` seconds, and all of them ``times`` times."""
    return Pace(tuple(map(_bytes, frames)), every_s, times)


def blast(frames: Sequence[Frame], *, per_write: int = 1, times: int = 1) -> Blast:
    """Write as fast as the client reads, ``per_write`` frames in each chunk.

    Args:
        frames: written in order, again from the first when ``times`` is more than one.
        per_write: how many frames one chunk holds.
        times: how often all of it is written.
    """
    data = [_bytes(each) for each in frames]
    starts = range(0, len(data), per_write)
    return Blast(tuple(b"".join(data[start : start + per_write]) for start in starts), times)


def _bytes(frame: Frame) -> bytes:
    return frame.data if isinstance(frame, Send) else frame

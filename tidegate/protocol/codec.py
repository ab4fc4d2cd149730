"""Encoders and decoders: one pair per direction of the pipe.

A frame's body is a MessagePack list of messages; the frame itself is ``multiprocessing``'s, four
bytes of length, big-endian, before the body.

Path: ``provider/actor.py`` -> this -> ``supervisor/io.py``.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

import msgspec

from tidegate.protocol.attempts import FromWorker, ToWorker


FRAME_BYTES_MAX = 1 << 28
_LENGTH = struct.Struct("!i")

_encoder = msgspec.msgpack.Encoder()
_to_worker = msgspec.msgpack.Decoder(list[ToWorker])
_from_worker = msgspec.msgpack.Decoder(list[FromWorker])


def frame_from(messages: list[ToWorker] | list[FromWorker]) -> bytes:
    """Encode ``messages`` as one frame, length included.

    Raises:
        ValueError: the frame would be longer than ``FRAME_BYTES_MAX``.
    """
    body = _encoder.encode(messages)
    if len(body) > FRAME_BYTES_MAX:
        raise ValueError(f"frame of {len(body)} bytes is over {FRAME_BYTES_MAX}")
    return _LENGTH.pack(len(body)) + body


def decode_to_worker(body: bytes | memoryview) -> list[ToWorker]:
    """Decode a frame's body in the worker.

    Raises:
        msgspec.DecodeError: it is not a list of messages for a worker.
    """
    return _to_worker.decode(body)


def decode_from_worker(body: bytes | memoryview) -> list[FromWorker]:
    """Decode a frame's body in the host.

    Raises:
        msgspec.DecodeError: it is not a list of messages from a worker.
    """
    return _from_worker.decode(body)


class FrameBuffer:
    """Bytes in, whole frames' bodies out; keeps what is not yet whole."""

    def __init__(self) -> None:
        self._pending = bytearray()

    def feed(self, data: bytes | bytearray | memoryview) -> Iterator[bytes]:
        """Take the next bytes and yield the bodies that they complete.

        Raises:
            ValueError: a length that no frame has, behind the last body that can be trusted.
        """
        pending = self._pending
        pending += data
        at = 0
        try:
            while len(pending) - at >= _LENGTH.size:
                (length,) = _LENGTH.unpack_from(pending, at)
                if not 0 <= length <= FRAME_BYTES_MAX:
                    raise ValueError(
                        f"frame length {length} is not between 0 and {FRAME_BYTES_MAX}"
                    )
                end = at + _LENGTH.size + length
                if len(pending) < end:
                    return
                start, at = at + _LENGTH.size, end
                yield bytes(pending[start:end])
        finally:
            del pending[:at]

"""AWS event streams: bytes in, frames out, in time linear to the bytes however they are cut.

A frame is a prelude (length of the frame, length of its headers, checksum of both), headers, a
payload, and a checksum of all that. Both checksums are checked, the first before its lengths are
believed. The same few lengths and headers come again and again, so that each is read once: to see
bytes again that were found right is to have checked them.

Path: ``provider/actor.py`` -> this -> ``provider/dialects``.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias
from zlib import crc32

import msgspec


_PRELUDE = struct.Struct(">III")
_CHECKSUM = struct.Struct(">I")
_PRELUDE_BYTES = _PRELUDE.size
_SUMMED_BYTES = 8  # of the prelude: what its own checksum is about
_CHECKSUM_BYTES = _CHECKSUM.size
_HEADS_MAX = 1024
_HEAD_BYTES_MAX = 512

Headers: TypeAlias = Mapping[str, Any]


class Frame(msgspec.Struct, frozen=True, gc=False):
    """One message.

    Attributes:
        headers: values by name; shared by all frames with the same block of headers.
        payload: its bytes, whatever they are.
    """

    headers: Headers
    payload: bytes


class _Head(msgspec.Struct, frozen=True, gc=False):
    """What is in front of a payload, once it was found right.

    Attributes:
        length: of the whole frame, in bytes.
        checksum: of prelude and headers, from which the frame's own goes on.
    """

    length: int
    checksum: int
    headers: Headers


_heads: dict[bytes, _Head] = {}
"""What was found right, by its bytes; for all streams, for they are alike."""


class FrameError(ValueError):
    """What came is no frame; the decoder is of no use after it.

    Attributes:
        frames: what was whole before it in the same read.
    """

    def __init__(self, what: str, frames: list[Frame]) -> None:
        super().__init__(what)
        self.frames = frames


class FrameTooLong(FrameError):
    """A frame is over the limit."""


class EventStreamDecoder:
    """Reads one body.

    Args:
        frame_bytes_max: the largest frame, in bytes.
    """

    def __init__(self, frame_bytes_max: int) -> None:
        if frame_bytes_max < 1:
            raise ValueError(f"frame_bytes_max {frame_bytes_max} is not positive")
        self._limit = frame_bytes_max
        self._held = bytearray()  # of a frame whose end has not come
        self._wanted = 0  # so many bytes must be there before it is worth another look
        self._head_bytes = _PRELUDE_BYTES  # of the latest head, and most likely of the next

    @property
    def inside_frame(self) -> bool:
        """Whether a frame has begun and not ended."""
        return bool(self._held)

    def feed(self, data: bytes) -> list[Frame]:
        """Take the next bytes and return the frames that they complete.

        Raises:
            FrameError: the frames before it are in its ``frames``.
        """
        if self._held:
            self._held += data
            if len(self._held) < self._wanted:
                return []
            data = bytes(self._held)
            self._held.clear()
        frames: list[Frame] = []
        end = self._take_frames(data, frames)
        if end < len(data):
            self._held += memoryview(data)[end:]
        return frames

    def _take_frames(self, data: bytes, frames: list[Frame]) -> int:
        """Take whole frames and return where the first one begins that is not."""
        known, limit, size, at = _heads, self._limit, len(data), 0
        while at < size:
            begin = at + self._head_bytes
            head = known.get(data[at:begin])
            if head is None:
                head = self._read_head(data, at, frames)
                if head is None:
                    return at
                begin = at + self._head_bytes
            after = at + head.length
            if head.length > limit:
                raise FrameTooLong(f"frame over {limit} bytes", frames)
            if after > size:
                self._wanted = head.length
                return at
            end = after - _CHECKSUM_BYTES
            payload = data[begin:end]
            if crc32(payload, head.checksum) != _CHECKSUM.unpack_from(data, end)[0]:
                raise FrameError("a frame does not fit its checksum", frames)
            frames.append(Frame(head.headers, payload))
            at = after
        return at

    def _read_head(self, data: bytes, at: int, frames: list[Frame]) -> _Head | None:
        """Read prelude and headers; None if they have not come yet."""
        there = len(data) - at
        if there < _PRELUDE_BYTES:
            self._wanted = _PRELUDE_BYTES
            return None
        length, headers_bytes, checksum = _PRELUDE.unpack_from(data, at)
        if crc32(data[at : at + _SUMMED_BYTES]) != checksum:
            raise FrameError("the prelude of a frame does not fit its checksum", frames)
        if length > self._limit:
            raise FrameTooLong(f"frame over {self._limit} bytes", frames)
        head_bytes = _PRELUDE_BYTES + headers_bytes
        if head_bytes + _CHECKSUM_BYTES > length:
            raise FrameError(f"a frame of {length} bytes with headers of {headers_bytes}", frames)
        if there < head_bytes:
            self._wanted = head_bytes
            return None
        block = data[at : at + head_bytes]
        self._head_bytes = head_bytes
        if (known := _heads.get(block)) is not None:
            return known
        try:
            headers = headers_from(block[_PRELUDE_BYTES:])
        except ValueError as error:
            raise FrameError(str(error), frames) from error
        head = _Head(length, crc32(block), headers)
        if head_bytes <= _HEAD_BYTES_MAX:
            if len(_heads) >= _HEADS_MAX:
                _heads.clear()
            _heads[block] = head
        return head


def headers_from(block: bytes) -> dict[str, Any]:
    """Read a block of headers; times are milliseconds since the epoch, UUIDs are bytes.

    Raises:
        ValueError: it is none.
    """
    headers: dict[str, Any] = {}
    at, size = 0, len(block)
    try:
        while at < size:
            name_end = at + 1 + block[at]
            name = block[at + 1 : name_end].decode()
            headers[name], at = _READERS[block[name_end]](block, name_end + 1)
    except (IndexError, KeyError, struct.error, UnicodeDecodeError) as error:
        raise ValueError(f"headers of a frame cannot be read: {error}") from error
    if at > size:
        raise ValueError("headers of a frame are longer than they say")
    return headers


_Reader: TypeAlias = Callable[[bytes, int], tuple[Any, int]]


def _number(form: str) -> _Reader:
    packed = struct.Struct(form)

    def read(block: bytes, at: int) -> tuple[int, int]:
        return packed.unpack_from(block, at)[0], at + packed.size

    return read


def _bytes(block: bytes, at: int) -> tuple[bytes, int]:
    length, begin = _length(block, at)
    return block[begin : begin + length], begin + length


def _text(block: bytes, at: int) -> tuple[str, int]:
    value, end = _bytes(block, at)
    return value.decode(), end


def _uuid(block: bytes, at: int) -> tuple[bytes, int]:
    return block[at : at + 16], at + 16


_length = _number(">H")
_READERS: Mapping[int, _Reader] = {
    0: lambda _block, at: (True, at),
    1: lambda _block, at: (False, at),
    2: _number(">b"),
    3: _number(">h"),
    4: _number(">i"),
    5: _number(">q"),
    6: _bytes,
    7: _text,
    8: _number(">q"),
    9: _uuid,
}
"""By the number of a value's type, how it is read: the value and where it ends."""

"""Frames of AWS event streams: the same however they are cut, and nothing damaged is believed."""

import struct
from zlib import crc32

import pytest
from botocore.eventstream import EventStreamBuffer
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.lab.converse import encode
from tidegate.wire import eventstream
from tidegate.wire.eventstream import (
    EventStreamDecoder,
    Frame,
    FrameError,
    FrameTooLong,
    headers_from,
)


LIMIT = 1 << 16
NAMED = {":event-type": "delta", ":message-type": "event"}
FRAMES = [
    Frame(NAMED, b'{"text":"Gr\xc3\xbc\xc3\x9fe"}'),
    Frame({}, b""),
    Frame(NAMED, b""),
    Frame({":message-type": "exception"}, b"\x00\x01" * 200),
]
BODY = b"".join(encode(frame.headers, frame.payload) for frame in FRAMES)


def framed(block, payload=b"", *, length=None, headers_length=None):
    """Make a frame with right checksums and whatever else is wrong."""
    length = 16 + len(block) + len(payload) if length is None else length
    prelude = struct.pack(">II", length, len(block) if headers_length is None else headers_length)
    summed = prelude + struct.pack(">I", crc32(prelude)) + block + payload
    return summed + struct.pack(">I", crc32(summed))


def header(name, kind, value):
    return bytes([len(name)]) + name + bytes([kind]) + value


HEADERS = b"".join(
    [
        header(b"yes", 0, b""),
        header(b"no", 1, b""),
        header(b"byte", 2, b"\xff"),
        header(b"short", 3, b"\xff\xfe"),
        header(b"int", 4, b"\x00\x00\x01\x00"),
        header(b"long", 5, b"\xff" * 8),
        header(b"bytes", 6, b"\x00\x02\x00\xff"),
        header("téxt".encode(), 7, b"\x00\x03\xe2\x82\xac"),
        header(b"time", 8, b"\x00" * 7 + b"\x05"),
        header(b"uuid", 9, bytes(range(16))),
    ]
)
"""A header of each type."""


def decode(*pieces, limit=LIMIT):
    decoder = EventStreamDecoder(limit)
    return [frame for piece in pieces for frame in decoder.feed(piece)]


def test_frames_are_those_of_the_official_decoder():
    official = EventStreamBuffer()
    official.add_data(BODY)

    assert [(each.headers, each.payload) for each in official] == [
        (frame.headers, frame.payload) for frame in FRAMES
    ]
    assert decode(BODY) == FRAMES


def test_cut_anywhere_gives_the_same():
    assert decode(*[bytes([byte]) for byte in BODY]) == FRAMES
    for at in range(len(BODY)):
        assert decode(BODY[:at], BODY[at:]) == FRAMES, f"cut at {at}"


def test_frame_that_has_not_ended_is_known():
    decoder = EventStreamDecoder(LIMIT)
    ends = [sum(len(encode(f.headers, f.payload)) for f in FRAMES[:n]) for n in range(5)]
    for at, byte in enumerate(BODY, start=1):
        decoder.feed(bytes([byte]))
        assert decoder.inside_frame == (at not in ends)


def test_any_damaged_byte_is_noticed():
    """One frame, one byte of it wrong: never a frame, whatever byte that is."""
    frame = encode(NAMED, b'{"a":1}')
    for at in range(len(frame)):
        damaged = bytearray(frame)
        damaged[at] ^= 0x40
        with pytest.raises(FrameError):
            decode(bytes(damaged), frame)


def test_frames_before_a_damaged_one_are_kept():
    good, bad = encode(NAMED, b"1"), bytearray(encode(NAMED, b"2"))
    bad[-6] ^= 1
    with pytest.raises(FrameError, match="a frame does not fit its checksum") as caught:
        decode(good + bytes(bad))

    assert caught.value.frames == [Frame(NAMED, b"1")]


def test_damaged_length_is_not_waited_for():
    """A wrong length could mean gigabytes; the prelude's own checksum speaks first."""
    frame = bytearray(encode(NAMED, b"1"))
    frame[0] = 0x7F
    with pytest.raises(FrameError, match="prelude") as caught:
        decode(bytes(frame[:12]))

    assert not isinstance(caught.value, FrameTooLong)


def test_frame_over_the_limit_is_refused_by_its_prelude():
    frame = encode(NAMED, b"x" * 1000)
    assert decode(frame, limit=len(frame))
    with pytest.raises(FrameTooLong, match=f"frame over {len(frame) - 1} bytes"):
        decode(frame[:12], limit=len(frame) - 1)


@pytest.mark.parametrize("limit", [0, -1])
def test_limit_that_lets_nothing_through_is_an_error(limit):
    with pytest.raises(ValueError, match=f"frame_bytes_max {limit}"):
        EventStreamDecoder(limit)


@pytest.mark.parametrize(
    ("length", "headers_length"), [(0, 0), (12, 0), (15, 0), (16, 1), (20, 5), (16, 1 << 31)]
)
def test_lengths_that_contradict_each_other_are_refused(length, headers_length):
    with pytest.raises(FrameError, match=f"a frame of {length} bytes"):
        decode(framed(b"", b"\0" * 8, length=length, headers_length=headers_length))


def test_headers_of_every_type_are_read():
    assert headers_from(HEADERS) == {
        "yes": True,
        "no": False,
        "byte": -1,
        "short": -2,
        "int": 256,
        "long": -1,
        "bytes": b"\x00\xff",
        "téxt": "€",
        "time": 5,
        "uuid": bytes(range(16)),
    }
    [frame] = decode(framed(HEADERS))
    assert frame.headers["int"] == 256


@pytest.mark.parametrize(
    "block",
    [
        header(b"a", 10, b""),
        header(b"a", 7, b"\x00\x05hell"),
        header(b"a", 7, b"\x00"),
        header(b"a", 5, b"\x00"),
        header(b"a", 9, b"\x00"),
        header(b"a", 7, b"\x00\x01\xff"),
        header(b"\xff", 0, b""),
        b"\x05abc",
    ],
)
def test_headers_that_cannot_be_read_are_no_frame(block):
    with pytest.raises(FrameError, match="headers of a frame"):
        decode(framed(block, b"{}"))


def test_headers_without_end_of_variety_are_not_all_kept():
    decoder = EventStreamDecoder(LIMIT)
    for number in range(3000):
        [frame] = decoder.feed(encode({"n": str(number)}, b""))
        assert frame.headers == {"n": str(number)}

    assert len(eventstream._heads) <= 1024


def test_same_headers_are_read_once_for_all_streams():
    [first], [second] = decode(encode(NAMED, b"1")), decode(encode(NAMED, b"2"))

    assert first.headers is second.headers


def test_frame_that_another_stream_may_have_is_still_over_the_limit_of_this_one():
    frame = encode(NAMED, b"x" * 1000)
    assert decode(frame)
    for pieces in ([frame], [frame[:200], frame[200:]]):
        with pytest.raises(FrameTooLong, match="frame over 1000 bytes"):
            decode(*pieces, limit=1000)


def test_huge_frame_in_small_reads_is_decoded_in_linear_time():
    """Copying what is there at each read would be some hundred gigabytes of work."""
    payload = b"tide " * (1 << 20)
    frame = encode(NAMED, payload)
    pieces = [frame[at : at + 100] for at in range(0, len(frame), 100)]

    assert decode(*pieces, limit=len(frame)) == [Frame(NAMED, payload)]


@settings(deadline=None, max_examples=200)
@given(
    st.lists(
        st.binary(max_size=30)
        | st.builds(framed, st.binary(max_size=20), st.binary(max_size=20))
        | st.just(encode(NAMED, b"{}")),
        max_size=5,
    )
)
def test_any_bytes_are_frames_or_a_frame_error_alike_for_every_cut(pieces):
    def outcome(parts):
        decoder, frames = EventStreamDecoder(200), []
        for part in parts:
            try:
                frames += decoder.feed(part)
            except FrameError as error:
                return frames + error.frames, str(error)
        return frames, decoder.inside_frame

    body = b"".join(pieces)
    assert outcome([body]) == outcome([bytes([byte]) for byte in body])

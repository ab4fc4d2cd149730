"""What is fuzzed, by name: a check of one input, and the inputs to begin with."""

from collections.abc import Callable
from contextlib import suppress
from random import Random
from typing import NamedTuple

from botocore.eventstream import EventStreamBuffer, ParserError

from tests.fuzz import records, seeds
from tests.fuzz.attempt import check_body, splits_of
from tidegate.wire.eventstream import EventStreamDecoder, Frame, FrameError
from tidegate.wire.sse import EventTooLong, SseDecoder, is_json


HEAD_BYTES = 2
"""In front of each input: flags, and the seed of the places where it is cut."""
LIMIT = 1 << 16
SHORT_LIMIT = 50


class Fuzzed(NamedTuple):
    """One decoder.

    Attributes:
        check: raises if anything does not hold for a body; takes its flags and seed too.
        bodies: the bodies to begin with.
        change: changes a body by its meaning; None where there is no meaning.
    """

    check: Callable[[bytes, int, int], object]
    bodies: list[bytes]
    change: Callable[[bytes, Random], bytes] | None = None

    def run(self, data: bytes) -> None:
        """Check one input."""
        if len(data) >= HEAD_BYTES:
            self.check(data[HEAD_BYTES:], data[0], data[1])


def _wire(name: str) -> Callable[[bytes, int, int], object]:
    return lambda body, flags, seed: check_body(name, body, flags=flags, seed=seed)


def _text_wire(name: str, streams: list[bytes], documents: list[bytes]) -> Fuzzed:
    stream = records.Mutator(records.read_sse, records.write_sse, streams)
    document = records.Mutator(records.read_document, records.write_document, documents)

    def change(body: bytes, rng: Random) -> bytes:
        whole = body.lstrip()[:1] in (b"{", b"[")
        return (document if whole else stream).change(body, rng)

    return Fuzzed(_wire(name), streams + documents, change)


def check_sse(body: bytes, flags: int, seed: int) -> None:
    """Cut ``body`` in pieces, and have a plain decoder read it."""
    limit = SHORT_LIMIT if flags & 1 else LIMIT
    whole = _events_of([body], limit)
    for pieces in splits_of(body, seed):
        assert _events_of(pieces, limit) == whole, pieces
    if limit == LIMIT:
        assert whole[0] == _plain_events(body)


def _events_of(pieces: list[bytes], limit: int) -> tuple[list[tuple[bytes, bytes]], object]:
    decoder = SseDecoder(limit)
    events = []
    try:
        for piece in pieces:
            events += decoder.feed(piece)
            assert len(decoder._line) + len(decoder._data) <= 2 * limit + 2, "more is held"
        events += decoder.eof()
    except EventTooLong as error:
        events += error.events
        return [(event.name, event.data) for event in events], "too long"
    return [(event.name, event.data) for event in events], (decoder.comments, decoder.empties)


def _plain_events(body: bytes) -> list[tuple[bytes, bytes]]:
    """Read events in the plainest way, as the standard has it."""
    body = body.removeprefix(b"\xef\xbb\xbf")
    *lines, rest = body.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
    events, name, data = [], b"", []
    for line in lines:
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if not line:
            joined = b"\n".join(data)
            # An event of nothing but one empty line of data is none here.
            events += [(name, joined)] if joined else []
            name, data = b"", []
        elif field == b"data":
            data.append(value)
        elif field == b"event":
            name = value
    field, colon, value = rest.partition(b":")
    if field == b"data":
        data.append(value.removeprefix(b" ") if colon else b"")
    joined = b"\n".join(data)
    return [*events, (name, joined)] if is_json(joined) else events


def check_frames(body: bytes, flags: int, seed: int) -> None:
    """Cut ``body`` in pieces, and have the official decoder read it."""
    if flags & 2:
        body = records.mended(body)
    limit = SHORT_LIMIT if flags & 1 else LIMIT
    whole = _frames_of([body], limit)
    for pieces in splits_of(body, seed):
        assert _frames_of(pieces, limit) == whole, pieces
    frames, error = whole
    if error is None:
        official = EventStreamBuffer()
        official.add_data(body)
        # It refuses more than we do, such as a header that comes twice.
        with suppress(ParserError):
            assert [(each.headers, each.payload) for each in official] == frames


def _frames_of(
    pieces: list[bytes], limit: int
) -> tuple[list[tuple[object, bytes]], type[FrameError] | None]:
    decoder = EventStreamDecoder(limit)
    frames: list[Frame] = []
    ended: type[FrameError] | None = None
    try:
        for piece in pieces:
            frames += decoder.feed(piece)
            assert len(decoder._held) < limit, "more is held than a frame has"
    except FrameError as error:
        frames += error.frames
        ended = type(error)
    return [(frame.headers, frame.payload) for frame in frames], ended


def fuzzed(name: str) -> Fuzzed:
    """Make what is fuzzed under ``name``."""
    match name:
        case "chat":
            return _text_wire(name, seeds.chat_streams(), seeds.chat_documents())
        case "responses":
            return _text_wire(name, seeds.responses_streams(), seeds.responses_documents())
        case "messages":
            return _text_wire(name, seeds.messages_streams(), seeds.messages_documents())
        case "converse":
            return _converse()
        case "converse-raw":
            return Fuzzed(_wire("converse"), seeds.converse_streams() + seeds.converse_documents())
        case "sse":
            streams = seeds.chat_streams() + seeds.messages_streams()
            change = records.Mutator(records.read_sse, records.write_sse, streams).change
            return Fuzzed(check_sse, [*streams, *seeds.ODD_EVENTS], change)
        case "eventstream":
            frames = [*seeds.converse_streams(), seeds.HEADERS]
            change = records.Mutator(records.read_frames, records.write_frames, frames).change
            return Fuzzed(check_frames, frames, change)
    raise ValueError(f"{name!r} is not fuzzed; {', '.join(NAMES)} are")


def _converse() -> Fuzzed:
    streams, documents = seeds.converse_streams(), seeds.converse_documents()
    stream = records.Mutator(records.read_frames, records.write_frames, streams)
    document = records.Mutator(records.read_document, records.write_document, documents)

    def change(body: bytes, rng: Random) -> bytes:
        return (stream if body[:1] in (b"", b"\0") else document).change(body, rng)

    def check(body: bytes, flags: int, seed: int) -> None:
        if body[:1] == b"\0":
            body = records.mended(body)
        check_body("converse", body, flags=flags, seed=seed)

    return Fuzzed(check, streams + documents, change)


NAMES = ("chat", "responses", "messages", "converse", "converse-raw", "sse", "eventstream")
"""The fuzzed decoders."""

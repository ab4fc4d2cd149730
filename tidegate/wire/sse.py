"""Server-sent events: bytes in, events out, in time linear to the bytes however they are cut.

Lines end with LF, CR or CRLF, mixed as the peer likes, and nowhere else: the bytes are never
decoded here, so that neither U+2028 inside a string nor a character cut by a read can do harm.
Whole records of the usual form take a short way through ``bytes.split``; everything else goes line
by line, and the outcome is the same.

Path: ``provider/actor.py`` -> this -> ``provider/dialects``.
"""

from __future__ import annotations

import json

import msgspec


_BOM = b"\xef\xbb\xbf"


class SseEvent(msgspec.Struct, frozen=True, gc=False):
    """A record that carried data.

    Attributes:
        data: the values of its data lines, joined by LF; never empty.
        name: the value of its event line, or empty.
    """

    data: bytes
    name: bytes = b""


class EventTooLong(ValueError):
    """One event, or one line, is over the limit; the decoder is of no use after it.

    Attributes:
        limit: the limit in bytes.
        events: what was whole before it in the same read.
    """

    def __init__(self, limit: int, events: list[SseEvent]) -> None:
        super().__init__(f"event over {limit} bytes")
        self.limit = limit
        self.events = events


class SseDecoder:
    """Reads one body.

    Attributes:
        comments: comment lines so far; they are life and nothing else.
        empties: records so far that had a data, event or id line, but no data.
    """

    def __init__(self, event_bytes_max: int) -> None:
        if event_bytes_max < 1:
            raise ValueError(f"event_bytes_max {event_bytes_max} is not positive")
        self.comments = 0
        self.empties = 0
        self._limit = event_bytes_max
        self._line = bytearray()  # of a line whose end has not come
        self._data = bytearray()  # of a record whose end has not come, an LF after each line
        self._name = b""
        self._has_field = False
        self._after_cr = False  # an LF that comes next belongs to the line end before it
        self._first_line = True
        self._at_record = True

    def feed(self, data: bytes) -> list[SseEvent]:
        """Take the next bytes and return the events that they complete.

        Raises:
            EventTooLong: the events before it are in its ``events``.
        """
        events: list[SseEvent] = []
        if not data:
            return events  # a CR and its LF are not parted by it
        if not self._at_record:
            # Two LFs in a row end a record wherever they stand: begin afresh behind them.
            end = data.find(b"\n\n") + 2
            if end == 1:
                self._take_lines(data, events)
                return events
            self._take_lines(data[:end], events)
            data = data[end:]
        end = data.rfind(b"\n\n") + 2
        if end > 1:
            self._take_records(data[:end], events)
            data = data[end:]
        if data:
            self._take_lines(data, events)
        return events

    def eof(self) -> list[SseEvent]:
        """Say that the body has ended, and return the last event if it can be trusted.

        Without its blank line an event counts only if its data is complete JSON.
        """
        events: list[SseEvent] = []
        line = bytes(self._line).removeprefix(_BOM if self._first_line else b"")
        self._line.clear()
        if line.partition(b":")[0] == b"data":
            self._take_line(line, events)
        if is_json(self._data):
            self._end_record(events)
        return events

    def _take_records(self, block: bytes, events: list[SseEvent]) -> None:
        """Take whole records, the last of which ends with two LFs."""
        if len(block) > self._limit or b"\r" in block:
            self._take_lines(block, events)
            return
        if _take_plain(block, events) or _take_named(block, events):
            self._first_line = False
            return
        for record in block[:-2].split(b"\n\n"):
            record_closed = record + b"\n\n"
            if _take_plain(record_closed, events) or _take_named(record_closed, events):
                self._first_line = False
            else:
                self._take_lines(record_closed, events)

    def _take_lines(self, data: bytes, events: list[SseEvent]) -> None:
        """Take any bytes, line by line."""
        if self._after_cr:
            data = data.removeprefix(b"\n")
        lines = data.splitlines()
        tail = b"" if data.endswith((b"\n", b"\r")) or not data else lines.pop()
        self._after_cr = data.endswith(b"\r")
        if lines and self._line:
            self._line += lines[0]
            lines[0] = bytes(self._line)
            self._line.clear()
        for line in lines:
            if len(line) > self._limit:
                raise EventTooLong(self._limit, events)
            self._take_line(line, events)
        self._line += tail
        if len(self._line) > self._limit:
            raise EventTooLong(self._limit, events)
        self._at_record = not (self._line or self._data or self._has_field or self._after_cr)

    def _take_line(self, line: bytes, events: list[SseEvent]) -> None:
        if self._first_line:
            self._first_line = False
            line = line.removeprefix(_BOM)
        if not line:
            self._end_record(events)
            return
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data":
            self._has_field = True
            self._data += value
            self._data += b"\n"
            if len(self._data) > self._limit + 1:
                raise EventTooLong(self._limit, events)
        elif field == b"event":
            self._has_field = True
            self._name = value
        elif field == b"id":
            self._has_field = True
        elif not field:
            self.comments += 1

    def _end_record(self, events: list[SseEvent]) -> None:
        if len(self._data) > 1:
            events.append(SseEvent(bytes(memoryview(self._data)[:-1]), self._name))
        elif self._has_field:
            self.empties += 1
        self._data = bytearray()
        self._name = b""
        self._has_field = False


def _take_plain(block: bytes, events: list[SseEvent]) -> bool:
    """Take ``block`` if each of its records is one data line that is not empty."""
    if not block.startswith(b"data: "):
        return False
    values = block[6:-2].split(b"\n\ndata: ")
    # With two LFs a record, no value has one in it.
    if block.count(b"\n") != 2 * len(values) or b"" in values:
        return False
    events += [SseEvent(value) for value in values]
    return True


def _take_named(block: bytes, events: list[SseEvent]) -> bool:
    """Take ``block`` if each of its records is an event line and a data line, neither empty."""
    if not block.startswith(b"event: "):
        return False
    pairs = [each.partition(b"\ndata: ") for each in block[7:-2].split(b"\n\nevent: ")]
    # Each has one LF at least, by its middle; with three LFs a record, none has another.
    if block.count(b"\n") != 3 * len(pairs) or not all(data for _, _, data in pairs):
        return False
    events += [SseEvent(data, name) for name, _, data in pairs]
    return True


def is_json(data: bytes | bytearray) -> bool:
    """Say whether ``data`` is one complete JSON value."""
    try:
        json.loads(data.decode("utf-8"))
    except (ValueError, RecursionError):
        return False
    return True

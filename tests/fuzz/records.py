"""Takes bodies apart into records, changes these as a provider might, and puts them together.

Bytes alone would break the JSON or the checksums nearly every time, and never get behind them.
"""

import copy
import json
import struct
from collections.abc import Callable, Iterator
from random import Random
from typing import Any, TypeAlias

from tests.unit.wire.test_eventstream import framed


Record: TypeAlias = tuple[bytes, Any]
"""What stands around a payload, as bytes; and the payload as JSON, or as bytes if it is none."""
Read: TypeAlias = Callable[[bytes], list[Record]]
Write: TypeAlias = Callable[[list[Record]], bytes]

_SCALARS = (
    *(None, True, False, 0, 1, 2, -1, 10**30, 2**63, -(2**63) - 1, 1.5, 1e308, -0.0),
    *("", "a", "{}", "[]", '{"a":', "1}", "null", "\ud800", "é🌊", " ", "\n", "[" * 1200),
    *([], {}, [[]], [None], {"type": ""}),
)
"""Values that somebody may not have thought of."""


def read_sse(body: bytes) -> list[Record]:
    """Take a stream of events apart; a record keeps all of its lines but those of data."""
    records = []
    for part in body.split(b"\n\n"):
        lines = part.split(b"\n")
        data = b"\n".join(line[6:] for line in lines if line.startswith(b"data: "))
        around = b"\n".join(line for line in lines if not line.startswith(b"data: "))
        records.append((around, _value_of(data)))
    return records


def write_sse(records: list[Record]) -> bytes:
    """Put a stream of events together."""
    parts = []
    for around, value in records:
        data = _bytes_of(value)
        lines = [around] if around else []
        if data:
            lines += [b"data: " + line for line in data.split(b"\n")]
        parts.append(b"\n".join(lines))
    return b"\n\n".join(parts)


def read_document(body: bytes) -> list[Record]:
    """Take a document as a body of one record."""
    return [(b"", _value_of(body))]


def write_document(records: list[Record]) -> bytes:
    """Write the last record."""
    return _bytes_of(records[-1][1]) if records else b""


def read_frames(body: bytes) -> list[Record]:
    """Take an event stream apart, up to the first frame that is none."""
    return [(block, _value_of(payload)) for block, payload in _frames_in(body)]


def write_frames(records: list[Record]) -> bytes:
    """Put an event stream together, with checksums that are right."""
    return b"".join(framed(around, _bytes_of(value)) for around, value in records)


def mended(body: bytes) -> bytes:
    """Give each frame the checksums that it should have, so that what is in it is looked at."""
    return b"".join(framed(block, payload) for block, payload in _frames_in(body))


class Mutator:
    """Changes bodies by their meaning.

    Args:
        read: takes a body apart.
        write: the opposite of it.
        seeds: bodies whose parts and words may come up anywhere.
    """

    def __init__(self, read: Read, write: Write, seeds: list[bytes]) -> None:
        self._read = read
        self._write = write
        known = [record for seed in seeds for record in read(seed)]
        self._known = known
        self._values = [*_SCALARS]
        self._keys: list[str] = []
        for _, value in known:
            for place, key, inner in _places(value):
                self._values.append(inner)
                if isinstance(place, dict):
                    self._keys.append(key)
        self._arounds = [around for around, _ in known]

    def change(self, body: bytes, rng: Random) -> bytes:
        """Return ``body`` with one to four changes."""
        records = self._read(body)
        for _ in range(rng.randrange(1, 5)):
            self._change_one(records, rng)
        return self._write(records)

    def _change_one(self, records: list[Record], rng: Random) -> None:
        at = rng.randrange(len(records) + 1)
        what = rng.randrange(12)
        if at == len(records) or what == 0:
            records.insert(at, copy.deepcopy(rng.choice(self._known)))
        elif what == 1:
            del records[at]
        elif what == 2:
            records.insert(at, copy.deepcopy(records[at]))
        elif what == 3:
            records.append(records.pop(at))
        elif what == 4:
            records[at] = (rng.choice(self._arounds), records[at][1])
        else:
            records[at] = (records[at][0], self._changed(records[at][1], rng))

    def _changed(self, value: Any, rng: Random) -> Any:
        value = copy.deepcopy(value)
        places = _places(value)
        if not places:
            return copy.deepcopy(rng.choice(self._values))
        place, key, inner = rng.choice(places)
        what = rng.randrange(6)
        if what == 0:
            del place[key]
        elif what == 1 and isinstance(place, dict):
            place[rng.choice(self._keys)] = copy.deepcopy(rng.choice(self._values))
        elif what == 1:
            place.insert(key, copy.deepcopy(rng.choice(self._values)))
        elif what == 2 and isinstance(place, dict):
            place[rng.choice(self._keys)] = place.pop(key)
        elif what == 3 and isinstance(inner, str) and inner:
            cut = rng.randrange(len(inner))
            place[key] = inner[:cut] if rng.randrange(2) else inner[cut:]
        elif what == 3 and isinstance(inner, int):
            place[key] = inner + rng.choice((-1, 1))
        else:
            place[key] = copy.deepcopy(rng.choice(self._values))
        return value


def _frames_in(body: bytes) -> Iterator[tuple[bytes, bytes]]:
    while len(body) >= 16:
        length, headers_bytes = struct.unpack_from(">II", body)
        if not 16 + headers_bytes <= length <= len(body):
            break
        end = 12 + headers_bytes
        yield body[12:end], body[end : length - 4]
        body = body[length:]


def _places(value: Any) -> list[tuple[Any, Any, Any]]:
    """Return where something stands in ``value``, at any depth: the holder, the key, the thing."""
    places: list[tuple[Any, Any, Any]] = []
    todo = [value]
    while todo:
        holder = todo.pop()
        items = holder.items() if isinstance(holder, dict) else ()
        if isinstance(holder, list):
            items = enumerate(holder)
        for key, inner in items:
            places.append((holder, key, inner))
            todo.append(inner)
    return places


def _value_of(data: bytes) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return data


def _bytes_of(value: Any) -> bytes:
    if isinstance(value, bytes):
        return value
    try:
        # Lone surrogates have to be written as escapes.
        return json.dumps(value, separators=(",", ":")).encode()
    except RecursionError:
        return b"[" * 1200

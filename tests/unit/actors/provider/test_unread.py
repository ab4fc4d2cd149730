"""What waits in a body is returned as aiohttp would, with all that aiohttp notes of it."""

import asyncio

import aiohttp
import pytest
from aiohttp.base_protocol import BaseProtocol
from hypothesis import given
from hypothesis import strategies as st

from tidegate.actors.provider import unread
from tidegate.actors.provider.unread import all_of


NOTES = ("_buffer", "_buffer_offset", "_cursor", "_size", "_http_chunk_splits", "total_bytes")
PIECES = st.lists(st.binary(min_size=1, max_size=5), min_size=1, max_size=6)


class Protocol(BaseProtocol):
    """Counts how often reading is told to go on."""

    def __init__(self, loop):
        super().__init__(loop)
        self.resumed = 0

    def resume_reading(self, resume_parser=True):
        self.resumed += 1


def filled(loop, pieces, *, chunked, before=0):
    """Return a reader with pieces in it, of the first of which so many bytes were read."""
    reader = aiohttp.StreamReader(Protocol(loop), limit=1 << 16, loop=loop)
    for piece in pieces:
        if chunked:
            reader.begin_http_chunk_receiving()
        reader.feed_data(piece)
        if chunked:
            reader.end_http_chunk_receiving()
    if before:
        reader.read_nowait(before)
    reader._protocol.resumed = 0
    return reader


@pytest.fixture(scope="module")
def loop():
    loop = asyncio.new_event_loop()
    yield loop
    loop.close()


@given(pieces=PIECES, chunked=st.booleans(), data=st.data())
def test_it_is_what_aiohttp_returns(loop, pieces, chunked, data):
    before = data.draw(st.integers(0, len(pieces[0]) - 1))
    ours, theirs = (filled(loop, pieces, chunked=chunked, before=before) for _ in range(2))

    assert all_of(ours) == theirs.read_nowait() == b"".join(pieces)[before:]
    for name in NOTES:
        assert getattr(ours, name) == getattr(theirs, name)


def test_aiohttp_is_asked_once_whether_it_can_go_on(loop):
    reader = filled(loop, [b"a"] * 100, chunked=True)

    assert all_of(reader) == b"a" * 100
    assert reader._protocol.resumed == 1


def test_aiohttp_that_keeps_it_elsewhere_is_asked_the_usual_way(loop, monkeypatch):
    monkeypatch.setattr(unread, "_KNOWN", False)
    reader = filled(loop, [b"a"] * 100, chunked=True)

    assert all_of(reader) == b"a" * 100
    assert reader._protocol.resumed == 100


def test_it_is_known_where_this_aiohttp_keeps_it():
    assert unread._KNOWN

"""The decoder of server-sent events gives the same events however the bytes are cut."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.wire.sse import EventTooLong, SseDecoder, SseEvent


LIMIT = 1 << 16
GOLDEN = (
    b"\xef\xbb\xbf: hello\n\n"
    b"retry: 3000\n\n"
    b'data: {"a":1}\n\n'
    b'data: {"a":2}\n\n'
    b'event: named\ndata: {"a":3}\n\n'
    b'id: 7\ndata:{"a":4}\n\n'
    b"data:\n\n"
    b"event: nothing\n\n"
    b'data: {"a":\ndata: "\xe2\x80\xa8 \xc3\xa9 \xc2\x85"}\n\n'
    b"data: [DONE]\n\n"
)
GOLDEN_EVENTS = [
    SseEvent(b'{"a":1}'),
    SseEvent(b'{"a":2}'),
    SseEvent(b'{"a":3}', b"named"),
    SseEvent(b'{"a":4}'),
    SseEvent(b'{"a":\n"\xe2\x80\xa8 \xc3\xa9 \xc2\x85"}'),
    SseEvent(b"[DONE]"),
]
LINE_ENDS = {"LF": b"\n", "CR": b"\r", "CRLF": b"\r\n"}


def decode(*pieces, limit=LIMIT):
    decoder = SseDecoder(limit)
    events = [event for piece in pieces for event in decoder.feed(piece)]
    return events + decoder.eof(), decoder


def events_of(*pieces):
    return decode(*pieces)[0]


def one_by_one(body):
    return [body[at : at + 1] for at in range(len(body))]


@pytest.fixture(params=LINE_ENDS)
def golden(request):
    return GOLDEN.replace(b"\n", LINE_ENDS[request.param])


def test_golden_body_whole_and_byte_by_byte_gives_its_events(golden):
    assert events_of(golden) == GOLDEN_EVENTS
    assert events_of(*one_by_one(golden)) == GOLDEN_EVENTS


def test_golden_body_cut_at_every_byte_gives_its_events(golden):
    for at in range(1, len(golden)):
        assert events_of(golden[:at], golden[at:]) == GOLDEN_EVENTS, f"cut at {at}"


def test_read_of_nothing_changes_nothing_wherever_it_comes(golden):
    for at in range(len(golden) + 1):
        assert events_of(golden[:at], b"", golden[at:]) == GOLDEN_EVENTS, f"cut at {at}"

    assert events_of(b"data: a\r", b"", b"\ndata: b\n\n") == [SseEvent(b"a\nb")]


def test_comments_and_empty_records_are_counted_apart(golden):
    _, decoder = decode(golden)

    assert decoder.comments == 1
    assert decoder.empties == 2


def test_line_ends_may_be_mixed_within_a_record():
    body = b"data: a\rdata: b\r\ndata: c\n\r\ndata: d\n\r"

    assert events_of(body) == [SseEvent(b"a\nb\nc"), SseEvent(b"d")]
    assert events_of(*one_by_one(body)) == [SseEvent(b"a\nb\nc"), SseEvent(b"d")]


def test_line_end_cut_between_cr_and_lf_is_one_line_end():
    assert events_of(b"data: a\r", b"\ndata: b\r\n\r", b"\ndata: c\n\n") == [
        SseEvent(b"a\nb"),
        SseEvent(b"c"),
    ]


def test_event_that_ends_with_cr_is_not_held_back():
    assert SseDecoder(LIMIT).feed(b"data: a\r\r") == [SseEvent(b"a")]


@pytest.mark.parametrize(
    ("body", "data"),
    [
        (b"data: a\n\n", b"a"),
        (b"data:a\n\n", b"a"),
        (b"data:  a\n\n", b" a"),
        (b"data\ndata: a\n\n", b"\na"),
        (b"data\ndata\n\n", b"\n"),
        (b"data: a: b\n\n", b"a: b"),
        (b"datum: x\ndata: a\n data: y\n\n", b"a"),
        (b"\n\n\ndata: a\n\n\n\n", b"a"),
    ],
)
def test_field_is_read_as_the_standard_says(body, data):
    assert events_of(body) == [SseEvent(data)]
    assert events_of(*one_by_one(body)) == [SseEvent(data)]


def test_name_of_a_record_without_data_is_forgotten():
    assert events_of(b"event: x\n\ndata: a\n\n") == [SseEvent(b"a")]


def test_mark_of_byte_order_counts_only_at_the_beginning():
    mark = b"\xef\xbb\xbf"

    assert events_of(mark + b"data: a\n\n" + mark + b"data: b\n\n") == [SseEvent(b"a")]
    assert events_of(b"data: a\n\n", mark + b"data: b\n\n") == [SseEvent(b"a")]


def test_comments_alone_are_seen_in_the_count():
    decoder = SseDecoder(LIMIT)

    assert decoder.feed(b": ping\n\n:\n") == []
    assert decoder.comments == 2
    assert decoder.empties == 0


@pytest.mark.parametrize(
    ("tail", "events"),
    [
        (b'data: {"a":1}', [SseEvent(b'{"a":1}')]),
        (b'data: {"a":1}\n', [SseEvent(b'{"a":1}')]),
        (b'data: {"a":\ndata: 1}', [SseEvent(b'{"a":\n1}')]),
        (b'event: x\ndata: {"a":1}\r', [SseEvent(b'{"a":1}', b"x")]),
        (b'\xef\xbb\xbfdata: {"a":1}', [SseEvent(b'{"a":1}')]),
        (b'data: {"a":1}\neve', [SseEvent(b'{"a":1}')]),
        (b'data: {"a":1', []),
        (b"data: [DONE]", []),
        (b"data: " + b"[" * 20_000, []),
        (b"data", []),
        (b"event: x\n", []),
        (b"", []),
    ],
)
def test_event_without_its_blank_line_counts_if_its_data_is_whole(tail, events):
    assert events_of(tail) == events
    assert events_of(*one_by_one(tail)) == events


@pytest.mark.parametrize(
    "body",
    [
        b"data: " + b"x" * 60 + b"\n\n",
        b": " + b"x" * 60 + b"\n\n",
        b"data: xxxxxxxxx\n" * 6 + b"\n",
        b"data: " + b"x" * 60,
    ],
)
@pytest.mark.parametrize("piece", [1, 7, 1000])
def test_event_over_the_limit_is_refused_with_what_was_before_it(body, piece):
    body = b"data: a\n\n" + body
    pieces = [body[at : at + piece] for at in range(0, len(body), piece)]
    decoder, events = SseDecoder(50), []

    with pytest.raises(EventTooLong, match="over 50 bytes") as caught:
        events.extend(event for each in pieces for event in decoder.feed(each))

    assert caught.value.limit == 50
    assert events + caught.value.events == [SseEvent(b"a")]


def test_many_small_events_in_one_read_are_under_the_limit():
    body = b"data: 1234567890\n\n" * 100

    assert len(decode(body, limit=20)[0]) == 100


def test_limit_that_is_not_positive_is_refused():
    with pytest.raises(ValueError, match="event_bytes_max 0"):
        SseDecoder(0)


def test_huge_event_in_small_reads_is_read_in_linear_time():
    """Were the part that is already there copied at each read, this would be 500 gigabytes."""
    size, piece = 1 << 23, b"x" * 64
    decoder = SseDecoder(size + 100)

    decoder.feed(b"data: ")
    for _ in range(size // len(piece)):
        assert decoder.feed(piece) == []
    (event,) = decoder.feed(b"\n\n")

    assert len(event.data) == size


def test_many_data_lines_in_small_reads_are_read_in_linear_time():
    lines = 200_000
    decoder = SseDecoder(1 << 23)

    for _ in range(lines):
        assert decoder.feed(b"data: 123456\n") == []
    (event,) = decoder.feed(b"\n")

    assert event.data.count(b"\n") == lines - 1


class SpecDecoder:
    """The standard's text, word by word, over one whole body."""

    def __init__(self, body):
        self.events, self.data, self.name = [], b"", b""
        text = body.removeprefix(b"\xef\xbb\xbf").replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        for line in text.split(b"\n")[:-1]:
            self.take(line)

    def take(self, line):
        if not line:
            if self.data.removesuffix(b"\n"):
                self.events.append(SseEvent(self.data[:-1], self.name))
            self.data = self.name = b""
        field, _, value = line.partition(b":")
        value = value[1:] if value.startswith(b" ") else value
        if field == b"data":
            self.data += value + b"\n"
        elif field == b"event":
            self.name = value


TOKENS = [
    b"data: {}\n\n",
    b"event: e\ndata: 1\n\n",
    *(b"data: x", b"data:", b"data", b"event: e", b"event:", b"id: 1", b": c", b"junk"),
    *(b"\n", b"\n\n", b"\r", b"\r\n", b" ", b":", b"\xef\xbb\xbf", b"\xff", b"\xe2\x80\xa8"),
]


@settings(deadline=None, max_examples=250)
@given(st.lists(st.sampled_from(TOKENS), max_size=14), st.data())
def test_any_bytes_cut_anywhere_give_what_the_standard_says(tokens, data):
    body = b"".join(tokens)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(body)), max_size=4)))
    pieces = [body[a:b] for a, b in itertools.pairwise([0, *cuts, len(body)])]
    expected = SpecDecoder(body).events

    whole, cut, single = SseDecoder(LIMIT), SseDecoder(LIMIT), SseDecoder(LIMIT)
    assert whole.feed(body) == expected
    assert [event for piece in pieces for event in cut.feed(piece)] == expected
    assert [event for byte in one_by_one(body) for event in single.feed(byte)] == expected
    assert whole.eof() == cut.eof() == single.eof()
    assert (whole.comments, whole.empties) == (cut.comments, cut.empties)
    assert (whole.comments, whole.empties) == (single.comments, single.empties)

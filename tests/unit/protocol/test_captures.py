"""Captures as text: what is written is read again, and a cut file as far as it goes."""

import pytest

from tidegate.protocol.captures import (
    Began,
    Came,
    Headed,
    How,
    Over,
    Requested,
    bytes_of,
    capture_name,
    is_capture,
    line_from,
    lines_from,
    written,
)


LINES = [
    Began(version=1, began="2026-01-01T00:00:00.000+00:00", wire="chat"),
    Requested(at_s=0.1, method="POST", url="http://host/v1", headers=[("a", "b")], text="{}"),
    Headed(at_s=0.2, status=200, headers=[("content-type", "text/event-stream")]),
    Came(at_s=0.3, **written("data: é\n\n".encode())),
    Came(at_s=0.4, **written(b"\xff\x00")),
    Over(at_s=0.5, how=How.CUT, error="why"),
]
TEXT = b"".join(map(line_from, LINES))


def test_what_is_written_is_read_again():
    assert list(lines_from(TEXT)) == LINES
    assert is_capture(TEXT)
    assert [bytes_of(line) for line in LINES[3:5]] == ["data: é\n\n".encode(), b"\xff\x00"]


def test_file_cut_anywhere_is_valid_as_far_as_it_goes():
    ends = [len(b"".join(map(line_from, LINES[:count]))) for count in range(len(LINES) + 1)]
    for cut in range(len(TEXT) + 1):
        # Without its line feed a line is whole all the same.
        whole = sum(end - 1 <= cut for end in ends[1:])
        assert list(lines_from(TEXT[:cut])) == LINES[:whole]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b'{"type":"other"}\n', "line 1"),
        (TEXT + b"no JSON\n", "line 7"),
        (TEXT.replace(b'"version":1', b'"version":2'), "version 2"),
    ],
)
def test_file_of_another_form_says_where(text, said):
    with pytest.raises(ValueError, match=said):
        list(lines_from(text))


def test_body_that_is_not_base64_is_an_error():
    with pytest.raises(ValueError, match="base64"):
        bytes_of(Came(b64="no!"))


def test_names_are_in_the_order_of_attempts():
    names = [capture_name("/d/turn_ab_", 3, number) for number in (1, 2, 10)]

    assert names == ["/d/turn_ab_3-01.jsonl", "/d/turn_ab_3-02.jsonl", "/d/turn_ab_3-10.jsonl"]
    assert sorted(names) == names
    assert capture_name("", 3, 1) == ""

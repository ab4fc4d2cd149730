"""Answers as data: their head and their bytes."""

import gzip
import zlib
from datetime import UTC, datetime

import pytest

from tidegate.lab import (
    Answer,
    End,
    HttpDate,
    blast,
    gate,
    keepalive,
    pace,
    raw,
    send,
    wait,
    zipped,
)
from tidegate.lab.script import Blast, Gate, Pace, Send, Wait


NOW = datetime(2030, 1, 2, 3, 4, 5, 900_000, tzinfo=UTC)
FINAL = Send(b"0\r\n\r\n")


def lines(answer):
    return answer.head(NOW).decode().split("\r\n")


def test_stream_is_chunked_and_an_event_stream():
    assert lines(Answer()) == [
        "HTTP/1.1 200 OK",
        "content-type: text/event-stream",
        "transfer-encoding: chunked",
        "",
        "",
    ]


def test_answer_that_closes_says_so():
    assert "connection: close" in lines(Answer([End.EOF]))
    assert "connection: close" not in lines(Answer([End.CUT]))


def test_json_has_a_length_and_no_framing():
    answer = Answer.json({"a": 1}, 429, {"Retry-After": "3"})

    assert lines(answer) == [
        "HTTP/1.1 429 Too Many Requests",
        "content-type: application/json",
        "content-length: 7",
        "Retry-After: 3",
        "",
        "",
    ]
    assert answer.program == (Send(b'{"a":1}'),)


def test_status_nobody_has_named_gets_a_phrase():
    assert lines(Answer(status=529))[0] == "HTTP/1.1 529 Status"


def test_date_is_counted_from_now_in_whole_seconds():
    answer = Answer(headers={"retry-after": HttpDate(3)})

    assert "retry-after: Wed, 02 Jan 2030 03:04:08 GMT" in lines(answer)


def test_verbatim_bytes_are_left_alone():
    answer = Answer([send("zz\r\n"), End.CUT], verbatim=True)

    assert answer.program == (Send(b"zz\r\n"),)
    assert lines(answer) == ["HTTP/1.1 200 OK", "content-type: text/event-stream", "", ""]


def test_each_write_is_one_chunk():
    answer = Answer([send("é"), raw(b"abcde", piece=2), End.CUT])

    assert answer.program == (
        Send(b"2\r\n\xc3\xa9\r\n"),
        Send(b"2\r\nab\r\n"),
        Send(b"2\r\ncd\r\n"),
        Send(b"1\r\ne\r\n"),
    )


def test_empty_write_is_not_taken_for_the_final_chunk():
    assert Answer([send(""), End.CUT]).program == (Send(b""),)


@pytest.mark.parametrize("end", [(), (End.KEEPALIVE,), (End.EOF,)])
def test_complete_body_ends_with_the_final_chunk(end):
    assert Answer(end).program == (FINAL,)


@pytest.mark.parametrize("end", [End.CUT, End.RESET, End.HOLD])
def test_incomplete_body_has_no_final_chunk(end):
    assert Answer([end]).program == ()


def test_step_behind_the_end_is_refused():
    with pytest.raises(ValueError, match="behind the end"):
        Answer([End.CUT, send("late")])


def test_steps_without_bytes_stay_as_they_are():
    answer = Answer([wait(0.5), gate("a"), keepalive(2, 3), End.HOLD])

    assert answer.program == (
        Wait(0.5),
        Gate("a"),
        Pace((b"d\r\n: keepalive\n\n\r\n",), 2, 3),
    )


def test_pace_frames_each_of_its_writes():
    assert Answer([pace([send("a"), b"bc"], 0.1, times=2), End.CUT]).program == (
        Pace((b"1\r\na\r\n", b"2\r\nbc\r\n"), 0.1, 2),
    )


def test_blast_joins_frames_into_writes():
    step = blast([send("a"), send("b"), b"c"], per_write=2, times=5)

    assert Answer([step, End.CUT]).program == (Blast((b"2\r\nab\r\n", b"1\r\nc\r\n"), 5),)


def test_gzip_writes_can_be_read_one_by_one_and_end_well():
    answer = Answer([zipped(b"one "), zipped(b"two"), End.EOF], verbatim=True)
    first, second, last = (step.data for step in answer.program)
    reader = zlib.decompressobj(wbits=31)

    assert reader.decompress(first) == b"one "
    assert reader.decompress(second) == b"two"
    assert gzip.decompress(first + second + last) == b"one two"


def test_cut_gzip_stream_has_no_trailer():
    answer = Answer([zipped(b"one"), End.CUT], verbatim=True)

    with pytest.raises(EOFError):
        gzip.decompress(b"".join(step.data for step in answer.program))

"""Bodies: read within their limits, and refused with the place of what is wrong."""

import asyncio
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.daemon.access.body import BodyRefused, ClientGone, object_from, read_body


JSON = [(b"content-type", b"application/json")]


def receiving(*messages):
    """Return what hands over these messages, and then nothing for ever."""
    left = list(messages)

    async def receive():
        if not left:
            await asyncio.Event().wait()
        return left.pop(0)

    return receive


def piece(body, *, more=False):
    return {"type": "http.request", "body": body, "more_body": more}


def read(*messages, headers=(), limit=100, within_s=10.0):
    return asyncio.run(read_body(receiving(*messages), headers, limit, within_s))


def test_pieces_are_joined():
    assert read(piece(b"one ", more=True), piece(b"", more=True), piece(b"two")) == b"one two"
    assert read(piece(b"")) == b""


def test_body_of_just_the_limit_is_taken():
    assert read(piece(b"x" * 60, more=True), piece(b"x" * 40)) == b"x" * 100


@pytest.mark.parametrize("declared", [b"101", b"99999999999999999999"])
def test_body_that_says_it_is_too_large_is_413_before_it_is_read(declared):
    with pytest.raises(BodyRefused, match="larger than 100 bytes") as refused:
        read(headers=[(b"content-length", declared)])

    assert (refused.value.status, refused.value.kind) == (413, "too_large")


def test_body_that_turns_out_too_large_is_413():
    with pytest.raises(BodyRefused) as refused:
        read(piece(b"x" * 60, more=True), piece(b"x" * 41, more=True))

    assert refused.value.status == 413


def test_client_that_leaves_within_its_body_has_gone():
    with pytest.raises(ClientGone):
        read(piece(b"{", more=True), {"type": "http.disconnect"})


def test_body_that_does_not_come_is_408():
    with pytest.raises(BodyRefused, match="not there within") as refused:
        read(piece(b"{", more=True), within_s=0.01)

    assert refused.value.status == 408


def test_object_is_read():
    assert object_from(b' {"a": [1, 2.5, null]} ', JSON) == {"a": [1, 2.5, None]}


@pytest.mark.parametrize(
    "kind",
    [
        "application/json",
        "Application/JSON; charset=UTF-8",
        'application/json; x=y; charset = "utf-8"; z',
        "application/vnd.x+json",
        "",
    ],
)
def test_kinds_that_are_json(kind):
    headers = [(b"content-type", kind.encode())] if kind else []

    assert object_from(b"{}", headers) == {}


@pytest.mark.parametrize(
    "header",
    [
        (b"content-type", b"text/plain"),
        (b"content-type", b"application/x-www-form-urlencoded"),
        (b"content-type", b"application/jsonp"),
        (b"content-type", b"application/json; charset=latin-1"),
        (b"content-type", b"application/json; x=utf-8; charset=utf-16; y"),
        (b"content-encoding", b"gzip"),
    ],
)
def test_other_kinds_are_415_with_the_way_out(header):
    with pytest.raises(BodyRefused, match="send") as refused:
        object_from(b"{}", [header])

    assert (refused.value.status, refused.value.kind) == (415, "unsupported_media_type")


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "the body is empty"),
        (b" \n", "the body is empty"),
        (b'{"a": tru}', "invalid character, near byte 10 (line 1, column 11)"),
        (b'{\n  "a": 1,\n  b}', "near byte 14 (line 3, column 3)"),
        (b'{"a": 1', "it ends too early, or within an escape, at byte 7 (line 1, column 8)"),
        (b'{"a": "\xff"}', "it is not UTF-8, at byte 7 (line 1, column 8)"),
        (b'{"a": 1} {"b": 2}', "trailing characters, near byte 10 (line 1, column 11)"),
        (b'{"a": NaN}', "near byte 6 (line 1, column 7)"),
        (b'{"a": "\\udc00x"}', "surrogate pair, near byte 13"),
        (b'{"a": 1e999}', "Number out of range"),
        (b"[" * 100_000 + b"]" * 100_000, "nested too deep"),
        (b"[1]", "an array: send an object"),
        (b'"text"', "a string: send an object"),
        (b"12", "a number: send an object"),
        (b"true", "a truth value: send an object"),
        (b"null", "null: send an object"),
    ],
)
def test_what_is_no_object_is_400_with_the_place(body, words):
    with pytest.raises(BodyRefused) as refused:
        object_from(body, JSON)

    assert (refused.value.status, refused.value.kind) == (400, "bad_request")
    assert words in refused.value.message


@given(st.binary(max_size=60))
def test_any_bytes_are_an_object_or_refused(body):
    try:
        found = object_from(body, JSON)
    except BodyRefused as refused:
        found = refused
    assert isinstance(found, dict) or found.status == 400


@given(st.text(alphabet="SECRET", min_size=6, max_size=20))
def test_nothing_of_a_body_is_in_the_words(word):
    for body in (f'{{"{word}": {word}}}', f'["{word}"]', word, f'{{"{word}": "{word}'):
        with pytest.raises(BodyRefused) as refused:
            object_from(body.encode(), JSON)
        assert word not in refused.value.message


def test_refusal_survives_pickling():
    error = BodyRefused(413, "too_large", "the words")

    again = pickle.loads(pickle.dumps(error))
    assert (again.status, again.kind, str(again)) == (413, "too_large", "the words")

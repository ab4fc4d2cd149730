"""What a custom stream may yield, and what becomes of everything else."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.actors.provider.dialects.custom import CustomReader
from tidegate.protocol.attempts import Deltas, Described, Finished, UsageSeen
from tidegate.protocol.base import Seq, Token, TurnNumber
from tidegate.protocol.codec import decode_from_worker, frame_from
from tidegate.protocol.custom import Finish, Reasoning, Refusal, Response, Text, Tool, Usage
from tidegate.protocol.failures import FailureKind


def taken(*pieces):
    reader = CustomReader()
    return [reader.take(piece) for piece in pieces]


@pytest.mark.parametrize(
    ("piece", "deltas"),
    [
        ("a", [Text("a")]),
        ("\u00fc", [Text("\u00fc")]),
        (Text("b"), [Text("b")]),
        (Reasoning("c"), [Reasoning("c")]),
        (Refusal("d"), [Refusal("d")]),
        (Tool(0, "1", "get", "{}"), [Tool(0, "1", "get", "{}")]),
        (Tool(0), [Tool(0)]),
        ("", []),
        (Text(""), []),
        (Reasoning(""), []),
        (Usage(input_tokens=3), []),
        (Response("r", "m", 5), []),
        (Finish(), []),
    ],
    ids=repr,
)
def test_piece_becomes_its_deltas_and_is_an_event(piece, deltas):
    [batch] = taken(piece)

    assert (batch.deltas, batch.events, batch.failure) == (deltas, 1, None)


def test_what_is_no_delta_is_told_beside_them():
    usage, described, finished = taken(
        Usage(input_tokens=3), Response("r", "m", 5), Finish("length")
    )

    assert usage.usage == Usage(input_tokens=3)
    assert described.described == ("r", "m", 5)
    assert finished.finishes == ("length",)


def test_calls_are_numbered_in_the_order_in_which_they_appear():
    batches = taken(Tool(7, "x", "first"), Tool(2, "y", "second"), Tool(7, arguments="{}"))

    assert [delta.index for batch in batches for delta in batch.deltas] == [0, 1, 0]


def test_piece_of_a_call_that_says_nothing_new_is_no_progress():
    _, nothing = taken(Tool(0, "x", "first"), Tool(0))

    assert nothing.deltas == []


class Loud(Text, frozen=True, array_like=True, tag=99):
    """A subclass, of which the other end of the pipe knows nothing."""


class Shout(str):
    __slots__ = ()


def test_subclasses_go_as_what_they_are():
    loud, shout = taken(Loud("a"), Shout("b"))

    assert [type(loud.deltas[0]), type(shout.deltas[0].text)] == [Text, str]


class Unshown:
    def __repr__(self):
        raise RuntimeError


@pytest.mark.parametrize(
    ("piece", "words"),
    [
        (5, "builtins.int is no piece"),
        (None, "builtins.NoneType is no piece"),
        (b"bytes", "builtins.bytes is no piece"),
        ({"text": "a"}, "builtins.dict is no piece"),
        (Unshown(), "Unshown is no piece"),
        (Text(5), "text is of type int"),  # type: ignore[arg-type]
        (Text("a", choice=1), "choice is 1"),
        (Tool(0, arguments="{}", choice=2), "choice is 2"),
        ("\ud800", "surrogates"),
        (Reasoning("\ud800"), "surrogates"),
        (Tool(0, name="\ud800"), "surrogates"),
        (Tool("0"), "int"),  # type: ignore[arg-type]
        (Tool(0, arguments={"a": 1}), "str"),  # type: ignore[arg-type]
        (Tool(1 << 70), "Tool that cannot be sent"),
        (Usage(input_tokens="3"), "int"),  # type: ignore[arg-type]
        (Usage(output_tokens=1 << 70), "Usage that cannot be sent"),
        (Response(model=None), "str"),  # type: ignore[arg-type]
        (Finish("done"), "done"),  # type: ignore[arg-type]
        (Finish(object()), "object"),  # type: ignore[arg-type]
    ],
    ids=lambda value: value if isinstance(value, str) and value.isascii() else type(value).__name__,
)
def test_what_cannot_be_sent_is_malformed_and_named(piece, words):
    [batch] = taken(piece)

    assert batch.failure is not None
    assert (batch.failure.kind, batch.failure.reason) == (FailureKind.MALFORMED, "piece")
    assert not batch.failure.retryable
    assert words in batch.failure.detail
    assert batch.deltas == []


def test_end_without_evidence_is_truncated_or_empty():
    reader = CustomReader()
    reader.take("")
    reader.take(Usage(input_tokens=1))
    assert reader.end().failure.kind is FailureKind.EMPTY

    reader.take("a")
    assert reader.end().failure.kind is FailureKind.TRUNCATED


ANYTHING: Any = st.one_of(
    st.text(), st.integers(), st.none(), st.floats(), st.binary(), st.just("\ud800")
)
PIECES: Any = st.one_of(
    ANYTHING,
    st.builds(Text, ANYTHING, ANYTHING),
    st.builds(Reasoning, ANYTHING),
    st.builds(Tool, ANYTHING, ANYTHING, ANYTHING, ANYTHING, ANYTHING),
    st.builds(Usage, input_tokens=ANYTHING, origin=ANYTHING),
    st.builds(Response, ANYTHING, ANYTHING, ANYTHING),
    st.builds(Finish, ANYTHING),
)


@given(st.lists(PIECES, max_size=8))
def test_whatever_is_taken_crosses_the_pipe(pieces):
    reader = CustomReader()
    turn, token = TurnNumber(1), Token(1)
    for piece in pieces:
        batch = reader.take(piece)
        messages: list[Any] = [Deltas(turn, token, Seq(0), tuple(batch.deltas))]
        if batch.described is not None:
            messages.append(Described(turn, token, *batch.described))
        if batch.usage is not None:
            messages.append(UsageSeen(turn, token, batch.usage))
        if batch.finishes is not None:
            messages.append(Finished(turn, token, Seq(0), batch.finishes))

        body = frame_from(messages)[4:]

        assert decode_from_worker(body) == messages
        assert batch.failure is None or msgspec.msgpack.encode(batch.failure)

"""How an answer is made up on its wire: blocks between the deltas."""

import pytest

from tidegate.actors.sink.assembly import Assembly
from tidegate.protocol.answers import Part, Usage
from tidegate.protocol.deltas import ENVELOPE, Block, Reasoning, Text, Tool


def parts_of(*deltas, split=1):
    assembly = Assembly(token=7)
    for start in range(0, len(deltas), split):
        assembly.add(deltas[start : start + split])
    return assembly.parts()


def test_answer_without_blocks_has_no_parts():
    assert parts_of(Text("a"), Tool(0, id="x")) == ()


@pytest.mark.parametrize("split", [1, 2, 10])
def test_words_belong_to_the_block_before_them(split):
    deltas = (
        Block(0, b'{"type":"thinking"}'),
        Reasoning("why "),
        Reasoning("not"),
        Block(1, b'{"type":"text"}'),
        Text("one "),
        Text("two"),
    )

    parts = parts_of(*deltas, split=split)

    assert parts == (
        Part(index=0, data={"type": "thinking"}, reasoning=((0, 7),)),
        Part(index=1, data={"type": "text"}, text=((0, 7),)),
    )


def test_block_that_is_taken_up_again_has_a_range_for_each_turn():
    parts = parts_of(
        Block(1, b"{}"), Text("b1"), Block(0, b"{}"), Text("a"), Block(1), Text("b2"), Block(0)
    )

    assert parts == (
        Part(index=0, text=((2, 3),)),
        Part(index=1, text=((0, 2), (3, 5))),
    )


def test_call_belongs_to_the_block_in_which_it_began():
    parts = parts_of(
        Block(0), Tool(0, id="first"), Block(1), Tool(1, name="nameless"), Tool(0, arguments="{}")
    )

    assert [part.calls for part in parts] == [("first",), ("call_7_0_1",)]


def test_data_of_a_block_is_merged():
    parts = parts_of(
        Block(0, b'{"a":1,"usage":{"in":3,"out":0},"list":[1]}'),
        Block(ENVELOPE, b'{"id":"m"}'),
        Block(0, b'{"a":2,"usage":{"out":5},"list":[2],"new":null}'),
    )

    assert parts == (
        Part(index=ENVELOPE, data={"id": "m"}),
        Part(
            index=0,
            data={"a": 2, "usage": {"in": 3, "out": 5}, "list": [1, 2], "new": None},
        ),
    )


def test_words_before_the_first_block_belong_to_none():
    assert parts_of(Text("early"), Block(0), Text("late")) == (Part(index=0, text=((5, 9),)),)


def test_details_beside_the_figures_replace_those_before_them():
    assembly = Assembly(token=7)
    assembly.add([Block(ENVELOPE, b'{"id":"m"}'), Text("a")])
    for details in (b'{"usage":{"a":1,"rows":[1]}}', b"", b'{"usage":{"rows":[2]}}'):
        assembly.count(Usage(input_tokens=1), details)

    [envelope] = assembly.parts()
    assert envelope.data == {"id": "m", "usage": {"rows": [2]}}


def test_details_need_no_block():
    assembly = Assembly(token=7)
    assembly.count(Usage(), b'{"usage":{}}')

    assert assembly.parts() == (Part(index=ENVELOPE, data={"usage": {}}),)


def test_data_nested_too_deep_to_be_read_is_left_out():
    deep = b'{"a":' + b"[" * 1200 + b"]" * 1200 + b"}"

    [part] = parts_of(Block(0, b'{"b":1}'), Text("words"), Block(0, deep), Block(0, b'{"c":2}'))
    assert part == Part(index=0, data={"b": 1, "c": 2}, text=((0, 5),))

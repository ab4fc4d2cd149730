"""Which pieces make one tool call, told by the habits of servers."""

import msgspec
import pytest

from tidegate.actors.provider.dialects.chat_tools import ToolCalls
from tidegate.actors.provider.dialects.chat_views import ToolView, Unusable
from tidegate.protocol.deltas import Tool


def piece(index=None, id=None, name=None, arguments=None):  # noqa: A002 - the wire's word
    function = {"name": name, "arguments": arguments}
    return msgspec.json.decode(
        msgspec.json.encode({"index": index, "id": id, "function": function}), type=ToolView
    )


def deltas_of(*pieces):
    calls, deltas = ToolCalls(0), []
    for each in pieces:
        calls.take(each, deltas)
    return deltas


def calls_of(*pieces):
    """Join the deltas as the sink does: id, name and arguments of each call."""
    calls = {}
    for delta in deltas_of(*pieces):
        call = calls.setdefault(delta.index, ["", "", ""])
        call[0] = call[0] if delta.id is None else delta.id
        call[1] = call[1] if delta.name is None else delta.name
        call[2] += delta.arguments
    assert list(calls) == list(range(len(calls)))
    return [tuple(call) for call in calls.values()]


def test_usual_pieces_are_told_as_they_come():
    assert deltas_of(
        piece(0, "a", "f", ""), piece(0, arguments='{"x"'), piece(0, arguments=":1}")
    ) == [Tool(0, "a", "f"), Tool(0, arguments='{"x"'), Tool(0, arguments=":1}")]


def test_place_is_the_order_of_appearance_whatever_the_index():
    assert calls_of(piece(7, "a", "f", "1"), piece(3, "b", "g", "2"), piece(7, arguments="3")) == [
        ("a", "f", "13"),
        ("b", "g", "2"),
    ]


def test_index_may_be_written_as_text():
    assert calls_of(piece("1", "a", "f"), piece("0", "b", "g", "2"), piece(1, arguments="3")) == [
        ("a", "f", "3"),
        ("b", "g", "2"),
    ]


@pytest.mark.parametrize("index", ["", "one", "-1", "1.0", "1" * 19])
def test_index_that_is_no_number_is_unusable(index):
    with pytest.raises(Unusable, match="index"):
        calls_of(piece(index, "a", "f"))


def test_new_id_with_a_name_at_a_used_index_is_a_new_call():
    assert calls_of(piece(0, "a", "f", "{}"), piece(0, "b", "f", "{}")) == [
        ("a", "f", "{}"),
        ("b", "f", "{}"),
    ]


def test_pieces_after_a_new_call_at_a_used_index_are_its_own():
    assert calls_of(
        piece(0, "a", "f", "1"),
        piece(0, "b", "g"),
        piece(0, arguments="2"),
        piece(0, "b", "g", "3"),
    ) == [("a", "f", "1"), ("b", "g", "23")]


def test_new_id_without_a_name_at_a_used_index_is_the_same_call_and_the_first_id_stays():
    assert calls_of(piece(0, "a", "f", ""), piece(0, "b", None, "{}")) == [("a", "f", "{}")]


def test_id_and_name_that_are_repeated_count_once():
    pieces = [piece(0, "a", "f", each) for each in ("", "{", "}")]

    assert deltas_of(*pieces) == [Tool(0, "a", "f"), Tool(0, arguments="{"), Tool(0, arguments="}")]


def test_piece_that_tells_nothing_new_is_no_delta():
    assert deltas_of(piece(0, "a", "f", ""), piece(0, "a", "f", ""), piece(0)) == [
        Tool(0, "a", "f")
    ]


def test_piece_without_anything_opens_no_call():
    assert deltas_of(piece(0), piece(0, "", "", ""), ToolView(index=0)) == []


def test_name_continues_before_the_arguments_and_not_after():
    assert deltas_of(
        piece(0, "a", "get_"), piece(0, None, "weather", ""), piece(0, None, "get_weather", "{}")
    ) == [Tool(0, "a", "get_"), Tool(0, name="get_weather"), Tool(0, arguments="{}")]
    assert calls_of(piece(0, "a", "f", "{"), piece(0, "a", "g", "}")) == [("a", "f", "{}")]


def test_other_name_after_the_arguments_without_an_id_is_a_new_call():
    assert calls_of(piece(0, None, "f", "{}"), piece(0, None, "g", "{}")) == [
        ("", "f", "{}"),
        ("", "g", "{}"),
    ]


def test_name_repeated_at_each_piece_without_an_id_is_the_same_call():
    assert calls_of(piece(0, None, "f", "{"), piece(0, None, "f", "}")) == [("", "f", "{}")]


def test_id_that_comes_late_is_told_when_it_is_known():
    assert deltas_of(piece(0, None, "f"), piece(0, "a", None, "{}")) == [
        Tool(0, None, "f"),
        Tool(0, "a", None, "{}"),
    ]
    assert calls_of(piece(0, None, "f"), piece(0, "a", "f", "{}")) == [("a", "f", "{}")]


def test_id_with_a_name_after_arguments_of_a_call_without_an_id_is_a_new_call():
    assert calls_of(piece(0, None, "f", "{}"), piece(0, "a", "f", "{}")) == [
        ("", "f", "{}"),
        ("a", "f", "{}"),
    ]


def test_without_an_index_the_last_call_is_meant():
    assert calls_of(piece(None, "a", "f", "{"), piece(arguments="}")) == [("a", "f", "{}")]


def test_without_an_index_a_known_id_names_its_call():
    assert calls_of(
        piece(None, "a", "f", "1"), piece(None, "b", "g", "2"), piece(None, "a", None, "3")
    ) == [("a", "f", "13"), ("b", "g", "2")]


def test_without_an_index_an_unknown_id_is_a_new_call_only_with_a_name():
    assert calls_of(piece(None, "a", "f", "1"), piece(None, "b", None, "2")) == [("a", "f", "12")]
    assert calls_of(piece(None, "a", "f", "1"), piece(None, "b", "f", "2")) == [
        ("a", "f", "1"),
        ("b", "f", "2"),
    ]


def test_without_index_and_id_a_name_after_arguments_is_a_new_call():
    assert calls_of(piece(None, None, "f", "{}"), piece(None, None, "f", "{}")) == [
        ("", "f", "{}"),
        ("", "f", "{}"),
    ]


def test_arguments_alone_are_a_call_without_a_name():
    assert calls_of(piece(0, arguments='{"city":"Paris"}')) == [("", "", '{"city":"Paris"}')]
    assert calls_of(piece(arguments="{}")) == [("", "", "{}")]


def test_integer_id_becomes_text():
    assert calls_of(piece(0, 7, "f"), piece(0, 7, "f", "{}")) == [("7", "f", "{}")]


def test_object_as_arguments_is_taken_whole_and_as_it_was_written():
    view = msgspec.json.decode(
        b'{"index":0,"id":"a","function":{"name":"f","arguments":{"x": 1.0,\t"y":[2]}}}',
        type=ToolView,
    )

    assert calls_of(view) == [("a", "f", '{"x": 1.0,\t"y":[2]}')]


def test_object_that_is_repeated_with_its_id_counts_once():
    assert calls_of(piece(0, "a", "f", {"x": 1}), piece(0, "a", "f", {"x": 1})) == [
        ("a", "f", '{"x":1}')
    ]


def test_second_object_at_a_used_index_is_a_new_call():
    assert calls_of(piece(0, None, "f", {"x": 1}), piece(0, None, "f", {"x": 2})) == [
        ("", "f", '{"x":1}'),
        ("", "f", '{"x":2}'),
    ]


def test_arguments_of_another_type_are_unusable():
    with pytest.raises(Unusable, match="got `bool`"):
        deltas_of(piece(0, "a", "f", arguments=True))


def test_arguments_that_are_no_utf8_are_unusable():
    view = msgspec.json.decode(b'{"id":"a","function":{"arguments":"\xff"}}', type=ToolView)

    with pytest.raises(Unusable, match="arguments"):
        deltas_of(view)


def test_older_function_call_is_one_call():
    calls, deltas = ToolCalls(1), []
    for each in (piece(name="f"), piece(arguments="{"), piece(arguments="}")):
        calls.take_function(each.function, deltas)

    assert deltas == [
        Tool(0, None, "f", choice=1),
        Tool(0, arguments="{", choice=1),
        Tool(0, arguments="}", choice=1),
    ]

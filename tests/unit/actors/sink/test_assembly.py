"""Deltas of one attempt, joined: nothing is repaired, nothing is guessed."""

import pytest

from tidegate.actors.sink.assembly import Assembly
from tidegate.protocol.answers import Choice, ToolCall
from tidegate.protocol.attempts import Described
from tidegate.protocol.deltas import Reasoning, Refusal, Text, Tool


def assembled(*deltas, finishes=(), token=41):
    assembly = Assembly(token)
    assembly.add(deltas)
    assembly.finishes = finishes
    return assembly


def first(*deltas, finish=None):
    [choice] = assembled(*deltas, finishes=() if finish is None else (finish,)).choices()
    return choice


def test_empty_attempt_has_one_empty_choice():
    assert first() == Choice()


def test_pieces_are_joined_by_kind():
    choice = first(Reasoning("r1"), Text("a"), Reasoning("r2"), Text("b"), Refusal("n"))

    assert (choice.text, choice.reasoning, choice.refusal) == ("ab", "r1r2", "n")


def test_choices_are_told_apart_and_sorted():
    assembly = assembled(Text("c", 2), Text("a", 0), Text("d", 2), finishes=("stop", "length"))

    assert [(each.index, each.text, each.finish) for each in assembly.choices()] == [
        (0, "a", "stop"),
        (2, "cd", None),
    ]


def test_characters_are_counted_over_all_choices():
    assert assembled(Text("ab"), Reasoning("ccc"), Text("d", 1)).text_chars == 3


def test_tool_call_is_joined_by_its_index():
    choice = first(
        Tool(0, "i0", "f", '{"a"'),
        Tool(1, "i1", "g", "{}"),
        Tool(0, None, None, ": 1}"),
        finish="tool_calls",
    )

    assert choice.tool_calls == (
        ToolCall(id="i0", name="f", arguments='{"a": 1}'),
        ToolCall(id="i1", name="g", arguments="{}"),
    )
    assert choice.incomplete_tool_calls == ()


def test_arguments_that_are_taken_back_are_replaced():
    choice = first(
        Tool(0, "i0", "f", '{"a": 1}'),
        Tool(1, "i1", "g", '{"b"'),
        Tool(0, arguments='{"a": 2', whole=True),
        Tool(0, arguments="}"),
        Tool(1, arguments=": 1}"),
        finish="tool_calls",
    )

    assert [call.arguments for call in choice.tool_calls] == ['{"a": 2}', '{"b": 1}']


def test_calls_come_in_the_order_of_their_index():
    choice = first(Tool(1, "b", "g", "{}"), Tool(0, "a", "f", "{}"), finish="tool_calls")

    assert [call.id for call in choice.tool_calls] == ["a", "b"]


def test_later_name_and_id_stand():
    choice = first(Tool(0, "i", "get"), Tool(0, "j", "get_time", "{}"), finish="tool_calls")

    assert choice.tool_calls == (ToolCall(id="j", name="get_time", arguments="{}"),)


def test_call_without_an_id_gets_one():
    [choice, other] = assembled(
        Tool(2, None, "f", "{}"),
        Tool(0, None, "g", "{}", 1),
        finishes=("tool_calls", "tool_calls"),
    ).choices()

    assert choice.tool_calls[0].id == "call_41_0_2"
    assert other.tool_calls[0].id == "call_41_1_0"


def test_names_of_the_calls_begun_are_in_order_of_appearance():
    assert assembled(Tool(1, "i", "g"), Tool(0, "j", "f"), Tool(0, name="h")).tool_names == (
        "g",
        "h",
    )


def test_call_without_evidence_is_incomplete():
    choice = first(Tool(0, "i", "f", "{}"))

    assert choice.tool_calls == ()
    assert choice.incomplete_tool_calls == (ToolCall(id="i", name="f", arguments="{}"),)


@pytest.mark.parametrize("arguments", ['{"a": ', "{'a': 1}", '{"a": 1}}', "\ud800"])
def test_call_that_is_not_json_is_incomplete(arguments):
    choice = first(Tool(0, "i", "f", arguments), finish="tool_calls")

    assert choice.tool_calls == ()
    assert choice.incomplete_tool_calls[0].arguments == arguments


@pytest.mark.parametrize("finish", ["tool_calls", "stop"])
@pytest.mark.parametrize("arguments", ["", "  "])
def test_call_without_arguments_has_none(finish, arguments):
    choice = first(Tool(0, "i", "f", arguments), finish=finish)

    assert choice.tool_calls == (ToolCall(id="i", name="f", arguments="{}"),)


@pytest.mark.parametrize("finish", ["length", "content_filter", "error"])
def test_call_that_was_cut_short_may_have_lost_its_arguments(finish):
    choice = first(Tool(0, "i", "f"), finish=finish)

    assert choice.tool_calls == ()
    assert choice.incomplete_tool_calls == (ToolCall(id="i", name="f", arguments=""),)


def test_whole_call_in_an_answer_that_was_cut_short_is_whole():
    choice = first(Tool(0, "i", "f", "{}"), finish="length")

    assert len(choice.tool_calls) == 1


def test_stop_with_calls_means_tool_calls():
    choice = first(Tool(0, "i", "f", "{}"), finish="stop")

    assert (choice.finish, choice.wire_finish) == ("tool_calls", "stop")


def test_stop_with_a_call_that_is_broken_means_stop():
    assert first(Tool(0, "i", "f", "{"), finish="stop").finish == "stop"


def test_stop_with_a_refusal_alone_means_a_filter():
    assert first(Refusal("no"), finish="stop").finish == "content_filter"


@pytest.mark.parametrize(
    ("deltas", "finish", "expected"),
    [
        ((Refusal("no"), Text("but")), "stop", "stop"),
        ((Refusal("no"),), "length", "length"),
        ((Tool(0, "i", "f", "{}"),), "length", "length"),
        ((Refusal("no"), Tool(0, "i", "f", "{}")), "stop", "tool_calls"),
    ],
)
def test_other_finishes_are_the_wires(deltas, finish, expected):
    assert first(*deltas, finish=finish).finish == expected


def test_last_description_that_is_not_empty_stands():
    assembly = assembled()
    assembly.describe(Described(7, 41, "r-1", "m-1", 5))
    assembly.describe(Described(7, 41, "", "m-2", 0))

    assert (assembly.response_id, assembly.model, assembly.created) == ("r-1", "m-2", 5)

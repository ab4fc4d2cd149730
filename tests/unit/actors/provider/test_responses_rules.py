"""The Responses wire as servers really speak it: items, ends, errors, and contradictions."""

import pytest

from tests.unit.actors.provider.responses_golden import (
    added,
    answer_of,
    arguments_done,
    call,
    completed,
    decode,
    done,
    event,
    frame,
    message,
    piece,
    response,
    summary,
    text,
    thought,
    words,
)
from tidegate.protocol.deltas import Reasoning, Refusal, Text, Tool


def custom(text, **fields):
    known = {"type": "custom_tool_call", "id": "ct_1", "call_id": "call_9", "name": "patch"}
    return {**known, "input": text, **fields}


def custom_piece(delta, at=0):
    return event("custom_tool_call_input.delta", item_id="ct_1", output_index=at, delta=delta)


def answer(*frames):
    return answer_of(decode(*frames))


def calls(*frames):
    return [(each.id, each.name, each.arguments) for each in answer(*frames).tool_calls]


def lost(*frames):
    return [each.arguments for each in answer(*frames).incomplete_tool_calls]


class TestText:
    def test_alone_is_an_answer_of_one_message(self):
        batch = decode(text("Hel", None), text("lo", None), event("completed", response=None))

        assert words(batch) == [Text("Hel"), Text("lo")]
        [item] = answer_of(batch).native()["output"]
        assert item["content"] == [{"type": "output_text", "text": "Hello", "annotations": []}]
        assert (item["role"], item["status"]) == ("assistant", "completed")

    def test_that_no_delta_has_brought_comes_from_whoever_has_it_first(self):
        place = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
        at_once = event("output_text.done", **place, text="Hello")
        whole = done(message("Hello"), 0)

        for frames in ([at_once, whole], [whole], [whole, at_once], [text("Hello", 0), at_once]):
            assert answer(*frames, completed(message("Hello"))).text == "Hello"
        assert answer(completed(message("Hello"))).text == "Hello"

    def test_is_not_doubled_by_an_output_that_names_it_otherwise(self):
        frames = [text("Hello", 4), completed(message("Hello", item_id="msg_other"))]

        assert answer(*frames).text == "Hello"

    def test_of_messages_that_alternate_is_told_apart_in_the_native_form(self):
        batch = decode(text("a", 1), text("1", 0, item_id="m0"), text("b", 1), completed())

        assert answer_of(batch).text == "a1b"
        said = [item["content"][0]["text"] for item in answer_of(batch).native()["output"]]
        assert said == ["1", "ab"]

    def test_is_told_apart_from_what_comes_between(self):
        other = {"item_id": "rs_9", "output_index": 7, "content_index": 0}
        batch = decode(
            text("a", 0),
            text("", 1, item_id="m1"),
            text("b", 1, item_id="m1"),
            event("reasoning_text.done", **other, text="hm"),
            text("c", 1, item_id="m1"),
            piece("{", 4),
            text("d", 1, item_id="m1"),
            completed(),
        )

        assert answer_of(batch).text == "abcd"
        assert answer_of(batch).reasoning == "hm"
        first, second, third = answer_of(batch).native()["output"]
        assert [each["content"][0]["text"] for each in (first, second, third)] == ["a", "bcd", "hm"]

    @pytest.mark.parametrize(
        "content", [True, ["odd"], [{"type": "refusal", "refusal": "x"}], None]
    )
    def test_has_a_part_of_its_own_where_the_item_describes_another(self, content):
        frames = [
            text("a", 0, 9_999_999_999),
            text("b", 0, -1),
            done(message() | {"content": content}, 0),
        ]
        found = answer(*frames, completed())
        [item] = found.native()["output"]
        said = [each.get("text") for each in item["content"] if isinstance(each, dict)]

        assert found.text == "ab"
        assert [each for each in said if each] == ["b", "a"]

    def test_without_content_is_nothing(self):
        assert words(decode(text("", 0), text(None, 0), text("a", 0), completed())) == [Text("a")]

    @pytest.mark.parametrize("phase", ["commentary", "analysis"])
    def test_beside_the_answer_is_reasoning(self, phase):
        aside = message("Let me see.", phase=phase)
        frames = [
            added({**aside, "content": []}, 0),
            text("Let me ", 0),
            text("see.", 0),
            done(aside, 0),
            text("42", 1, item_id="msg_2"),
            done(message("42", item_id="msg_2", phase="final_answer"), 1),
        ]
        found = answer(*frames, completed())

        assert (found.text, found.reasoning) == ("42", "Let me see.")
        assert [each["phase"] for each in found.native()["output"]] == [phase, "final_answer"]
        assert found.native()["output"][0] == aside


class TestReasoning:
    def test_of_another_part_or_item_stands_behind_a_blank_line(self):
        raw = event(
            "reasoning_text.delta", item_id="rs_2", output_index=5, content_index=0, delta="c"
        )
        batch = decode(
            summary("a"), summary("a"), summary("b", 1), raw, summary("B", 1), completed()
        )

        assert answer_of(batch).reasoning == "aa\n\nb\n\ncB"
        first, second = answer_of(batch).native()["output"]
        assert [each["text"] for each in first["summary"]] == ["aa", "bB"]
        assert second["content"] == [{"type": "reasoning_text", "text": "c"}]

    def test_that_is_encrypted_is_kept_for_the_native_form(self):
        item = thought(encrypted_content="gAAAA")
        found = answer(done(item, 0), text("a", 1), completed())

        assert (found.text, found.reasoning) == ("a", "")
        assert found.native()["output"][0] == item

    def test_that_no_delta_has_brought_comes_with_its_item(self):
        assert words(decode(done(thought("a", "b"), 0), completed())) == [
            Reasoning("a"),
            Reasoning("\n\n"),
            Reasoning("b"),
        ]


def test_refusal_is_no_text():
    place = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
    batch = decode(event("refusal.delta", **place, delta="I will not."), completed())

    assert words(batch) == [Refusal("I will not.")]
    assert answer_of(batch).finish == "content_filter"
    [item] = answer_of(batch).native()["output"]
    assert item["content"] == [{"type": "refusal", "refusal": "I will not."}]


class TestCalls:
    def test_whole_arguments_add_what_the_deltas_lack(self):
        frames = [added(call(""), 2), piece('{"a"'), arguments_done('{"a":1}')]

        assert calls(*frames, completed()) == [("call_1", "read", '{"a":1}')]
        assert words(decode(*frames))[-1] == Tool(0, arguments=":1}")

    def test_whole_arguments_override_deltas_that_say_something_else(self):
        frames = [added(call(""), 2), piece('{"b":2}'), arguments_done('{"a":1}')]

        assert calls(*frames, completed()) == [("call_1", "read", '{"a":1}')]
        assert words(decode(*frames))[-1] == Tool(0, arguments='{"a":1}', whole=True)

    def test_item_overrides_what_was_whole_before(self):
        frames = [added(call(""), 2), arguments_done("{}"), done(call('{"a":1}'), 2)]

        assert calls(*frames, completed()) == [("call_1", "read", '{"a":1}')]

    def test_empty_text_says_that_there_are_no_arguments(self):
        overridden = [added(call(""), 2), piece('{"a"'), arguments_done("")]

        assert calls(added(call(""), 2), arguments_done(""), completed())[0][2] == "{}"
        assert calls(*overridden, completed())[0][2] == "{}"
        assert calls(done(call(""), 0), completed())[0][2] == "{}"

    def test_arguments_may_be_an_object(self):
        assert calls(done(call({"a": 1}), 0), completed())[0][2] == '{"a": 1}'

    def test_call_may_be_announced_by_nothing_but_its_arguments(self):
        frames = [piece('{"a":'), piece("1}"), done(call('{"a":1}'), 2)]

        assert calls(*frames, completed()) == [("call_1", "read", '{"a":1}')]

    def test_call_may_come_whole(self):
        assert words(decode(done(call('{"a":1}'), 0))) == [
            Tool(0, "call_1", "read"),
            Tool(0, arguments='{"a":1}'),
        ]

    @pytest.mark.parametrize("index", [0, None])
    def test_id_may_change_from_event_to_event(self, index):
        frames = [
            added(call("", "x1"), index),
            piece('{"a":', index, "x2" if index is not None else "x1"),
            arguments_done('{"a":1}', index, "x3" if index is not None else "x1"),
            done(call('{"a":1}', "x4" if index is not None else "x1"), index),
        ]

        assert calls(*frames, completed()) == [("call_1", "read", '{"a":1}')]

    def test_calls_may_have_neither_index_nor_item_id(self):
        frames = [
            added(call("", None), None),
            piece('{"a":1}', None, None),
            added(call("", None, "call_2", "list"), None),
            piece('{"b":2}', None, None),
        ]

        assert calls(*frames, completed()) == [
            ("call_1", "read", '{"a":1}'),
            ("call_2", "list", '{"b":2}'),
        ]

    def test_calls_may_share_an_index(self):
        one, two = call('{"a":1}'), call('{"b":2}', "fc_2", "call_2", "list")
        together = [
            added(call(""), 0),
            added(call("", "fc_2", "call_2", "list"), 0),
            piece('{"a":1}', 0),
            piece('{"b":2}', 0, "fc_2"),
            done(one, 0),
            done(two, 0),
        ]
        expected = [("call_1", "read", '{"a":1}'), ("call_2", "list", '{"b":2}')]

        assert calls(*together, completed()) == expected
        assert calls(done(one, 0), done(two, 0), completed()) == expected

    def test_output_order_is_by_index_if_every_item_has_one(self):
        one, two = call('{"a":1}'), call('{"b":2}', "fc_2", "call_2", "list")
        output = answer(done(two, 1), done(one, 0), completed()).native()["output"]
        unplaced = answer(done(two, None), done(one, 0), completed()).native()["output"]

        assert [item["id"] for item in output] == ["fc_1", "fc_2"]
        assert [item["id"] for item in unplaced] == ["fc_2", "fc_1"]

    def test_item_that_is_repeated_is_one(self):
        frames = [done(call('{"a":1}'), 0), done(call('{"a":1}'), 0)]

        assert calls(*frames, completed(call('{"a":1}'))) == [("call_1", "read", '{"a":1}')]

    def test_calls_that_only_the_output_has_count(self):
        frames = [text("Look:", 0), completed(message("Look:"), call('{"a":1}'))]

        assert calls(*frames) == [("call_1", "read", '{"a":1}')]

    @pytest.mark.parametrize("begun", [[], [piece('{"a":', 0)], [piece('{"b":', 0)]])
    @pytest.mark.parametrize(
        "whole", [call('{"a":1}'), call('{"a":1}', "fc_9"), call('{"a":1}', "fc_9", "call_9")]
    )
    def test_arguments_that_only_the_output_has_count(self, begun, whole):
        frames = [added(call(""), 0), *begun, completed(whole)]

        assert [(name, text) for _, name, text in calls(*frames)] == [("read", '{"a":1}')]

    @pytest.mark.parametrize("seen", [done(call('{"a":1}'), 0), added(call('{"a":1}'), 0)])
    @pytest.mark.parametrize("name", ["list", "read"])
    def test_further_calls_that_only_the_output_has_count(self, seen, name):
        one, two = call('{"a":1}'), call('{"b":2}', "fc_2", "call_2", name)
        expected = [("call_1", "read", '{"a":1}'), ("call_2", name, '{"b":2}')]

        assert calls(seen, completed(one, two)) == expected
        assert sorted(calls(seen, completed(two, one))) == expected

    def test_calls_whose_ids_the_output_changes_are_not_doubled(self):
        one, two = call('{"a":1}'), call('{"b":2}', "fc_2", "call_2")
        other = [call('{"a":1}', "x1", "y1"), call('{"b":2}', "x2", "y2")]

        assert calls(done(one, 0), done(two, 1), completed(*other)) == [
            ("call_1", "read", '{"a":1}'),
            ("call_2", "read", '{"b":2}'),
        ]

    def test_output_at_the_limit_completes_no_call(self):
        limit = event("incomplete", response=response("incomplete", [call('{"a":1}')]))

        assert lost(added(call(""), 0), piece('{"a":', 0), limit) == ['{"a":']

    def test_call_without_an_id_goes_by_that_of_its_item(self):
        assert calls(done(call("{}", call_id=None), 0), completed())[0][0] == "fc_1"

    def test_call_that_is_never_confirmed_counts_once_the_response_is_complete(self):
        begun = [added(call(""), 0), piece("{}", 0)]

        assert calls(*begun, completed())[0][2] == "{}"
        assert calls(*begun) == []
        assert answer(added(call(""), 0), completed()).tool_calls[0].arguments == "{}"

    @pytest.mark.parametrize("end", [completed(), event("incomplete", response=None)])
    def test_call_that_is_cut_is_lost(self, end):
        assert lost(added(call(""), 0), piece('{"a":', 0), end) == ['{"a":']
        assert answer(added(call(""), 0), piece('{"a":', 0), end).native()["output"] == []

    def test_call_without_arguments_at_the_limit_is_lost(self):
        assert lost(added(call(""), 0), event("incomplete", response=None)) == [""]

    def test_any_call_makes_the_finish(self):
        assert decode(done(call("{}"), 0), completed()).finishes == ("tool_calls",)


class TestCustomCalls:
    def test_text_is_a_string_of_json_and_stays_text_in_the_native_form(self):
        whole = 'say "hi"\n'
        frames = [
            added(custom(""), 0),
            custom_piece('say "'),
            custom_piece('hi"\n'),
            event("custom_tool_call_input.done", item_id="ct_1", output_index=0, input=whole),
            done(custom(whole), 0),
        ]
        found = answer(*frames, completed())
        [asked] = found.tool_calls

        assert (asked.id, asked.name, asked.parsed()) == ("call_9", "patch", whole)
        assert found.native()["output"] == [custom(whole)]

    def test_text_that_was_never_confirmed_is_closed_by_the_end_alone(self):
        begun = [added(custom(""), 0), custom_piece("abc")]

        assert answer(*begun, completed()).tool_calls[0].parsed() == "abc"
        assert answer(added(custom(""), 0), completed()).tool_calls[0].parsed() == ""
        assert lost(*begun, event("incomplete", response=None)) == ['"abc']
        assert lost(*begun) == ['"abc']


class TestOthers:
    def test_items_of_other_kinds_are_kept_for_the_native_form(self):
        search = {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {}}
        found = answer(done(search, 0), text("a", 1), completed())

        assert found.native()["output"][0] == search
        assert found.tool_calls == ()

    def test_unknown_events_are_skipped(self):
        odd = [event("queue.position", position=3), frame({"type": "ping"}), frame({"any": 1})]

        assert words(decode(*odd, text("a", 0), *odd, completed())) == [Text("a")]

    def test_null_item_and_gaps_are_nothing(self):
        frames = [event("output_item.added", output_index=0, item=None), text("a", 7)]

        assert answer(*frames, completed()).text == "a"

    def test_fields_of_wrong_types_are_as_good_as_absent(self):
        odd = event("output_text.delta", output_index="0", content_index=[], item_id=5, delta="a")

        assert words(decode(odd, completed())) == [Text("a")]

    def test_lone_surrogate_is_replaced(self):
        data = (
            b'data: {"type":"response.output_text.delta","output_index":0,"delta":"a\\ud800b"}\n\n'
        )
        item = done(message("a"), 0).replace(b'"a"', b'"a\\ud800"')

        assert words(decode(data, completed())) == [Text("a\ufffdb")]
        assert answer(item, completed()).text == "a\ufffd"

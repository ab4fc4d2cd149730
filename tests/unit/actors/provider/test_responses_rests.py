"""Words that the Responses wire tells once more and whole: what is new in them is a delta."""

import pytest

from tests.unit.actors.provider.responses_golden import (
    added,
    answer_of,
    completed,
    decode,
    done,
    event,
    message,
    piece,
    summary,
    text,
    thought,
    words,
)
from tidegate.protocol.deltas import Reasoning, Refusal, Text, Tool


PLACE = {"item_id": "msg_1", "output_index": 0, "content_index": 0}


def texts_of(answer):
    return [
        part["text"]
        for item in answer.native()["output"]
        for part in item.get("content", ())
        if "text" in part
    ]


WHOLE = [
    pytest.param(event("output_text.done", **PLACE, text="Hello, you"), id="text"),
    pytest.param(done(message("Hello, you"), 0), id="item"),
    pytest.param(completed(message("Hello, you")), id="response"),
    pytest.param(completed(message("Hello, you", item_id="msg_other")), id="another id"),
]


@pytest.mark.parametrize("whole", WHOLE)
@pytest.mark.parametrize("began", ["H", "Hello, yo"])
def test_end_that_has_not_come_is_a_delta(whole, began):
    batch = decode(text(began, 0), whole, completed(message("Hello, you")))

    assert words(batch) == [Text(began), Text("Hello, you".removeprefix(began))]
    assert texts_of(answer_of(batch)) == ["Hello, you"]


def test_end_is_said_once_whoever_tells_it():
    batch = decode(text("Hel", 0), text("lo", 0), *[each.values[0] for each in WHOLE])

    assert words(batch) == [Text("Hel"), Text("lo"), Text(", you")]
    assert texts_of(answer_of(batch)) == ["Hello, you"]


@pytest.mark.parametrize("whole", WHOLE)
@pytest.mark.parametrize("said", ["Hello, you", "Hello, you ", "hello", "Hello, you and me"])
def test_what_has_come_stands_if_it_is_no_beginning(whole, said):
    assert words(decode(text(said, 0), whole, completed())) == [Text(said)]


def test_response_that_is_incomplete_tells_its_end_too():
    end = event("incomplete", response={"status": "incomplete", "output": [message("Hello")]})

    assert answer_of(decode(text("Hel", 0), end)).text == "Hello"


def test_words_go_on_behind_the_end_that_was_told():
    batch = decode(
        text("Hel", 0),
        event("output_text.done", **PLACE, text="Hello"),
        text(", ", 0, 1),
        done(message("Hello", ", you"), 0),
        completed(),
    )

    assert [each.text for each in words(batch)] == ["Hel", "lo", ", ", "you"]
    assert texts_of(answer_of(batch)) == ["Hello", ", you"]


def test_parts_whose_words_came_under_one_number_are_not_said_twice():
    batch = decode(text("Hello, ", 0), text("you", 0), done(message("Hello, ", "you"), 0))

    assert words(batch) == [Text("Hello, "), Text("you")]


def test_part_of_which_nothing_has_come_is_said_whatever_others_are():
    batch = decode(text("Hallo", 0), done(message("Hello", " you"), 0))

    assert words(batch) == [Text("Hallo"), Text(" you")]


def test_end_that_would_stand_behind_other_words_is_left_out():
    frames = [text("Hel", 0), text("there", 1, item_id="msg_2"), done(message("Hello"), 0)]

    assert answer_of(decode(*frames, completed())).text == "Helthere"


def test_reasoning_in_between_does_not_part_the_text():
    frames = [text("Hel", 1), summary("Hm"), done(message("Hello"), 1)]
    batch = decode(*frames, completed())

    assert words(batch) == [Text("Hel"), Reasoning("Hm"), Text("lo")]


def test_message_that_only_the_response_has_is_said_behind_the_others():
    both = completed(message("Hello"), message(", you", item_id="msg_2"))
    batch = decode(text("Hel", 0), both)

    assert words(batch) == [Text("Hel"), Text("lo"), Text(", you")]
    assert texts_of(answer_of(batch)) == ["Hello", ", you"]


def test_message_that_was_done_without_words_has_those_of_the_response():
    batch = decode(added(message(), 0), done(message(), 0), completed(message("Hello")))

    assert words(batch) == [Text("Hello")]


@pytest.mark.parametrize("phase", [{"phase": "commentary"}, {}])
def test_what_is_said_beside_the_answer_is_not_said_as_the_answer(phase):
    aside = message("Let me see.", phase="commentary")
    end = completed(message("Let me see.", **phase))
    batch = decode(added({**aside, "content": []}, 0), text("Let me see.", 0), done(aside, 0), end)

    assert words(batch) == [Reasoning("Let me see.")]


def test_reasoning_and_refusals_have_their_ends_as_well():
    refusal = message() | {"content": [{"type": "refusal", "refusal": "I cannot."}]}
    batch = decode(
        summary("Tides, "),
        done(thought("Tides, first."), 0),
        event("refusal.delta", item_id="msg_1", output_index=1, content_index=0, delta="I "),
        done(refusal, 1),
        completed(),
    )

    assert words(batch) == [
        *(Reasoning("Tides, "), Reasoning("first.")),
        *(Refusal("I "), Refusal("cannot.")),
    ]


def test_calls_in_between_do_not_part_the_text():
    batch = decode(text("Hel", 0), piece("{}", 1), completed(message("Hello")))

    assert words(batch) == [Text("Hel"), Tool(0, arguments="{}"), Text("lo")]

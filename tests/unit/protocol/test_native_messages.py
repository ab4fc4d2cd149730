"""The native form of a Messages answer is what the anthropic SDK takes for a whole response."""

import pytest
from anthropic.types import Message

from tidegate.protocol.answers import Answer, Part, ToolCall, Usage
from tidegate.protocol.deltas import ENVELOPE


USAGE = Usage(input_tokens=9, output_tokens=4, cached_input_tokens=8)
HEAD = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m1"}


def answer_of(*blocks, envelope=None, **fields):
    head = Part(index=ENVELOPE, data={**HEAD, "stop_reason": "end_turn", **(envelope or {})})
    return Answer(wire="messages", model="m1", response_id="msg_1", parts=(head, *blocks), **fields)


def message(answer):
    return Message.model_validate(answer.native(), strict=True)


def test_text_is_a_complete_response():
    text = Part(index=0, data={"type": "text"}, text=((0, 5),))
    told = {"usage": {"input_tokens": 9, "output_tokens": 1, "service_tier": "standard"}}
    response = message(answer_of(text, envelope=told, text="hello", finish="stop", usage=USAGE))

    assert (response.id, response.model, response.role) == ("msg_1", "m1", "assistant")
    assert [block.text for block in response.content] == ["hello"]
    assert response.stop_reason == "end_turn"
    assert response.usage.model_dump(exclude_none=True) == {
        "input_tokens": 9,
        "output_tokens": 4,
        "cache_read_input_tokens": 8,
        "service_tier": "standard",
    }


def test_thinking_keeps_its_signature_and_what_is_hidden_stays():
    response = message(
        answer_of(
            Part(index=0, data={"type": "thinking", "signature": "sig"}, reasoning=((0, 2),)),
            Part(index=1, data={"type": "redacted_thinking", "data": "opaque"}),
            Part(index=2, data={"type": "thinking"}, reasoning=((2, 3),)),
            reasoning="hmm",
            finish="stop",
        )
    )

    first, hidden, last = response.content
    assert (first.thinking, first.signature) == ("hm", "sig")
    assert hidden.data == "opaque"
    assert (last.thinking, last.signature) == ("m", "")


def test_calls_stand_in_their_blocks_and_those_that_are_not_whole_are_left_out():
    response = message(
        answer_of(
            Part(index=0, data={"type": "tool_use"}, calls=("b",)),
            Part(index=1, data={"type": "tool_use", "caller": {"type": "direct"}}, calls=("a",)),
            Part(index=2, data={"type": "tool_use"}, calls=("c",)),
            tool_calls=(
                ToolCall(id="a", name="f", arguments='{"x": 1}'),
                ToolCall(id="b", name="g", arguments="{}"),
            ),
            incomplete_tool_calls=(ToolCall(id="c", name="h", arguments='{"x'),),
            finish="tool_calls",
        )
    )

    assert [(each.id, each.name, each.input) for each in response.content] == [
        ("b", "g", {}),
        ("a", "f", {"x": 1}),
    ]
    assert response.content[1].caller.type == "direct"


@pytest.mark.parametrize(
    ("pieces", "value"),
    [(['{"query":', '"x"}'], {"query": "x"}), (['{"que'], {}), (["7"], {}), ([], {})],
)
def test_input_of_a_tool_of_the_providers_is_joined(pieces, value):
    data = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}
    response = message(
        answer_of(Part(index=0, data={**data, "partial_json": pieces}), finish="stop")
    )

    assert response.content[0].input == value


def test_answer_that_is_not_whole_has_no_stop_reason():
    head = Part(index=ENVELOPE, data={**HEAD, "stop_reason": None})
    text = Part(index=0, data={"type": "text"}, text=((0, 4),))
    partial = Answer(
        wire="messages", text="half", finish="incomplete", partial=True, parts=(head, text)
    )

    assert message(partial).stop_reason is None
    assert [block.text for block in message(partial).content] == ["half"]


def test_answer_of_which_nothing_is_left_is_one_empty_text():
    lost = Part(index=0, data={"type": "tool_use"}, calls=("c",))
    nothing = Answer(wire="messages", finish="incomplete", partial=True, parts=(lost,))

    for answer in (nothing, Answer(wire="messages")):
        assert [(block.type, block.text) for block in message(answer).content] == [("text", "")]


def test_answer_that_is_whole_and_empty_stays_so():
    assert message(answer_of(finish="stop")).content == []

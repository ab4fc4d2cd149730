"""The native form of an answer is what the SDK of its wire takes for a whole response."""

import pytest
from openai.types.chat import ChatCompletion

from tidegate.protocol.answers import Answer, Choice, ToolCall, Usage


CALL = ToolCall(id="a", name="f", arguments='{"x": 1}')


def completion(answer):
    return ChatCompletion.model_validate(answer.native())


def test_text_is_a_complete_response():
    usage = Usage(input_tokens=9, output_tokens=4, cached_input_tokens=8, reasoning_tokens=1)
    answer = Answer(
        text="hello", finish="stop", model="m1", response_id="c1", created=5, usage=usage
    )
    response = completion(answer)

    assert (response.id, response.model, response.created) == ("c1", "m1", 5)
    assert response.object == "chat.completion"
    assert response.choices[0].message.content == "hello"
    assert response.choices[0].message.tool_calls is None
    assert response.choices[0].finish_reason == "stop"
    assert response.usage.total_tokens == 13
    assert response.usage.prompt_tokens_details.cached_tokens == 8
    assert response.usage.completion_tokens_details.reasoning_tokens == 1


def test_tool_calls_stand_beside_no_content_and_arguments_are_as_written():
    answer = Answer(tool_calls=(CALL,), incomplete_tool_calls=(ToolCall(id="b"),), finish="stop")
    message = completion(answer).choices[0].message

    assert message.content is None
    assert [call.id for call in message.tool_calls] == ["a"]
    assert message.tool_calls[0].function.name == "f"
    assert message.tool_calls[0].function.arguments == '{"x": 1}'


def test_reasoning_and_refusal_have_fields_of_their_own():
    answer = Answer(reasoning="hm", refusal="no", finish="content_filter")
    message = completion(answer).choices[0].message

    assert message.reasoning_content == "hm"
    assert message.refusal == "no"
    assert message.content is None


def test_each_choice_keeps_what_the_wire_said():
    choices = (
        Choice(text="a", finish="stop", wire_finish="stop"),
        Choice(index=1, tool_calls=(CALL,), finish="tool_calls", wire_finish="stop"),
    )
    response = completion(Answer(text="a", finish="stop", choices=choices))

    assert [choice.index for choice in response.choices] == [0, 1]
    assert [choice.finish_reason for choice in response.choices] == ["stop", "stop"]
    assert response.choices[1].message.tool_calls[0].id == "a"


def test_answer_that_is_not_whole_has_no_finish_reason():
    partial = Answer(text="a", finish="incomplete", partial=True)

    assert partial.native()["choices"][0]["finish_reason"] is None
    assert Answer().native()["choices"][0]["finish_reason"] is None
    assert "usage" not in partial.native()


def test_stream_of_the_users_own_has_none():
    with pytest.raises(NotImplementedError, match="'custom'"):
        Answer(wire="custom").native()

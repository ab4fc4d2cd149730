"""What a chat answer has beside its words, from the stream to the native answer."""

import json

from openai.types.chat import ChatCompletion

from tidegate.actors.provider.dialects.chat import ChatDecoder
from tidegate.actors.sink.assembly import Assembly
from tidegate.protocol.answers import Answer
from tidegate.protocol.deltas import Block


def frame(delta=None, finish=None, logprobs=None, **more):
    choice = {"index": 0, "delta": delta or {}, "finish_reason": finish, "logprobs": logprobs}
    return b"data: %b\n\n" % json.dumps({"id": "c", "choices": [choice], **more}).encode()


def batches_of(*frames):
    decoder = ChatDecoder(event_bytes_max=1 << 20)
    return [decoder.feed(each) for each in frames]


def native_of(*frames):
    """Return what the SDK makes of the answer, assembled as the sink does."""
    assembly, usage = Assembly(token=1), None
    for batch in batches_of(*frames):
        assembly.add(batch.deltas)
        assembly.finishes = batch.finishes or assembly.finishes
        usage = batch.usage or usage
        if batch.details:
            assembly.add([Block(-1, batch.details)])
    choices, parts = assembly.choices(), assembly.parts()
    answer = Answer(choices=choices, parts=parts, usage=usage, tool_calls=choices[0].tool_calls)
    return ChatCompletion.model_validate(answer.native())


def token(text):
    return {"token": text, "logprob": -0.5, "bytes": None, "top_logprobs": []}


def test_log_probabilities_of_all_chunks_are_joined():
    response = native_of(
        frame({"content": "a"}, logprobs={"content": [token("a")], "refusal": None}),
        frame({"content": "b"}, logprobs={"content": [token("b")], "refusal": None}),
        frame(finish="stop"),
    )

    assert [each.token for each in response.choices[0].logprobs.content] == ["a", "b"]
    assert response.choices[0].message.content == "ab"


def test_answer_without_them_has_none():
    assert native_of(frame({"content": "a"}), frame(finish="stop")).choices[0].logprobs is None


def test_what_stands_beside_the_choices_is_kept():
    response = native_of(
        frame({"content": "a"}, system_fingerprint="fp_1", service_tier="auto"),
        frame(finish="stop", system_fingerprint="fp_1", service_tier="default"),
    )

    assert response.system_fingerprint == "fp_1"
    assert response.service_tier == "default"


def test_figures_are_the_wires_own():
    usage = {
        "prompt_tokens": 3,
        "completion_tokens": 2,
        "total_tokens": 5,
        "completion_tokens_details": {"audio_tokens": 1},
        "cost": 0.01,
    }
    last = b"data: %b\n\n" % json.dumps({"id": "c", "choices": [], "usage": usage}).encode()

    response = native_of(frame({"content": "a"}), frame(finish="stop"), last)

    assert response.usage.completion_tokens_details.audio_tokens == 1
    assert response.usage.prompt_tokens_details.cached_tokens == 0
    assert response.usage.cost == 0.01


def test_what_a_server_adds_to_a_call_is_at_that_call():
    sealed = {"google": {"thought_signature": "s"}}
    calls = [
        {"index": 0, "id": "a", "function": {"name": "f", "arguments": "{}"}},
        {
            "index": 1,
            "id": "b",
            "function": {"name": "g", "arguments": "{}"},
            "extra_content": sealed,
        },
    ]

    response = native_of(frame({"tool_calls": calls}), frame(finish="tool_calls"))

    first, second = response.choices[0].message.tool_calls
    assert not hasattr(first, "extra_content")
    assert second.extra_content == sealed


def test_annotations_and_sealed_reasoning_are_kept():
    link = {
        "type": "url_citation",
        "url_citation": {"url": "u", "title": "t", "start_index": 0, "end_index": 1},
    }
    sealed = {"type": "reasoning.encrypted", "data": "x"}
    response = native_of(
        frame({"reasoning_details": [{"type": "reasoning.text", "text": "hm"}, sealed]}),
        frame({"content": "a", "annotations": [link]}),
        frame(finish="stop"),
    )

    message = response.choices[0].message
    assert message.reasoning_details == [{"type": "reasoning.text", "text": "hm"}, sealed]
    assert message.reasoning_content == "hm"
    assert message.model_dump()["annotations"][0]["type"] == "url_citation"


def test_what_has_an_odd_shape_is_left_out():
    response = native_of(
        frame({"content": "a", "annotations": 5, "reasoning_details": {}}, logprobs=[1]),
        frame(finish="stop"),
    )

    assert response.choices[0].message.content == "a"
    assert response.choices[0].logprobs is None


def test_what_comes_without_words_waits_for_them():
    first, second, _ = batches_of(
        frame(system_fingerprint="fp"), frame({"content": "a"}), frame(finish="stop")
    )

    assert first.deltas == []
    assert [type(delta).__name__ for delta in second.deltas] == ["Text", "Block"]

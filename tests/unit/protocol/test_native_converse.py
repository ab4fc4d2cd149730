"""The native form of an answer of Bedrock is what AWS's own model takes for a whole response."""

import base64

import pytest

from tests.e2e.converse_checks import valid
from tidegate.protocol.answers import Answer, AttemptReport, Part, ToolCall, Usage
from tidegate.protocol.deltas import ENVELOPE


USAGE = Usage(input_tokens=9, output_tokens=4, cached_input_tokens=8)
SERVER_TOOL = {"toolUseId": "s", "name": "search", "type": "server_tool_use"}


def content_of(*parts, **fields):
    answer = Answer(wire="converse", parts=parts, finish="stop", usage=USAGE, **fields)
    return valid(answer.native())["output"]["message"]["content"]


def test_what_the_stream_told_around_the_blocks_stands():
    around = {"stopReason": "stop_sequence", "usage": {"inputTokens": 1, "outputTokens": 2}}
    around["usage"]["totalTokens"] = 3
    around |= {"metrics": {"latencyMs": 7}, "serviceTier": {"type": "flex"}}
    part = Part(index=ENVELOPE, data=around)
    native = Answer(wire="converse", parts=(part,), finish="stop", usage=USAGE).native()

    assert valid(native) == {
        "output": {"message": {"role": "assistant", "content": []}},
        **around,
    }


@pytest.mark.parametrize(
    ("finish", "reason"),
    [
        ("stop", "end_turn"),
        ("tool_calls", "tool_use"),
        ("length", "max_tokens"),
        ("content_filter", "content_filtered"),
        ("error", "malformed_model_output"),
    ],
)
def test_what_the_stream_did_not_tell_is_made_of_the_answer(finish, reason):
    report = AttemptReport(number=1, token=1, endpoint="e", ended_s=0.5)
    answer = Answer(wire="converse", finish=finish, usage=USAGE, attempts=(report,))

    assert valid(answer.native()) == {
        "output": {"message": {"role": "assistant", "content": []}},
        "stopReason": reason,
        "metrics": {"latencyMs": 500},
        "usage": {
            "inputTokens": 9,
            "outputTokens": 4,
            "totalTokens": 13,
            "cacheReadInputTokens": 8,
        },
    }


def test_answer_that_is_not_whole_has_no_stop_reason():
    assert Answer(wire="converse", finish="incomplete", partial=True).native()["stopReason"] is None
    assert "usage" not in Answer(wire="converse").native()


def test_words_are_those_of_their_block():
    parts = (
        Part(index=0, text=((0, 2), (5, 6))),
        Part(index=1, reasoning=((0, 2),), data={"signature": ["a", "b"]}),
        Part(index=2, text=((2, 5),), data={"citations": [{"title": "T"}]}),
    )

    assert content_of(*parts, text="abcdef", reasoning="hm") == [
        {"text": "abf"},
        {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "ab"}}},
        {"citationsContent": {"content": [{"text": "cde"}], "citations": [{"title": "T"}]}},
    ]


def test_calls_that_cannot_be_trusted_are_left_out():
    calls = (ToolCall(id="a", name="f", arguments='{"x": 1}'),)
    parts = (Part(index=0, calls=("a",)), Part(index=1, calls=("b",)))

    assert content_of(*parts, tool_calls=calls) == [
        {"toolUse": {"toolUseId": "a", "name": "f", "input": {"x": 1}}}
    ]


def test_what_the_provider_did_itself_is_there():
    parts = (
        Part(index=0, data={"toolUse": SERVER_TOOL, "input": ['{"q":', "1}"]}),
        Part(
            index=1,
            data={"toolResult": {"toolUseId": "s", "content": [{"text": "found"}]}},
        ),
        Part(index=2, data={"toolUse": SERVER_TOOL}),
    )

    assert content_of(*parts) == [
        {"toolUse": {**SERVER_TOOL, "input": {"q": 1}}},
        {"toolResult": {"toolUseId": "s", "content": [{"text": "found"}]}},
        {"toolUse": {**SERVER_TOOL, "input": {}}},
    ]


def test_input_that_was_cut_is_shown_as_it_is():
    part = Part(index=0, data={"toolUse": SERVER_TOOL, "input": ['{"q":']})
    [block] = Answer(wire="converse", parts=(part,)).native()["output"]["message"]["content"]

    assert block["toolUse"]["input"] == '{"q":'


@pytest.mark.parametrize("cut", [1, 2, 3, 4])
def test_bytes_in_pieces_are_joined_as_bytes(cut):
    pieces = [base64.b64encode(piece).decode() for piece in (b"abcde"[:cut], b"abcde"[cut:])]
    image = {"image": {"format": "png", "source": {}}, "bytes": pieces}
    parts = (Part(index=0, data=image), Part(index=1, data={"redacted": pieces}))

    assert content_of(*parts) == [
        {"image": {"format": "png", "source": {"bytes": b"abcde"}}},
        {"reasoningContent": {"redactedContent": b"abcde"}},
    ]


def test_bytes_that_are_none_are_told_as_they_came():
    part = Part(index=0, data={"redacted": ["a", "b"]})
    [block] = Answer(wire="converse", parts=(part,)).native()["output"]["message"]["content"]

    assert block == {"reasoningContent": {"redactedContent": "ab"}}

"""Frames of the chat wire without use or sense, errors inside a stream, and whole documents."""

import json

import pytest

from tests.unit.actors.provider.test_chat_rules import (
    DONE,
    STOP,
    batches,
    decode,
    delta,
    frame,
    text,
)
from tidegate.actors.provider.dialects.batch import Batch
from tidegate.actors.provider.dialects.chat import decode_json
from tidegate.protocol.answers import Usage
from tidegate.protocol.deltas import Reasoning, Text, Tool
from tidegate.protocol.failures import FailureKind


# Frames without use, and frames that make no sense


def test_frames_without_payload_are_skipped():
    odd = b"data:\n\n", b"data:  \n\n", b"event: keepalive\n\n", b"id: 8\n\n", b"retry: 3\n\n"
    batch = decode(text("a"), *odd, frame("null"), STOP)

    assert batch.deltas == [Text("a")]
    assert batch.finishes == ("stop",)
    assert batch.events == 3


@pytest.mark.parametrize("odd", [b"data:\n\n", b"data:  \n\n", b"event: x\n\n", b"id: 1\n\n"])
def test_only_frames_without_payload_are_contentless(odd):
    batch = decode(b": ping\n\n", odd)

    assert batch.contentless
    assert batch.failure.kind is FailureKind.EMPTY
    assert not decode(odd, text("a")).contentless
    assert not decode(odd, delta(role="assistant")).contentless


@pytest.mark.parametrize(
    "body",
    [b"", b": ping\n\n", delta(role="assistant", content=""), frame({"usage": {}}), frame("null")],
)
def test_only_life_is_empty_and_not_contentless(body):
    batch = decode(body)

    assert (batch.failure.kind, batch.failure.retryable) == (FailureKind.EMPTY, True)
    assert not batch.contentless


def test_frame_that_is_no_json_is_malformed_behind_what_was_before_it():
    batch = decode(text("a"), frame("<html>oops"), text("b"))

    assert batch.deltas == [Text("a")]
    assert batch.failure.kind is FailureKind.MALFORMED
    assert not batch.failure.retryable
    assert batch.failure.code == "provider_stream_non_json_data"
    assert batch.failure.raw_text == "<html>oops"


def test_raw_text_is_cut():
    assert decode(frame("é" * 9000)).failure.raw_text == "é" * 4096


@pytest.mark.parametrize("name", ["", "message"])
@pytest.mark.parametrize(
    "payload",
    [
        *("[1]", "5", '"text"', "true"),
        *('{"choices":{}}', '{"choices":[5]}', '{"choices":[{"delta":[]}]}'),
        '{"choices":[{"delta":{"content":5}}]}',
        '{"choices":[{"delta":{"content":[5]}}]}',
        '{"choices":[{"delta":{"tool_calls":{}}}]}',
        '{"choices":[{"delta":{"tool_calls":[{"id":"a","function":{"arguments":5}}]}}]}',
        '{"choices":[{"delta":{},"finish_reason":5}]}',
    ],
)
def test_json_of_an_unusable_shape_is_malformed(payload, name):
    failure = decode(text("a"), frame(payload, name)).failure

    assert failure.kind is FailureKind.MALFORMED
    assert failure.code == "provider_stream_unusable_data"
    assert failure.raw_text == payload


def test_bytes_that_are_no_utf8_are_malformed():
    failure = decode(text("a"), b'data: {"choices":[{"delta":{"content":"\xff"}}]}\n\n').failure

    assert failure.kind is FailureKind.MALFORMED
    assert "\ufffd" in failure.raw_text


def test_bytes_that_are_no_utf8_do_no_harm_where_nobody_reads():
    odd = b'data: {"obfuscation":"\xff","choices":[{"delta":{"content":"b"}}]}\n\n'

    assert decode(odd, b'data: {"x":"\xff"}\n\n', STOP).deltas == [Text("b")]


def test_deep_nesting_is_malformed():
    deep = "[" * 100_000

    assert decode(frame(deep)).failure.kind is FailureKind.MALFORMED
    assert decode(frame('{"usage":' + deep)).failure.kind is FailureKind.MALFORMED


# Errors inside a stream


@pytest.mark.parametrize("choices", ['"choices":[],', '"choices":null,', '"choices":5,', ""])
def test_error_object_wins_over_whatever_is_beside_it(choices):
    body = frame("{" + choices + '"error":{"code":502,"message":"no room"}}')
    batch = decode(text("a"), body, text("b"), STOP)

    assert batch.deltas == [Text("a")]
    assert batch.finishes is None
    assert batch.failure.kind is FailureKind.SERVER_ERROR
    assert (batch.failure.status, batch.failure.detail) == (502, "no room")


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (frame({"error": "it broke"}), FailureKind.SERVER_ERROR),
        (frame({"type": "error", "message": "it broke"}), FailureKind.SERVER_ERROR),
        (frame({"object": "error", "message": "m", "code": 400}), FailureKind.BAD_REQUEST),
        (frame({"choices": [], "error_type": "overloaded_error"}), FailureKind.OVERLOADED),
        (frame({"code": "InternalError", "message": "m"}), FailureKind.SERVER_ERROR),
        (frame({"detail": "it broke"}), FailureKind.SERVER_ERROR),
        (frame({"error": {"type": "overloaded_error"}}, "error"), FailureKind.OVERLOADED),
        (frame({"message": "Network connection lost."}, "error"), FailureKind.TRUNCATED),
        (frame({"error": {"message": "Network connection lost."}}), FailureKind.TRUNCATED),
        (frame("upstream connect error", "error"), FailureKind.TRUNCATED),
        (frame('"text"', "error"), FailureKind.SERVER_ERROR),
        (frame({"error": {"code": "context_length_exceeded"}}), FailureKind.CONTEXT_OVERFLOW),
        (frame('{"error":{"message":"\\ud800"}}'), FailureKind.SERVER_ERROR),
    ],
)
def test_error_is_recognised_in_any_form(body, kind):
    assert decode(body).failure.kind is kind
    assert decode(text("a"), body, DONE).failure.kind is kind


@pytest.mark.parametrize(
    "payload",
    [
        {"type": "info", "message": "queued"},
        {"status": "processing", "message": "wait"},
        {"code": 0, "message": "success"},
        {"code": "ok", "message": "fine", "usage": None},
    ],
)
def test_note_of_a_server_is_no_error(payload):
    assert decode(frame(payload), text("a"), STOP).failure is None


def test_failure_is_told_again_at_the_end_and_nothing_else_is():
    _, second, third, end = batches(text("a"), frame({"error": "x"}), text("b"))

    assert second.failure is not None
    assert third == Batch()
    assert end.failure == second.failure


# Documents: answers that are not streamed


def document(message, finish="stop", **fields):
    choices = [{"index": 0, "message": message, "finish_reason": finish}]
    return json.dumps({"id": "c1", "model": "m", "choices": choices, **fields}).encode()


def test_document_is_read_like_a_stream_of_one_frame():
    calls = [
        {"id": "a", "function": {"name": "f", "arguments": ""}},
        {"id": "b", "function": {"name": "g", "arguments": "{}"}},
    ]
    message = {"role": "assistant", "content": "x", "reasoning": "r", "tool_calls": calls}
    usage = {"prompt_tokens": 3, "completion_tokens": 2}
    batch = decode_json(b"\xef\xbb\xbf " + document(message, "tool_calls", usage=usage) + b"\n")

    assert batch.deltas == [
        Reasoning("r"),
        Text("x"),
        Tool(0, "a", "f"),
        Tool(1, "b", "g", "{}"),
    ]
    assert batch.finishes == ("tool_calls",)
    assert batch.usage == Usage(input_tokens=3, output_tokens=2)
    assert batch.described == ("c1", "m", 0)
    assert batch.done
    assert batch.failure is None


def test_calls_of_a_document_that_lack_every_mark_stay_apart():
    calls = [{"function": {"name": "f"}}, {"function": {"name": "f"}}]
    batch = decode_json(document({"tool_calls": calls}, "tool_calls"))

    assert batch.deltas == [Tool(0, name="f"), Tool(1, name="f")]


def test_document_has_as_many_choices_as_it_has_unless_told():
    choices = [
        {"message": {"content": "a"}, "finish_reason": "stop"},
        {"message": {"content": "b"}, "finish_reason": "length"},
    ]
    body = json.dumps({"choices": choices}).encode()

    assert decode_json(body).deltas == [Text("a"), Text("b", 1)]
    assert decode_json(body).finishes == ("stop", "length")
    assert decode_json(body, choices=3).failure.kind is FailureKind.TRUNCATED


def test_document_cut_off_anywhere_is_truncated_or_empty():
    body = document({"content": "é {}", "n": [1, {"a": True}]})
    for at in range(len(body)):
        batch = decode_json(body[:at])

        assert batch.deltas == []
        assert batch.failure.kind is (FailureKind.TRUNCATED if at else FailureKind.EMPTY)
        assert not batch.done


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (document({"content": "a"}, None), FailureKind.TRUNCATED),
        (document({"content": ""}, None), FailureKind.EMPTY),
        (b"{}", FailureKind.EMPTY),
        (b"null", FailureKind.EMPTY),
        (b" \n", FailureKind.EMPTY),
        (b"[]", FailureKind.MALFORMED),
        (b"<html>busy</html>", FailureKind.MALFORMED),
        (b'{"error":{"code":"insufficient_quota"}}', FailureKind.QUOTA_EXHAUSTED),
        (b'{"detail":"no"}', FailureKind.SERVER_ERROR),
    ],
)
def test_document_without_evidence_is_a_failure(body, kind):
    batch = decode_json(body)

    assert batch.failure.kind is kind
    assert batch.finishes is None
    assert not batch.done

"""Answers that are not streamed: as they were asked for, or because no stream is to be had."""

import pytest

import tidegate as tg
from tests.e2e.scripts import in_order, refusal, streamed
from tidegate.lab import Answer, Lab, chat, send
from tidegate.testing.reading import Reading
from tidegate.testing.warm import warm


@pytest.fixture(scope="module")
def runtime():
    with tg.Runtime(workers=2) as runtime:
        warm(runtime, 2)
        yield runtime


def test_plain_request_is_one_document_and_the_same_events(runtime, ask):
    call = {
        "id": "call_1",
        "type": "function",
        "function": {"name": "clock", "arguments": "{}"},
    }
    document = chat.completion("Hello", tool_calls=[call], reason="tool_calls", tokens=(3, 2))
    with Lab([Answer.json(document)]) as lab:
        asked = ask(lab)
        request = tg.Request(asked.endpoint, asked.payload, policy=asked.policy, stream=False)
        turn = runtime.start(request)
        reading = Reading(turn)
        reading.to_end()
        answer = turn.result()

        assert not lab.requests[0].json().get("stream")
        assert "stream_options" not in lab.requests[0].json()
        assert (answer.text, answer.finish) == ("Hello", "tool_calls")
        assert [each.name for each in answer.tool_calls] == ["clock"]
        assert answer.usage == tg.Usage(input_tokens=3, output_tokens=2)
        assert reading.texts == ["Hello"]


def test_frames_without_content_switch_streaming_off(runtime, ask, own):
    blanks = streamed(send("data:\n\n"), send("event: ping\n\n"), send("id: 7\n\n"))
    plain = Answer.json(chat.completion("whole"))
    with Lab([blanks, plain, plain]) as lab:
        heard = []
        answer = runtime.run(ask(lab, options=own), heard.append)
        runtime.run(ask(lab, options=own))

        assert answer.text == "whole"
        asked = [each.json().get("stream", False) for each in lab.requests]
        assert asked == [True, False, False]
        notices = [each.kind for each in heard if isinstance(each, tg.Notice)]
        assert notices == ["streaming_disabled"]
        assert answer.attempts[0].failure.kind is tg.FailureKind.EMPTY
        assert [each.free for each in answer.attempts] == [False, False]


def test_frames_without_content_between_others_are_skipped(runtime, ask, own):
    mixed = [send("data:\n\n"), *chat.answer("fine").steps]
    with Lab([Answer(mixed), chat.answer("streamed")]) as lab:
        first = runtime.run(ask(lab, options=own))
        runtime.run(ask(lab, options=own))

        assert first.text == "fine"
        assert [each.json()["stream"] for each in lab.requests] == [True, True]


def test_streaming_is_not_refused_twice(runtime, ask, own):
    """The free attempt goes out once: what refuses even a plain request has refused it."""
    with Lab(in_order(refusal(400, "streaming is not supported"))) as lab:
        with pytest.raises(tg.BadRequest):
            runtime.run(ask(lab, retries=5, options=own))

        asked = [each.json().get("stream", False) for each in lab.requests]
        assert asked == [True, False]

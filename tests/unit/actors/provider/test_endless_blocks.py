"""An answer whose structure never ends is ended: no reader's pace would ever hold it back."""

import pytest

from tidegate.actors.provider.dialects import body
from tidegate.actors.provider.dialects.body import BodyDecoder
from tidegate.actors.provider.dialects.dialect import DIALECTS
from tidegate.lab import End, frame, messages, responses
from tidegate.protocol.attempts import Order, Target
from tidegate.protocol.failures import FailureKind


LONG = "x" * 1000


def item(index):
    done = {"type": "image_generation_call", "id": f"ig_{index}", "result": LONG}
    kind = "response.output_item.done"
    return frame({"type": kind, "output_index": index, "item": done}, event=kind)


BODIES = {
    "messages": (
        messages.start(),
        lambda n: messages.block_start(n, "server_result", content=LONG),
    ),
    "responses": (responses.created(), item),
}


def decoder_of(wire):
    return BodyDecoder(DIALECTS[wire], Order(Target(wire), b"{}"), "text/event-stream")


@pytest.mark.parametrize("wire", BODIES)
def test_blocks_beyond_the_limit_end_the_stream(monkeypatch, wire):
    monkeypatch.setattr(body, "BLOCKS_BYTES_MAX", 20_000)
    first, more = BODIES[wire]
    decoder = decoder_of(wire)
    assert decoder.feed(first.data).failure is None

    failures = [decoder.feed(more(number).data).failure for number in range(30)]

    [failure, *_] = filter(None, failures)
    assert (failure.kind, failure.reason) == (FailureKind.MALFORMED, "answer_too_large")
    assert not failure.retryable
    assert 10 < failures.index(failure) < 25


def test_complete_answer_is_never_taken_back(monkeypatch):
    monkeypatch.setattr(body, "BLOCKS_BYTES_MAX", 1)
    steps = [step for step in messages.answer("a").steps if not isinstance(step, End)]

    batch = decoder_of("messages").feed(b"".join(step.data for step in steps))

    assert (batch.failure, batch.finishes) == (None, ("stop",))

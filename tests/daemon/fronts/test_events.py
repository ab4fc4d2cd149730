"""A turn's own events on a stream."""

import msgspec

import tidegate as tg
from tests.daemon.fronts.playing import Events
from tidegate.daemon.fronts import event_frame, stored_frame
from tidegate.protocol.answers import Answer, Part, Usage
from tidegate.protocol.events import AnyEvent
from tidegate.protocol.failures import Failure, FailureKind
from tidegate.wire.sse import SseDecoder


def every_kind():
    events = Events()
    failure = Failure(kind=FailureKind.STALLED, detail="sil\u2028ent")
    answer = Answer(text="a\r\nb\u0085", parts=(Part(index=-1, data={"a": [1]}),))
    return [
        events.started(),
        events.text("a\nb\u2029"),
        events.reasoning("hm"),
        events.refusal("No."),
        events.tool(0, "a", "read", "{}"),
        events.other(tg.UsageReported, usage=Usage(input_tokens=1)),
        events.notice("fallback", "elsewhere"),
        events.other(tg.RetryScheduled, cause=failure, delay_s=0.5),
        events.other(tg.AttemptSuperseded, retracts=3),
        events.other(tg.TurnCompleted, answer=answer),
        events.other(tg.TurnFailed, error=failure, answer=answer),
        events.other(tg.TurnInterrupted, reason="enough", answer=answer),
    ]


def test_each_event_is_whole_with_its_name_and_its_offset():
    events = every_kind()
    assert {type(event) for event in events} == {*AnyEvent.__args__}
    decoder = SseDecoder(event_bytes_max=1 << 16)

    for event in events:
        frame = event_frame(event)
        name, number, data, *rest = frame.decode().splitlines()

        assert rest == [""]
        assert name == f"event: {msgspec.to_builtins(event)['type']}"
        assert number == f"id: {event.offset}"
        assert msgspec.json.decode(data.removeprefix("data: "), type=AnyEvent) == event
        (read,) = decoder.feed(frame)
        assert read.name.decode() == msgspec.to_builtins(event)["type"]


def test_stored_event_is_the_same_frame():
    for event in every_kind():
        kind = msgspec.to_builtins(event)["type"]
        assert stored_frame(kind, event.offset, msgspec.json.encode(event)) == event_frame(event)

"""What the cases say of a client of the daemon: fields, and sentences with their checks."""

import json

from tests.cases.served import chunks_in


LEFT = ("eof", "reset")
BEAT = ": heartbeat"


def _status(wanted, play):
    assert int(play.facts["head"].split(" ")[1]) == wanted


def _headers(wanted, play):
    lines = [line.partition(": ") for line in play.facts["head"].lower().split("\r\n")[1:]]
    headers = {name: value for name, _, value in lines}
    for name, words in wanted.items():
        assert HEADERS[name, words](headers.get(name)), (name, headers)


class _Known(dict):
    """A table of sentences, in which one that is missing is a failure of the test."""

    def __missing__(self, key):
        raise AssertionError(f"nobody checks {key}")


HEADERS = _Known(
    {
        ("content-type", "text/event-stream (charset allowed)"): lambda value: (
            value.partition(";")[0] == "text/event-stream"
        ),
        ("cache-control", "contains no-cache"): lambda value: "no-cache" in value,
        ("x-accel-buffering", "no"): lambda value: value == "no",
        ("content-encoding", "absent"): lambda value: value is None,
        ("content-length", "absent"): lambda value: value is None,
    }
)


def _heartbeats(bounds, play):
    least, most = bounds
    assert least <= play.calls[0].frames.count(BEAT) <= most


def _last_record(wanted, play):
    """The kind is told in a field of ours: clients of the wire know the types of the wire."""
    assert wanted == {"error": {"type": "<kind>", "message": "<short>"}}
    [call] = play.calls
    error = json.loads(call.frames[-1].removeprefix("data: "))["error"]
    assert error["type"]
    assert error["tidegate"]["kind"] == call.failure.kind
    assert 0 < len(error["message"]) < 200


def _arrived_apart(play):
    came = {
        letter: next(at_s for at_s, data in play.facts["arrivals"] if _content(letter) in data)
        for letter in "ab"
    }
    assert came["b"] - came["a"] >= 0.2
    # One write is one chunk of the body, and each holds whole frames.
    rest = play.facts["got"].partition(b"\r\n\r\n")[2]
    while rest:
        size, _, rest = rest.partition(b"\r\n")
        chunk, rest = rest[: int(size, 16)], rest[int(size, 16) + 2 :]
        assert chunk.endswith(b"\n\n") or not chunk


def _content(letter):
    return f'"content":"{letter}"'.encode()


def _beats_stand_between(play):
    frames = play.calls[0].frames
    assert frames[-1] == "data: [DONE]"
    for frame in frames[:-1]:
        assert frame == BEAT or json.loads(frame.removeprefix("data: "))


def _not_done(play):
    assert b"[DONE]" not in play.facts["got"]


def nothing_pooled(play):
    """The connection was closed by the daemon, and no other one is open."""
    assert play.lab.wait_closed(0).how in LEFT
    assert play.lab.open_connections_count == 0
    assert play.lab.connections_count == 1
    play.stage.idle()


def _recorded(play):
    [call] = play.calls
    assert call.events[-1].reason == "SSE client disconnected"
    assert call.answer.text.startswith("gox")
    assert call.answer.finish == "incomplete" or call.answer.finish is None
    usage = call.answer.usage
    assert usage is None or usage.origin == "estimated"


def _calls_in_order(play):
    *frames, last = play.calls[0].frames
    assert last == "data: [DONE]"
    *chunks, usage = chunks_in(frames)
    assert len(chunks) + 1 == len(frames)
    assert usage["choices"] == []
    assert usage["usage"]["completion_tokens"] == 2
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks]
    assert deltas[0]["role"] == "assistant"
    assert all("role" not in delta for delta in deltas[1:])
    calls = [call for delta in deltas for call in delta.get("tool_calls") or ()]
    named = [(call["index"], call["id"]) for call in calls if "id" in call]
    assert named == [(0, "call_a"), (1, "call_b")]
    assert [call["index"] for call in calls] == sorted(call["index"] for call in calls)
    ends = [chunk["choices"][0]["finish_reason"] for chunk in chunks]
    assert ends == [None] * (len(chunks) - 1) + ["tool_calls"]


FIELDS = {
    "status": _status,
    "headers": _headers,
    "heartbeats": _heartbeats,
    "last_record": _last_record,
}
SENTENCES = {
    "arrivals": {
        "frame a at least 200 ms before frame b; each frame in one write": _arrived_apart,
    },
    "raw": {
        "every heartbeat stands between two frames; nothing after data: [DONE]": (
            _beats_stand_between
        ),
    },
    "done_marker": {"absent": _not_done},
    "recorded": {
        "partial text and finish cancelled, usage unknown or estimated, never zero presented as "
        "exact": _recorded,
    },
    "downstream_order": {
        "role first; call_a index 0; call_b index 1; one finish_reason tool_calls; usage chunk "
        "with empty choices; data: [DONE]": _calls_in_order,
    },
}

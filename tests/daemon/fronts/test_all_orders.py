"""Whatever a turn is made of, and in whatever order: frames are well-formed, and an end is an end.

*Goal*: no stream of a provider, however odd, makes a front break its API's grammar.
*Method*: random deltas in random order, several attempts and every end; the answer is what the
sink makes of the same deltas; each frame is judged by the SDKs' types and by the grammar below.
"""

import json

from hypothesis import given, settings
from hypothesis import strategies as st

import tidegate as tg
from tests.daemon.fronts import sdks
from tests.daemon.fronts.playing import TURN, frames_of, new_front
from tidegate.actors.sink.assembly import Assembly
from tidegate.actors.sink.events import event_from
from tidegate.protocol.answers import Answer, Usage
from tidegate.protocol.base import Token
from tidegate.protocol.deltas import ENVELOPE, Block, Reasoning, Refusal, Text, Tool
from tidegate.protocol.failures import Failure, FailureKind


PLACES = st.integers(0, 3)
WORDS = st.sampled_from(["a", "b ", "", "\n\n", "é\u2028", '"\\'])
KINDS = {
    "messages": ["text", "thinking", "tool_use", "server_tool_use", "redacted_thinking"],
    "responses": ["message", "reasoning", "function_call", "web_search_call"],
}
_OF_A_BLOCK = {
    "server_tool_use": {"id": "s", "name": "web_search", "input": {}},
    "redacted_thinking": {"data": "b3Bh"},
}
_OF_AN_ITEM = {
    "web_search_call": {"status": "completed", "action": {"type": "search", "query": ""}}
}
_ROWS = [
    ["content", 0, "output_text", "text"],
    ["content", 1, "output_text", "text"],
    ["content", 1, "refusal", "refusal"],
    ["content", 0, "output_text", "reasoning"],
]
_THOUGHTS = [
    ["summary", 0, "summary_text", "reasoning"],
    ["summary", 1, "summary_text", "reasoning"],
    ["content", 0, "reasoning_text", "reasoning"],
]
_MORE = [{}, {"signature": "c2ln"}, {"partial_json": ["{}"]}]

# Two calls with the same id are beyond any client.
tools = st.builds(
    lambda index, letter, **fields: Tool(index, letter and f"{letter}{index}", **fields),
    index=st.integers(0, 2),
    letter=st.sampled_from([None, None, "x", "y"]),
    name=st.sampled_from([None, None, "read", "list"]),
    arguments=st.sampled_from(["", "{}", '{"a":', "1}", '"text"']),
    whole=st.sampled_from([False, False, False, True]),
)
words = st.sampled_from([Text, Reasoning, Refusal]).flatmap(lambda kind: st.builds(kind, WORDS))


@st.composite
def blocks(draw, api):
    """Draw a block as its dialect would tell it: first what it is, then what is new."""
    if draw(st.integers(0, 5)) == 0:
        return Block(ENVELOPE, draw(st.sampled_from([b"", b'{"usage":{"output_tokens":3}}'])))
    return draw(PLACES), draw(st.sampled_from(KINDS[api])), draw(st.integers(0, 5))


def _messages_block(place, kind, choice, known):
    if place in known:
        return Block(place, _json(_MORE[choice % len(_MORE)]))
    known[place] = kind
    return Block(place, _json({"type": kind, **_OF_A_BLOCK.get(kind, {})}))


def _responses_block(place, kind, choice, known):
    first = place not in known
    kind = known.setdefault(place, kind)
    rows = _THOUGHTS if kind == "reasoning" else _ROWS if kind == "message" else []
    data = {"output_index": place}
    item = {"id": f"i{place}", "type": kind, **_OF_AN_ITEM.get(kind, {})} if first else {}
    if rows and choice < 4:
        data["words"] = [rows[choice % len(rows)]]
    elif not first:
        item |= {"status": "completed"}
    return Block(place, _json(data | ({"item": item} if item else {})))


def _chat_block(_place, _kind, choice, _known):
    extras = [
        {"system_fingerprint": f"fp{choice}"},
        {"choices": {"0": {"logprobs": {"content": [], "refusal": None}}}},
        {"choices": {"0": {"calls": {"x0": {"extra_content": {"a": 1}}}}}},
    ]
    return Block(ENVELOPE, _json(extras[choice % len(extras)]))


def _json(value):
    return json.dumps(value).encode()


_MAKE = {"chat": _chat_block, "messages": _messages_block, "responses": _responses_block}


@st.composite
def attempts(draw, api):
    """Draw the deltas of one attempt."""
    mixed = st.one_of(words, words, tools, blocks("messages" if api == "chat" else api))
    known = {}
    return [
        _MAKE[api](*each, known) if isinstance(each, tuple) else each
        for each in draw(st.lists(mixed, max_size=14))
    ]


@st.composite
def turns(draw, api):
    """Draw all items of a turn with one to three attempts, the last of which is the answer."""
    items = []
    count = draw(st.integers(1, 3))
    for number in range(1, count + 1):
        items.append(tg.AttemptStarted(TURN, number, len(items), 0.0, token=number))
        deltas = draw(attempts(api))
        cut = number < count and draw(st.booleans())  # nobody took any of it
        if number > 1 and deltas and not cut:
            items.append(tg.AttemptSuperseded(TURN, number - 1, len(items), 0.0, retracts=0))
        for delta in [] if cut else deltas:
            plain = isinstance(delta, Block)
            items.append(delta if plain else event_from(delta, TURN, number, len(items), 0.0))
        if draw(st.booleans()):
            kind = draw(st.sampled_from(["stall_warning", "tool_call_lost", "fallback"]))
            items.append(tg.Notice(TURN, number, len(items), 0.0, kind=kind, text="Told.\n"))
        if number < count:
            cause = Failure(kind=FailureKind.STALLED)
            items.append(tg.RetryScheduled(TURN, number, len(items), 0.0, cause=cause, delay_s=0))
    answer = _answer(api, deltas, finish=draw(st.sampled_from(["stop", "length"])))
    place = (TURN, count, len(items), 0.0)
    ends = [
        tg.TurnCompleted(*place, answer=answer),
        tg.TurnFailed(*place, error=Failure(kind=FailureKind.TRUNCATED), answer=answer),
        tg.TurnInterrupted(*place, reason="enough", answer=answer),
    ]
    return [*items, draw(st.sampled_from(ends))]


def _answer(api, deltas, finish):
    assembly = Assembly(Token(1))
    assembly.add(deltas)
    assembly.finishes = (finish,)
    choices = assembly.choices()
    first = choices[0]
    return Answer(
        text=first.text,
        reasoning=first.reasoning,
        refusal=first.refusal,
        tool_calls=first.tool_calls,
        incomplete_tool_calls=first.incomplete_tool_calls,
        finish=first.finish,
        usage=Usage(input_tokens=1, output_tokens=2),
        choices=choices,
        parts=assembly.parts(),
        wire=api,
    )


def rendered(api, items):
    """Render a turn, and return its frames without comments, and whether it was completed."""
    front = new_front(api, stream_options={"include_usage": True})
    looks = 0

    def look():
        nonlocal looks
        looks += 1
        return items[-1].answer

    body = b""
    for item in items:
        frame = front.frames(item, look)
        assert front.content_sent or not frame or item is items[-1]
        body += frame
    assert looks <= 1
    assert front.frames(items[-1], look) == front.failed(Failure(kind=FailureKind.STALLED)) == b""
    frames = [each for each in frames_of(body) if not str(each[1]).startswith(":")]
    return body, frames


def _is_error(data):
    return isinstance(data, dict) and ("error" in data or data.get("type") == "error")


@settings(max_examples=150, deadline=None)
@given(turns("chat"))
def test_chat(items):
    _body, frames = rendered("chat", items)
    chunks = [data for _, data in frames if isinstance(data, dict) and not _is_error(data)]
    failed = any(_is_error(data) for _, data in frames)
    for chunk in chunks:
        sdks.judge("chat", b"data: " + _json(chunk) + b"\n\n")
    choices = [choice for chunk in chunks for choice in chunk["choices"]]

    assert [name for name, _ in frames if name] == []
    assert not failed or _is_error(frames[-1][1])
    assert (frames[-1][1] == "[DONE]") is not failed
    roles = ["role" in choice["delta"] for choice in choices]
    assert sum(roles) == (1 if choices else 0)
    assert not choices or roles[0]
    finishes = [choice["finish_reason"] for choice in choices]
    assert all(finish is None for finish in finishes[:-1])
    assert failed or finishes[-1] is not None
    _check_calls([call for choice in choices for call in choice["delta"].get("tool_calls", ())])
    if not failed:
        said = "".join(choice["delta"].get("content") or "" for choice in choices)
        assert said.startswith(items[-1].answer.text)


def _check_calls(pieces):
    begun = set()
    for piece in pieces:
        assert ("id" in piece) == ("type" in piece) == ("name" in piece["function"])
        assert ("id" in piece) == (piece["index"] not in begun)
        begun.add(piece["index"])


@settings(max_examples=150, deadline=None)
@given(turns("messages"))
def test_messages(items):
    _body, frames = rendered("messages", items)
    events = [data for _, data in frames]
    assert [name for name, _ in frames] == [each["type"] for each in events]
    failed = _is_error(events[-1])
    events = events[:-1] if failed else events
    sdks.judge("messages", b"".join(b"data: " + _json(each) + b"\n\n" for each in events))
    kinds = [each["type"] for each in events]

    assert not any(map(_is_error, events))
    assert kinds[:1] == (["message_start"] if events else [])
    assert "message_start" not in kinds[1:]
    assert failed or kinds[-2:] == ["message_delta", "message_stop"]
    assert not failed or not {"message_delta", "message_stop"} & {*kinds}
    open_blocks = _check_blocks(events, failed=failed)
    assert failed or not open_blocks


_DELTAS = {
    "text": {"text_delta", "signature_delta"},
    "thinking": {"thinking_delta", "signature_delta"},
}


def _check_blocks(events, *, failed):
    """Check that blocks begin in order and take what is theirs; return those that are open.

    A call that was cut off by a failure is never closed, not even for a notice behind it.
    """
    count, opened = 0, {}
    for each in events:
        match each["type"]:
            case "content_block_start":
                assert each["index"] == count
                for kind, parts in opened.values():
                    assert _unfinished(parts) or (failed and kind == "tool_use")
                opened[count] = (each["content_block"]["type"], [])
                count += 1
            case "content_block_delta":
                kind, parts = opened[each["index"]]
                delta = each["delta"]
                if kind in ("text", "thinking") and "partial_json" not in delta:
                    assert delta["type"] in _DELTAS[kind]
                parts.append(delta.get("partial_json", ""))
            case "content_block_stop":
                del opened[each["index"]]
    return opened


def _unfinished(parts):
    """Say whether a block may stay open behind the beginning of the next one."""
    try:
        return not isinstance(json.loads("".join(parts)), dict)
    except ValueError:
        return True


@settings(max_examples=150, deadline=None)
@given(turns("responses"))
def test_responses(items):
    body, frames = rendered("responses", items)
    events = [data for _, data in frames]
    sdks.judge("responses", b"".join(b"data: " + _json(each) + b"\n\n" for each in events))
    kinds = [each["type"].removeprefix("response.") for each in events]
    failed = kinds[-2:] == ["error", "failed"]

    assert [name for name, _ in frames] == [each["type"] for each in events]
    assert [each["sequence_number"] for each in events] == list(range(len(events)))
    ends = [kind for kind in kinds if kind in ("completed", "incomplete", "failed", "error")]
    assert ends == (["error", "failed"] if failed else ["completed"])
    assert kinds[:2] == ["created", "in_progress"] or (failed and len(kinds) == 2)
    unfinished = _check_items(events)
    if not failed:
        assert unfinished == set()
        sdks.joined("responses", body)


def _check_items(events):
    """Check that items and parts are announced before they are used; return what is not done."""
    names, parts = {}, set()
    unfinished = set()
    for each in events:
        kind = each["type"].removeprefix("response.")
        if "output_index" not in each:
            continue
        at = each["output_index"]
        if kind == "output_item.added":
            assert at == len(names)
            names[at] = each["item"]["id"]
            unfinished.add(at)
            continue
        assert at in unfinished
        if kind == "output_item.done":
            assert each["item"]["id"] == names[at]
            assert not {part for part in parts if part[0] == at}
            unfinished.remove(at)
            continue
        assert each["item_id"] == names[at]
        slot = next((name for name in ("content_index", "summary_index") if name in each), None)
        if slot is None:
            continue
        part = (at, slot, each[slot])
        if kind.endswith("part.added"):
            assert part not in parts
            parts.add(part)
        elif kind.endswith("part.done"):
            parts.remove(part)
        else:
            assert part in parts
    return unfinished

"""What a client understood of an answer, in the same words whatever its client and its API."""

import json
from dataclasses import dataclass, replace


_FINISHES = {
    "end_turn": "stop",
    "max_tokens": "length",
    "max_output_tokens": "length",
    "tool_use": "tool_calls",
    "tool-calls": "tool_calls",
}


@dataclass(frozen=True)
class Heard:
    """An answer.

    Attributes:
        text: all of it.
        reasoning: all of it.
        calls: name and arguments of each, the arguments parsed.
        finish: stop, length or tool_calls; empty if it is not known.
        usage: input and output tokens.
    """

    text: str
    reasoning: str
    calls: tuple[tuple[str, dict], ...]
    finish: str
    usage: tuple[int, int]


def heard(client, api, way, got):
    """Return what a client understood; it must not have failed."""
    assert got.error is None, got.error
    if client.name == "vercel":
        return _vercel(got.final)
    if way == "raw":
        return _JOINED[api](got.events)
    final = _WHOLE[api](got.final)
    if (client.name, api, way) == ("node", "chat", "joined"):
        # It joins no field that OpenAI does not have: of reasoning it keeps the last piece.
        return replace(final, reasoning=_chat_joined(got.events).reasoning)
    return final


def _made(text, reasoning, calls, finish, usage):
    parsed = tuple(
        (name, given if isinstance(given, dict) else json.loads(given)) for name, given in calls
    )
    return Heard(text, reasoning, parsed, _FINISHES.get(finish, finish), tuple(usage))


def _vercel(final):
    assert not any(invalid for *_, invalid in final["calls"])
    calls = [(name, given) for _, name, given, _ in final["calls"]]
    return _made(final["text"], final["reasoning"], calls, final["finish"], final["usage"])


def _chat(final):
    [choice] = final["choices"]
    message, usage = choice["message"], final["usage"]
    calls = [each["function"] for each in message.get("tool_calls") or ()]
    return _made(
        message["content"] or "",
        message.get("reasoning_content") or "",
        [(each["name"], each["arguments"]) for each in calls],
        choice["finish_reason"],
        (usage["prompt_tokens"], usage["completion_tokens"]),
    )


def _chat_joined(events):
    text = reasoning = finish = ""
    calls, usage = {}, None
    for event in events:
        for choice in event["choices"]:
            assert not finish, "something came behind the end of the choice"
            delta = choice["delta"]
            text += delta.get("content") or ""
            reasoning += delta.get("reasoning_content") or ""
            for piece in delta.get("tool_calls") or ():
                name, arguments = calls.get(piece["index"], ("", ""))
                function = piece["function"]
                name = name or function["name"]
                calls[piece["index"]] = name, arguments + (function.get("arguments") or "")
            finish = choice.get("finish_reason") or ""
        usage = event.get("usage") or usage
    tokens = (usage["prompt_tokens"], usage["completion_tokens"])
    return _made(text, reasoning, calls.values(), finish, tokens)


def _responses(final):
    items, usage = final["output"], final["usage"]
    calls = [(each["name"], each["arguments"]) for each in items if each["type"] == "function_call"]
    said = [part for each in items if each["type"] == "message" for part in each["content"]]
    thought = [part for each in items if each["type"] == "reasoning" for part in _thoughts(each)]
    finish = "tool_calls" if calls else "stop"
    if final["status"] == "incomplete":
        finish = (final.get("incomplete_details") or {}).get("reason", "length")
    return _made(
        "".join(part["text"] for part in said),
        "".join(part["text"] for part in thought),
        calls,
        finish,
        (usage["input_tokens"], usage["output_tokens"]),
    )


def _thoughts(item):
    return item.get("summary") or item.get("content") or ()


def _responses_joined(events):
    final = _responses(events[-1]["response"])
    assert [each["sequence_number"] for each in events] == list(range(len(events)))

    def said(kinds):
        return "".join(each["delta"] for each in events if each["type"] in kinds)

    assert said({"response.output_text.delta"}) == final.text
    kinds = {"response.reasoning_summary_text.delta", "response.reasoning_text.delta"}
    assert said(kinds) == final.reasoning
    return final


def _messages(final):
    blocks, usage = final["content"], final["usage"]
    calls = [(each["name"], each["input"]) for each in blocks if each["type"] == "tool_use"]
    return _made(
        "".join(each["text"] for each in blocks if each["type"] == "text"),
        "".join(each["thinking"] for each in blocks if each["type"] == "thinking"),
        calls,
        final["stop_reason"],
        (usage["input_tokens"], usage["output_tokens"]),
    )


def _messages_joined(events):
    assert events[-1]["type"] == "message_stop"
    final = dict(events[0]["message"])
    blocks, inputs = [], {}
    for event in events[1:]:
        match event["type"]:
            case "content_block_start":
                blocks.append(dict(event["content_block"]))
                inputs[event["index"]] = ""
            case "content_block_delta":
                delta, block = event["delta"], blocks[event["index"]]
                for field in ("text", "thinking", "signature"):
                    if field in delta:
                        block[field] = block.get(field, "") + delta[field]
                inputs[event["index"]] += delta.get("partial_json", "")
            case "content_block_stop":
                block = blocks[event["index"]]
                if block["type"] == "tool_use":
                    block["input"] = json.loads(inputs[event["index"]] or "{}")
            case "message_delta":
                final |= event["delta"]
                final["usage"] = final["usage"] | event["usage"]
    return _messages(final | {"content": blocks})


_WHOLE = {"chat": _chat, "responses": _responses, "messages": _messages}
_JOINED = {"chat": _chat_joined, "responses": _responses_joined, "messages": _messages_joined}

"""The front of chat completions: chunks, each with all that strict clients look for.

A call begins with its id and its name, and neither changes after that: so its first piece waits
for what follows it. What its provider adds to a call, and other clients want to see where the call
begins, comes in between.
"""

from __future__ import annotations

from typing import Any

import msgspec

from tidegate.daemon.fronts.base import Item, Look, Opening, encoded
from tidegate.daemon.fronts.calls import Call
from tidegate.daemon.fronts.errors import error_body
from tidegate.daemon.fronts.front import WireFront, Words
from tidegate.protocol.answers import Answer
from tidegate.protocol.deltas import ENVELOPE, Block
from tidegate.protocol.events import ReasoningDelta, RefusalDelta, TextDelta, ToolCallDelta
from tidegate.protocol.failures import Failure, FailureKind
from tidegate.protocol.native.chat import chat_completion_from


_EVERYWHERE = ("system_fingerprint", "service_tier", "provider")
"""What providers say in each chunk."""

_SHORT = (TextDelta, ReasoningDelta, RefusalDelta)
_FIELDS: dict[type, str] = dict(
    zip(_SHORT, ("content", "reasoning_content", "refusal"), strict=True)
)
"""The field of a message that has the words of each."""

_BESIDE = ("annotations", "extra_content", "reasoning_details")
"""Fields of a message that clients join only if they come at once."""

_TAKEN_BACK = Failure(
    kind=FailureKind.MALFORMED_TOOL_CALL,
    retryable=True,
    detail="the provider took back arguments of a tool call that had been sent",
)


class ChatFront(WireFront):
    """Renders one turn as ``chat.completion.chunk``."""

    prefix = "chatcmpl-"

    def __init__(self, opening: Opening, request: dict[str, Any], *, notices: bool) -> None:
        super().__init__(opening, request, notices=notices)
        options = request.get("stream_options")
        self._with_usage = isinstance(options, dict) and options.get("include_usage") is True
        self._facts: dict[str, Any] = {}
        self._roles = 0  # choices of which the role was sent
        self._texted = False  # whether choice 0 has text
        self._calls: dict[int, dict[int, Call]] = {}
        self._held: set[int] = set()  # choices with a call that waits
        self._head = self._tail = b""
        self._short: dict[type, tuple[bytes, bytes]] = {}  # what is around the words of choice 0

    def frames(self, item: Item, look: Look) -> bytes:
        """Return the whole frames that ``item`` makes, maybe none."""
        around = self._short.get(type(item))
        if around is not None and isinstance(item, _SHORT) and not item.choice:
            return around[0] + encoded(item.text) + around[1]
        return super().frames(item, look)

    def _hush(self) -> None:
        self._short.clear()

    def _restart(self) -> None:
        self._facts.clear()
        self._calls.clear()
        self._held.clear()

    def _open(self, answer: Answer) -> bytes:
        around = next((part.data for part in answer.parts if part.index == ENVELOPE), {})
        self._learn(around)
        self._frame_up()
        return b""

    def _learn(self, data: dict[str, Any]) -> bool:
        known = dict(self._facts)
        self._facts |= {name: data[name] for name in _EVERYWHERE if name in data}
        return known != self._facts

    def _frame_up(self) -> None:
        """Prepare what is around the choices, and around words."""
        opening = self._opening
        top = {
            "id": opening.response_id,
            "object": "chat.completion.chunk",
            "created": opening.created,
            "model": opening.model,
            **self._facts,
        }
        self._head = b"data: " + encoded(top)[:-1] + b',"choices":['
        self._tail = (b'],"usage":null}' if self._with_usage else b"]}") + b"\n\n"
        self._shorten()

    def _shorten(self) -> None:
        """Let words take the short way, if nothing has to stand before them."""
        self._short.clear()
        if self._roles and 0 not in self._held:
            tail = b'},"logprobs":null,"finish_reason":null}' + self._tail
            for kind, field in _FIELDS.items():
                if kind is not TextDelta or self._texted:
                    head = self._head + b'{"index":0,"delta":{"%b":' % field.encode()
                    self._short[kind] = (head, tail)

    def _chunk(
        self,
        choice: int,
        delta: dict[str, Any],
        *,
        finish: str | None = None,
        logprobs: Any = None,
        more: bytes = b"",
    ) -> bytes:
        form = {"index": choice, "delta": delta, "logprobs": logprobs, "finish_reason": finish}
        tail = self._tail
        if more:  # the other fields of an object, in its braces
            tail = tail[:-3] + b"," + more[1:] + b"\n\n"
        return self._head + encoded(form) + tail

    def _role(self, choice: int, content: str | None) -> bytes:
        """Begin a choice, and those before it, for some clients list them as they come."""
        chunks = []
        while self._roles <= choice:
            delta = {"role": "assistant", "content": content, "refusal": None}
            chunks.append(self._chunk(self._roles, delta))
            self._roles += 1
        return b"".join(chunks)

    def _take_words(self, event: Words, look: Look) -> bytes:
        if isinstance(event, ToolCallDelta):
            return self._take_call(event, look)
        begin = self._begin(look)
        begin += self._role(event.choice, "" if isinstance(event, TextDelta) else None)
        begin += self._release(event.choice)
        if not event.choice:
            self._texted = self._texted or isinstance(event, TextDelta)
            self._shorten()
        return begin + self._chunk(event.choice, {_FIELDS[type(event)]: event.text})

    def _take_call(self, event: ToolCallDelta, look: Look) -> bytes:
        choice = event.choice
        calls = self._calls.setdefault(choice, {})
        call = calls.get(event.index)
        if call is None:
            others = b""
            if choice in self._held:
                others = self._begin(look) + self._release(choice)
            call = calls[event.index] = Call(event.index, self._call_id(event))
            call.take(event)
            self._held.add(choice)
            self._shorten()
            return others
        if not call.take(event):
            return self.failed(_TAKEN_BACK)
        if call.opened:
            arguments = call.release()
            return self._piece(choice, call, arguments) if arguments else b""
        if call.arguments and call.id:
            return self._begin(look) + self._release(choice)
        return b""

    def _release(self, choice: int) -> bytes:
        """Begin the calls of a choice that wait."""
        if choice not in self._held:
            return b""
        self._held.discard(choice)
        begin = self._role(choice, None)
        waiting = [call for call in self._calls[choice].values() if not call.opened]
        frames = [self._opened(choice, call) for call in waiting]
        self._shorten()
        return begin + b"".join(frames)

    def _opened(self, choice: int, call: Call) -> bytes:
        call.open()
        function = {"name": call.name, "arguments": call.release()}
        told = {"index": call.index, "id": call.id, "type": "function", "function": function}
        extra, call.extra = call.extra, {}
        return self._chunk(choice, {"tool_calls": [told | extra]})

    def _piece(
        self, choice: int, call: Call, arguments: str, extra: dict[str, Any] | None = None
    ) -> bytes:
        told = {"index": call.index, "function": {"arguments": arguments}, **(extra or {})}
        return self._chunk(choice, {"tool_calls": [told]})

    def _take_block(self, block: Block, look: Look) -> bytes:
        if block.index != ENVELOPE or not block.data:
            return b""
        data = msgspec.json.decode(block.data, type=dict[str, Any])
        if self._learn(data) and self.content_sent:
            self._frame_up()
        frames = []
        for place, extras in (data.get("choices") or {}).items():
            choice = int(place)
            for call_id, extra in (extras.get("calls") or {}).items():
                frames.append(self._add(choice, call_id, extra))
            if logprobs := extras.get("logprobs"):
                begin = self._begin(look) + self._role(choice, None)
                frames.append(begin + self._chunk(choice, {}, logprobs=logprobs))
        return b"".join(frames)

    def _add(self, choice: int, call_id: str, extra: dict[str, Any]) -> bytes:
        """Pass on what a provider adds to a call: with its beginning, if that is still to come."""
        for call in self._calls.get(choice, {}).values():
            if call.id == call_id:
                if call.opened:
                    return self._piece(choice, call, "", extra)
                call.extra |= extra
        return b""

    def _finish_content(self, answer: Answer) -> bytes:
        frames = [self._release(choice) for choice in sorted(self._held)]
        for choice in answer.choices:
            settled = {call.id: call.arguments for call in choice.tool_calls}
            for call in self._calls.get(choice.index, {}).values():
                whole = settled.get(call.id)
                if whole is None:
                    continue  # it cannot be trusted, and is as it came
                # A call without arguments is given some by the answer.
                if not call.settle(whole if call.sent.strip() else call.sent + whole):
                    return b"".join(frames) + self.failed(_TAKEN_BACK)
                if rest := call.release():
                    frames.append(self._piece(choice.index, call, rest))
        return b"".join(frames)

    def _end(self, answer: Answer) -> bytes:
        native = chat_completion_from(answer)
        choices = native.pop("choices")
        usage = native.pop("usage", None)
        known = ("id", "object", "created", "model", *self._facts)
        rest = {name: value for name, value in native.items() if name not in known}
        frames = []
        for choice in choices:
            place, message = choice["index"], choice["message"]
            frames.append(self._role(place, None))
            if beside := {name: message[name] for name in _BESIDE if name in message}:
                frames.append(self._chunk(place, beside))
            finish = choice["finish_reason"] or "stop"
            more = encoded(rest) if rest and choice is choices[-1] else b""
            frames.append(self._chunk(place, {}, finish=finish, more=more))
        if self._with_usage and usage is not None:
            figures = b'],"usage":' + encoded(usage) + b"}\n\n"
            frames.append(self._head + figures)
        return b"".join((*frames, b"data: [DONE]\n\n"))

    def _say(self, text: str) -> bytes:
        begin = self._role(0, "")
        text = f"\n\n{text}" if self._texted else text
        self._texted = True
        return begin + self._chunk(0, {"content": text})

    def _error(self, failure: Failure) -> bytes:
        return b"data: " + encoded(error_body("chat", failure)) + b"\n\n"

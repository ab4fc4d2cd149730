"""Plays a body to a decoder as an attempt does, up to the answer, and checks what must hold.

All of it is the real thing but the socket: the decoder of the wire, the attempt's machine with its
invariants, the frames over the pipe, the assembly of the sink, and the answer in the wire's JSON.
"""

import json
from random import Random

import msgspec

from tidegate.actors.provider.dialects.body import BodyDecoder
from tidegate.actors.provider.dialects.dialect import DIALECTS
from tidegate.actors.provider.facts import BatchCame, BodyEnded, HeadersCame, Send, SendNow
from tidegate.actors.provider.machine import AttemptState, decide, evolve
from tidegate.actors.sink.assembly import Assembly
from tidegate.protocol import codec
from tidegate.protocol.answers import Answer, Usage
from tidegate.protocol.attempts import (
    Deltas,
    Described,
    Ended,
    Finished,
    Order,
    Target,
    UsageSeen,
)
from tidegate.protocol.base import Token, TurnNumber
from tidegate.protocol.deltas import Delta
from tidegate.protocol.failures import DETAIL_CHARS_MAX, Failure


TOKEN = Token(1)
_HEAD_BYTES = 4  # of a frame over the pipe
_GROWTH_MAX = 24  # the longest key that a piece of structure is sent under, for a byte of a body
_OVERHEAD_BYTES = 4096
_LOOK_EVERY = 32  # reads, for it takes longer than a read of one byte


class Told(msgspec.Struct):
    """What one attempt has told the host."""

    deltas: list[Delta] = []
    finishes: tuple[str, ...] | None = None
    usage: Usage | None = None
    details: bytes = b""
    described: tuple[str, str, int] = ("", "", 0)
    failure: tuple[object, ...] | None = None
    ended: bool = False


class Attempt:
    """One attempt whose socket is the fuzzer."""

    def __init__(self, order: Order, content_type: str) -> None:
        self._body = BodyDecoder(DIALECTS[order.target.wire], order, content_type)
        self._order = order
        self._state = AttemptState(TurnNumber(1), TOKEN, limit_bytes=1 << 62)
        self.told = Told()
        self.sent_bytes = 0
        self._decide(HeadersCame())

    def play(self, pieces: list[bytes]) -> Told:
        """Read ``pieces`` and the end of the body, unless the attempt ends before."""
        for number, piece in enumerate(pieces):
            self._decide(BatchCame(self._body.feed(piece)))
            if self.told.ended:
                return self.told
            if number % _LOOK_EVERY == 0:
                self._check_held(len(piece))
        self._decide(BodyEnded(self._body.eof(), None, self._body.learned))
        assert self.told.ended, "the body is over and the attempt is not"
        return self.told

    def _decide(self, message: HeadersCame | BatchCame | BodyEnded) -> None:
        decision = decide(self._state, message, 0.0)
        for event in decision.events:
            self._state = evolve(self._state, event)
        for effect in decision.effects:
            if isinstance(effect, Send | SendNow):
                frame = codec.frame_from([effect.message])
                self.sent_bytes += len(frame)
                for crossed in codec.decode_from_worker(frame[_HEAD_BYTES:]):
                    self._take(crossed)

    def _take(self, message: object) -> None:
        told = self.told
        match message:
            case Deltas(deltas=deltas):
                told.deltas += deltas
            case Finished(finishes=finishes):
                told.finishes = finishes
            case UsageSeen(usage=usage, details=details):
                told.usage = usage
                told.details = details or told.details
            case Described(response_id=response_id, model=model, created=created):
                before = told.described
                told.described = (
                    response_id or before[0],
                    model or before[1],
                    created or before[2],
                )
            case Ended(failure=failure):
                told.ended = True
                told.failure = None if failure is None else _outline(failure)

    def _check_held(self, piece_bytes: int) -> None:
        held = sum(map(len, _buffers(self._body).values()))
        limit = max(2 * self._order.event_bytes_max, DETAIL_CHARS_MAX)
        assert held <= limit + piece_bytes + 64, f"{held} bytes are held"


def check_body(wire: str, body: bytes, *, flags: int, seed: int) -> Told:
    """Play ``body`` whole and in pieces, and check the answer and that both tell the same."""
    labelled, document = bool(flags & 1), bool(flags & 2)
    kind = "application/json" if document else DIALECTS[wire].media_type
    order = Order(
        target=Target(wire),
        body=b"{}",
        stream=not document,
        choices=2 if flags & 4 and wire == "chat" else 1,
        event_bytes_max=1000 if flags & 8 else 1 << 16,
    )
    whole = Attempt(order, kind if labelled else "")
    told = whole.play([body])
    _check_end(told)
    native = _answer_of(wire, told)
    growth = _GROWTH_MAX * len(body) + _OVERHEAD_BYTES
    assert whole.sent_bytes <= growth, f"{len(body)} bytes became {whole.sent_bytes}"
    for pieces in splits_of(body, seed):
        told_split = Attempt(order, kind if labelled else "").play(pieces)
        sizes = [len(piece) for piece in pieces]
        assert told_split == told, f"in pieces of {sizes}:\n{told_split}\nbut whole:\n{told}"
        native_split = _answer_of(wire, told_split)
        assert native_split == native, f"in pieces of {sizes}:\n{native_split}\nwhole:\n{native}"
    return told


def splits_of(data: bytes, seed: int) -> list[list[bytes]]:
    """Cut ``data`` at one place, at a few, and if it is short or now and then at all of them."""
    rng = Random(seed)
    size = len(data)
    ways = [
        [rng.randrange(size + 1)],
        sorted(rng.randrange(size + 1) for _ in range(rng.randrange(2, 8))),
    ]
    if size < 200 or seed == 0:
        ways.append(list(range(1, size)))
    return [
        [data[since:until] for since, until in zip([0, *cuts], [*cuts, size], strict=True)]
        for cuts in ways
    ]


def _outline(failure: Failure) -> tuple[object, ...]:
    # The words show what was there when it was found out, and that depends on the reads.
    return (failure.kind, failure.code, failure.reason, failure.retryable, failure.status)


def _check_end(told: Told) -> None:
    assert told.ended
    assert (told.finishes is None) != (told.failure is None), "evidence and a failure, or neither"


def _answer_of(wire: str, told: Told) -> str:
    """Join the answer, check its calls, and return it as JSON in its own form and in ours."""
    assembly = Assembly(TOKEN)
    assembly.add(told.deltas)
    _check_calls(assembly, evidence=False)
    assembly.finishes = told.finishes or ()
    if told.usage is not None:
        assembly.count(told.usage, told.details)
    _check_calls(assembly, evidence=told.finishes is not None)
    response_id, model, created = told.described
    choices = assembly.choices()
    first = choices[0]
    answer = Answer(
        **{name: getattr(first, name) for name in ("text", "reasoning", "refusal", "finish")},
        tool_calls=first.tool_calls,
        incomplete_tool_calls=first.incomplete_tool_calls,
        usage=told.usage,
        choices=choices if len(choices) > 1 else (),
        parts=assembly.parts(),
        wire=wire,
        response_id=response_id,
        model=model,
        created=created,
    )
    try:
        native = json.dumps(answer.native(), allow_nan=False, sort_keys=True)
        return native + msgspec.json.encode(answer).decode()
    except RecursionError:
        return "nested too deep for whoever asks for it, and no harm to anybody else"


def _check_calls(assembly: Assembly, *, evidence: bool) -> None:
    for choice in assembly.choices():
        if not evidence:
            assert not choice.tool_calls, "a tool call without evidence"
        for call in choice.tool_calls:
            json.loads(call.arguments, parse_constant=_no_json)


def _no_json(constant: str) -> None:
    raise AssertionError(f"arguments with {constant}")


def _buffers(decoder: object, depth: int = 3) -> dict[int, bytearray]:
    """Return the buffers of a decoder and of the decoders in it, each once."""
    values = list(getattr(decoder, "__dict__", {}).values())
    found = {id(value): value for value in values if isinstance(value, bytearray)}
    if depth:
        for value in values:
            if type(value).__module__.startswith("tidegate."):
                found |= _buffers(value, depth - 1)
    return found

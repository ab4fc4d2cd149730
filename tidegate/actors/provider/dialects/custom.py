"""Takes the pieces that a custom stream yields; knows no stream and no thread.

What a user's own code yields may be anything. What is no piece, or has a field of the wrong type,
ends the attempt as ``malformed``, because it could not cross the pipe.

Path: ``provider/stream_run.py`` -> this -> ``provider/machine.py``
"""

from __future__ import annotations

from typing import Any, get_args

import msgspec

from tidegate.actors.provider.dialects.batch import SHAPE_CODE, Batch, empty, malformed, truncated
from tidegate.protocol.custom import Finish, Piece, Reasoning, Refusal, Response, Text, Tool, Usage
from tidegate.protocol.deltas import Delta


_NAMES = ", ".join(each.__name__ for each in get_args(Piece))
_FIELDS = (Tool, Usage, Response, Finish)
"""Rare enough to have each field's type checked one by one; the words of an answer are not."""


class CustomReader:
    """Takes one stream's pieces, and then its end."""

    def __init__(self) -> None:
        self._places: dict[int, int] = {}
        self._useful = False

    def take(self, piece: object) -> Batch:
        """Take the next piece; one that makes no delta is an event all the same."""
        batch = Batch(events=1)
        try:
            # Most pieces are text, so it is asked for first.
            if isinstance(piece, str):
                if piece:
                    batch.deltas.append(Text(_text(piece)))
            elif isinstance(piece, Text | Reasoning | Refusal):
                self._take_words(piece, batch)
            elif isinstance(piece, _FIELDS):
                self._take_fields(_checked(piece), batch)
            else:
                kind = type(piece)
                wrong = f"{kind.__module__}.{kind.__qualname__} is no piece of an answer"
                _fail(batch, f"{wrong}: yield one of {_NAMES}", piece)
        except (msgspec.DecodeError, TypeError, ValueError, OverflowError, _OneChoice) as error:
            _fail(batch, f"{type(piece).__name__} that cannot be sent: {error}", piece)
        self._useful = self._useful or bool(batch.deltas)
        return batch

    def end(self) -> Batch:
        """Take the stream's end; what had evidence before does not look at the failure."""
        batch = Batch()
        if self._useful:
            batch.failure = truncated("the stream ended without a Finish")
        else:
            batch.failure = empty("the stream ended without a piece of use")
        return batch

    def _take_words(self, piece: Text | Reasoning | Refusal, batch: Batch) -> None:
        if piece.choice:
            raise _OneChoice(piece.choice)
        text = _text(piece.text)
        if not text:
            return
        for kind in (Text, Reasoning, Refusal):
            if isinstance(piece, kind):  # a subclass of the user's own has no place in the pipe
                batch.deltas.append(kind(text))

    def _take_fields(self, piece: Tool | Usage | Response | Finish, batch: Batch) -> None:
        match piece:
            case Tool():
                self._take_tool(piece, batch.deltas)
            case Usage():
                batch.usage = piece
            case Response(id=name, model=model, created=created):
                batch.described = (name, model, created)
            case Finish(finish=finish):
                batch.finishes = (finish,)

    def _take_tool(self, piece: Tool, deltas: list[Delta]) -> None:
        if piece.choice:
            raise _OneChoice(piece.choice)
        if piece.index not in self._places or piece.id or piece.name or piece.arguments:
            place = self._places.setdefault(piece.index, len(self._places))
            deltas.append(Tool(place, piece.id or None, piece.name or None, piece.arguments))


class _OneChoice(Exception):
    def __init__(self, choice: object) -> None:
        super().__init__(f"choice is {choice!r}, and a custom stream has only choice 0")


def _text(text: Any) -> str:
    """Return ``text`` as a plain string that can be encoded."""
    if not isinstance(text, str):
        raise TypeError(f"its text is of type {type(text).__name__}, not str")
    if not text.isascii():
        text.encode()  # half a surrogate pair cannot cross the pipe
    return str(text)


def _checked(piece: Any) -> Any:
    """Return ``piece`` as it arrives at the other end of the pipe."""
    kind = next(kind for kind in _FIELDS if isinstance(piece, kind))
    plain = kind(**{name: getattr(piece, name) for name in kind.__struct_fields__})
    return msgspec.msgpack.decode(msgspec.msgpack.encode(plain), type=kind)


def _fail(batch: Batch, detail: str, piece: object) -> None:
    shown = type(piece).__name__ if isinstance(piece, str) else _shown(piece)
    batch.failure = malformed(SHAPE_CODE, detail, shown.encode("utf-8", "replace"), reason="piece")


def _shown(piece: object) -> str:
    try:
        return repr(piece)
    except Exception:  # noqa: BLE001 - it is anything at all
        return f"<{type(piece).__name__}>"

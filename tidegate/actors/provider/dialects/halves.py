r"""Characters that a server has cut in two: half a surrogate pair in each of two pieces.

Some servers cut their text where a model token ends, in UTF-16, and escape what is left: what is
beyond U+FFFF then comes as ``"\ud83d"`` and, in a later event, ``"\ude00"``. Where JSON is read, a
lone half becomes U+FFFD, for no UTF-8 can carry it on. Here the bytes of such events are looked at
once more: a first half at the end of a piece is held back, and what the same words go on with says
what becomes of it: one character with its second half, and U+FFFD with anything else.

Path: ``dialects/frames.py``, ``dialects/converse.py`` -> this -> ``protocol/deltas.py``
"""

from __future__ import annotations

import re
from typing import TypeAlias

import msgspec

from tidegate.protocol.deltas import Block, Delta, Reasoning, Refusal, Text, Tool


_LOST = "\ufffd"
# The backslash itself must not be escaped, and the quote must not be a character of the string.
_FIRST_AT_END = re.compile(rb'(?<!\\)(?:\\\\)*\\u([dD][89abAB][0-9a-fA-F]{2})"')
_SECOND_AT_START = re.compile(rb'(?<!\\)"\\u([dD][c-fC-F][0-9a-fA-F]{2})')

_Words: TypeAlias = Text | Reasoning | Refusal | Tool
_Stream: TypeAlias = tuple[type[_Words], int, int]


class Halves:
    """Joins the words of one body.

    Args:
        parted: whether a block says that what follows are the words of another part.
    """

    __slots__ = ("_held", "_parted")

    def __init__(self, *, parted: bool = True) -> None:
        self._held: dict[_Stream, str] = {}
        self._parted = parted

    @property
    def any(self) -> bool:
        """Whether a half is held back."""
        return bool(self._held)

    def take(self, deltas: list[Delta], since: int, data: bytes = b"", *, last: bool) -> None:
        """Put in order what has come, in its place in ``deltas``.

        Args:
            deltas: of one read.
            since: where those begin that have not been looked at.
            data: the event that has brought them; empty if there is no half in it.
            last: whether no words can follow, so that nothing is held back.
        """
        second = _only(_SECOND_AT_START.findall(data))
        first = "" if last else _only(_FIRST_AT_END.findall(data))
        made = deltas[since:]
        del deltas[since:]
        for delta in made:
            if isinstance(delta, Block):
                if self._parted:
                    self._let_go(deltas)
                deltas.append(delta)
            else:
                self._take_words(delta, first, second, deltas)
        if last:
            self._let_go(deltas)

    def _take_words(self, delta: _Words, first: str, second: str, deltas: list[Delta]) -> None:
        text, stream = _text_of(delta), _stream_of(delta)
        if not text:
            deltas.append(delta)
            return
        held = self._held.pop(stream, "")
        if isinstance(delta, Tool) and delta.whole:
            held = ""  # this takes the place of what came before
        if held and second and text.startswith(_LOST):
            text = _joined(held, second) + text[1:]
        elif held:
            text = _LOST + text
        if first and text.endswith(_LOST):
            text = text[:-1]
            self._held[stream] = first
        if isinstance(delta, Tool):
            if text or delta.id is not None or delta.name is not None:
                deltas.append(msgspec.structs.replace(delta, arguments=text))
        elif text:
            deltas.append(type(delta)(text, delta.choice))

    def _let_go(self, deltas: list[Delta]) -> None:
        for kind, choice, index in self._held:
            if issubclass(kind, Tool):
                deltas.append(Tool(index, arguments=_LOST, choice=choice))
            else:
                deltas.append(kind(_LOST, choice))
        self._held.clear()


def _only(found: list[bytes]) -> str:
    """Return the half that all strings of an event agree on; some have their words twice."""
    halves = {chr(int(each, 16)) for each in found}
    return halves.pop() if len(halves) == 1 else ""


def _joined(first: str, second: str) -> str:
    return (first + second).encode("utf-16-le", "surrogatepass").decode("utf-16-le")


def _stream_of(words: _Words) -> _Stream:
    return type(words), words.choice, words.index if isinstance(words, Tool) else 0


def _text_of(words: _Words) -> str:
    return words.arguments if isinstance(words, Tool) else words.text

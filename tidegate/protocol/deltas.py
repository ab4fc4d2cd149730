"""Deltas: the smallest pieces of an answer, as they cross the pipe.

Path: ``provider/dialects`` -> this -> ``sink/machine.py``, ``sink/assembly.py``.
"""

from __future__ import annotations

from typing import TypeAlias

from tidegate.protocol.base import Message


EVENT_OVERHEAD_BYTES = 32
"""What an event costs in a window besides its text, so that empty ones are bounded too."""


class Text(Message, frozen=True, array_like=True, tag=1):
    """Words of the answer."""

    text: str
    choice: int = 0


class Reasoning(Message, frozen=True, array_like=True, tag=2):
    """Words of the model's reasoning."""

    text: str
    choice: int = 0


class Refusal(Message, frozen=True, array_like=True, tag=3):
    """Words in which the model refuses."""

    text: str
    choice: int = 0


class Tool(Message, frozen=True, array_like=True, tag=4):
    """A piece of a tool call.

    Attributes:
        index: the call's place among its choice's calls, from 0 in order of appearance.
        id: the whole id, as soon as it is known, else None.
        name: the whole name as known so far, if it has changed, else None.
        arguments: the next characters of the arguments.
        whole: whether ``arguments`` is all of them, in place of what came before.
    """

    index: int
    id: str | None = None
    name: str | None = None
    arguments: str = ""
    choice: int = 0
    whole: bool = False


class Block(Message, frozen=True, array_like=True, tag=5):
    """What an answer has on its wire beside the words: a part of its structure.

    It makes no event. The deltas that follow, up to the next block, are the words of this one.

    Attributes:
        index: the block's place in the answer, or ``ENVELOPE`` for the answer around them.
        data: a JSON object, merged into what is known of the block: objects key by key, arrays by
            appending, everything else by replacing. Empty to change nothing.
    """

    index: int
    data: bytes = b""


ENVELOPE = -1
"""The index of what is around all blocks: such as ids, a stop reason and usage."""

Delta: TypeAlias = Text | Reasoning | Refusal | Tool | Block


def size_bytes(delta: Delta) -> int:
    """Return what ``delta`` takes of a window: its text in UTF-8 and a fixed overhead.

    A block takes nothing, for nobody takes it.
    """
    # Most deltas are text, so it is asked for first.
    if isinstance(delta, Text):
        text = delta.text
    elif isinstance(delta, Block):
        return 0
    else:
        text = delta.arguments if isinstance(delta, Tool) else delta.text
    # isascii() is a flag of the string, and most deltas are a few ASCII characters.
    length = len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
    return length + EVENT_OVERHEAD_BYTES

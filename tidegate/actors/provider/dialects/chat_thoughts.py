"""Reasoning that comes as content: told apart where the server itself says what it is.

Gemini marks it with ``extra_content`` and, on top of that, writes a tag around it.

Path: ``dialects/chat_choices.py`` -> this -> ``protocol/deltas.py``
"""

from __future__ import annotations

import re
from typing import Any

from tidegate.protocol.deltas import Reasoning, Text


_OPENING = re.compile(r"\s*<([\w-]*(?:think|thought)[\w-]*)>")


class Thoughts:
    """Tells the thoughts of one choice from its words.

    Args:
        place: of the choice.
    """

    __slots__ = ("_open", "_place", "_tag")

    def __init__(self, place: int) -> None:
        self._open = False  # whether the last content was a thought
        self._place = place
        self._tag = ""  # how a thought ends, if it has a tag around it

    def deltas_of(self, content: str, extra: Any) -> list[Text | Reasoning]:
        """Return what a piece of content is.

        Args:
            content: not empty.
            extra: its ``extra_content``, if it has one.
        """
        thought = ""
        if is_thought(extra):
            if not self._open and (opening := _OPENING.match(content)):
                self._tag = f"</{opening[1]}>"
                content = content[opening.end() :]
            self._open = True
            before, ended, after = content.partition(self._tag) if self._tag else (content, "", "")
            thought, content = before, after
            self._open = not ended
        elif self._open:
            self._open = False
            content = content.removeprefix(self._tag)
        found: list[Text | Reasoning] = [Reasoning(thought, self._place)] if thought else []
        return [*found, Text(content, self._place)] if content else found


def is_thought(extra: Any) -> bool:
    """Say whether ``extra_content`` marks its content as a thought."""
    return isinstance(extra, dict) and any(
        isinstance(of_vendor, dict) and of_vendor.get("thought") is True
        for of_vendor in extra.values()
    )


def unmarked(extra: Any) -> dict[str, Any]:
    """Return what ``extra_content`` holds beside that mark, such as a signature."""
    if not isinstance(extra, dict):
        return {}
    kept = {
        vendor: {name: value for name, value in of_vendor.items() if name != "thought"}
        if isinstance(of_vendor, dict)
        else of_vendor
        for vendor, of_vendor in extra.items()
    }
    return {vendor: value for vendor, value in kept.items() if value}

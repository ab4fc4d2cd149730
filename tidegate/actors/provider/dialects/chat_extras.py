"""What a chat answer has beside its words, kept for those who want it in its wire's own JSON.

It is in the envelope, as ``{"choices": {PLACE: {...}}, ...}``. It is no progress, so that it goes
out with the words that it comes with, or with the evidence; and it decides nothing, so that what
has an odd shape is left out.

Path: ``dialects/chat.py``, ``dialects/chat_choices.py`` -> this -> ``protocol/native/chat.py``
"""

from __future__ import annotations

from typing import Any

import msgspec

from tidegate.actors.provider.dialects.chat_thoughts import unmarked
from tidegate.actors.provider.dialects.chat_tools import call_id_of
from tidegate.actors.provider.dialects.chat_views import (
    ChunkView,
    DeltaView,
    ToolView,
    joined_text,
)
from tidegate.protocol.deltas import ENVELOPE, Block


TOP = (
    "system_fingerprint",
    "service_tier",
    "provider",
    "citations",
    "prompt_filter_results",
    "timings",
)
"""Fields of a chunk that are kept as they are; the last value stands."""


_WORDS = ("text", "summary", "content")


class _Detail:
    """One part of the reasoning, whose words are those from ``since`` to ``until``."""

    __slots__ = ("about", "field", "since", "until")

    def __init__(self, about: dict[str, Any], field: str, since: int, until: int) -> None:
        self.about = about
        self.field = field
        self.since = since
        self.until = until

    def takes(self, piece: _Detail) -> bool:
        """Join the piece that follows, and say so, if it continues this part."""
        same = all(self.about.get(name) == piece.about.get(name) for name in ("type", "index"))
        whole = self.about.get("data") is not None or piece.about.get("data") is not None
        if not same or whole or self.until != piece.since or self.about.get("signature"):
            return False
        self.about |= {name: value for name, value in piece.about.items() if value is not None}
        self.field = self.field or piece.field
        self.until = piece.until
        return True

    def form(self) -> dict[str, Any]:
        """Return what is said of it to whoever has the words."""
        return {"about": self.about, "field": self.field, "span": [self.since, self.until]}


class Extras:
    """Gathers what is new until somebody takes it along.

    Attributes:
        any: whether there is anything new.
    """

    __slots__ = ("_choices", "_details", "_known", "_new", "any")

    def __init__(self) -> None:
        self.any = False
        self._known: dict[str, Any] = {}
        self._new: dict[str, Any] = {}
        self._choices: dict[str, dict[str, Any]] = {}
        self._details: dict[int, list[_Detail]] = {}

    def take_chunk(self, chunk: ChunkView) -> None:
        """Keep what stands beside the choices."""
        for name in TOP:
            value = getattr(chunk, name)
            if value is not None and value != self._known.get(name):
                self._known[name] = self._new[name] = value
                self.any = True

    def take_logprobs(self, logprobs: Any, place: int) -> None:
        """Keep what was likely; a list continues the one before."""
        if isinstance(logprobs, dict):
            known = self._of(place).setdefault("logprobs", {})
            for name, value in logprobs.items():
                before = known.get(name)
                if isinstance(value, list):
                    known[name] = (before if isinstance(before, list) else []) + value
                else:
                    known.setdefault(name, value)

    def take_delta(self, delta: DeltaView, place: int) -> None:
        """Keep what stands beside the words of a choice."""
        if isinstance(delta.annotations, list):
            self._of(place).setdefault("annotations", []).extend(delta.annotations)
        if kept := unmarked(delta.extra_content):
            self._of(place).setdefault("extra_content", {}).update(kept)

    def take_details(self, details: Any, text: str, since: int, place: int) -> None:
        """Keep what makes reasoning valid in the next request: its parts, and how each is sealed.

        Args:
            details: ``reasoning_details``, a piece of each.
            text: the reasoning that came with them.
            since: how much reasoning there was before.
            place: of the choice.
        """
        if not isinstance(details, list):
            return
        theirs = joined_text(details) == text
        kept = self._details.setdefault(place, [])
        for detail in details:
            if not isinstance(detail, dict) or not (theirs or _is_sealed(detail)):
                continue
            field = next((name for name in _WORDS if isinstance(detail.get(name), str)), "")
            words = len(detail[field]) if theirs and field else 0
            about = {name: value for name, value in detail.items() if name not in _WORDS}
            piece = _Detail(about, field, since, since + words)
            since += words
            if not (kept and kept[-1].takes(piece)):
                kept.append(piece)

    def take_call(self, piece: ToolView, place: int) -> None:
        """Keep what a server adds to a call and wants to see again."""
        if call_id := call_id_of(piece):
            calls = self._of(place).setdefault("calls", {})
            calls[call_id] = {"extra_content": piece.extra_content}

    def settle(self) -> None:
        """Take the end of all choices: no part of the reasoning goes on."""
        for place, details in self._details.items():
            if details:
                self._of(place)["reasoning_details"] = [each.form() for each in details]
        self._details = {}

    def block(self) -> Block:
        """Return what is new, and forget it."""
        data = self._new | ({"choices": self._choices} if self._choices else {})
        self._new, self._choices, self.any = {}, {}, False
        return Block(ENVELOPE, msgspec.json.encode(data))

    def _of(self, place: int) -> dict[str, Any]:
        self.any = True
        return self._choices.setdefault(str(place), {})


def _is_sealed(detail: Any) -> bool:
    return isinstance(detail, dict) and bool(detail.get("signature") or detail.get("data"))

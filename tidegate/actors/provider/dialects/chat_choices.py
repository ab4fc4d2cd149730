"""The choices of one chat answer: their deltas in order, and each one's finish.

A choice that has finished is closed: what comes for it later changes nothing.

Path: ``dialects/chat.py`` -> this -> ``protocol/deltas.py``.
"""

from __future__ import annotations

from collections.abc import Iterable

from tidegate.actors.provider.dialects import faults
from tidegate.actors.provider.dialects.chat_extras import Extras
from tidegate.actors.provider.dialects.chat_thoughts import Thoughts
from tidegate.actors.provider.dialects.chat_tools import ToolCalls
from tidegate.actors.provider.dialects.chat_views import (
    ChoiceView,
    DeltaView,
    Unusable,
    calls_of,
    content_deltas,
    finish_from,
    joined_text,
)
from tidegate.protocol.answers import Finish
from tidegate.protocol.deltas import Delta, Reasoning, Refusal, Text
from tidegate.protocol.failures import Failure, FailureKind


class Choices:
    """Reads ``count`` choices.

    Attributes:
        begun: whether there was any delta.
        finishes: the finish of each choice by its place, as soon as the last one is known.
        extras: what came beside the words.
    """

    def __init__(self, count: int) -> None:
        if count < 1:
            raise ValueError(f"choices {count} is not positive")
        self.begun = False
        self.finishes: tuple[Finish, ...] | None = None
        self.extras = Extras()
        self._count = count
        self._finishes: list[Finish | None] = [None] * count
        self._tools = [ToolCalls(place) for place in range(count)]
        self._thoughts: dict[int, Thoughts] = {}
        self._reasoned = [0] * count

    def take(self, choices: list[ChoiceView | None], deltas: list[Delta]) -> Failure | None:
        """Add to ``deltas`` what one frame holds; return the failure if a choice broke off.

        Raises:
            Unusable: something in there has a shape that makes no sense.
        """
        ended = False
        for position, choice in enumerate(choices):
            if choice is None:
                continue
            place = 0 if self._count == 1 else self._place(choice.index, position)
            if self._finishes[place] is None:
                before = len(deltas)
                if choice.delta is not None:
                    self._take_delta(choice.delta, place, deltas)
                # Beside a delta it is whole only at the end, and may be a part of it before.
                if choice.message is not None and (choice.delta is None or choice.finish_reason):
                    begun = self.begun or len(deltas) > before
                    self._take_message(
                        choice.message, place, deltas, begun=begun, whole=bool(choice.finish_reason)
                    )
                if choice.logprobs:
                    self.extras.take_logprobs(choice.logprobs, place)
            if choice.finish_reason or choice.error:
                ended = True
        if deltas:
            self.begun = True
        # Some servers spread one answer over several choices of one frame: first all the deltas.
        return self._take_ends(choices) if ended else None

    def _take_ends(self, choices: list[ChoiceView | None]) -> Failure | None:
        for position, choice in enumerate(choices):
            if choice is None:
                continue
            place = self._place(choice.index, position)
            if self._finishes[place] is None:
                finish = finish_from(choice.finish_reason)
                if choice.error or isinstance(finish, FailureKind):
                    return _broken(choice, finish)
                self._finishes[place] = finish
        finishes = tuple(each for each in self._finishes if each is not None)
        if len(finishes) == self._count:
            self.finishes = finishes
        return None

    def _place(self, index: int | None, position: int) -> int:
        """Return a choice's place; where one was asked for, all there is belongs to it."""
        if self._count == 1:
            return 0
        place = position if index is None else index
        if not 0 <= place < self._count:
            raise Unusable(f"choice {place} of {self._count}")
        return place

    def _take_delta(self, delta: DeltaView, place: int, deltas: list[Delta]) -> None:
        # Some servers send the same reasoning under two of the names.
        reasoning = delta.reasoning_content or delta.reasoning or delta.reasoning_details
        if reasoning:
            text = joined_text(reasoning)
            if text:
                deltas.append(Reasoning(text, place))
            if delta.reasoning_details:
                self.extras.take_details(
                    delta.reasoning_details, text, self._reasoned[place], place
                )
            self._reasoned[place] += len(text)
        content = delta.content
        if content:
            if not isinstance(content, str):
                self._take_parts(content_deltas(content, place), place, deltas)
            elif delta.extra_content or self._thoughts:
                thoughts = self._thoughts.setdefault(place, Thoughts(place))
                self._take_parts(thoughts.deltas_of(content, delta.extra_content), place, deltas)
            else:
                deltas.append(Text(content, place))
        if delta.refusal:
            text = joined_text(delta.refusal)
            if text:
                deltas.append(Refusal(text, place))
        if delta.tool_calls:
            for piece in calls_of(delta):
                if piece is not None:
                    self._tools[place].take(piece, deltas)
                    if piece.extra_content:
                        self.extras.take_call(piece, place)
        if delta.function_call is not None:
            self._tools[place].take_function(delta.function_call, deltas)
        if delta.annotations or delta.extra_content:
            self.extras.take_delta(delta, place)

    def _take_parts(
        self, parts: Iterable[Text | Reasoning | Refusal], place: int, deltas: list[Delta]
    ) -> None:
        for part in parts:
            deltas.append(part)
            if isinstance(part, Reasoning):
                self._reasoned[place] += len(part.text)

    def _take_message(
        self, message: DeltaView, place: int, deltas: list[Delta], *, begun: bool, whole: bool
    ) -> None:
        # Each call is whole here, so that its position is its index.
        for position, call in enumerate(calls_of(message)):
            if call is not None:
                call.index = position
        if not begun:
            self._take_delta(message, place, deltas)
        elif whole and not self._tools[place].begun:
            # What it repeats is known; but some servers send calls here, and nowhere else.
            calls = DeltaView(tool_calls=message.tool_calls, function_call=message.function_call)
            self._take_delta(calls, place, deltas)


def _broken(choice: ChoiceView, finish: Finish | FailureKind | None) -> Failure:
    """Make the failure of a choice that ended with an error."""
    if choice.error:
        return faults.failure_from_frame({"error": choice.error})
    kind = finish if isinstance(finish, FailureKind) else FailureKind.SERVER_ERROR
    detail = f"the answer broke off with finish_reason {choice.finish_reason}"
    return Failure(kind=kind, retryable=True, code=choice.finish_reason, detail=detail)

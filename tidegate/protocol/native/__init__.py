"""An answer in its wire's own JSON, as a server sends it that does not stream."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tidegate.protocol.answers import Answer
from tidegate.protocol.native.chat import chat_completion_from
from tidegate.protocol.native.converse import converse_response_from
from tidegate.protocol.native.messages import message_from
from tidegate.protocol.native.responses import response_from


_FORMS: Mapping[str, Callable[[Answer], dict[str, Any]]] = {
    "chat": chat_completion_from,
    "responses": response_from,
    "messages": message_from,
    "converse": converse_response_from,
}


def native_from(answer: Answer) -> dict[str, Any]:
    """Return ``answer`` in the JSON of its wire.

    Raises:
        NotImplementedError: its wire has no JSON of its own, as a custom stream.
    """
    form = _FORMS.get(answer.wire)
    if form is None:
        raise NotImplementedError(f"the wire {answer.wire!r} has no JSON of its own")
    return form(answer)

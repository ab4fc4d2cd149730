"""The front of each API, and an answer that is not streamed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tidegate.daemon.fronts.base import Api, Front, Opening
from tidegate.daemon.fronts.chat import ChatFront
from tidegate.daemon.fronts.front import WireFront
from tidegate.daemon.fronts.messages import MessagesFront
from tidegate.daemon.fronts.responses import ResponsesFront
from tidegate.daemon.fronts.responses_shape import said_item, whole_response
from tidegate.protocol.answers import Answer
from tidegate.protocol.events import TurnCompleted
from tidegate.protocol.native.chat import chat_completion_from
from tidegate.protocol.native.messages import message_from


_FRONTS: dict[Api, type[WireFront]] = {
    "chat": ChatFront,
    "responses": ResponsesFront,
    "messages": MessagesFront,
}


def opening_for(api: Api, turn_id: str, model: str, created: int) -> Opening:
    """Return what is known of an answer of which nothing has come."""
    return Opening(turn_id, model, f"{_FRONTS[api].prefix}{turn_id}", created)


def front_for(
    api: Api, turn_id: str, request_body: dict[str, Any], *, notices: bool, created: int
) -> Front:
    """Return the front of one turn for one client.

    Args:
        api: the client's.
        turn_id: the turn's.
        request_body: as the client sent it.
        notices: whether people are told in text what has been lost.
        created: when the turn was made, seconds since the epoch.
    """
    model = request_body.get("model")
    opening = opening_for(api, turn_id, model if isinstance(model, str) else "", created)
    return _FRONTS[api](opening, request_body, notices=notices)


def body_of(
    api: Api, terminal: TurnCompleted, *, notices: bool = False, model: str = ""
) -> dict[str, Any]:
    """Return a complete answer as its API has it without streaming.

    Args:
        api: the client's.
        terminal: the turn's end.
        notices: whether people are told in text what has been lost.
        model: the request's, should the provider not have told its own.

    Raises:
        RecursionError: the provider has nested something deeper than the stack can follow.
    """
    answer = terminal.answer
    opening = opening_for(api, terminal.turn_id, model, int(terminal.at_s)).told_by(answer)
    shown = answer.display_text.removeprefix(answer.text) if notices else ""
    return _BODIES[api](answer, opening, shown)


def _chat(answer: Answer, opening: Opening, notice: str) -> dict[str, Any]:
    body = chat_completion_from(answer)
    body |= {"id": opening.response_id, "model": opening.model, "created": opening.created}
    message = body["choices"][0]["message"]
    message["content"] = (message["content"] or "") + notice or None
    return body


def _message(answer: Answer, opening: Opening, notice: str) -> dict[str, Any]:
    body = message_from(answer)
    body |= {"id": opening.response_id, "model": opening.model}
    if notice:
        body["content"].append({"type": "text", "text": notice.lstrip("\n")})
    return body


def _response(answer: Answer, opening: Opening, notice: str) -> dict[str, Any]:
    body = whole_response(answer, opening)
    if notice:
        body["output"].append(said_item(f"msg_{opening.turn_id}", notice.lstrip("\n")))
    return body


_BODIES: dict[Api, Callable[[Answer, Opening, str], dict[str, Any]]] = {
    "chat": _chat,
    "messages": _message,
    "responses": _response,
}

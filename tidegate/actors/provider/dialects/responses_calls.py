"""One tool call of the Responses wire: its arguments as they come, and as they turn out to be.

Deltas are passed on as they come. What the wire then says the arguments are overrides them: the
rest of it is added, or, if the deltas were no beginning of it, it takes their place. A custom tool
gets free text and no JSON, and its arguments here are that text as a JSON string.

Path: ``dialects/responses_items.py`` -> this -> ``protocol/deltas.py``
"""

from __future__ import annotations

import msgspec

from tidegate.protocol.deltas import Delta, Tool


NO_ARGUMENTS = "{}"


class Call:
    """A call; ``place`` is its place among all.

    Attributes:
        id: by which its result is given back; empty if it is not known yet.
        called: the name of the tool, likewise.
    """

    def __init__(self, place: int, *, custom: bool) -> None:
        self.id = ""
        self.called = ""
        self._place = place
        self._custom = custom
        self._sent: list[str] = []
        self._closed = False

    def name(self, call_id: str, name: str, deltas: list[Delta]) -> None:
        """Take what the call is called; the last that is told stands."""
        id_known = bool(call_id) and call_id != self.id
        name_known = bool(name) and name != self.called
        self.id = call_id or self.id
        self.called = name or self.called
        if id_known or name_known:
            deltas.append(
                Tool(self._place, call_id if id_known else None, name if name_known else None)
            )

    def add(self, piece: str, deltas: list[Delta]) -> None:
        """Take the next characters."""
        if self._closed or not piece:
            return
        if self._custom:
            piece = _as_json(piece)[1:-1]
            if not self._sent:
                piece = '"' + piece
        self._send(piece, deltas)

    def close(self, text: str, deltas: list[Delta]) -> None:
        """Take all of the arguments, an empty text for a call that has none."""
        if self._custom:
            text = _as_json(text)
        elif not text.strip():
            text = NO_ARGUMENTS
        sent = "".join(self._sent)
        self._closed = True
        if text.startswith(sent):
            self._send(text[len(sent) :], deltas)
        else:
            deltas.append(Tool(self._place, arguments=text, whole=True))
            self._sent = [text]

    def settle(self, deltas: list[Delta]) -> None:
        """Close what is still open, now that the response is known to be complete."""
        if not self._closed and self._custom:
            self._send('"' if self._sent else '""', deltas)
            self._closed = True

    def _send(self, piece: str, deltas: list[Delta]) -> None:
        if piece:
            deltas.append(Tool(self._place, arguments=piece))
            self._sent.append(piece)


def _as_json(text: str) -> str:
    return msgspec.json.encode(text).decode()

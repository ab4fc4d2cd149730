"""Tool calls of one choice, put together from pieces that name them in different ways.

A piece belongs to the call at its index, if it has one. A new id *with a name* at a used index is
a new call all the same, because some servers give every parallel call index 0; a new id without a
name is not, and the first id stays. Without an index the id decides, else the last call is meant.
A name that is repeated counts once; another one, before any arguments, continues it. Where there
is no id at all, arguments behind such as came whole in one piece are the next call's.

Path: ``dialects/chat.py`` -> this -> ``protocol/deltas.py``.
"""

from __future__ import annotations

import msgspec

from tidegate.actors.provider.dialects.chat_views import FunctionView, ToolView, Unusable
from tidegate.protocol.deltas import Delta, Tool


_DIGITS_MAX = 18
_text = msgspec.json.Decoder(str)
_object = msgspec.json.Decoder(dict[str, msgspec.Raw])


class _Call:
    """One call as known so far."""

    __slots__ = ("first_arguments", "has_arguments", "id", "name", "place")

    def __init__(self, place: int) -> None:
        self.place = place
        self.id = ""
        self.name = ""
        self.has_arguments = False
        self.first_arguments = ""

    def is_over(self, more: str) -> bool:
        """Say whether its arguments came whole in one piece, so that ``more`` is another's."""
        return more.startswith("{") and _is_object(self.first_arguments)


class ToolCalls:
    """The calls of one choice; ``choice`` is its place."""

    def __init__(self, choice: int) -> None:
        self._choice = choice
        self._calls: list[_Call] = []
        self._by_index: dict[int, _Call] = {}
        self._by_id: dict[str, _Call] = {}

    @property
    def begun(self) -> bool:
        """Whether there is any call."""
        return bool(self._calls)

    def take(self, piece: ToolView, deltas: list[Delta]) -> None:
        """Add what ``piece`` tells to ``deltas``; nothing if it tells nothing new.

        Raises:
            Unusable: its arguments are neither text nor an object.
        """
        call_id = call_id_of(piece)
        name = (piece.function and piece.function.name) or ""
        arguments, whole = _arguments_from(piece.function)
        if not (call_id or name or arguments):
            return
        index = _index_of(piece)
        call = self._call_of(index, call_id, name, arguments, whole=whole)
        fresh = call is None
        if call is None:
            call = self._open(index)
        id_known = name_known = False
        if call_id and not call.id:
            call.id, id_known = call_id, True
            self._by_id.setdefault(call_id, call)
        if name and name != call.name and not call.has_arguments:
            call.name, name_known = call.name + name, True
        if whole and call.has_arguments:
            arguments = ""  # an object is the whole value: here it comes a second time
        if arguments:
            call.first_arguments = "" if call.has_arguments else arguments
            call.has_arguments = True
        if fresh or id_known or name_known or arguments:
            deltas.append(
                Tool(
                    call.place,
                    call.id if id_known else None,
                    call.name if name_known else None,
                    arguments,
                    self._choice,
                )
            )

    def take_function(self, function: FunctionView, deltas: list[Delta]) -> None:
        """Add a piece of the one call that the older ``function_call`` can hold.

        Raises:
            Unusable: as for ``take``.
        """
        self.take(ToolView(index=0, function=function), deltas)

    def _call_of(
        self, index: int | None, call_id: str, name: str, arguments: str, *, whole: bool
    ) -> _Call | None:
        """Find the call that a piece continues; None if it begins one."""
        if index is not None:
            call = self._by_index.get(index)
        else:
            call = self._by_id.get(call_id) or (self._calls[-1] if self._calls else None)
        if call is None or not name:
            return call
        if call_id and call.id:
            return call if call_id == call.id else None
        if not call.has_arguments:
            return call
        # After its arguments a call has its name: another one, or a second value, is the next
        # call's. Without an index even the same name is, for such servers send calls whole.
        again = name == call.name and index is not None and not whole
        again = again and not call.is_over(arguments)
        return call if again and not call_id else None

    def _open(self, index: int | None) -> _Call:
        call = _Call(len(self._calls))
        self._calls.append(call)
        if index is not None:
            self._by_index[index] = call
        return call


def call_id_of(piece: ToolView) -> str:
    """Return the id of the call that a piece belongs to, or nothing if it does not say.

    Mistral has written the word for what it did not know.
    """
    return "" if piece.id in (None, "null") else str(piece.id)


def _index_of(piece: ToolView) -> int | None:
    """Return a piece's index, which some servers write as text.

    Raises:
        Unusable: it is no number.
    """
    index = piece.index
    if isinstance(index, str):
        if not index.isdecimal() or len(index) > _DIGITS_MAX:
            raise Unusable(f"index {index!r}")
        return int(index)
    return index


def _is_object(text: str) -> bool:
    """Say whether a text is one JSON object, and all of it."""
    try:
        _object.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return False
    return True


def _arguments_from(function: FunctionView | None) -> tuple[str, bool]:
    """Return the characters of a piece of arguments, and whether it is the whole value."""
    if function is None:
        return "", False
    raw = bytes(function.arguments)
    if raw == b"null":
        return "", False
    try:
        if raw.startswith((b"{", b"[")):
            return raw.decode("utf-8"), True
        return _text.decode(raw), False
    except ValueError as error:
        raise Unusable(f"arguments: {error}") from error

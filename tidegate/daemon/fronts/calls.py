"""Tool calls on their way to a client that is told each one's id and name once, at its beginning.

Path: ``fronts/chat.py``, ``fronts/responses.py`` -> this
"""

from __future__ import annotations

from typing import Any

from tidegate.protocol.events import ToolCallDelta


class Call:
    """One call, as far as it has come and as far as its client knows it.

    Args:
        index: its place among its choice's calls.
        own_id: what it is called if its provider never says.

    Attributes:
        id: empty while it is not known.
        name: likewise.
        opened: whether the client knows of it.
        extra: what else its provider says of it.
    """

    __slots__ = ("_held", "_sent", "extra", "id", "index", "name", "opened", "own_id")

    def __init__(self, index: int, own_id: str) -> None:
        self.index = index
        self.own_id = own_id
        self.id = ""
        self.name = ""
        self.opened = False
        self.extra: dict[str, Any] = {}
        self._held: list[str] = []
        self._sent: list[str] = []

    @property
    def sent(self) -> str:
        """The arguments that have been released."""
        return "".join(self._sent)

    @property
    def arguments(self) -> str:
        """All arguments so far."""
        return "".join((*self._sent, *self._held))

    def open(self) -> None:
        """Let its client know of it: what it is called is settled."""
        self.opened = True
        self.id = self.id or self.own_id

    def take(self, event: ToolCallDelta) -> bool:
        """Take a piece; say whether what was released still stands."""
        if not self.opened:
            self.id = event.id or self.id
            self.name = event.name or self.name
        if event.whole:
            return self.settle(event.arguments)
        if event.arguments:
            self._held.append(event.arguments)
        return True

    def settle(self, arguments: str) -> bool:
        """Take all of the arguments; say whether what was released is their beginning.

        If it is not, they are held all the same, in place of all that came before.
        """
        sent = self.sent
        stands = arguments.startswith(sent)
        self._held = [arguments.removeprefix(sent) if stands else arguments]
        if not stands:
            self._sent.clear()
        return stands

    def release(self) -> str:
        """Return what is to be sent next, and count it as sent."""
        held, self._held = self._held, []
        self._sent += held
        return "".join(held)

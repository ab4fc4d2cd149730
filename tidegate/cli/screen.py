"""Writes a turn as it goes: the answer to standard output, all else dim to standard error.

Path: ``cli/render.py`` -> this -> the person at the terminal.
"""

from __future__ import annotations

import io
import sys

import msgspec
from rich.console import Console
from rich.text import Text

from tidegate.cli.render import Role, harmless, pieces_from
from tidegate.protocol.events import AnyEvent


class Screen:
    """Two streams that may be one terminal, so that a remark begins on a line of its own."""

    def __init__(self) -> None:
        if isinstance(sys.stdout, io.TextIOWrapper):
            # An answer may hold what the terminal's encoding does not.
            sys.stdout.reconfigure(errors="replace")
        self._aside = Console(stderr=True, highlight=False, soft_wrap=True)
        self._terminal = sys.stdout.isatty()
        self._together = self._terminal and sys.stderr.isatty()
        self._answer_open = False
        self._reasoning_open = False

    def show(self, event: AnyEvent) -> None:
        """Write what a person should see of ``event``.

        Raises:
            BrokenPipeError: nobody reads standard output any more.
        """
        for role, text in pieces_from(event):
            if role is Role.ANSWER:
                self._show_answer(text)
            elif role is Role.REASONING:
                self._show_reasoning(harmless(text))
            else:
                self.remark(text)

    def remark(self, text: str) -> None:
        """Write one line about the turn."""
        self._show_remark(harmless(text))

    def close(self) -> None:
        """End the last line of the answer."""
        if self._answer_open:
            print(flush=True)
        self._answer_open = False

    def _show_answer(self, text: str) -> None:
        if self._together and self._reasoning_open:
            self._end_reasoning()
        # Before it is written, for a Ctrl-C may come at once.
        self._answer_open = not text.endswith("\n") if text else self._answer_open
        sys.stdout.write(harmless(text) if self._terminal else text)
        sys.stdout.flush()

    def _show_reasoning(self, text: str) -> None:
        if self._together:
            self.close()
        self._aside.print(Text(text, style="dim"), end="")
        self._reasoning_open = not text.endswith("\n") if text else self._reasoning_open

    def _show_remark(self, text: str) -> None:
        if self._together:  # in a file, a line feed would become a part of the answer
            self.close()
        if self._reasoning_open:
            self._end_reasoning()
        self._aside.print(Text(text, style="dim"))

    def _end_reasoning(self) -> None:
        self._aside.print()
        self._reasoning_open = False


def print_json(event: AnyEvent) -> None:
    """Write ``event`` as one line of JSON.

    Raises:
        BrokenPipeError: nobody reads standard output any more.
    """
    print(msgspec.json.encode(event).decode(), flush=True)

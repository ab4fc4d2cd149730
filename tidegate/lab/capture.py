"""Captures as scripts: what a provider once sent is sent again, in the same time.

Path: ``protocol/captures.py`` -> this -> ``tidegate.lab.script``
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tidegate.lab.script import Answer, End, Send, Step, Wait
from tidegate.protocol.captures import (
    Began,
    Came,
    Headed,
    How,
    Line,
    Over,
    Requested,
    bytes_of,
    lines_from,
)


SILENCE_S_MIN = 0.001
"""A shorter silence is added to the next one: none is kept exactly, and many would add up."""

_ENDS = {
    How.EOF: End.KEEPALIVE,
    How.CUT: End.CUT,
    How.FULL: End.CUT,
    How.RESET: End.RESET,
    How.FAILED: End.RESET,
    How.LEFT: End.HOLD,
}
_OF_THE_CONNECTION = frozenset({"connection", "date", "keep-alive", "transfer-encoding"})
"""Headers that the lab's own connection has in its own way."""


def answers_from_capture(text: bytes, speed: float = 1.0) -> list[Answer]:
    """Return one answer for each request of a capture, in their order.

    What only led to another address is left out, for the lab is where the client comes first.

    Args:
        text: the file, or several behind one another.
        speed: how many times faster than it was; ``float("inf")`` for no silence at all.

    Raises:
        ValueError: it is no capture, there is no request in it, or a speed that is none.
    """
    if not speed > 0:
        raise ValueError(f"speed={speed!r}: give a number above 0, such as 1 for as it was")
    exchanges = [_Exchange(lines) for lines in _exchanges(lines_from(text))]
    answers = [each.answer(speed) for each in exchanges if not each.leads_elsewhere]
    if not answers:
        raise ValueError("no request in it: the attempt failed before it could be made")
    return answers


def _exchanges(lines: Iterable[Line]) -> Iterator[list[Line]]:
    """Yield the lines of each request, the request first."""
    exchange: list[Line] = []
    for line in lines:
        if isinstance(line, Began | Requested) and exchange:
            yield exchange
            exchange = []
        if isinstance(line, Requested) or exchange:
            exchange.append(line)
    if exchange:
        yield exchange


class _Exchange:
    """A request and what came of it."""

    def __init__(self, lines: list[Line]) -> None:
        self._asked_s = lines[0].at_s
        self._head = next((line for line in lines if isinstance(line, Headed)), None)
        self._body = [line for line in lines if isinstance(line, Came)]
        self._over = next((line for line in lines if isinstance(line, Over)), None)

    @property
    def leads_elsewhere(self) -> bool:
        """Whether it was answered by another address."""
        if self._head is None or not 300 <= self._head.status < 400:
            return False
        return any(name.lower() == "location" for name, _ in self._head.headers)

    def answer(self, speed: float) -> Answer:
        """Return what does the same again."""
        # Nobody told how it ended: whoever wrote it was killed, and until then it was open.
        end = _ENDS[self._over.how if self._over else How.LEFT]
        if self._head is None:
            waited_s = self._over.at_s - self._asked_s if self._over else 0.0
            held = end is End.HOLD
            return Answer(
                (end,),
                headers={},
                delay_s=0.0 if held else waited_s / speed,
                headers_with_first_frame=True,
            )
        return Answer(
            (*self._steps(self._head.at_s, speed, end), end),
            status=self._head.status,
            headers=_joined(self._head.headers),
            delay_s=(self._head.at_s - self._asked_s) / speed,
        )

    def _steps(self, since_s: float, speed: float, end: End) -> Iterator[Step]:
        # Of what is held for ever it does not matter when.
        over = [self._over] if self._over is not None and end is not End.HOLD else []
        for line in (*self._body, *over):
            silence_s = (line.at_s - since_s) / speed
            if silence_s >= SILENCE_S_MIN:
                yield Wait(silence_s)
                since_s = line.at_s
            if isinstance(line, Came):
                yield Send(bytes_of(line))


def _joined(headers: list[tuple[str, str]]) -> dict[str, str]:
    """Return headers by name; those that came several times as one."""
    joined: dict[str, str] = {}
    for name, value in headers:
        if name.lower() not in _OF_THE_CONNECTION:
            joined[name] = f"{joined[name]}, {value}" if name in joined else value
    return joined

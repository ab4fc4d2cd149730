"""All turns of a daemon as it shows them, and how they look in a terminal; pure.

Path: ``cli/daemon_client.py`` -> this -> ``commands/ps.py``, ``cli/board.py``
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec
from rich.text import Text

from tidegate.cli.render import harmless


class Attempt(msgspec.Struct, frozen=True):
    """One attempt; instants are seconds since the epoch."""

    number: int
    outcome: str
    started_at_s: float
    first_progress_at_s: float | None = None
    last_progress_at_s: float | None = None
    ended_at_s: float | None = None
    text_chars: int = 0
    failure: str | None = None
    void: bool = False


class Mark(msgspec.Struct, frozen=True):
    """Something that happened at one instant."""

    at_s: float
    kind: str
    about: str = ""


class Lane(msgspec.Struct, frozen=True):
    """One turn."""

    id: str
    state: str
    endpoint: str
    wire: str
    model: str
    api: str
    created_at: float
    ended_at: float | None = None
    ended_by: str | None = None
    attempts: tuple[Attempt, ...] = ()
    marks: tuple[Mark, ...] = ()
    output_tokens: int | None = None
    quiet_since_s: float | None = None
    quiet_s: float | None = None
    quiet_limit_s: float | None = None
    queue_place: int | None = None


class Standing(msgspec.Struct, frozen=True):
    """The daemon itself."""

    version: str
    uptime_s: float
    running: int
    queued: int
    workers: int
    draining: bool
    journal_well: bool


class Overview(msgspec.Struct, frozen=True):
    """All that is to be seen at one instant of the daemon's clock."""

    now_s: float
    daemon: Standing
    lanes: tuple[Lane, ...]
    left_out: int = 0


class Tone(NamedTuple):
    """How a stretch of time is drawn."""

    char: str
    style: str


# The colours of the live page.
WAITS = Tone("░", "#27a5b5")
RUNS = Tone("█", "#27a5b5")
SILENT = Tone("▒", "#e3a23b")
LATE = Tone("▒", "#ef5b52")
FENCE = Tone("┃", "#ef5b52")
GAP = Tone("╌", "#8c9eab")
VOID = Tone("▒", "#6d7b86")
OVER = {
    "completed": Tone("█", "#46a66f"),
    "failed": Tone("▓", "#d4504b"),
    "interrupted": Tone("█", "#8f7ce0"),
    "superseded": VOID,
}
STATES = {"running": RUNS.style, "queued": "default"} | {
    name: tone.style for name, tone in OVER.items()
}
SILENT_FROM = 0.04
LATE_FROM = 0.75
"""Parts of the limit of a silence."""


def seconds(duration_s: float) -> str:
    """Say how long something takes.

    >>> [seconds(each) for each in (0.04, 3.21, 75, 305, 7500, 200000)]
    ['0.0 s', '3.2 s', '75 s', '5 min 05 s', '2 h 05 min', '2 days']
    """
    whole = int(duration_s)
    if duration_s < 9.95:
        return f"{max(0.0, duration_s):.1f} s"
    if whole < 120:
        return f"{round(duration_s)} s"
    if whole < 7200:
        return f"{whole // 60} min {whole % 60:02} s"
    if whole < 172_800:
        return f"{whole // 3600} h {whole % 3600 // 60:02} min"
    return f"{whole // 86_400} days"


def short(turn_id: str) -> str:
    """Return what is enough of an id to tell a few turns apart."""
    return harmless(turn_id.removeprefix("turn_")[:8])


def lateness(lane: Lane) -> float:
    """Return which part of its limit the silence of a turn has reached, 0 to 1."""
    if lane.quiet_s is None or not lane.quiet_limit_s:
        return 0.0
    return min(1.0, lane.quiet_s / lane.quiet_limit_s)


def chars(lane: Lane) -> int:
    """Return how long the text of the latest attempt is."""
    return lane.attempts[-1].text_chars if lane.attempts else 0


def standing(lane: Lane, now_s: float) -> Text:
    """Say in a few words how a turn stands."""
    if lane.state == "queued":
        return Text(f"place {lane.queue_place}" if lane.queue_place else "waits", "dim")
    if lane.state not in ("running", "queued"):
        by = f": {lane.ended_by.replace('_', ' ')}" if lane.ended_by else ""
        return Text(harmless(f"{lane.state}{by}"), STATES.get(lane.state, "default"))
    if not lane.attempts:
        return Text("starts", "dim")
    current = lane.attempts[-1]
    if current.ended_at_s is not None:
        failure = (current.failure or "failed").replace("_", " ")
        return Text(f"{failure}, {seconds(now_s - current.ended_at_s)} ago", FENCE.style)
    which = f"attempt {current.number}, " if current.number > 1 else ""
    part = lateness(lane)
    limit = f" of {seconds(lane.quiet_limit_s)}" if lane.quiet_limit_s else ""
    silence = f"{seconds(lane.quiet_s or 0.0)}{limit}"
    style = LATE.style if part > LATE_FROM else SILENT.style if part > 0.4 else "default"
    if current.first_progress_at_s is None:
        return Text(f"{which}no word {silence}", style)
    if part > SILENT_FROM:
        return Text(f"{which}silent {silence}", style)
    return Text(f"{which}makes progress", "default")


class _Strip:
    """A line of characters that stands for a span of time.

    Args:
        from_s: the instant at its left end.
        span_s: how long it is.
        width: its characters.
    """

    def __init__(self, from_s: float, span_s: float, width: int) -> None:
        self._from_s = from_s
        self._per_s = width / max(span_s, 0.001)
        self._cells: list[Tone | None] = [None] * width

    def paint(self, from_s: float, until_s: float, tone: Tone) -> None:
        """Paint what lies between two instants, one character at least."""
        first = min(int((from_s - self._from_s) * self._per_s), len(self._cells) - 1)
        last = max(first + 1, int((until_s - self._from_s) * self._per_s))
        for index in range(max(0, first), min(len(self._cells), last)):
            self._cells[index] = tone

    def text(self) -> Text:
        """Return what was painted."""
        drawn = Text(no_wrap=True)
        for tone in self._cells:
            drawn.append(" " if tone is None else tone.char, tone.style if tone else "")
        return drawn


def strip(lane: Lane, now_s: float, span_s: float, width: int) -> Text:
    """Draw a turn in ``width`` characters.

    One that runs is drawn with now at the right end, one that has ended as its whole life.
    """
    if lane.ended_at is not None:
        now_s, span_s = lane.ended_at, lane.ended_at - lane.created_at
    line = _Strip(now_s - span_s, span_s, width)
    last_s = lane.created_at
    for attempt in lane.attempts:
        if attempt.started_at_s - last_s > span_s / width:
            line.paint(last_s, attempt.started_at_s, GAP)
        last_s = now_s if attempt.ended_at_s is None else attempt.ended_at_s
        _paint(line, lane, attempt, last_s)
    if lane.attempts and lane.attempts[-1].ended_at_s is not None and lane.ended_at is None:
        line.paint(last_s, now_s, GAP)
    for attempt in lane.attempts:
        if attempt.outcome == "failed" and attempt.ended_at_s is not None:
            line.paint(attempt.ended_at_s, attempt.ended_at_s, FENCE)
    return line.text()


def _paint(line: _Strip, lane: Lane, attempt: Attempt, end_s: float) -> None:
    first_s = attempt.first_progress_at_s
    line.paint(attempt.started_at_s, end_s if first_s is None else first_s, WAITS)
    if first_s is not None:
        over = VOID if attempt.void else OVER.get(attempt.outcome, RUNS)
        line.paint(first_s, end_s, over)
    part = lateness(lane)
    runs = attempt.ended_at_s is None and lane.ended_at is None
    if runs and first_s is not None and lane.quiet_since_s is not None and part > SILENT_FROM:
        line.paint(lane.quiet_since_s, end_s, LATE if part > LATE_FROM else SILENT)

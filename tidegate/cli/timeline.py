"""Draws the attempts of a turn as lanes over a time axis; pure.

Each attempt is a lane of ticks, one column for so many milliseconds. What happened to it is said
below, at the column where it happened.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from typing import NamedTuple

from rich.text import Text

from tidegate.protocol.answers import AttemptReport
from tidegate.protocol.events import (
    AnyEvent,
    AttemptSuperseded,
    ReasoningDelta,
    RefusalDelta,
    TextDelta,
    ToolCallDelta,
)
from tidegate.protocol.failures import FailureKind


class Kind(StrEnum):
    """What a column shows; of several, the one that is furthest down here."""

    OUTSIDE = "outside"
    WAITING = "waiting"
    LINE = "line"
    SILENCE = "silence"
    FROZEN = "frozen"
    TEXT = "text"
    TOOL = "tool"
    VOID = "void"
    LATE = "late"
    DONE = "done"
    FENCE = "fence"


class Look(NamedTuple):
    """How a kind is drawn: a character, one of ASCII, and a style."""

    glyph: str
    plain: str
    style: str


LOOKS = {
    Kind.OUTSIDE: Look(" ", " ", ""),
    Kind.WAITING: Look("·", ".", "dim"),
    Kind.LINE: Look("─", "-", "dim"),
    Kind.SILENCE: Look("╌", " ", "yellow"),
    Kind.FROZEN: Look("░", ":", "blue"),
    Kind.TEXT: Look("┃", "|", "green"),
    Kind.TOOL: Look("▌", "#", "cyan"),
    Kind.VOID: Look("◁", "<", "yellow"),
    Kind.LATE: Look("◆", "!", "bold magenta"),
    Kind.DONE: Look("✔", "*", "bold green"),
    Kind.FENCE: Look("╳", "X", "bold red"),  # noqa: RUF001 - it is not the letter
}
_RANKS = {kind: rank for rank, kind in enumerate(Kind)}

SILENCE_S = 0.25
"""A gap between deltas from which on it is drawn as silence."""

_STEPS_S = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 60.0)
_LABEL_COLUMNS_MIN = 8


class Mark(NamedTuple):
    """Something at an instant; with ``says`` it is said below the lane."""

    at_s: float
    kind: Kind
    says: str = ""


class Span(NamedTuple):
    """A stretch of time."""

    begins_s: float
    ends_s: float


@dataclass(frozen=True, slots=True)
class Lane:
    """One attempt; all instants count from the turn's beginning."""

    label: str
    life: Span
    marks: tuple[Mark, ...]
    frozen: Span | None = None


def lanes_from(
    events: Sequence[AnyEvent],
    reports: Iterable[AttemptReport],
    *,
    more: Mapping[int, Sequence[Mark]] | None = None,
    frozen: Mapping[int, Span] | None = None,
) -> tuple[Lane, ...]:
    """Return a lane for each attempt that has ended.

    Args:
        events: of one turn, as they were taken.
        reports: from its answer.
        more: marks by attempt that no event tells of; seconds since the epoch.
        frozen: when the process of an attempt stood still; seconds since the epoch.
    """
    origin_s = events[0].at_s if events else 0.0
    lanes = []
    for report in reports:
        number = report.number
        marks = [mark for event in events if (mark := _mark_from(event, number)) is not None]
        marks += (more or {}).get(number, ())
        ends_s = report.started_at_s + (report.ended_s or 0.0)
        marks.append(_end_mark(report, ends_s, marks))
        still = (frozen or {}).get(number)
        lanes.append(
            Lane(
                f"attempt {number}",
                Span(report.started_at_s - origin_s, ends_s - origin_s),
                tuple(mark._replace(at_s=mark.at_s - origin_s) for mark in sorted(marks)),
                still and Span(still.begins_s - origin_s, still.ends_s - origin_s),
            )
        )
    return tuple(lanes)


def drawn(lanes: Sequence[Lane], *, width: int, plain: bool = False) -> list[Text]:
    """Draw the lanes below their axis.

    Args:
        lanes: at least one.
        width: in columns, the labels included.
        plain: use nothing beyond ASCII.
    """
    gutter = max(len(lane.label) for lane in lanes) + 2
    columns = max(width - gutter, _LABEL_COLUMNS_MIN)
    end_s = max(_end_s(lane) for lane in lanes)
    scale = columns / (end_s or 1.0) * 0.9999  # the last instant is inside
    lines = [Text(" " * gutter + _axis(end_s, scale, columns), style="dim")]
    for lane in lanes:
        line = Text(f"{lane.label:<{gutter}}", style="bold")
        for kind in _cells(lane, scale, columns):
            look = LOOKS[kind]
            line.append(look.plain if plain else look.glyph, style=f"not bold {look.style}")
        lines.append(line)
        said = [(int(m.at_s * scale), m.says, LOOKS[m.kind].style) for m in lane.marks if m.says]
        lines += _captions(said, gutter, columns, plain=plain)
    return lines


def legend(kinds: Iterable[Kind], *, plain: bool = False) -> Text:
    """Say what the characters mean."""
    text = Text()
    for kind in kinds:
        look = LOOKS[kind]
        text.append(look.plain if plain else look.glyph, style=look.style)
        text.append(f" {kind.value}   ", style="dim")
    return text


def _mark_from(event: AnyEvent, attempt: int) -> Mark | None:
    if event.attempt != attempt:
        return None
    match event:
        case TextDelta() | ReasoningDelta() | RefusalDelta():
            return Mark(event.at_s, Kind.TEXT)
        case ToolCallDelta():
            return Mark(event.at_s, Kind.TOOL)
        case AttemptSuperseded(retracts=retracts):
            return Mark(event.at_s, Kind.VOID, f"void: its {retracts} characters are retracted")
        case _:
            return None


def _end_mark(report: AttemptReport, at_s: float, marks: Sequence[Mark]) -> Mark:
    if report.outcome == "completed":
        return Mark(at_s, Kind.DONE, "complete")
    failure = report.failure
    if failure is None or failure.kind is not FailureKind.STALLED:
        why = failure.kind.value if failure else report.outcome
        return Mark(at_s, Kind.FENCE, f"fence: {why}")
    last_s = max((mark.at_s for mark in marks if mark.at_s <= at_s), default=report.started_at_s)
    return Mark(at_s, Kind.FENCE, f"fence: nothing came for {at_s - last_s:.1f} s")


def _end_s(lane: Lane) -> float:
    still_s = lane.frozen.ends_s if lane.frozen else 0.0
    return max(lane.life.ends_s, still_s, *(mark.at_s for mark in lane.marks), 0.0)


def _cells(lane: Lane, scale: float, columns: int) -> list[Kind]:
    cells = [Kind.OUTSIDE] * columns

    def fill(span: Span, kind: Kind) -> None:
        for column in range(int(span.begins_s * scale), int(span.ends_s * scale) + 1):
            cells[column] = kind

    seen = [mark.at_s for mark in lane.marks if mark.kind in (Kind.TEXT, Kind.TOOL)]
    instants_s = [*seen, lane.life.ends_s]
    fill(lane.life, Kind.LINE)
    fill(Span(lane.life.begins_s, instants_s[0]), Kind.WAITING)
    for before_s, after_s in pairwise(instants_s):
        if after_s - before_s >= SILENCE_S:
            fill(Span(before_s, after_s), Kind.SILENCE)
    if lane.frozen is not None:
        fill(lane.frozen, Kind.FROZEN)
    for mark in lane.marks:
        column = int(mark.at_s * scale)
        cells[column] = max(cells[column], mark.kind, key=_RANKS.__getitem__)
    return cells


def _axis(end_s: float, scale: float, columns: int) -> str:
    step_s = next((step for step in _STEPS_S if step * scale >= _LABEL_COLUMNS_MIN), _STEPS_S[-1])
    axis = ""
    for number in range(int(end_s / step_s) + 1):
        label = f"{number * step_s:g} s"
        column = int(number * step_s * scale)
        if column + len(label) <= columns:
            axis = f"{axis:<{column}}{label}"
    return axis


def _captions(
    said: Sequence[tuple[int, str, str]], gutter: int, columns: int, *, plain: bool
) -> list[Text]:
    """Write each caption on a line of its own, the last one first, hung on lines from above."""
    lines = []
    hook, rod = ("`", "|") if plain else ("╰", "│")
    back = "'" if plain else "╯"
    waiting = list(said)
    while waiting:
        column, says, style = waiting.pop()
        line = Text(" " * gutter)
        for other, _, other_style in waiting:
            if other < column:
                line.append(f"{'':<{gutter + other - len(line)}}")
                line.append(rod, style=other_style)
        if column + 2 + len(says) <= columns:
            line.append(f"{'':<{gutter + column - len(line)}}")
            line.append(f"{hook} {says}", style=style)
        else:
            begin = max(gutter, gutter + column - len(says) - 1)
            line.truncate(max(gutter, begin - 1))
            line.append(f"{'':<{begin - len(line)}}")
            line.append(f"{says} {back}", style=style)
        lines.append(line)
    return lines

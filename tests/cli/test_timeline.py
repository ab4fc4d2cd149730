"""The drawn timeline, as text."""

from rich.cells import cell_len

from tidegate.cli.timeline import Kind, Lane, Mark, Span, drawn, lanes_from, legend
from tidegate.protocol.answers import AttemptReport
from tidegate.protocol.events import AttemptStarted, AttemptSuperseded, TextDelta, ToolCallDelta
from tidegate.protocol.failures import Failure, FailureKind


WIDTH = 60
DONE = Mark(1.0, Kind.DONE, "complete")


def lines(*lanes, width=WIDTH, plain=True):
    return [line.plain.rstrip() for line in drawn(lanes, width=width, plain=plain)]


def lane(*marks, begins_s=0.0, ends_s=1.0, **more):
    return Lane("attempt 1", Span(begins_s, ends_s), marks, **more)


def event(kind, at_s, attempt=1, **fields):
    return kind("turn", attempt, 0, 100.0 + at_s, **fields)


def test_lane_waits_ticks_and_ends():
    marks = (Mark(0.5, Kind.TEXT), Mark(0.6, Kind.TOOL), Mark(0.8, Kind.TOOL), DONE)
    _, drawing, caption = lines(lane(*marks), width=31)

    assert drawing == "attempt 1  .........|-#---#---*"
    assert caption.endswith("complete '")


def test_long_gap_is_silence_and_a_frozen_span_is_seen_behind_the_fence():
    marks = (Mark(0.1, Kind.TEXT), Mark(0.5, Kind.FENCE), Mark(1.0, Kind.LATE))
    _, silent = lines(lane(*marks, ends_s=0.5), width=31)
    _, frozen = lines(lane(*marks, ends_s=0.5, frozen=Span(0.2, 0.9)), width=31)

    assert silent == "attempt 1  .|       X         !"
    assert frozen == "attempt 1  .| ::::::X:::::::: !"


def test_axis_counts_in_seconds():
    assert lines(lane(ends_s=4.0))[0].split() == ["0", "s", "1", "s", "2", "s", "3", "s"]


def test_attempt_without_deltas_is_a_wait():
    _, drawing = lines(lane(Mark(1.0, Kind.FENCE)), width=21)

    assert drawing == "attempt 1  .........X"


def test_each_caption_has_its_line_and_hangs_on_its_mark():
    marks = (Mark(0.1, Kind.FENCE, "first"), Mark(0.2, Kind.VOID, "second"))
    _, drawing, second, first = lines(lane(*marks, ends_s=1.0))

    assert second.index("`") == drawing.index("<")
    assert first.index("`") == second.index("|") == drawing.index("X")


def test_no_line_is_wider_than_asked_for():
    marks = tuple(Mark(tenth / 10, Kind.LATE, "a caption of some length") for tenth in range(11))

    for width in (40, 80, 100):
        for line in drawn([lane(*marks)], width=width):
            assert cell_len(line.plain.rstrip()) <= width


def test_plain_drawing_is_ascii():
    marks = tuple(Mark(at / 20, kind, kind.value) for at, kind in enumerate(Kind))

    assert "\n".join(lines(lane(*marks, frozen=Span(0.1, 0.2)))).isascii()
    assert legend(Kind, plain=True).plain.isascii()


def test_lanes_come_from_events_and_reports():
    stalled = Failure(kind=FailureKind.STALLED, reason="idle")
    events = [
        event(AttemptStarted, 0.0),
        event(TextDelta, 0.5, text="Hello"),
        event(AttemptStarted, 2.0, attempt=2),
        event(AttemptSuperseded, 2.5, retracts=5),
        event(ToolCallDelta, 2.5, attempt=2, index=0),
    ]
    reports = [
        AttemptReport(
            number=1,
            token=1,
            endpoint="",
            started_at_s=100.0,
            ended_s=1.5,
            outcome="failed",
            failure=stalled,
        ),
        AttemptReport(
            number=2, token=2, endpoint="", started_at_s=102.0, ended_s=1.0, outcome="completed"
        ),
    ]
    first, second = lanes_from(
        events,
        reports,
        more={1: [Mark(102.75, Kind.LATE, "late")]},
        frozen={1: Span(101.0, 102.5)},
    )

    assert first.life == Span(0.0, 1.5)
    assert first.frozen == Span(1.0, 2.5)
    assert first.marks == (
        Mark(0.5, Kind.TEXT),
        Mark(1.5, Kind.FENCE, "fence: nothing came for 1.0 s"),
        Mark(2.5, Kind.VOID, "void: its 5 characters are retracted"),
        Mark(2.75, Kind.LATE, "late"),
    )
    assert second.marks == (Mark(2.5, Kind.TOOL), Mark(3.0, Kind.DONE, "complete"))

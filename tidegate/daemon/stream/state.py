"""What the machine of one response knows, and the facts that change it.

Invariants (asserted in ``evolve``, explored in the tests)
  W1  the head goes out once, and nothing of the body before it
  W2  one write at a time
  W3  nothing follows the end, and nothing of the turn is taken once it was left
  W4  what is written are the frames in their order, whole; only the last one may be an end mark
"""

from __future__ import annotations

from typing import Literal, TypeAlias, assert_never

import msgspec

from tidegate.daemon.stream.messages import Plan


class StreamState(msgspec.Struct, frozen=True):
    """All that decides what is written to one client.

    Attributes:
        phase: ``held`` until the head goes out, ``open`` from then on, ``closing`` once the turn
            was left and the rest is still being written, ``over`` when nothing is.
        content: whether the provider's first outcome was shown.
        behind: frames that are still to be written, but for ``rest``.
        behind_bytes: their size.
        rest: what is left of the frames of which a part was written.
        write_since_s: since when a write is not taken; None if there is none.
        quiet_since_s: when something was last written.
        end: what the body ends with once all is written; ``ordered`` if that has been said.
        slow: whether the timer of that name runs.
    """

    plan: Plan
    phase: Literal["held", "open", "closing", "over"] = "held"
    content: bool = False
    behind: tuple[bytes, ...] = ()
    behind_bytes: int = 0
    rest: tuple[bytes, ...] = ()
    write_since_s: float | None = None
    quiet_since_s: float = 0.0
    end: Literal["none", "normal", "error", "ordered"] = "none"
    slow: bool = False


class HeadSent(msgspec.Struct, frozen=True):
    """The status is out."""


class ContentShown(msgspec.Struct, frozen=True):
    """The client cannot be given another attempt as if there had been none."""


class FramesQueued(msgspec.Struct, frozen=True):
    """These are to be written."""

    data: bytes


class FramesTaken(msgspec.Struct, frozen=True):
    """All that waited is being written, or was never to be."""


class WriteOrdered(msgspec.Struct, frozen=True):
    """Something is being written; ``rest`` follows it before all else that waits."""

    at_s: float
    rest: tuple[bytes, ...] = ()


class WriteDone(msgspec.Struct, frozen=True):
    """The client's socket has it."""


class TurnLeft(msgspec.Struct, frozen=True):
    """Nothing more comes of the turn.

    Attributes:
        end: what the body ends with; ``ordered`` if the end is a part of what is being written.
    """

    end: Literal["normal", "error", "ordered"]


class EndOrdered(msgspec.Struct, frozen=True):
    """The end is a part of what is being written."""


class SlowTimed(msgspec.Struct, frozen=True):
    """Whether the timer runs that looks for a write nobody takes."""

    runs: bool


class ResponseOver(msgspec.Struct, frozen=True):
    """Nothing more is written."""


StreamFact: TypeAlias = (
    HeadSent
    | ContentShown
    | FramesQueued
    | FramesTaken
    | WriteOrdered
    | WriteDone
    | TurnLeft
    | EndOrdered
    | SlowTimed
    | ResponseOver
)


def evolve(state: StreamState, fact: StreamFact) -> StreamState:
    """Apply one fact. Never refuses: the fact has happened."""
    assert state.phase != "over", "W3: a fact after the end"
    match fact:
        case WriteOrdered(at_s=at_s, rest=rest):
            assert state.write_since_s is None, "W2: two writes at a time"
            return _with(state, write_since_s=at_s, quiet_since_s=at_s, rest=rest)
        case WriteDone():
            assert state.write_since_s is not None, "W2: taken without a write"
            return _with(state, write_since_s=None)
        case FramesQueued(data=data):
            assert state.end == "none", "W3: frames after the last ones"
            size = state.behind_bytes + len(data)
            return _with(state, behind=(*state.behind, data), behind_bytes=size)
        case FramesTaken():
            return _with(state, behind=(), behind_bytes=0)
        case HeadSent():
            assert state.phase == "held", "W1: a second head"
            return _with(state, phase="open")
        case ContentShown():
            return _with(state, content=True)
        case TurnLeft(end=end):
            assert state.phase in ("held", "open"), "W3: left twice"
            return _with(state, phase="closing", end=end)
        case EndOrdered():
            assert not state.behind, "W4: an end before the last frames"
            assert not state.rest, "W4: an end within the last frames"
            return _with(state, end="ordered")
        case SlowTimed(runs=runs):
            return _with(state, slow=runs)
        case ResponseOver():
            return StreamState(state.plan, phase="over")
        case _:
            assert_never(fact)


_with = msgspec.structs.replace

"""What ``tidegate demo`` plays against a scripted provider, and what it saw."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import median

from tidegate.cli.freezer import Freezer, readers_of
from tidegate.cli.timeline import Kind, Lane, Mark, Span, lanes_from
from tidegate.lab import Answer as Script
from tidegate.lab import End, Lab, Step, blast, chat, pace
from tidegate.protocol.answers import Answer
from tidegate.protocol.endpoints import Endpoint
from tidegate.protocol.events import TERMINAL, AnyEvent, TextDelta, ToolCallDelta
from tidegate.protocol.policy import Policy
from tidegate.protocol.requests import Request
from tidegate.runtime import Runtime


STALE_AFTER_S = 1.0
EVERY_S = 0.06
BURST = "and again "
BURST_WRITES = 1500
BURST_PER_WRITE = 16
FROZEN_ATTEMPT = 2
WAKES_AT = '"content": "'
"""The piece of the last attempt that has come when the frozen process is woken."""
LATE_WITHIN_S = 0.5

INTERRUPTS_COUNT = 20
DELTAS_BEFORE = 5

_MODEL = "scripted"


@dataclass(slots=True)
class Stall:
    """A turn of three attempts: one goes silent, one is frozen, one completes.

    Attributes:
        events: as they were taken.
        refused: messages of the fenced attempts that came late and were refused.
        burst: deltas of the frozen attempt's tool call that were accepted before.
        closed_after_s: from the first fence until the provider saw its connection closed.
    """

    events: list[AnyEvent] = field(default_factory=list)
    answer: Answer = field(default_factory=Answer)
    frozen_at_s: float | None = None
    thawed_at_s: float | None = None
    late_at_s: float | None = None
    refused: int = 0
    closed_after_s: float = 0.0

    @property
    def lanes(self) -> tuple[Lane, ...]:
        """What there is to draw."""
        late = Mark(self.late_at_s, Kind.LATE, "late: refused") if self.late_at_s else None
        still = (
            Span(self.frozen_at_s, self.thawed_at_s)
            if self.frozen_at_s and self.thawed_at_s
            else None
        )
        return lanes_from(
            self.events,
            self.answer.attempts,
            more={FROZEN_ATTEMPT: [late]} if late else None,
            frozen={FROZEN_ATTEMPT: still} if still else None,
        )


def play_stall(runtime: Runtime, watch: Callable[[AnyEvent], None]) -> Stall:
    """Play it; ``watch`` is told each event.

    Raises:
        TurnError: the turn failed after all.
    """
    scripts = (
        Script([*_opening(), End.HOLD]),
        Script([*_opening(), _burst(), End.HOLD]),
        Script([*_opening(), *_rest()], repeat=True),
    )
    with Lab(scripts) as lab:
        director = _Director(runtime, lab, watch)
        try:
            return director.play()
        finally:
            director.freezer.thaw()


class _Director:
    """Freezes and wakes the reader of the second attempt when their cues come."""

    def __init__(self, runtime: Runtime, lab: Lab, watch: Callable[[AnyEvent], None]) -> None:
        self.freezer = Freezer()
        self._runtime = runtime
        self._lab = lab
        self._watch = watch
        self._stall = Stall()

    def play(self) -> Stall:
        stall = self._stall
        before = self._late_count()
        policy = Policy(
            stale_after_s=STALE_AFTER_S,
            first_event_timeout_s=20.0,
            backoff_s=(0.2,),
            backoff_jitter=0.0,
            retries=5,
            kill_grace_s=20.0,  # or the frozen process would be killed before it can wake
        )
        request = _request(self._lab, "Write down when tides turn.", policy)
        stall.answer = self._runtime.run(request, self._take)
        stall.refused = self._late_count() - before
        first = stall.answer.attempts[0]
        closed_at_s = self._lab.wait_closed(0).at_s + time.time() - time.monotonic()
        stall.closed_after_s = closed_at_s - first.started_at_s - (first.ended_s or 0.0)
        return stall

    def _take(self, event: AnyEvent) -> None:
        self._stall.events.append(event)
        self._watch(event)
        if not isinstance(event, ToolCallDelta):
            return
        frozen = self._stall.frozen_at_s is not None
        if event.arguments == BURST and event.attempt == FROZEN_ATTEMPT and not frozen:
            self._freeze()
        elif event.arguments == WAKES_AT and event.attempt > FROZEN_ATTEMPT and self.freezer.holds:
            self._wake()

    def _freeze(self) -> None:
        self.freezer.freeze(readers_of(self._lab.port))
        if self.freezer.holds:
            self._stall.frozen_at_s = time.time()

    def _wake(self) -> None:
        before = self._late_count()
        self.freezer.thaw()
        self._stall.thawed_at_s = time.time()
        until_s = time.monotonic() + LATE_WITHIN_S
        while time.monotonic() < until_s:
            if self._late_count() > before:
                self._stall.late_at_s = time.time()
                return
            time.sleep(0.0005)

    def _late_count(self) -> int:
        return self._runtime.statistics().refused.get("stale_token", 0)


@dataclass(frozen=True, slots=True)
class Interrupts:
    """How long interrupts took, each from its call on, in seconds.

    Attributes:
        taken_s: until the terminal event was taken.
        closed_s: until the provider saw its connection closed.
    """

    taken_s: tuple[float, ...]
    closed_s: tuple[float, ...]

    @staticmethod
    def middle_and_worst_ms(samples_s: tuple[float, ...]) -> tuple[float, float]:
        """Return the median and the largest of the samples in milliseconds."""
        return median(samples_s) * 1000, max(samples_s) * 1000


def play_interrupts(runtime: Runtime) -> Interrupts:
    """Interrupt turns in the middle of their streams."""
    words = pace([chat.text("tick "), chat.text("tock ")], 0.005, times=5000)
    taken_s, closed_s = [], []
    with Lab([Script([chat.role(), words, End.HOLD], repeat=True)]) as lab:
        request = _request(lab, "Count the waves.", Policy(deadline_s=30.0))
        for number in range(INTERRUPTS_COUNT):
            with runtime.start(request) as turn:
                seen = 0
                called_s = 0.0
                for event in turn:
                    seen += isinstance(event, TextDelta)
                    if seen == DELTAS_BEFORE and not called_s:
                        called_s = time.monotonic()
                        turn.interrupt("demo")
                    elif isinstance(event, TERMINAL):
                        taken_s.append(time.monotonic() - called_s)
            closed_s.append(lab.wait_closed(number).at_s - called_s)
    return Interrupts(tuple(taken_s), tuple(closed_s))


def _request(lab: Lab, prompt: str, policy: Policy) -> Request:
    payload = {"model": _MODEL, "messages": [{"role": "user", "content": prompt}]}
    return Request(Endpoint.chat(lab.url, "no-key"), payload, policy=policy)


def _opening() -> tuple[Step, ...]:
    words = [chat.text(word) for word in ("I ", "will ", "write ", "it ", "down.")]
    call = [
        chat.tool(id="call_1", name="write_file"),
        chat.tool(arguments='{"path": '),
        chat.tool(arguments='"tides.txt", '),
    ]
    return chat.role(), pace(words + call, EVERY_S)


def _burst() -> Step:
    return blast(
        [chat.tool(arguments=BURST)] * BURST_PER_WRITE,
        per_write=BURST_PER_WRITE,
        times=BURST_WRITES,
    )


def _rest() -> tuple[Step, ...]:
    pieces = (WAKES_AT, "tides ", "turn ", "da", 'ily"}')
    arguments = pace([chat.tool(arguments=piece) for piece in pieces], EVERY_S)
    return arguments, chat.finish("tool_calls"), chat.done()

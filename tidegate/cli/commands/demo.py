"""``tidegate demo``: what this is for, in three acts and under a minute."""

from __future__ import annotations

import time

from rich.console import Console
from rich.rule import Rule
from rich.text import Text

from tidegate.cli.scenes import (
    FROZEN_ATTEMPT,
    INTERRUPTS_COUNT,
    Interrupts,
    Stall,
    play_interrupts,
    play_stall,
)
from tidegate.cli.screen import Screen
from tidegate.cli.timeline import Kind, drawn, legend
from tidegate.lab import Lab
from tidegate.lab.serve import demo_answer
from tidegate.protocol.endpoints import Endpoint
from tidegate.protocol.events import AnyEvent, AttemptStarted, TextDelta, TurnFailed
from tidegate.protocol.policy import Policy
from tidegate.protocol.requests import Request
from tidegate.runtime import Runtime


PROMPT = "In one sentence: what makes the tides?"
OUTPUT_TOKENS_MAX = 60
ANSWER_WITHIN_S = 25.0
WIDTH_MAX = 100

STORY = (
    "A scripted provider on this machine goes silent in the middle of a tool call. The second "
    "attempt gets further, until the process that reads it is frozen (SIGSTOP), as on a machine "
    "that swaps. The third one completes. While it writes, the frozen process wakes up and sends "
    "what it still had."
)


def demo() -> int:
    """See in half a minute what this is for.

    A real answer, if the local model is here; a stream that stalls in the middle of a tool call
    and is recovered, drawn as it went; and how fast an interrupt is. Needs no key and no network.
    """
    width = min(Console().width, WIDTH_MAX)
    console = Console(highlight=False, width=width)
    with Runtime(workers=2) as runtime:
        _answer(console, runtime)
        _stall(console, runtime)
        _interrupts(console, runtime)
    console.print()
    console.print('Ask the model:         tidegate run "Why is the sea salty?"')
    console.print("Test your own client:  tidegate lab  (a provider here that obeys a script)")
    return 0


def _head(console: Console, title: str) -> None:
    console.print()
    console.print(Rule(Text(title, style="bold"), align="left", style="dim"))


def _answer(console: Console, runtime: Runtime) -> None:
    _head(console, "1  A real answer")
    missing = _stream(console, runtime, Endpoint.local())
    if missing is not None:
        why = Text(f"A script answers, for want of a local model: {missing}", style="yellow")
        console.print(why)
        with Lab(route=demo_answer) as lab:
            _stream(console, runtime, Endpoint.chat(lab.url, "no-key"))


def _stream(console: Console, runtime: Runtime, endpoint: Endpoint) -> str | None:
    """Stream an answer; return why, if there is no local model to give one."""
    payload = {
        "messages": [{"role": "user", "content": PROMPT}],
        "max_tokens": OUTPUT_TOKENS_MAX,
        "temperature": 0,
    }
    request = Request(endpoint, payload, policy=Policy(deadline_s=ANSWER_WITHIN_S))
    screen = Screen()
    waiting = console.status("starting the model")
    waiting.start()
    began_s = time.monotonic()
    first_s = None
    try:
        with runtime.start(request) as turn:
            for event in turn:
                if isinstance(event, TurnFailed) and event.error.reason == "local_server":
                    return event.error.detail.partition("\n")[0]
                if isinstance(event, TextDelta) and first_s is None:
                    first_s = time.monotonic() - began_s
                    waiting.stop()
                    console.print(Text(f"> {PROMPT}", style="dim"))
                screen.show(event)
    finally:
        waiting.stop()
    screen.close()
    answer = turn.snapshot()
    took = f"first words after {first_s or 0.0:.1f} s, all after {time.monotonic() - began_s:.1f} s"
    console.print(Text(f"({answer.model or 'no model'}: {took})", style="dim"))
    return None


def _stall(console: Console, runtime: Runtime) -> None:
    _head(console, "2  A stream that stalls in the middle of a tool call")
    console.print(STORY)
    console.print()
    with console.status("attempt 1") as status:

        def watch(event: AnyEvent) -> None:
            if isinstance(event, AttemptStarted):
                status.update(f"attempt {event.attempt}")

        stall = play_stall(runtime, watch)
    plain = console.options.ascii_only
    for line in drawn(stall.lanes, width=console.width, plain=plain):
        console.print(line, no_wrap=True, crop=True)
    console.print()
    shown = [Kind.TEXT, Kind.TOOL, Kind.SILENCE, Kind.FROZEN, Kind.FENCE, Kind.VOID, Kind.LATE]
    console.print(legend(shown, plain=plain))
    console.print()
    for line in _stall_lines(stall):
        console.print(line)


def _stall_lines(stall: Stall) -> list[Text]:
    lines = [
        Text.assemble(("recovered  ", "bold green"), f"{call.name}({call.arguments})")
        for call in stall.answer.tool_calls
    ]
    ms = stall.closed_after_s * 1000
    closed = f"the provider saw attempt 1 hang up {ms:.1f} ms after its fence"
    lines.append(Text.assemble(("closed     ", "bold"), closed))
    if stall.refused:
        messages = "1 late message" if stall.refused == 1 else f"{stall.refused} late messages"
        token = stall.answer.attempts[FROZEN_ATTEMPT - 1].token
        late = f"{messages} of attempt {FROZEN_ATTEMPT}, whose token {token} is stale"
    else:
        late = "nothing: no process could be frozen here, so that nothing came late"
    lines.append(Text.assemble(("refused    ", "bold magenta"), late))
    return lines


def _interrupts(console: Console, runtime: Runtime) -> None:
    _head(console, "3  A stop button that stops")
    with console.status("interrupting"):
        times = play_interrupts(runtime)
    console.print(
        f"{INTERRUPTS_COUNT} turns interrupted in the middle of their streams, from interrupt()"
    )
    rows = (
        ("to the last event taken", times.taken_s),
        ("to the connection closed at the provider", times.closed_s),
    )
    for label, samples_s in rows:
        middle_ms, worst_ms = Interrupts.middle_and_worst_ms(samples_s)
        console.print(f"  {label:<40} median {middle_ms:5.2f} ms, worst {worst_ms:5.2f} ms")

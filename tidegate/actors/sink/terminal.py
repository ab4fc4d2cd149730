"""Makes the answer and the terminal event; pure."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from tidegate.actors.sink.attempts import AttemptRecord
from tidegate.actors.sink.effects import Close
from tidegate.protocol.answers import Answer, Choice, Usage
from tidegate.protocol.events import AnyEvent, TurnCompleted, TurnFailed, TurnInterrupted
from tidegate.protocol.failures import Failure, FailureKind


NAMES_MAX = 3
"""How many lost tools a notice names before it counts the others."""


def answer_from(  # noqa: PLR0913 - each is a fact of its own
    record: AttemptRecord | None,
    records: Sequence[AttemptRecord],
    notices: Sequence[str],
    *,
    wire: str,
    close: Close | None = None,
    partial: bool = False,
) -> Answer:
    """Return the answer of ``record``, the last attempt that made progress.

    Args:
        record: that attempt; None if there was none.
        records: all attempts of the turn.
        notices: what ``display_text`` adds to the text.
        wire: the endpoint's wire.
        close: how the turn ends; None while it runs.
        partial: as ``Answer.partial``.
    """
    choices = record.assembly.choices() if record else ()
    first = choices[0] if choices else Choice()
    failure = _failure_of(close)
    lost = tuple(call.name for choice in choices for call in choice.incomplete_tool_calls)
    usage = record.assembly.usage if record else None
    completed = bool(record and record.assembly.finishes)
    return Answer(
        text=first.text,
        display_text="\n\n".join(part for part in (first.text, *notices) if part),
        reasoning=first.reasoning,
        refusal=first.refusal,
        tool_calls=first.tool_calls,
        incomplete_tool_calls=first.incomplete_tool_calls,
        lost_tools=lost,
        finish="incomplete" if partial else first.finish,
        usage=_with_origin(usage, completed=completed),
        usage_all_attempts=_sum_usage(records),
        model=record.assembly.model if record else "",
        response_id=record.assembly.response_id if record else "",
        created=record.assembly.created if record else 0,
        partial=partial,
        failure=failure,
        attempts=tuple(record.report() for record in records),
        choices=choices,
        parts=record.assembly.parts() if record else (),
        wire=wire,
    )


def terminal_from(close: Close, answer: Answer, place: tuple[str, int, int, float]) -> AnyEvent:
    """Return the terminal event of a turn that ends by ``close``."""
    turn_id, attempt, offset, at_s = place
    if close.kind == "completed":
        return TurnCompleted(turn_id, attempt, offset, at_s, answer=answer)
    if close.kind == "interrupted":
        return TurnInterrupted(turn_id, attempt, offset, at_s, reason=close.reason, answer=answer)
    error = answer.failure
    assert error is not None, "a turn fails by something"
    return TurnFailed(turn_id, attempt, offset, at_s, error=error, answer=answer)


def lost_notice(answer: Answer, failure: Failure | None) -> str:
    """Say which tool calls are lost, and that they have not been run."""
    names = [name or "an unnamed tool" for name in answer.lost_tools]
    listed = ", ".join(names[:NAMES_MAX])
    if len(names) > NAMES_MAX:
        listed += f" and {len(names) - NAMES_MAX} more"
    if failure is None:
        return f"The answer ended inside a tool call ({answer.finish}); not usable: {listed}."
    return f"Stream stalled mid tool-call; lost: {listed}. Nothing of it was run."


def _failure_of(close: Close | None) -> Failure | None:
    if close is None or close.kind == "completed":
        return None
    if close.kind == "interrupted":
        return Failure(kind=FailureKind.INTERRUPTED, detail=close.reason)
    return close.failure


def _with_origin(usage: Usage | None, *, completed: bool) -> Usage | None:
    if usage is None or completed:
        return usage
    return msgspec.structs.replace(usage, origin="estimated")


def _sum_usage(records: Sequence[AttemptRecord]) -> Usage | None:
    figures = [record.assembly.usage for record in records if record.assembly.usage]
    if not figures:
        return None
    whole = all(record.assembly.finishes for record in records if record.assembly.usage)
    return Usage(
        input_tokens=sum(usage.input_tokens for usage in figures),
        output_tokens=sum(usage.output_tokens for usage in figures),
        cached_input_tokens=sum(usage.cached_input_tokens for usage in figures),
        reasoning_tokens=sum(usage.reasoning_tokens for usage in figures),
        origin="reported" if whole else "estimated",
    )

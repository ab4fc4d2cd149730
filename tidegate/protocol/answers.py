"""The answer to a turn, complete or not."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import msgspec

from tidegate.protocol.base import Record
from tidegate.protocol.failures import Failure


Finish: TypeAlias = Literal["stop", "tool_calls", "length", "content_filter", "error", "incomplete"]


class Usage(Record, frozen=True, kw_only=True):
    """Model tokens as the provider counted them.

    Attributes:
        origin: ``reported`` for the final figures of a stream that completed, ``estimated`` for
            the last figures of one that did not.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cached_input_tokens: int = 0
    reasoning_tokens: int = 0
    origin: Literal["reported", "estimated"] = "reported"


class ToolCall(Record, frozen=True, kw_only=True):
    """One call of a tool; ``arguments`` is JSON text, exactly as the model wrote it."""

    id: str = ""
    name: str = ""
    arguments: str = ""

    def parsed(self) -> Any:
        """Decode the arguments.

        Raises:
            msgspec.DecodeError: only for a call out of ``incomplete_tool_calls``.
        """
        return msgspec.json.decode(self.arguments)


class Choice(Record, frozen=True, kw_only=True):
    """One of several answers to one request (``n`` > 1).

    Attributes:
        finish: why it ended, judged by its content where servers disagree.
        wire_finish: why it ended, as the wire said.
    """

    index: int = 0
    text: str = ""
    reasoning: str = ""
    refusal: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    incomplete_tool_calls: tuple[ToolCall, ...] = ()
    finish: Finish | None = None
    wire_finish: Finish | None = None


class Part(Record, frozen=True, kw_only=True):
    """A block of the answer as its wire has it, without the words, which are in the answer.

    Attributes:
        index: its place; ``ENVELOPE`` (-1) for what is around the blocks.
        data: what the wire told of it, as JSON.
        text: the characters of ``Answer.text`` that are its own, as ranges from and up to.
        reasoning: likewise of ``Answer.reasoning``.
        refusal: likewise of ``Answer.refusal``.
        calls: the ids of its tool calls, whole ones or not.
    """

    index: int
    data: dict[str, Any] = msgspec.field(default_factory=dict)
    text: tuple[tuple[int, int], ...] = ()
    reasoning: tuple[tuple[int, int], ...] = ()
    refusal: tuple[tuple[int, int], ...] = ()
    calls: tuple[str, ...] = ()


class AttemptReport(Record, frozen=True, kw_only=True):
    """What became of one attempt.

    Attributes:
        number: its place in the turn, from 1.
        token: its fencing token.
        endpoint: wire and address.
        free: whether it did not count against ``retries``.
        request_id: the provider's name for the request.
        started_at_s: when it was admitted, seconds since the epoch.
        first_progress_s: seconds from there to its first progress.
        ended_s: seconds from there to its end.
        outcome: ``completed``, ``failed``, ``interrupted`` or ``superseded``.
    """

    number: int
    token: int
    endpoint: str
    free: bool = False
    request_id: str | None = None
    started_at_s: float = 0.0
    first_progress_s: float | None = None
    ended_s: float | None = None
    outcome: str = ""
    failure: Failure | None = None
    usage: Usage | None = None


class Answer(Record, frozen=True, kw_only=True):
    """All that there is of an answer.

    Attributes:
        text: the model's own text, of choice 0 like ``tool_calls`` and ``finish``.
        display_text: ``text``, and below it the notice of lost tool calls.
        incomplete_tool_calls: calls that are not valid JSON or lack evidence, raw.
        lost_tools: the names of those, of all choices.
        usage_all_attempts: the figures of every attempt together.
        partial: whether the turn ended before the provider's evidence with something there: by a
            failure after text that is not only white space was taken or had a reader to take it,
            or by an interrupt after anything had come. False for an answer that the provider
            ended at a limit (``length``), though it may have ``lost_tools``.
        failure: what ended the turn, if not the provider's evidence; None while it runs.
        parts: how the answer is made up on its wire, where that is more than its words.
    """

    text: str = ""
    display_text: str = ""
    reasoning: str = ""
    refusal: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    incomplete_tool_calls: tuple[ToolCall, ...] = ()
    lost_tools: tuple[str, ...] = ()
    finish: Finish | None = None
    usage: Usage | None = None
    usage_all_attempts: Usage | None = None
    model: str = ""
    response_id: str = ""
    partial: bool = False
    failure: Failure | None = None
    attempts: tuple[AttemptReport, ...] = ()
    choices: tuple[Choice, ...] = ()
    parts: tuple[Part, ...] = ()
    wire: str = "chat"
    created: int = 0

    def native(self) -> dict[str, Any]:
        """Return the response in the wire's own non-streaming JSON.

        Raises:
            NotImplementedError: the wire has none, as that of a custom stream.
            RecursionError: the provider has nested something deeper than the stack can follow.
        """
        from tidegate.protocol.native import native_from  # noqa: PLC0415 - no cycle at import

        return native_from(self)

"""Whether a failed attempt is followed by another; pure, and judged from one snapshot alone.

The rows, of which the first that fits holds:

1. An option was refused that the attempt had used, and nothing was taken: a free attempt without.
2. The failure is not transient: give up.
3. Words were taken, and whoever has them cannot be told that they are void: give up.
4. Visible text was taken, no tool call is in flight, and the policy says ``stop``: give up.
5. The retries are used up: give up.
6. The provider asks for a longer wait than the policy grants: give up.
7. Otherwise: the next attempt, after the back-off or the wait that was asked for.
"""

from __future__ import annotations

import dataclasses
from typing import TypeAlias

from tidegate.protocol.events import NoticeKind
from tidegate.protocol.failures import Failure, FailureKind
from tidegate.protocol.resolution import Resolved
from tidegate.protocol.sink import Snapshot


_TRANSIENT = frozenset(
    {
        FailureKind.TRUNCATED,
        FailureKind.EMPTY,
        FailureKind.OVERLOADED,
        FailureKind.RATE_LIMITED,
        FailureKind.WORKER_LOST,
    }
)
_BY_CASE = frozenset(
    {
        FailureKind.CONNECTION_LOST,  # a certificate that nobody vouches for stays what it is
        FailureKind.MALFORMED,  # some wires are known to break a frame now and then
        FailureKind.MALFORMED_TOOL_CALL,
    }
)
# Bedrock says 424 where the model itself has failed.
_TRANSIENT_STATUSES = frozenset({408, 409, 424, 500, 502, 503, 504, *range(520, 530)})

RECONNECTING = "The connection to the model was lost: reconnecting."
STREAMING_DISABLED = "The endpoint does not stream: asking for the whole answer at once."


@dataclasses.dataclass(frozen=True, slots=True)
class Asked:
    """What the failed attempt had asked for beside the payload.

    Attributes:
        stream: whether it asked for a stream.
        usage_options: whether it sent ``stream_options``.
        buffered_tools: whether it asked for tools' inputs that are checked before they are sent.
    """

    stream: bool = True
    usage_options: bool = True
    buffered_tools: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class Retry:
    """Another attempt follows.

    Attributes:
        delay_s: how long to wait before it.
        asked: what it asks for.
        free: whether it does not count against the retries.
        notices: kinds and texts of what the readers are told first.
        why: in a few words, for the log.
    """

    delay_s: float
    asked: Asked
    free: bool = False
    notices: tuple[tuple[NoticeKind, str], ...] = ()
    why: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class GiveUp:
    """The turn ends with this failure; ``why`` no attempt follows, in a few words for the log."""

    why: str


Decision: TypeAlias = Retry | GiveUp


def is_transient(failure: Failure) -> bool:
    """Tell whether the same request may succeed when it is sent again."""
    if failure.kind is FailureKind.STALLED:
        return failure.reason != "deadline"
    if failure.kind in _BY_CASE:
        return failure.retryable
    if failure.kind is FailureKind.SERVER_ERROR:
        # Without a status it is an error object inside a stream that had begun well.
        return failure.status in (None, 200) or failure.status in _TRANSIENT_STATUSES
    return failure.kind in _TRANSIENT


def after_failure(  # noqa: PLR0913 - the facts of one failure, each by its name
    failure: Failure,
    snapshot: Snapshot,
    policy: Resolved,
    *,
    used: int,
    asked: Asked,
    refused: str = "",
    learned: str = "",
    irrevocable: bool = False,
    chance: float = 0.0,
) -> Decision:
    """Decide what follows the end of an attempt without evidence.

    Args:
        failure: how it ended.
        snapshot: what the sink saw of this attempt.
        policy: what holds for the turn.
        used: attempts so far that count against the retries, this one included unless free.
        asked: what this attempt had asked for.
        refused: what the provider would not have, as in ``Ended``.
        learned: what its answer showed, as in ``Ended``.
        irrevocable: whether a reader cannot be told that what it has taken is void.
        chance: a random number from 0 to 1, for the jitter.
    """
    if not snapshot.taken_any and (free := _without(refused, asked)) is not None:
        return free
    why = _against(failure, snapshot, policy, used, irrevocable=irrevocable)
    if why is not None:
        return GiveUp(why)
    notices: tuple[tuple[NoticeKind, str], ...] = ()
    if snapshot.taken_any:
        notices = (("reconnecting", RECONNECTING),)
    if failure.kind is FailureKind.MALFORMED_TOOL_CALL:
        asked = dataclasses.replace(asked, buffered_tools=True)
    if failure.kind is FailureKind.EMPTY and learned == "contentless" and asked.stream:
        asked = dataclasses.replace(asked, stream=False, usage_options=False)
        notices += (("streaming_disabled", STREAMING_DISABLED),)
    return Retry(_delay_s(failure, policy, used, chance), asked, notices=notices, why="transient")


def _without(refused: str, asked: Asked) -> Retry | None:
    """Return the free attempt without what was ``refused``, if this one had asked for it."""
    if refused == "stream_options" and asked.usage_options:
        without = dataclasses.replace(asked, usage_options=False)
        return Retry(0.0, without, free=True, why="stream_options refused")
    if refused == "streaming" and asked.stream:
        without = dataclasses.replace(asked, stream=False, usage_options=False)
        told: tuple[NoticeKind, str] = ("streaming_disabled", STREAMING_DISABLED)
        return Retry(0.0, without, free=True, notices=(told,), why="streaming refused")
    return None


def _against(
    failure: Failure, snapshot: Snapshot, policy: Resolved, used: int, *, irrevocable: bool
) -> str | None:
    """Say what speaks against another attempt, if anything does."""
    if not is_transient(failure):
        return f"{failure.kind.value} is not retried"
    if irrevocable and snapshot.words_taken:
        return "words were taken that cannot be taken back"
    # A call that was begun is lost if nobody asks again, whatever text is on the screen.
    if (
        snapshot.visible_taken
        and not snapshot.tools_in_flight
        and policy.after_visible_text == "stop"
    ):
        return "visible text was taken"
    if used > policy.retries:
        return f"{policy.retries} retries are used up"
    if failure.retry_after_s is not None and failure.retry_after_s > policy.retry_after_cap_s:
        return f"the provider asks to wait {failure.retry_after_s:g} s"
    return None


def _delay_s(failure: Failure, policy: Resolved, used: int, chance: float) -> float:
    if failure.retry_after_s is not None:
        return max(0.0, failure.retry_after_s)
    step = min(max(used, 1), len(policy.backoff_s)) - 1
    return policy.backoff_s[step] * (1.0 + policy.backoff_jitter * chance)

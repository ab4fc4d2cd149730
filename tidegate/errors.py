"""Every exception that tidegate raises on purpose.

TidegateError
 ├─ TurnError                    a turn ended without an answer; has ``failure`` and ``answer``
 │   ├─ Interrupted              somebody ended the turn              (InterruptedError)
 │   ├─ StreamStalled            no progress for too long             (TimeoutError)
 │   ├─ ConnectionLost           no response came: DNS, connect, TLS, reset (ConnectionError)
 │   ├─ StreamTruncated          the body ended before its evidence
 │   ├─ EmptyStream              the body ended cleanly and held nothing
 │   ├─ MalformedStream          bytes that the wire does not allow; has ``raw_text``
 │   ├─ MalformedToolCall        a tool call that cannot be trusted
 │   ├─ RateLimited              come back later; has ``retry_after_s``
 │   ├─ QuotaExhausted           the account has nothing left
 │   ├─ Overloaded               the provider has no capacity
 │   ├─ ServerFault              the provider failed
 │   ├─ BadRequest               the provider will not take this request
 │   ├─ AuthRejected             the key is missing, wrong or not allowed
 │   ├─ ContextOverflow          the request is longer than the model's context
 │   ├─ ContentRefused           the provider refuses this content
 │   ├─ CircuitOpen              the endpoint is unresponsive: nothing was sent (RuntimeError)
 │   ├─ WorkerLost               the worker process ended under the attempt
 │   ├─ SlowClient               a client of the daemon did not keep up
 │   └─ InternalError            a defect of tidegate
 ├─ ConfigurationError           a value given by the caller makes no sense (ValueError)
 ├─ RuntimeStopped               the runtime takes no more turns
 └─ ForkedRuntime                the runtime belongs to the process that this one was forked from

What decides about a retry is ``Failure.kind``, never the class. All of them pickle.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any


if TYPE_CHECKING:
    from tidegate.protocol.answers import Answer
    from tidegate.protocol.failures import Failure


class TidegateError(Exception):
    """Base of the whole tree."""


class TurnError(TidegateError):
    """A turn ended without a complete answer.

    Attributes:
        failure: what happened, as data.
        answer: all that there was of the answer, a lost tool call included.
    """

    def __init__(self, text: str, failure: Failure, answer: Answer) -> None:
        super().__init__(text)
        self.failure = failure
        self.answer = answer

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self), self.failure, self.answer)


class Interrupted(TurnError, InterruptedError):
    """Somebody ended the turn; ``failure.detail`` holds the reason given."""


class StreamStalled(TurnError, TimeoutError):
    """The stream made no progress for too long; ``failure.reason`` says which limit."""


class ConnectionLost(TurnError, ConnectionError):
    """The connection failed before the response headers came."""


class StreamTruncated(TurnError):
    """The response body ended, in whatever way, before its evidence."""


class EmptyStream(TurnError):
    """The response body ended cleanly without anything that could be used."""


class MalformedStream(TurnError):
    """The provider sent bytes that its wire does not allow."""

    @property
    def raw_text(self) -> str:
        """The offending text, at most 4,096 characters, keys removed."""
        return self.failure.raw_text


class MalformedToolCall(TurnError):
    """A tool call arrived that cannot be trusted."""


class RateLimited(TurnError):
    """The provider asks to come back later."""

    @property
    def retry_after_s(self) -> float | None:
        """Seconds that the provider asked to wait, if it said so."""
        return self.failure.retry_after_s


class QuotaExhausted(TurnError):
    """The account has nothing left to spend."""


class Overloaded(TurnError):
    """The provider has no capacity."""


class ServerFault(TurnError):
    """The provider failed."""


class BadRequest(TurnError):
    """The provider will not take this request, now or later."""


class AuthRejected(TurnError):
    """The key is missing, wrong, or not allowed to do this."""


class ContextOverflow(TurnError):
    """The request is longer than the model's context."""


class ContentRefused(TurnError):
    """The provider refuses this content."""


class CircuitOpen(TurnError, RuntimeError):
    """The endpoint was unresponsive too often; nothing was sent."""


class WorkerLost(TurnError):
    """The worker process ended under the attempt."""


class SlowClient(TurnError):
    """A client of the daemon did not keep up."""


class InternalError(TurnError):
    """A defect of tidegate; the log has the traceback."""


class ConfigurationError(TidegateError, ValueError):
    """A value given by the caller makes no sense; the text names it and the way out."""


class RuntimeStopped(TidegateError):
    """The runtime has been stopped, or has failed as a whole."""


class ForkedRuntime(TidegateError):
    """The runtime belongs to the process that this one was forked from."""

"""The public surface, in one place; ``import tidegate`` loads it when a name is first used."""

from __future__ import annotations

from tidegate.errors import (
    AuthRejected,
    BadRequest,
    CircuitOpen,
    ConfigurationError,
    ConnectionLost,
    ContentRefused,
    ContextOverflow,
    EmptyStream,
    ForkedRuntime,
    InternalError,
    Interrupted,
    MalformedStream,
    MalformedToolCall,
    Overloaded,
    QuotaExhausted,
    RateLimited,
    RuntimeStopped,
    ServerFault,
    SlowClient,
    StreamStalled,
    StreamTruncated,
    TidegateError,
    TurnError,
    WorkerLost,
)
from tidegate.observing import Observer
from tidegate.protocol.answers import Answer, AttemptReport, Choice, ToolCall, Usage
from tidegate.protocol.endpoints import Endpoint
from tidegate.protocol.events import (
    AnyEvent,
    AttemptStarted,
    AttemptSuperseded,
    Event,
    Notice,
    ReasoningDelta,
    RefusalDelta,
    RetryScheduled,
    TextDelta,
    ToolCallDelta,
    TurnCompleted,
    TurnFailed,
    TurnInterrupted,
    UsageReported,
)
from tidegate.protocol.failures import Failure, FailureKind
from tidegate.protocol.policy import Policy, Settings
from tidegate.protocol.requests import Request
from tidegate.protocol.secrets import Secret
from tidegate.runtime import Runtime
from tidegate.statistics import Statistics
from tidegate.turn import Turn


__all__ = [
    "Answer",
    "AnyEvent",
    "AttemptReport",
    "AttemptStarted",
    "AttemptSuperseded",
    "AuthRejected",
    "BadRequest",
    "Choice",
    "CircuitOpen",
    "ConfigurationError",
    "ConnectionLost",
    "ContentRefused",
    "ContextOverflow",
    "EmptyStream",
    "Endpoint",
    "Event",
    "Failure",
    "FailureKind",
    "ForkedRuntime",
    "InternalError",
    "Interrupted",
    "MalformedStream",
    "MalformedToolCall",
    "Notice",
    "Observer",
    "Overloaded",
    "Policy",
    "QuotaExhausted",
    "RateLimited",
    "ReasoningDelta",
    "RefusalDelta",
    "Request",
    "RetryScheduled",
    "Runtime",
    "RuntimeStopped",
    "Secret",
    "ServerFault",
    "Settings",
    "SlowClient",
    "Statistics",
    "StreamStalled",
    "StreamTruncated",
    "TextDelta",
    "TidegateError",
    "ToolCall",
    "ToolCallDelta",
    "Turn",
    "TurnCompleted",
    "TurnError",
    "TurnFailed",
    "TurnInterrupted",
    "Usage",
    "UsageReported",
    "WorkerLost",
]

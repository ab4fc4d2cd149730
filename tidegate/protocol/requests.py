"""What a caller asks for: an endpoint, a payload in the provider's own JSON, and a policy.

Path: the caller -> this -> ``supervisor/machine.py``.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from tidegate.errors import ConfigurationError
from tidegate.protocol import budget
from tidegate.protocol.endpoints import Endpoint
from tidegate.protocol.policy import Policy
from tidegate.protocol.secrets import MissingKey, Secret
from tidegate.protocol.wires import WireFacts
from tidegate.settings import environment


__all__ = ["Encoded", "Endpoint", "MissingKey", "Request", "Secret"]

CHOICES_MAX = 1024
"""More than any provider gives; each choice is watched from the start."""

_DEPTH_MAX = 200


class Encoded(NamedTuple):
    """A request in the form in which it travels.

    Attributes:
        body: the payload as JSON, without ``stream`` and ``stream_options``.
        stream_options: their value as JSON, empty to leave them out.
        choices: how many answers were asked for.
        model: as the payload names it; empty if it does not.
    """

    body: bytes
    stream_options: bytes
    choices: int
    model: str


@dataclasses.dataclass(frozen=True, slots=True, repr=False)
class Request:
    """One question to one endpoint.

    Attributes:
        endpoint: where to ask.
        payload: the provider's own JSON; copied at the top, so that what is deeper must stay as it
            is until the turn has started.
        policy: what this request wants otherwise.
        stream: whether to ask for a stream.
        metadata: the caller's own notes, by name; not sent anywhere.

    Raises:
        ConfigurationError: a value of the wrong type, or a payload that contradicts the rest.
    """

    endpoint: Endpoint
    payload: dict[str, Any]
    _: dataclasses.KW_ONLY
    policy: Policy | None = None
    stream: bool = True
    metadata: dict[str, Any] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        if not isinstance(self.endpoint, Endpoint):
            raise ConfigurationError(
                f"endpoint={self.endpoint!r}: give one, such as tidegate.Endpoint.local()"
            )
        if not isinstance(self.policy, Policy | None):
            raise ConfigurationError(f"policy={self.policy!r}: give a tidegate.Policy, or none")
        if not isinstance(self.stream, bool):
            raise ConfigurationError(f"stream={self.stream!r}: give True or False")
        for name in ("payload", "metadata"):
            object.__setattr__(self, name, _dict_from(name, getattr(self, name)))
        _check_payload(self.payload, self.endpoint.facts, stream=self.stream)
        if self.endpoint.wire == "chat":
            _check_choices(self.payload)

    @property
    def model(self) -> str:
        """The model's name, empty if the payload has none."""
        return self.payload.get(self.endpoint.facts.model_field) or ""

    @property
    def context_tokens(self) -> int:
        """The estimated length of conversation and tools, in model tokens."""
        return budget.context_tokens(self.payload)

    def encode(self, environ: Mapping[str, str] | None = None) -> Encoded:
        """Encode the payload, once for all attempts.

        Args:
            environ: the environment, by default the one of the process.

        Raises:
            ConfigurationError: something in the payload is no JSON; the text says where.
        """
        endpoint = self.endpoint.located(environment() if environ is None else environ)
        ours = endpoint.facts.own_fields
        return Encoded(
            body=_json({key: item for key, item in self.payload.items() if key not in ours}),
            stream_options=self._stream_options(endpoint),
            choices=(self.payload.get("n") or 1) if endpoint.wire == "chat" else 1,
            model=self.model,
        )

    def _stream_options(self, endpoint: Endpoint) -> bytes:
        given = self.payload.get("stream_options")
        if not self.stream or "stream_options" not in endpoint.facts.own_fields:
            return b""
        if not endpoint.takes_usage_option:
            return _json(given) if given else b""
        return _json({"include_usage": True} | (given or {}))

    def __repr__(self) -> str:
        size = len(self.payload.get(self.endpoint.facts.conversation) or ())
        return f"<Request {self.endpoint.label} model={self.model!r} messages={size}>"


def _dict_from(name: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ConfigurationError(f"{name} is a {type(value).__name__}: give a dict")
    for key in value:
        if not isinstance(key, str):
            raise ConfigurationError(f"{name} has the key {key!r}: give only text as keys")
    return dict(value)


def _check_payload(payload: dict[str, Any], facts: WireFacts, *, stream: bool) -> None:
    model = payload.get(facts.model_field)
    if not isinstance(model, str | None):
        raise ConfigurationError(f"payload[{facts.model_field!r}]={model!r}: give the model's name")
    if facts.model_needed and not model:
        raise ConfigurationError(
            f"payload has no {facts.model_field!r}: give it, for it is part of the address"
        )
    conversation = payload.get(facts.conversation)
    if not (
        isinstance(conversation, list | tuple | None)
        or (facts.conversation_text and isinstance(conversation, str))
        or not facts.conversation
    ):
        kind = type(conversation).__name__
        raise ConfigurationError(
            f"payload[{facts.conversation!r}] is a {kind}: give a list of messages"
        )
    if "stream" in facts.own_fields:
        _check_stream(payload, stream=stream)
    if "stream_options" in facts.own_fields:
        _check_options(payload, stream=stream)


def _check_stream(payload: dict[str, Any], *, stream: bool) -> None:
    asked = payload.get("stream", stream)
    if not isinstance(asked, bool):
        raise ConfigurationError(f"payload['stream']={asked!r}: leave it out")
    if asked is not stream:
        raise ConfigurationError(
            f"payload['stream']={asked} and stream={stream}: leave it out of the payload and "
            f"say Request(..., stream={asked})"
        )


def _check_choices(payload: dict[str, Any]) -> None:
    choices = payload.get("n")
    if choices is not None and (type(choices) is not int or not 1 <= choices <= CHOICES_MAX):
        raise ConfigurationError(
            f"payload['n']={choices!r}: give a whole number from 1 to {CHOICES_MAX}"
        )


def _check_options(payload: dict[str, Any], *, stream: bool) -> None:
    options = payload.get("stream_options")
    if options is None:
        return
    if not isinstance(options, dict):
        raise ConfigurationError(f"payload['stream_options']={options!r}: give a dict")
    if not stream:
        raise ConfigurationError("payload['stream_options'] with stream=False: leave it out")
    if not isinstance(options.get("include_usage", True), bool):
        raise ConfigurationError(
            f"payload['stream_options']['include_usage']={options['include_usage']!r}: "
            "give True or False"
        )


def _json(value: Any) -> bytes:
    try:
        body = msgspec.json.encode(value)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        where, culprit = _culprit(value)
        raise ConfigurationError(
            f"payload{where} cannot be JSON: {type(culprit).__name__} ({error})"
        ) from error
    # The encoder writes null for what JSON has no number for; a real null is there far more often.
    if b"null" in body and (path := _endless_number(value, "")) is not None:
        raise ConfigurationError(f"payload{path} is no finite number, which JSON does not have")
    return body


def _culprit(value: Any) -> tuple[str, Any]:
    """Find the innermost part that does not encode, and the path to it."""
    path = ""
    for _ in range(_DEPTH_MAX):
        for key, item in _items(value):
            try:
                msgspec.json.encode(item)
            except (TypeError, ValueError, OverflowError, RecursionError):
                path, value = f"{path}[{key!r}]", item
                break
        else:
            return path, value
    return "", value


def _endless_number(value: Any, path: str) -> str | None:
    """Find the path to a number that is infinite or none at all."""
    if isinstance(value, float):
        return None if math.isfinite(value) else path
    for key, item in _items(value):
        if (found := _endless_number(item, f"{path}[{key!r}]")) is not None:
            return found
    return None


def _items(value: Any) -> list[tuple[Any, Any]]:
    if isinstance(value, dict):
        return list(value.items())
    return list(enumerate(value)) if isinstance(value, list | tuple) else []

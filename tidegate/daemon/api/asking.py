"""From a request's headers and body to what is asked of the daemon; no I/O."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

import msgspec

from tidegate.daemon.access import headers as head
from tidegate.daemon.access.keys import Headers
from tidegate.daemon.config.disconnect import OnDisconnect, parse_on_disconnect
from tidegate.daemon.config.endpoints import by_name, choose
from tidegate.daemon.config.model import DaemonConfig
from tidegate.daemon.turns.hosted import Ask
from tidegate.errors import ConfigurationError
from tidegate.protocol.endpoints import Endpoint
from tidegate.protocol.policy import Policy
from tidegate.protocol.requests import Request
from tidegate.protocol.wires import Wire


Api: TypeAlias = Literal["chat", "responses", "messages"]

ON_DISCONNECT = b"tidegate-on-disconnect"
IDEMPOTENCY_KEY = b"idempotency-key"

_DESCRIBED = "see the API's description at /openapi.json"

_PASSED_ON = (b"anthropic-beta", b"openai-beta")
"""What a client may ask of the provider beside the body."""


class TurnBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of ``POST /v1/turns``.

    Attributes:
        endpoint: its name in the configuration.
        payload: the provider's own JSON.
        wire: of the payload, for an endpoint that speaks several; by default its first.
        policy: stands in for what the configuration says, field by field.
        on_disconnect: kept with the turn; its events may be left without any consequence.
    """

    endpoint: str
    payload: dict[str, Any]
    wire: Wire | None = None
    policy: dict[str, Any] = {}
    on_disconnect: str = ""


def compatible_ask(
    config: DaemonConfig, api: Api, headers: Headers, body: dict[str, Any], owner: str
) -> Ask:
    """Return what a client of one of the compatible APIs asks.

    Raises:
        NoEndpoint: no endpoint takes such a request.
        ConfigurationError: something in it makes no sense.
    """
    model = body.get("model", "")
    if not isinstance(model, str):
        raise ConfigurationError(f"model={model!r:.60}: give the name of a model")
    streamed = body.get("stream", False)
    if not isinstance(streamed, bool | None):
        raise ConfigurationError(f"stream={streamed!r:.60}: give true or false")
    name, endpoint = choose(config, api, model)
    payload = {key: value for key, value in body.items() if key != "stream"}
    if not streamed:
        payload.pop("stream_options", None)
    return Ask(
        owner=owner,
        api=api,
        endpoint=name,
        model=model,
        request=Request(_asked(endpoint, headers), payload),
        on_disconnect=_on_disconnect(config, name, headers),
        irrevocable=bool(streamed),
    )


def turn_ask(config: DaemonConfig, headers: Headers, body: Mapping[str, Any], owner: str) -> Ask:
    """Return what ``POST /v1/turns`` asks.

    Raises:
        NoEndpoint: there is no such endpoint.
        ConfigurationError: something in it makes no sense.
    """
    try:
        asked = msgspec.convert(body, TurnBody)
    except msgspec.ValidationError as error:
        raise ConfigurationError(f"{error}: {_DESCRIBED}") from None
    try:
        policy = msgspec.convert(asked.policy, Policy)
    except msgspec.ValidationError as error:
        raise ConfigurationError(f"policy: {error}: {_DESCRIBED}") from None
    endpoint = by_name(config, asked.endpoint, asked.wire)
    model = asked.payload.get("model", "")
    return Ask(
        owner=owner,
        api="turns",
        endpoint=asked.endpoint,
        model=model if isinstance(model, str) else "",
        request=Request(endpoint, asked.payload, policy=policy),
        on_disconnect=_on_disconnect(config, asked.endpoint, headers, asked.on_disconnect),
        key=head.text(headers, IDEMPOTENCY_KEY),
        digest=_digest(body),
    )


def _on_disconnect(
    config: DaemonConfig, name: str, headers: Headers, in_body: str = ""
) -> OnDisconnect:
    if in_body:
        return parse_on_disconnect(in_body)
    if given := head.text(headers, ON_DISCONNECT):
        return parse_on_disconnect(given, name=ON_DISCONNECT.decode())
    return config.endpoints[name].on_disconnect or config.on_disconnect


def _asked(endpoint: Endpoint, headers: Headers) -> Endpoint:
    passed = {name.decode(): value for name in _PASSED_ON if (value := head.text(headers, name))}
    if not passed or endpoint.is_local:
        return endpoint
    return msgspec.structs.replace(endpoint, headers={**endpoint.headers, **passed})


def _digest(body: Mapping[str, Any]) -> str:
    # Sorted, for the order of keys means nothing in JSON.
    return hashlib.sha256(msgspec.json.encode(body, order="sorted")).hexdigest()

"""Requests of the ``messages`` wire, built and authenticated by the anthropic SDK.

The SDK's retries are off, and its streams are not used. Claude on Vertex AI is the same wire at
another address: there the model is part of the path, and the version part of the payload.

Path: ``provider/transport.py`` -> this -> ``provider/connections.py``
"""

from __future__ import annotations

from typing import Any, cast
from urllib.parse import quote

import anthropic
import httpx2
import msgspec
from anthropic.types import RawMessageStreamEvent

from tidegate.actors.provider.sdk_sender import SdkSender
from tidegate.protocol.attempts import Order, Target


PATH = "/v1/messages"
NO_KEY = "none"
VERTEX_VERSION = "vertex-2023-10-16"


class _Named(msgspec.Struct):
    """The one field of a payload that becomes part of an address."""

    model: str = ""


class AnthropicSender(SdkSender):
    """One SDK client.

    Args:
        target: where to, and as whom; headers and query are each request's own.
    """

    def __init__(self, target: Target) -> None:
        super().__init__(target)
        self._client = anthropic.AsyncAnthropic(
            base_url=target.base_url or None,
            # Whether a key is sent is said with each request; the SDK only wants to have one.
            auth_token=target.api_key or NO_KEY,
            max_retries=0,
            open_telemetry=False,  # nobody collects anything in a worker
            http_client=self._http,
        )

    def _path_for(self, order: Order) -> str:
        return _path_for(order)

    def _body_for(self, order: Order) -> bytes:
        return body_for(order)

    async def _build_and_send(self, order: Order, path: str, body: bytes) -> httpx2.Response:
        try:
            stream = await self._client.post(
                path,
                cast_to=httpx2.Response,
                content=body,
                options=_options_for(order),
                stream=True,
                stream_cls=anthropic.AsyncStream[RawMessageStreamEvent],
            )
        except anthropic.APIStatusError as error:
            return error.response
        # The SDK's types say a stream, but ``cast_to`` makes it the bare response.
        return cast(httpx2.Response, stream)


def body_for(order: Order) -> bytes:
    """Return the payload with what this attempt asks for.

    Streaming is switched on in front of the payload's own fields, which stay as they are unless
    they have to be changed.
    """
    changed = order.buffered_tools or _on_vertex(order.target)
    body = _changed(order) if changed else order.body.strip()
    if not order.stream:
        return body
    return b'{"stream":true' + (b"}" if body == b"{}" else b"," + body[1:])


def _changed(order: Order) -> bytes:
    payload: dict[str, Any] = msgspec.json.decode(order.body)
    if order.buffered_tools and isinstance(tools := payload.get("tools"), list):
        payload["tools"] = [_buffered(tool) for tool in tools]
    if _on_vertex(order.target):
        payload.pop("model", None)
        payload.setdefault("anthropic_version", VERTEX_VERSION)
    return msgspec.json.encode(payload)


def _buffered(tool: Any) -> Any:
    # Tools that the provider runs itself do not have this field, and are refused with it.
    if isinstance(tool, dict) and tool.get("type", "custom") == "custom":
        return {**tool, "eager_input_streaming": False}
    return tool


def _path_for(order: Order) -> str:
    target = order.target
    if not _on_vertex(target):
        return PATH
    model = quote(msgspec.json.decode(order.body, type=_Named).model, safe="@")
    project, region = quote(target.project, safe=":"), dict(target.options)["region"]
    verb = "streamRawPredict" if order.stream else "rawPredict"
    return f"/projects/{project}/locations/{region}/publishers/anthropic/models/{model}:{verb}"


def _on_vertex(target: Target) -> bool:
    return any(name == "region" for name, _ in target.options)


def _options_for(order: Order) -> anthropic.RequestOptions:
    target = order.target
    headers: dict[str, Any] = {"accept-encoding": "identity"}
    if not target.api_key:
        headers["authorization"] = anthropic.Omit()
    if _on_vertex(target):
        headers["anthropic-version"] = anthropic.Omit()  # it is in the payload
    headers |= {name.lower(): value for name, value in target.headers}
    return {
        "headers": headers,
        "params": dict(target.query),
        # Silence is the supervisor's affair.
        "timeout": httpx2.Timeout(None, connect=order.connect_timeout_s),
    }

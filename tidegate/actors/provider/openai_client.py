"""Requests of the wires ``chat`` and ``responses``, built and authenticated by the openai SDK.

The SDK's retries are off, and its streams are not used.

Path: ``provider/transport.py`` -> this -> ``provider/connections.py``
"""

from __future__ import annotations

from typing import Any, TypeAlias, cast
from urllib.parse import quote, urlsplit

import httpx2
import msgspec
import openai

from tidegate.actors.provider.sdk_sender import SdkSender
from tidegate.protocol.attempts import Order, Target


PATHS = {"chat": "/chat/completions", "responses": "/responses"}
NO_KEY = "none"

Client: TypeAlias = openai.AsyncOpenAI


class _Named(msgspec.Struct):
    """The one field of a payload that becomes part of an address."""

    model: str = ""


class OpenAISender(SdkSender):
    """One SDK client.

    Args:
        target: where to, and as whom; headers and query are each request's own.
    """

    def __init__(self, target: Target) -> None:
        super().__init__(target)
        self._client = _client_from(target, self._http)

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
                stream_cls=openai.AsyncStream[Any],
            )
        except openai.APIStatusError as error:
            return error.response
        # The SDK's types say a stream, but ``cast_to`` makes it the bare response.
        return cast(httpx2.Response, stream)


def _client_from(target: Target, http: httpx2.AsyncClient) -> Client:
    options: dict[str, Any] = {
        # Whether a key is sent is said with each request; the SDK only wants to have one.
        "api_key": target.api_key or NO_KEY,
        "organization": target.organization or None,
        "project": target.project or None,
        "max_retries": 0,
    }
    options["http_client"] = http
    if not target.api_version:
        return openai.AsyncOpenAI(base_url=target.base_url or None, **options)
    if target.api_key and _is_token(target.api_key):
        del options["api_key"]
        options["azure_ad_token"] = target.api_key
    whole = "/openai" in urlsplit(target.base_url).path
    options["base_url" if whole else "azure_endpoint"] = target.base_url or None
    client: Client = openai.AsyncAzureOpenAI(api_version=target.api_version, **options)
    return client


def _is_token(key: str) -> bool:
    """Tell a token of Entra ID, which goes as a bearer token, from a key of Azure's."""
    return key.startswith("eyJ") and key.count(".") == 2


def _path_for(order: Order) -> str:
    target = order.target
    path = PATHS[target.wire]
    place = urlsplit(target.base_url).path
    complete = "/deployments" in place or "/openai/v1" in place
    if target.wire != "chat" or not target.api_version or complete:
        return path
    # Azure wants the deployment in the path; the SDK puts it there only if it encodes the body.
    model = msgspec.json.decode(order.body, type=_Named).model
    return f"/deployments/{quote(model, safe='')}{path}"


def body_for(order: Order) -> bytes:
    """Put what switches streaming on in front of the payload's own fields."""
    fields = []
    if order.stream:
        fields.append(b'"stream":true')
        if order.stream_options:
            fields.append(b'"stream_options":' + order.stream_options)
    rest = order.body.strip()[1:]
    if rest != b"}":
        fields.append(rest)
        return b"{" + b",".join(fields)
    return b"{" + b",".join(fields) + b"}"


def _options_for(order: Order) -> openai.RequestOptions:
    target = order.target
    headers: dict[str, str | openai.Omit] = {"accept-encoding": "identity"}
    if not target.api_key:
        headers |= {"authorization": openai.omit, "api-key": openai.omit}
    headers |= {name.lower(): value for name, value in target.headers}
    return {
        "headers": headers,
        "params": dict(target.query),
        # Silence is the supervisor's affair.
        "timeout": httpx2.Timeout(None, connect=order.connect_timeout_s),
        "security": {"bearer_auth": True},
    }

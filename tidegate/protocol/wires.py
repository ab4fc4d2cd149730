"""What is fixed about each wire: its official address, its SDK's variables, its fields."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal, NamedTuple, TypeAlias


Wire: TypeAlias = Literal["chat", "responses", "messages", "converse", "custom"]


class WireFacts(NamedTuple):
    """One wire.

    Attributes:
        official_url: where its maker serves it; empty if that depends on more.
        url_variable: the environment variable of its SDK for another address.
        key_variables: those of its SDK for the key, the strongest first.
        key_header: the header that would carry a key, if the user sets it by hand.
        conversation: the payload's field with the conversation, which must be a list, or may be
            text where ``conversation_text`` says so.
        model_field: the payload's field with the model's name.
        model_needed: whether no request can be addressed without the model's name.
        project_variable: the environment variable of its SDK for the project.
        own_fields: fields of the payload that tidegate sets itself.
        usage_option: whether a stream has figures only if ``stream_options`` ask for them.
        options: the fields of an endpoint that mean something on this wire, beside those that
            every wire has.
        preload: modules that a worker needs for it.
    """

    official_url: str = ""
    url_variable: str = ""
    key_variables: tuple[str, ...] = ()
    key_header: str = "authorization"
    conversation: str = "messages"
    conversation_text: bool = False
    model_field: str = "model"
    model_needed: bool = False
    project_variable: str = ""
    own_fields: tuple[str, ...] = ("stream",)
    usage_option: bool = False
    options: tuple[str, ...] = ()
    preload: tuple[str, ...] = ()


_HTTP = ("base_url", "api_key", "headers", "query", "proxy", "verify")
_OPENAI = "https://api.openai.com/v1"
_OPENAI_KEYS = ("OPENAI_API_KEY",)
_OPENAI_OPTIONS = (*_HTTP, "organization", "project", "api_version")
_OPENAI_CLIENT = "tidegate.actors.provider.openai_client"

WIRES: Mapping[Wire, WireFacts] = {
    "chat": WireFacts(
        official_url=_OPENAI,
        url_variable="OPENAI_BASE_URL",
        key_variables=_OPENAI_KEYS,
        project_variable="OPENAI_PROJECT_ID",
        own_fields=("stream", "stream_options"),
        usage_option=True,
        options=(*_OPENAI_OPTIONS, "local_model"),
        preload=(_OPENAI_CLIENT,),
    ),
    "responses": WireFacts(
        official_url=_OPENAI,
        url_variable="OPENAI_BASE_URL",
        key_variables=_OPENAI_KEYS,
        project_variable="OPENAI_PROJECT_ID",
        conversation="input",
        conversation_text=True,
        own_fields=("stream", "stream_options"),
        options=(*_OPENAI_OPTIONS, "local_model"),
        preload=(_OPENAI_CLIENT,),
    ),
    "messages": WireFacts(
        official_url="https://api.anthropic.com",
        url_variable="ANTHROPIC_BASE_URL",
        key_variables=("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"),
        key_header="x-api-key",
        options=(*_HTTP, "region", "project", "local_model"),
        preload=("tidegate.actors.provider.anthropic_client",),
    ),
    "converse": WireFacts(
        url_variable="AWS_ENDPOINT_URL_BEDROCK_RUNTIME",
        key_variables=("AWS_BEARER_TOKEN_BEDROCK",),
        model_field="modelId",
        own_fields=(),
        options=(*_HTTP, "region", "profile", "role_arn"),
        preload=("tidegate.actors.provider.bedrock_client",),
    ),
    "custom": WireFacts(
        conversation="",
        own_fields=(),
        options=("factory", "placement"),
    ),
}

_VERTEX_HOSTS = {
    "global": "aiplatform.googleapis.com",
    "us": "aiplatform.us.rep.googleapis.com",
    "eu": "aiplatform.eu.rep.googleapis.com",
}


def azure_facts(wire: Wire) -> WireFacts:
    """Return what is fixed about one of OpenAI's wires on Azure, where each user has an address.

    A key of OpenAI's that is in the environment is none of Azure's business.
    """
    return WIRES[wire]._replace(
        official_url="",
        url_variable="AZURE_OPENAI_ENDPOINT",
        key_variables=("AZURE_OPENAI_AD_TOKEN", "AZURE_OPENAI_API_KEY"),
        key_header="api-key",
    )


def vertex_facts(region: str) -> WireFacts:
    """Return what is fixed about the messages wire on Google's Vertex AI.

    Its tokens live for an hour, so that no variable could hold one.
    """
    host = _VERTEX_HOSTS.get(region, f"{region}-aiplatform.googleapis.com")
    return WIRES["messages"]._replace(
        official_url=f"https://{host}/v1",
        url_variable="ANTHROPIC_VERTEX_BASE_URL",
        key_variables=(),
        key_header="authorization",
        model_needed=True,
        project_variable="ANTHROPIC_VERTEX_PROJECT_ID",
    )


def preload_of(wires: Iterable[Wire]) -> tuple[str, ...]:
    """Return what to import, and call, once in the process that workers are forked from."""
    modules = (module for wire in wires for module in WIRES[wire].preload)
    return (
        "tidegate.actors.provider.actor",
        *dict.fromkeys(modules),
        "tidegate.actors.provider.network:tls_context",
    )

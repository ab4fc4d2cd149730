"""Where requests go and as whom: addresses, keys by reference, and each wire's own options."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Any, Literal, Self, TypeAlias
from urllib.parse import urlsplit

import msgspec

from tidegate.errors import ConfigurationError
from tidegate.protocol import addresses, budget
from tidegate.protocol import endpoint_checks as checks
from tidegate.protocol.base import Record
from tidegate.protocol.policy import Policy
from tidegate.protocol.secrets import Secret
from tidegate.protocol.wires import WIRES, Wire, WireFacts, azure_facts, vertex_facts


Key: TypeAlias = str | Secret | Callable[[], str] | None
Placement: TypeAlias = Literal["worker", "inline"]

_GEMINI_HOST = "generativelanguage.googleapis.com"
_TEXTS = (
    "organization",
    "project",
    "api_version",
    "local_model",
    "region",
    "profile",
    "role_arn",
    "factory",
)


class Endpoint(Record, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A wire, where it is, and how to authenticate; made by a class method or from TOML.

    Attributes:
        wire: the provider's protocol.
        base_url: the address without the wire's own path; None for the SDK's default.
        headers: sent with every request, beside the SDK's own. A value is text, ``env:NAME`` for a
            variable that is read at each start, or a ``Secret``. Text that comes from users may
            be such a reference too: check it, or give ``Secret(lambda: text)``, which is sent as
            it is.
        query: added to the address of every request.
        organization: None for the SDK's default, like ``project``.
        api_version: as Azure wants it, in the query.
        proxy: address of an HTTP proxy.
        verify: whether certificates are checked, or the path of the file of a private CA.
        local_model: the model of the local server, a name or the path of a ``.gguf`` file.
        region: of a cloud.
        profile: a profile of the AWS configuration files.
        role_arn: an AWS role to assume.
        factory: ``package.module:factory`` of a stream of the user's own.
        placement: where that stream runs.
        policy: stands in for what a request's own policy leaves out.

    Raises:
        ConfigurationError: a value of the wrong type, or one that no request could use.
    """

    wire: Wire = "chat"
    base_url: str | None = None
    # A reference stays text, so that it encodes; a literal is a Secret, which refuses to.
    key_given: Any = msgspec.field(default=None, name="api_key")
    headers: Mapping[str, Any] = msgspec.field(default_factory=dict)
    query: Mapping[str, str] = msgspec.field(default_factory=dict)
    organization: str | None = None
    project: str | None = None
    api_version: str | None = None
    proxy: str | None = None
    verify: bool | str = True
    local_model: str | None = None
    region: str | None = None
    profile: str | None = None
    role_arn: str | None = None
    factory: str | None = None
    placement: Placement = "worker"
    policy: Policy | None = None

    def __post_init__(self) -> None:
        checks.check_values(self, texts=_TEXTS)
        headers = {name: _plain(value) for name, value in self.headers.items()}
        msgspec.structs.force_setattr(self, "headers", headers)
        msgspec.structs.force_setattr(self, "query", dict(self.query))
        msgspec.structs.force_setattr(self, "key_given", _stored_key(self.key_given))
        checks.check_wire(self)

    @classmethod
    def chat(  # noqa: PLR0913 - options of one kind, by keyword
        cls,
        base_url: str | None = None,
        api_key: Key = None,
        *,
        headers: Mapping[str, str | Secret] | None = None,
        query: Mapping[str, str] | None = None,
        organization: str | None = None,
        project: str | None = None,
        api_version: str | None = None,
        proxy: str | None = None,
        verify: bool | str = True,
    ) -> Self:
        """Return OpenAI's chat completions, or a server that speaks them at ``base_url``.

        Args:
            base_url: such as ``http://127.0.0.1:8000/v1``; by default ``OPENAI_BASE_URL``, then
                OpenAI's own.
            api_key: the key, or better ``env:NAME``, or a function that returns it; by default
                ``env:OPENAI_API_KEY``. A server at another address than OpenAI's may do without.
            headers: see the attributes, as for all that follow.
            query: by name.
            organization: by default ``OPENAI_ORG_ID``.
            project: by default ``OPENAI_PROJECT_ID``.
            api_version: makes it Azure: then ``base_url`` is by default ``AZURE_OPENAI_ENDPOINT``,
                and the key ``env:AZURE_OPENAI_AD_TOKEN`` or ``env:AZURE_OPENAI_API_KEY``.
            proxy: by default none.
            verify: the path of a CA file for a private CA.

        Raises:
            ConfigurationError: a value of the wrong type, or one that no request could use.
        """
        return cls(
            base_url=base_url,
            key_given=api_key,
            headers={} if headers is None else headers,
            query={} if query is None else query,
            organization=organization,
            project=project,
            api_version=api_version,
            proxy=proxy,
            verify=verify,
        )

    @classmethod
    def local(cls, model: str = "smollm2") -> Self:
        """Return a model on this machine, served by tidegate itself: no key, no network.

        Args:
            model: ``smollm2``, or the path of a ``.gguf`` file.
        """
        return cls(local_model=model)

    @classmethod
    def responses(cls, base_url: str | None = None, api_key: Key = None, **options: Any) -> Self:
        """Return OpenAI's Responses, or a server that speaks them at ``base_url``.

        The arguments are those of ``chat``.

        Raises:
            ConfigurationError: a value of the wrong type, or one that no request could use.
        """
        return cls._of("responses", options, base_url=base_url, key_given=api_key)

    @classmethod
    def messages(cls, base_url: str | None = None, api_key: Key = None, **options: Any) -> Self:
        """Return Anthropic's Messages, or a server that speaks them at ``base_url``.

        Args:
            base_url: without ``/v1``; by default ``ANTHROPIC_BASE_URL``, then Anthropic's own.
            api_key: as for ``chat``; by default ``env:ANTHROPIC_API_KEY``, then
                ``env:ANTHROPIC_AUTH_TOKEN``, which is sent as a bearer token.
            options: ``headers``, ``query``, ``proxy``, ``verify``. With ``region`` it is Claude on
                Google's Vertex AI: then ``project`` is by default ``ANTHROPIC_VERTEX_PROJECT_ID``,
                and ``api_key`` an access token, best given as a function.

        Raises:
            ConfigurationError: a value of the wrong type, or one that no request could use.
        """
        return cls._of("messages", options, base_url=base_url, key_given=api_key)

    @classmethod
    def converse(
        cls, region: str | None = None, endpoint_url: str | None = None, **options: Any
    ) -> Self:
        """Return AWS Bedrock's ConverseStream.

        Args:
            region: by default as boto3 finds it.
            endpoint_url: by default as boto3 finds it.
            options: ``profile``, ``role_arn``, ``headers``, ``proxy``, ``verify``, and ``api_key``
                for a bearer key. By default boto3's own chain of credentials holds.

        Raises:
            ConfigurationError: a value of the wrong type, or one that no request could use.
        """
        return cls._of("converse", options, region=region, base_url=endpoint_url)

    @classmethod
    def custom(cls, factory: str, placement: Placement = "worker") -> Self:
        """Return a stream of the user's own.

        Args:
            factory: ``package.module:factory``; see ``docs/custom.md``.
            placement: ``worker`` for a process of its own, ``inline`` for the calling thread.

        Raises:
            ConfigurationError: a value of the wrong type.
        """
        return cls(wire="custom", factory=factory, placement=placement)

    @classmethod
    def _of(cls, wire: Wire, options: dict[str, Any], **fixed: Any) -> Self:
        known = {field.encode_name: field.name for field in msgspec.structs.fields(cls)}
        allowed = WIRES[wire].options
        for name in options:
            if name not in allowed or name not in known:
                raise ConfigurationError(
                    f"{name} is no option of the wire {wire!r}: give of {', '.join(allowed)}"
                )
        given = {known[name]: value for name, value in options.items() if value is not None}
        return cls(wire=wire, **fixed, **given)

    @property
    def facts(self) -> WireFacts:
        """What is fixed about its wire, at the place where it is."""
        if self.wire == "messages" and self.region is not None:
            return vertex_facts(self.region)
        if self.api_version is not None:
            return azure_facts(self.wire)
        return WIRES[self.wire]

    @property
    def api_key(self) -> Secret | None:
        """The key that was given, if one was."""
        given = self.key_given
        return Secret(given) if isinstance(given, str) else given

    @property
    def label(self) -> str:
        """Wire and address for logs and reports: no key, no query, no user's name."""
        if self.local_model is not None:
            return f"{self.wire} local {self.local_model}"
        if self.factory is not None:
            return f"{self.wire} {self.factory}"
        address = self.base_url or self.facts.official_url
        return f"{self.wire} {addresses.shown(address) if address else self.region or 'default'}"

    @property
    def key(self) -> Hashable:
        """What tells this endpoint from others, whatever the key: for what is learned of it."""
        # A header's value may be a secret, so that only its hash is kept.
        return (
            self.label,
            hash(frozenset(self.headers.items())),
            frozenset(self.query.items()),
            *(getattr(self, name) for name in _TEXTS),
            self.proxy and hash(self.proxy),
            self.verify,
        )

    @property
    def is_local(self) -> bool:
        """Whether it is on this machine or in its private neighbourhood."""
        address = self.base_url or self.facts.official_url
        return self.local_model is not None or bool(address and budget.is_local(address))

    @property
    def takes_usage_option(self) -> bool:
        """Whether ``stream_options`` may ask for usage: Gemini's native address knows none."""
        if not self.facts.usage_option:
            return False
        parts = urlsplit(self.base_url or self.facts.official_url)
        return parts.hostname != _GEMINI_HOST or "openai" in parts.path.split("/")

    def located(self, environ: Mapping[str, str]) -> Endpoint:
        """Return this endpoint with the address that holds in ``environ``.

        Raises:
            ConfigurationError: the variable of its SDK is set and no address.
        """
        facts = self.facts
        if self.base_url is not None or self.local_model is not None or not facts.url_variable:
            return self
        address = environ.get(facts.url_variable, "").strip() or facts.official_url
        if not address:
            return self
        addresses.check_base_url(facts.url_variable, address)
        addresses.check_base_of(facts.url_variable, address, self.wire)
        return msgspec.structs.replace(self, base_url=address)

    def __hash__(self) -> int:
        return hash(self.key)

    def __repr__(self) -> str:
        return f"<Endpoint {self.label}>"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return [("label", self.label)]


def _stored_key(given: Any) -> str | Secret | None:
    if given is None:
        return None
    return _plain(given if isinstance(given, Secret) else Secret(given))


def _plain(given: str | Secret) -> str | Secret:
    """Return a reference as text, so that it encodes."""
    return str(given) if isinstance(given, Secret) and given.is_reference else given

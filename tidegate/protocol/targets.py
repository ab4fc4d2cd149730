"""Where a request that starts at this moment goes, and with which key.

Path: ``planning.py`` -> this -> ``provider/transport.py``
"""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit

from tidegate.errors import ConfigurationError
from tidegate.protocol.attempts import Target
from tidegate.protocol.endpoint_checks import check_header_text
from tidegate.protocol.endpoints import Endpoint
from tidegate.protocol.secrets import MissingKey, Secret, names_variable


_ORGANIZATION = "OPENAI_ORG_ID"


def target_of(
    endpoint: Endpoint, environ: Mapping[str, str], *, base_url: str | None = None
) -> Target:
    """Return the target of a request to ``endpoint``.

    Args:
        endpoint: what was asked for.
        environ: the environment, which has the defaults and the keys that are references.
        base_url: the address of the local server, for an endpoint of ``Endpoint.local``.

    Raises:
        MissingKey: there is no key, and the address cannot do without.
        ConfigurationError: an address in ``environ`` is none, or a text could not be sent.
    """
    if endpoint.local_model is not None:
        if base_url is None:
            raise ConfigurationError(f"{endpoint.label}: its server has no address yet")
        # It is the address as the chat wire has it; the messages wire has its version in the path.
        at = base_url.removesuffix("/v1") if endpoint.wire == "messages" else base_url
        return Target(endpoint.wire, base_url=at)
    address = (base_url or endpoint.located(environ).base_url or "").rstrip("/")
    facts = endpoint.facts
    openai = endpoint.wire in ("chat", "responses")
    project = endpoint.project or _text_in(environ, facts.project_variable)
    if endpoint.region is not None and facts.project_variable and not project:
        raise ConfigurationError(
            f"region={endpoint.region!r} without a project: give project to the endpoint, or set "
            f"{facts.project_variable}"
        )
    if endpoint.api_version is not None and not address:
        raise ConfigurationError(
            f"api_version={endpoint.api_version!r} without an address: give base_url to the "
            f"endpoint, or set {facts.url_variable}"
        )
    return Target(
        endpoint.wire,
        base_url=address,
        api_key=_key_of(endpoint, environ, address),
        headers=tuple(
            (name, header_value(name, value, environ)) for name, value in endpoint.headers.items()
        ),
        query=tuple(endpoint.query.items()),
        organization=endpoint.organization or (_text_in(environ, _ORGANIZATION) if openai else ""),
        project=project,
        api_version=endpoint.api_version or "",
        proxy=endpoint.proxy or "",
        verify=endpoint.verify,
        options=_options_of(endpoint, environ),
    )


def _text_in(environ: Mapping[str, str], variable: str) -> str:
    """Return what a variable has for a header, where it stands for an option."""
    text = environ.get(variable, "")
    check_header_text(variable, text)
    return text


def header_value(name: str, given: str | Secret, environ: Mapping[str, str]) -> str:
    """Return what is sent as a header.

    Args:
        name: of the header.
        given: the value itself, or where it is.
        environ: the environment.

    Raises:
        MissingKey: it is not there, or could not stand in a header.
    """
    if isinstance(given, str) and not names_variable(given):
        return given  # it may begin with the same letters, as a key may not
    try:
        return (given if isinstance(given, Secret) else Secret(given)).reveal(environ)
    except MissingKey as missing:
        raise MissingKey(f"headers[{name!r}]: {missing}") from missing


def _key_of(endpoint: Endpoint, environ: Mapping[str, str], address: str) -> str:
    facts = endpoint.facts
    if (secret := endpoint.api_key) is not None:
        return secret.reveal(environ)
    missing: MissingKey | None = None
    # Whoever was named in the endpoint comes before a key that happens to be in the environment.
    named = endpoint.profile is not None or endpoint.role_arn is not None
    for variable in () if named else facts.key_variables:
        try:
            return Secret(f"env:{variable}").reveal(environ)
        except MissingKey as error:
            missing = missing or error
    carried = any(name.lower() in ("authorization", facts.key_header) for name in endpoint.headers)
    official = urlsplit(facts.official_url).hostname
    if carried or official is None or urlsplit(address).hostname != official:
        return ""
    if missing is None:
        raise MissingKey("no access token: give api_key, best a function that returns a fresh one")
    raise MissingKey(f"{missing}, or give api_key to the endpoint") from None


def _options_of(endpoint: Endpoint, environ: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Return what one wire alone needs, in a fixed order."""
    options: dict[str, str] = {}
    if endpoint.wire == "converse":
        # The credentials' variables are read here, at each start, like any other key.
        options = {name: value for name, value in environ.items() if name.startswith("AWS_")}
    for name in ("region", "profile", "role_arn", "factory"):
        if (value := getattr(endpoint, name)) is not None:
            options[name] = value
    return tuple(sorted(options.items()))

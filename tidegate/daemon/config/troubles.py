"""What will go wrong at an endpoint on this machine, and what had better stand elsewhere.

None of it is an error, for variables and files may still come: each turn reads them anew.
"""

from __future__ import annotations

import importlib.util
import re
import ssl
from collections.abc import Iterator, Mapping
from pathlib import Path

from tidegate.daemon.config.aws import check_profile
from tidegate.daemon.config.model import EndpointConfig
from tidegate.daemon.config.references import is_reference, resolve
from tidegate.errors import ConfigurationError
from tidegate.local.weights import locate
from tidegate.protocol.endpoints import Endpoint
from tidegate.protocol.secrets import MissingKey
from tidegate.protocol.targets import header_value, target_of


SECRET_HEADERS = (
    "authorization",
    "proxy-authorization",
    "x-api-key",
    "api-key",
    "x-goog-api-key",
)
"""Headers that carry keys and nothing else."""

_HASHED = re.compile(r"[0-9a-f]{8}\.[0-9]+")
"""The names by which OpenSSL finds certificates in a folder."""


def troubles_of(endpoint: EndpointConfig, environ: Mapping[str, str]) -> Iterator[str]:
    """Say what will go wrong with each turn, or is not as it should be.

    Args:
        endpoint: one of the configuration.
        environ: the environment.
    """
    if endpoint.local_model is not None:
        yield from _without_local(endpoint.local_model)
        return
    made = endpoint.on_wire(endpoint.wires[0])
    if isinstance(made.verify, str) and (trouble := _certificates_at(made.verify)):
        yield trouble
    yield from _addressed(made)
    told = [*_headers(made, environ)]
    yield from told
    try:
        if endpoint.api_key is not None:
            resolve(endpoint.api_key, environ)
        if endpoint.wire == "converse":
            check_profile(endpoint.profile, environ)
        target_of(made, environ)
    except (MissingKey, ConfigurationError) as missing:
        if str(missing) not in told:
            yield str(missing)
    for name, value in endpoint.headers.items():
        if name.lower() in SECRET_HEADERS and not is_reference(value):
            yield (
                f"headers[{name!r}] has a secret in the file: put its whole value into a variable "
                "or a file, and give 'env:NAME' or 'file:PATH'"
            )


def _without_local(model: str) -> Iterator[str]:
    if importlib.util.find_spec("xllamacpp") is None:
        yield "xllamacpp is not installed: run `pip install 'tidegate[local]'`"
    try:
        locate(model)
    except ConfigurationError as missing:
        yield str(missing)


def _headers(endpoint: Endpoint, environ: Mapping[str, str]) -> Iterator[str]:
    for name, value in endpoint.headers.items():
        try:
            header_value(name, value, environ)
        except MissingKey as missing:
            yield str(missing)


def _addressed(endpoint: Endpoint) -> Iterator[str]:
    """Doubt an address that is right for other wires; there may be a server that wants it."""
    base = (endpoint.base_url or "").rstrip("/")
    if endpoint.wire == "messages" and endpoint.region is None and base.endswith("/v1"):
        yield (
            f"base_url={base!r}: requests go to {base}/v1/messages: unless that is meant, give "
            f"{base.removesuffix('/v1')!r}"
        )


def _certificates_at(path: str) -> str | None:
    """Say why nothing at ``path`` can vouch for a server; None if something can."""
    try:
        if Path(path).is_dir():
            if any(_HASHED.fullmatch(each.name) for each in Path(path).iterdir()):
                return None
            return f"verify={path!r}: the folder has no hashed names: run `openssl rehash` there"
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(cafile=path)
    except ssl.SSLError:
        why = "it holds no certificate"
    except OSError as error:
        why = str(error.strerror)
    else:
        if context.cert_store_stats()["x509"]:
            return None
        why = "it holds no certificate"  # but a list of those that were revoked
    return f"verify={path!r}: {why}: give a file of PEM certificates"

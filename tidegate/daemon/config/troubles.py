"""What will go wrong at an endpoint on this machine, and what had better stand elsewhere.

None of it is an error, for variables and files may still come: each turn reads them anew.
"""

from __future__ import annotations

import importlib.util
import re
import ssl
from collections.abc import Iterator, Mapping
from pathlib import Path

from tidegate.actors.provider.proxies import NoHttpProxy, proxy_for
from tidegate.daemon.config.aws import check_profile
from tidegate.daemon.config.model import EndpointConfig
from tidegate.daemon.config.references import is_reference, looks_like_reference
from tidegate.errors import ConfigurationError
from tidegate.local.weights import locate
from tidegate.protocol.endpoints import Endpoint
from tidegate.protocol.secrets import MissingKey, is_secret_name
from tidegate.protocol.targets import header_value, target_of


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
    if (trouble := unusable(made, environ)) is not None and trouble not in told:
        yield trouble
    if endpoint.wire == "converse":
        try:
            check_profile(endpoint.profile, environ)
        except ConfigurationError as error:
            yield str(error)
    yield from _in_the_file(endpoint)


def unusable(endpoint: Endpoint, environ: Mapping[str, str]) -> str | None:
    """Say why no turn of an endpoint could begin now; None if one could.

    It reads key files, and asks nobody.

    Args:
        endpoint: of the runtime.
        environ: the environment.
    """
    if endpoint.local_model is not None:
        return None  # its server says it
    try:
        target = target_of(endpoint, environ)
        if not target.proxy and target.base_url:
            proxy_for(target.base_url)
    except (MissingKey, ConfigurationError, NoHttpProxy) as error:
        return str(error)
    return None


def _in_the_file(endpoint: EndpointConfig) -> Iterator[str]:
    """Tell of secrets in the file, and of references that are written as none."""
    for name, value in endpoint.headers.items():
        if looks_like_reference(value):
            yield (
                f"headers[{name!r}] is sent as it stands, though it looks like a reference: if it "
                "is meant as one, give 'env:NAME' or 'file:PATH'"
            )
        elif is_secret_name(name) and not is_reference(value):
            yield (
                f"headers[{name!r}] has a secret in the file: put its whole value into a variable "
                "or a file, and give 'env:NAME' or 'file:PATH'"
            )
    for name in endpoint.query:
        if is_secret_name(name):
            yield (
                f"query[{name!r}] has a secret in the file: if the server takes it in a header "
                "too, give it there as 'env:NAME' or 'file:PATH'"
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
    tail = next((each for each in ("/v1", "/messages") if base.endswith(each)), None)
    if endpoint.wire == "messages" and endpoint.region is None and tail is not None:
        yield (
            f"base_url={base!r}: requests go to {base}/v1/messages: unless that is meant, give "
            f"{base.removesuffix(tail)!r}"
        )


def _certificates_at(path: str) -> str | None:
    """Say why nothing at ``path`` can vouch for a server; None if something can."""
    try:
        if Path(path).exists() and not Path(path).is_file() and not Path(path).is_dir():
            return f"verify={path!r}: it is no regular file: give a file of PEM certificates"
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

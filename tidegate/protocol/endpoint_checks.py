"""Checks of an endpoint's fields, each alone and against its wire."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import msgspec

from tidegate.errors import ConfigurationError
from tidegate.protocol import addresses
from tidegate.protocol.policy import Policy
from tidegate.protocol.secrets import Secret
from tidegate.protocol.wires import WIRES, Wire


if TYPE_CHECKING:
    from tidegate.protocol.endpoints import Endpoint

_REGION_EXAMPLES = {"converse": "eu-west-1", "messages": "us-east5"}
_REGION = re.compile(r"[a-z0-9-]+")
_EVERYWHERE = ("wire", "policy")
_TRANSPORTS = (
    "connection",
    "content-length",
    "expect",
    "keep-alive",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
)
"""Headers that say how a request is sent, which whoever sends it alone can know."""

_fields = functools.cache(msgspec.structs.fields)  # asking anew takes longer than all the checks


def check_values(endpoint: Endpoint, *, texts: Iterable[str]) -> None:
    """Check each field by itself.

    Args:
        endpoint: what was given, key apart.
        texts: the names of the fields that are optional texts.

    Raises:
        ConfigurationError: a value of the wrong type, or one that no request could use.
    """
    if endpoint.wire not in WIRES:
        raise ConfigurationError(f"wire={endpoint.wire!r}: give one of {', '.join(WIRES)}")
    if endpoint.base_url is not None:
        addresses.check_base_url("base_url", endpoint.base_url)
    if endpoint.proxy is not None:
        addresses.check_address("proxy", endpoint.proxy)
    if not isinstance(endpoint.factory, str | None):
        raise ConfigurationError(
            f"factory={endpoint.factory!r}: a worker imports it by its name, so give "
            "'package.module:factory'"
        )
    for name in texts:
        addresses.check_text(name, getattr(endpoint, name))
    for name in ("headers", "query"):
        addresses.check_pairs(name, getattr(endpoint, name))
    _check_headers(endpoint.headers)
    for name in ("organization", "project"):
        check_header_text(name, getattr(endpoint, name) or "")
    if not isinstance(endpoint.verify, bool | str) or endpoint.verify == "":
        raise ConfigurationError(
            f"verify={endpoint.verify!r}: give True, False or the path of a CA file"
        )
    if isinstance(endpoint.verify, str):
        addresses.check_text("verify", endpoint.verify)
    if not isinstance(endpoint.policy, Policy | None):
        raise ConfigurationError(f"policy={endpoint.policy!r}: give a tidegate.Policy")
    if endpoint.placement not in ("worker", "inline"):
        raise ConfigurationError(f"placement={endpoint.placement!r}: give 'worker' or 'inline'")


def check_wire(endpoint: Endpoint) -> None:
    """Check that what was given means something on the endpoint's wire.

    Raises:
        ConfigurationError: it does not, or something that the wire needs is missing.
    """
    for field in _fields(type(endpoint)):
        given = getattr(endpoint, field.name) not in (field.default, {})
        if given and field.encode_name not in (*_EVERYWHERE, *endpoint.facts.options):
            raise ConfigurationError(
                f"{field.encode_name} means nothing on the wire {endpoint.wire!r}: leave it out"
            )
    if endpoint.base_url is not None:
        addresses.check_base_of("base_url", endpoint.base_url, endpoint.wire)
    if endpoint.region is not None:
        check_region("region", endpoint.region, endpoint.wire)
    if endpoint.wire == "messages" and endpoint.project is not None and endpoint.region is None:
        raise ConfigurationError(
            f"project={endpoint.project!r} without a region: give both, for Claude on Vertex AI"
        )
    for name in ("base_url", "region"):
        if endpoint.local_model is not None and getattr(endpoint, name) is not None:
            raise ConfigurationError(f"local_model and {name}: give one of them")
    if endpoint.wire == "custom":
        module, _, name = (endpoint.factory or "").partition(":")
        if not module or not name:
            raise ConfigurationError(f"factory={endpoint.factory!r}: give 'package.module:factory'")
        if module == "__main__" and endpoint.placement == "worker":
            raise ConfigurationError(
                f"factory={endpoint.factory!r}: a worker has a __main__ of its own, so put the "
                "factory into a module that can be imported"
            )


def check_header_text(name: str, text: str) -> None:
    """Check a text that is no secret and will stand in a header.

    Args:
        name: of the option or the variable that gave it.
        text: what was given.

    Raises:
        ConfigurationError: it cannot.
    """
    if not text.isascii() or not text.isprintable():
        raise ConfigurationError(f"{name}={text!r}: it is sent in a header, so give ASCII alone")


def _check_headers(headers: Mapping[str, str | Secret]) -> None:
    seen: dict[str, str] = {}
    for name, value in headers.items():
        lower = name.lower()
        if lower in _TRANSPORTS:
            raise ConfigurationError(
                f"headers: {name!r} is set by whoever sends the request: leave it out"
            )
        if lower in seen:
            raise ConfigurationError(
                f"headers: {seen[lower]!r} and {name!r} are one header: give it once"
            )
        seen[lower] = name
        if isinstance(value, str) and not value.isascii():
            raise ConfigurationError(
                f"headers[{name!r}]: a header is ASCII, and its value has another character"
            )


def check_region(name: str, region: str, wire: Wire) -> None:
    """Check the region of a cloud, which becomes part of a host's name.

    Args:
        name: of the option, the variable or the file that gave it.
        region: what was given.
        wire: whose cloud it is.

    Raises:
        ConfigurationError: it can be none.
    """
    if not _REGION.fullmatch(region):
        example = _REGION_EXAMPLES[wire]
        raise ConfigurationError(f"{name}={region!r}: give a name such as {example!r}")

"""How long a provider may be silent: every limit with the rule that made it, as pure functions."""

from __future__ import annotations

import functools
import ipaddress
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from tidegate.errors import ConfigurationError


IMAGE_TOKENS = 1_500
"""What an image, a sound or a file counts: a usual price, for its base64 says nothing of it."""

REMEMBERED_MAX = 1024
"""Of so many addresses and models it is known what they are."""

_IMAGE_CHARS = 4 * IMAGE_TOKENS
_DEPTH_MAX = 200

STREAM_STALE_S = 180.0
LOCAL_STALE_S = 900.0
"""Finite on purpose: a local server that crashed in its prefill never says so."""
PLAIN_STALE_S = 90.0
ALIVE_S = 120.0

_STREAM_CONTEXT_FLOORS = ((100_000, 300.0), (50_000, 240.0))
_PLAIN_CONTEXT_FLOORS = ((100_000, 240.0), (50_000, 150.0))

_FAMILIES: dict[float, tuple[str, ...]] = {
    600.0: (
        "nemotron-3-ultra",
        "nemotron-3-super",
        "deepseek-r1",
        "deepseek-reasoner",
        "deepseek-flash",
        "deepseek-v4-flash",
        "deepseek-v4.1-flash",
        "deepseek-v4-pro",
        "o1",
        "o1-mini",
        "o1-pro",
        "o1-preview",
        "o3",
        "o3-pro",
        "claude-fable",
    ),
    300.0: (
        "nemotron-3-nano",
        "nemotron-3.5-lightning",
        "qwq-32b",
        "o3-mini",
        "o4-mini",
        "grok-4-fast-reasoning",
        "grok-4.20-reasoning",
        "grok-4.5",
        "grok-4.6",
        "ox-alpha",
        "x-preview-f-free",
        "inkling",
    ),
    240.0: ("claude-opus-4", "claude-opus-5"),
    180.0: (
        "qwen3",
        "claude-sonnet-5",
        "claude-sonnet-4.5",
        "claude-sonnet-4.6",
        "grok-4-fast-non-reasoning",
    ),
}
_FLOORS_S = {slug: floor for floor, slugs in _FAMILIES.items() for slug in slugs}

_SLUGS = sorted(_FLOORS_S, key=len, reverse=True)

_REGION = re.compile(r"^(?:global|us|eu|apac|ap|au|jp|ca|sa|me|af)\.")
_VENDOR = re.compile(r"^([a-z][a-z0-9]*)\.(?=.)")
_DASH_IN_NUMBER = re.compile(r"(?<=\d)-(?=\d)")
_DOT_IN_NUMBER = re.compile(r"(?<=\d)\.(?=\d)")

_LOCAL_NAMES = frozenset({"localhost", "0.0.0.0"})  # noqa: S104 - compared, not bound
_LOCAL_SUFFIXES = (".docker.internal", ".containers.internal", ".lima.internal")
_LOCAL_NETWORKS = tuple(
    ipaddress.ip_network(network)
    for network in (
        "127.0.0.0/8",
        "10.0.0.0/8",
        "172.16.0.0/12",
        "192.168.0.0/16",
        "100.64.0.0/10",  # shared space: Tailscale's addresses
        "::1/128",
        "fc00::/7",
    )
)

_CONTEXT_KEYS = ("messages", "tools", "input", "instructions", "system", "toolConfig")
_MEDIA_TYPES = frozenset(
    {"image", "image_url", "input_image", "input_audio", "audio", "file", "input_file", "document"}
)


class Budget(NamedTuple):
    """A limit in seconds, None for never, and in a few words where it comes from."""

    seconds: float | None
    origin: str


class FirstEventRules(NamedTuple):
    """What the responses wire, which tells at once that it has begun, grants its first event.

    Attributes:
        seconds: the limit; 0 for none of its own, so that the stale budget holds.
        long_context: the estimated context, in model tokens, from which on the stale budget holds
            if that is longer; 0 for never.
        ceiling_s: the longest limit that comes of this; 0 for none.
        origin: in a few words, where the limit comes from.
    """

    seconds: float = 120.0
    long_context: int = 10_000
    ceiling_s: float = 0.0
    origin: str = "built-in: responses"


class Floor(NamedTuple):
    """The least silence, in seconds, that the models of one family need for their thinking."""

    seconds: float
    slug: str


@functools.lru_cache(maxsize=REMEMBERED_MAX)
def is_local(base_url: str) -> bool:
    """Tell whether ``base_url`` points to this machine or to its private neighbourhood.

    Names are judged by themselves alone: nothing is looked up.
    """
    host = (urlsplit(base_url).hostname or "").rstrip(".")
    if host in _LOCAL_NAMES or host.endswith(_LOCAL_SUFFIXES):
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped:
        address = address.ipv4_mapped
    return any(address in network for network in _LOCAL_NETWORKS)


@functools.lru_cache(maxsize=REMEMBERED_MAX)
def reasoning_floor(model: str) -> Floor | None:
    """Find the floor of a known reasoning model, by its plain name or its Bedrock id."""
    for name in _names_of(model.lower().rpartition("/")[2]):
        for slug in _SLUGS:
            if name.startswith(slug) and name[len(slug) : len(slug) + 1] in ("", *"-._:"):
                return Floor(_FLOORS_S[slug], slug)
    return None


def _names_of(name: str) -> Iterator[str]:
    """Yield what ``name`` could be called in the table, itself first."""
    yield name
    bare = _REGION.sub("", name)
    vendor = _VENDOR.match(bare)
    if vendor is None:
        return
    rest = bare[vendor.end() :]
    for candidate in (rest, f"{vendor[1]}-{rest}"):
        yield candidate
        yield _DASH_IN_NUMBER.sub(".", candidate)
        yield _DOT_IN_NUMBER.sub("-", candidate)


def context_tokens(payload: Mapping[str, Any]) -> int:
    """Estimate the model tokens of a payload's conversation and tools: characters over four.

    Raises:
        ConfigurationError: the payload is nested without end.
    """
    return sum(_characters_of(payload.get(key), 0) for key in _CONTEXT_KEYS) // 4


def _characters_of(value: Any, depth: int) -> int:
    """Count characters; a picture counts as so many as its tokens would have."""
    kind = type(value)
    if kind is str:
        return _IMAGE_CHARS if value[:5] == "data:" and ";base64," in value[:200] else len(value)
    if kind is dict or isinstance(value, Mapping):
        if _is_media(value):
            return _IMAGE_CHARS
        count = 4 * len(value) + sum(map(len, map(str, value)))
        items: Iterable[Any] = value.values()
    elif isinstance(value, list | tuple):
        count, items = 0, value
    elif isinstance(value, bytes | bytearray):
        return _IMAGE_CHARS
    else:
        return 0 if value is None else len(str(value))
    if depth == _DEPTH_MAX:
        raise ConfigurationError(
            f"payload is nested over {_DEPTH_MAX} levels deep: does it hold itself?"
        )
    for item in items:
        # Most of a history is text, which is not worth a call each.
        plain = type(item) is str and item[:5] != "data:"
        count += len(item) if plain else _characters_of(item, depth + 1)
    return count


def _is_media(part: Mapping[Any, Any]) -> bool:
    kind = part.get("type")
    # A JSON schema may have a property "type" of its own, which is then no string.
    if isinstance(kind, str) and kind in _MEDIA_TYPES and len(part) > 1:
        return True
    # Bedrock has no type: what is an image is told by the name of the field around it.
    source = part.get("source")
    return isinstance(source, Mapping) and ("bytes" in source or "s3Location" in source)


def stale_budget(*, wire: str, local: bool, model: str, context: int) -> Budget:
    """Return how long a stream may make no progress.

    Args:
        wire: for ``converse`` the local rule does not hold.
        local: as ``is_local`` has it.
        model: as the request names it.
        context: the estimate of ``context_tokens``.
    """
    if local and wire != "converse":
        return Budget(LOCAL_STALE_S, "built-in: local endpoint")
    return _raised(Budget(STREAM_STALE_S, "built-in"), model, context, _STREAM_CONTEXT_FLOORS)


def plain_stale_budget(*, wire: str, local: bool, model: str, context: int) -> Budget:
    """Return how long an answer without streaming may take; never ends for a local endpoint.

    The arguments are those of ``stale_budget``.
    """
    if local and wire != "converse":
        return Budget(None, "built-in: local endpoint, not streaming")
    start = Budget(PLAIN_STALE_S, "built-in: not streaming")
    return _raised(start, model, context, _PLAIN_CONTEXT_FLOORS)


def _raised(
    start: Budget, model: str, context: int, context_floors: tuple[tuple[int, float], ...]
) -> Budget:
    """Raise ``start`` to the floors of the context and of the model; of equals the first stands."""
    steps = [start]
    for limit, seconds in context_floors:
        if context > limit:
            steps.append(Budget(seconds, f"context over {limit} tokens"))
            break
    if floor := reasoning_floor(model):
        steps.append(Budget(floor.seconds, f"floor {floor.seconds:g} for {floor.slug}"))
    return max(steps, key=lambda step: step.seconds or 0.0)


def first_event_budget(
    *,
    wire: str,
    local: bool,
    context: int,
    stale: Budget,
    rules: FirstEventRules = FirstEventRules(),  # noqa: B008 - it is immutable
) -> Budget:
    """Return how long the first event may take, from the request on.

    Args:
        wire: all but ``responses`` have the stale budget.
        local: as ``is_local`` has it.
        context: the estimate of ``context_tokens``.
        stale: the stale budget that holds for the request.
        rules: what holds for ``responses``.
    """
    as_stale = Budget(stale.seconds, f"stale budget: {stale.origin}")
    if wire != "responses" or local or not rules.seconds or stale.seconds is None:
        return as_stale
    found = Budget(rules.seconds, rules.origin)
    if 0 < rules.long_context <= context and stale.seconds > rules.seconds:
        found = Budget(stale.seconds, f"context of {rules.long_context} tokens or more")
    if rules.ceiling_s and found.seconds is not None and found.seconds > rules.ceiling_s:
        found = Budget(rules.ceiling_s, f"ceiling of {rules.ceiling_s:g}")
    return found


def alive_budget(stale: Budget) -> Budget:
    """Return how long not a byte may come: the stale budget, and at least ``ALIVE_S``."""
    if stale.seconds is None or stale.seconds > ALIVE_S:
        return Budget(stale.seconds, f"stale budget: {stale.origin}")
    return Budget(ALIVE_S, "built-in")

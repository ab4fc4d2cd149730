"""Whether a request is let in, and as whose; pure.

The order is that of what may be told to whom: a request that cannot be read, then a name that is
not ours (a page that pretends to be the daemon's own), then a page of another origin, then the
key, then how often.
"""

from __future__ import annotations

import math
from typing import TypeAlias

import msgspec

from tidegate.daemon.access import cors, hosts, routes
from tidegate.daemon.access import headers as head
from tidegate.daemon.access.keys import Headers, Keys, presented_in
from tidegate.daemon.access.rate import RateLimit
from tidegate.errors import ConfigurationError


NOBODY = ""
"""The owner of what is done where no key is asked for."""

# A proxy in front adds one of them: whoever asks is then not on this machine.
_FORWARDED = (b"forwarded", b"x-forwarded-for", b"x-forwarded-host", b"x-real-ip", b"via")


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """What the configuration says about access.

    Attributes:
        keys: who may call; none are asked for if there are none.
        loopback: whether the daemon listens on a loopback address.
        hosts: further values of ``Host`` that are answered on loopback, with or without a port.
        origins: pages that may ask, as ``https://app.example``; ``*`` for all, with keys only.

    Raises:
        ConfigurationError: the daemon would be open to others.
    """

    keys: Keys
    loopback: bool
    hosts: frozenset[str] = frozenset()
    origins: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        if self.keys:
            return
        if not self.loopback:
            raise ConfigurationError(
                "keys: a daemon that others can reach needs one: set keys, or listen on 127.0.0.1"
            )
        if "*" in self.origins:
            raise ConfigurationError(
                "cors_origins: '*' without keys lets every page use the daemon: set keys, or list"
                " the origins"
            )


class Facts(msgspec.Struct, frozen=True):
    """What is known of a request before its body is read."""

    method: str
    path: str
    headers: Headers


class Allowed(msgspec.Struct, frozen=True):
    """The request goes on.

    Attributes:
        owner: whose it is, ``NOBODY`` if no key was needed.
        headers: what the answer must have besides its own.
    """

    owner: str
    headers: dict[str, str] = {}


class Denied(msgspec.Struct, frozen=True):
    """The request ends here."""

    status: int
    kind: str
    message: str
    headers: dict[str, str] = {}


class Preflight(msgspec.Struct, frozen=True):
    """A browser's question is answered with 204 and these headers."""

    headers: dict[str, str]


Verdict: TypeAlias = Allowed | Denied | Preflight


def decide(facts: Facts, rules: Rules, rate: RateLimit, now_s: float) -> Verdict:
    """Judge a request.

    Args:
        facts: the request, without its body.
        rules: what the configuration says.
        rate: the buckets; the request is counted if it comes as far as that.
        now_s: seconds of a monotonic clock.
    """
    origin = head.text(facts.headers, b"origin")
    extra = cors.answer_headers(origin, rules.origins)
    verdict = _judged(facts, rules, rate, now_s)
    if isinstance(verdict, Preflight) or not extra:
        return verdict
    return msgspec.structs.replace(verdict, headers={**extra, **verdict.headers})


def _judged(facts: Facts, rules: Rules, rate: RateLimit, now_s: float) -> Verdict:
    if (trouble := head.trouble_with(facts.headers)) is not None:
        return Denied(trouble.status, trouble.kind, trouble.message)
    if (denied := _wrong_host(facts, rules)) is not None:
        return denied
    if cors.is_preflight(facts.method, facts.headers):
        return _preflight(facts, rules)
    owner, by_browser = _caller(facts, rules)
    if owner is None:
        if not _needs_none(facts, rules):
            return _no_key(facts)
        owner, by_browser = NOBODY, True
    if by_browser and (denied := _wrong_origin(facts, rules)) is not None:
        return denied
    if routes.is_counted(facts.method, facts.path):
        wait_s = rate.take(owner, now_s)
        if wait_s:
            return _too_often(rate.per_minute, wait_s)
    return Allowed(owner)


def _wrong_host(facts: Facts, rules: Rules) -> Denied | None:
    value = head.text(facts.headers, b"host")
    authority = hosts.authority_from(value)
    if authority is None:
        return Denied(400, "bad_request", f"the header host is {_shown(value)}, which is no host")
    if not rules.loopback or hosts.is_loopback(authority.name):
        return None
    if hosts.is_listed(authority, rules.hosts):
        return None
    return Denied(
        403,
        "forbidden",
        f"this daemon is not called {_shown(value)}: ask for localhost, or add the name to hosts"
        " in its configuration",
    )


def _preflight(facts: Facts, rules: Rules) -> Verdict:
    if cors.is_listed(head.text(facts.headers, b"origin"), rules.origins):
        return Preflight(cors.preflight_headers(facts.headers, rules.origins))
    return _foreign(facts)


def _caller(facts: Facts, rules: Rules) -> tuple[str | None, bool]:
    """Return the owner, None without a key that fits, and whether a browser may have added it."""
    by_browser = None
    for presented in presented_in(facts.headers):
        owner = rules.keys.owner(presented.text)
        if owner is not None and not presented.by_browser:
            return owner, False
        by_browser = owner if by_browser is None else by_browser
    return by_browser, True


def _needs_none(facts: Facts, rules: Rules) -> bool:
    if not rules.keys or facts.path in routes.PROBES:
        return True
    return rules.loopback and routes.is_watched(facts.path) and _is_from_here(facts)


def _is_from_here(facts: Facts) -> bool:
    """Return whether whoever asks is on this machine, as far as can be told."""
    if any(name in _FORWARDED for name, _ in facts.headers):
        return False
    authority = hosts.authority_from(head.text(facts.headers, b"host"))
    return authority is not None and hosts.is_loopback(authority.name)


def _no_key(facts: Facts) -> Denied:
    way = "Basic" if routes.is_watched(facts.path) else "Bearer"
    what = "the key is not one of this daemon's" if presented_in(facts.headers) else "no key"
    return Denied(
        401,
        "auth",
        f"{what}: send it as 'Authorization: Bearer KEY' or 'x-api-key: KEY'",
        {"www-authenticate": f'{way} realm="tidegate"'},
    )


def _wrong_origin(facts: Facts, rules: Rules) -> Denied | None:
    """Refuse a page of another origin that has brought no key of its own.

    A browser adds what it knows of HTTP Basic to any page's request, so ``*`` is not enough here.
    """
    origin = head.text(facts.headers, b"origin")
    host = head.text(facts.headers, b"host")
    if not origin or origin in rules.origins or hosts.is_same_origin(origin, host):
        return None
    return _foreign(facts)


def _foreign(facts: Facts) -> Denied:
    origin = _shown(head.text(facts.headers, b"origin"))
    return Denied(
        403,
        "forbidden",
        f"pages of {origin} may not ask: add it to cors_origins in the configuration",
    )


def _too_often(per_minute: int, wait_s: float) -> Denied:
    seconds = math.ceil(wait_s)
    return Denied(
        429,
        "rate_limited",
        f"more than {per_minute} requests a minute with one key: ask again in {seconds} s",
        {"retry-after": str(seconds)},
    )


def _shown(value: str) -> str:
    return repr(value if len(value) <= 100 else f"{value[:100]}...")

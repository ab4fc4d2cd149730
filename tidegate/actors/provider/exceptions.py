"""Translates the exceptions of SDK, transport and decoders to failures, once, where they enter.

Classes are known by the package that they come from and their name, along the whole chain of
causes: so nothing is imported here that a worker has not loaded anyway, and the ancestors of a
class count too.

Path: ``provider/transport.py`` -> this -> ``provider/machine.py``
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import quote

import msgspec

from tidegate.actors.causes import chain_of
from tidegate.actors.provider.wording import worded, words_of
from tidegate.protocol.attempts import Target
from tidegate.protocol.failures import DETAIL_CHARS_MAX, Failure, FailureKind


MASK = "***"
_WHO_ARE_YOU = 407
_LOGIN = re.compile(r"(?<=//)[^/@\s]+(?=@)")
_SDKS = ("anthropic", "openai")
_UNPARSED = "aiohttp.HttpProcessingError"
_SECRET_OPTION = re.compile("SECRET|TOKEN")
TARGETS_MAX = 64
"""Of how many targets the secrets are known by heart; each attempt asks for them."""

SECRET_CHARS_MIN = 4
"""Shorter header values are no secrets, and masking them would spoil the text."""


class _Rule(NamedTuple):
    """What it means if a chain of causes holds one of these classes."""

    kind: FailureKind
    reason: str
    retryable: bool
    classes: frozenset[str]


def _rule(kind: FailureKind, reason: str, *classes: str, retryable: bool = True) -> _Rule:
    # httpx2 has the names of httpx, which custom streams may use.
    old = (name.replace("httpx2.", "httpx.") for name in classes)
    return _Rule(kind, reason, retryable, frozenset((*classes, *old)))


# The first that fits counts. A failed look-up is also a failed connect, and so on downwards.
_RULES = (
    _rule(FailureKind.BAD_REQUEST, "proxy", "tidegate.NoHttpProxy", retryable=False),
    _rule(FailureKind.BAD_REQUEST, "verify", "tidegate.NoCertificates", retryable=False),
    _rule(FailureKind.BAD_REQUEST, "redirect", "tidegate.ForeignRedirect", retryable=False),
    _rule(
        FailureKind.BAD_REQUEST,
        "url",
        "aiohttp.InvalidURL",
        "aiohttp.NonHttpUrlClientError",
        "httpx2.InvalidURL",
        "httpx2.UnsupportedProtocol",
        "httpx2.TooManyRedirects",
        "requests.InvalidSchema",
        "requests.InvalidURL",
        "requests.MissingSchema",
        "requests.TooManyRedirects",
        "yarl.InvalidURL",
        retryable=False,
    ),
    _rule(FailureKind.CONNECTION_LOST, "dns", "aiohttp.ClientConnectorDNSError", "socket.gaierror"),
    _rule(
        FailureKind.CONNECTION_LOST,
        "tls",
        "aiohttp.ClientConnectorCertificateError",
        "ssl.SSLCertVerificationError",
        retryable=False,
    ),
    _rule(
        FailureKind.CONNECTION_LOST,
        "tls",
        "aiohttp.ClientSSLError",
        "requests.SSLError",
        "ssl.SSLError",
    ),
    _rule(
        FailureKind.CONNECTION_LOST,
        "proxy",
        "aiohttp.ClientHttpProxyError",
        "aiohttp.ClientProxyConnectionError",
        "botocore.ProxyConnectionError",
        "httpx2.ProxyError",
        "requests.ProxyError",
    ),
    _rule(
        FailureKind.CONNECTION_LOST,
        "connect",
        "aiohttp.ClientConnectorError",
        "aiohttp.ConnectionTimeoutError",
        "anthropic.APITimeoutError",
        "builtins.ConnectionRefusedError",
        "builtins.TimeoutError",
        "botocore.ConnectionError",
        "botocore.ReadTimeoutError",
        "httpx2.ConnectError",
        "httpx2.TimeoutException",
        "openai.APITimeoutError",
        "requests.Timeout",
    ),
    _rule(
        FailureKind.CONNECTION_LOST,
        "cut",
        "aiohttp.ClientPayloadError",
        "http.IncompleteRead",
        "requests.ChunkedEncodingError",
    ),
    _rule(
        FailureKind.CONNECTION_LOST,
        "reset",
        "aiohttp.ClientOSError",
        "aiohttp.ServerDisconnectedError",
        "botocore.ConnectionClosedError",
        "builtins.ConnectionError",
        "httpx2.NetworkError",
        "requests.ConnectionError",
    ),
    _rule(
        FailureKind.CONNECTION_LOST,
        "protocol",
        "aiohttp.ClientError",
        "aiohttp.HttpProcessingError",
        "anthropic.APIConnectionError",
        "botocore.HTTPClientError",
        "http.HTTPException",
        "httpx2.TransportError",
        "openai.APIConnectionError",
    ),
    _rule(
        FailureKind.MALFORMED,
        "encoding",
        "builtins.UnicodeDecodeError",
        "httpx2.DecodingError",
        "requests.ContentDecodingError",
        "tidegate.UnknownEncoding",
        "zlib.error",
        retryable=False,
    ),
    _rule(
        FailureKind.MALFORMED,
        "json",
        "json.JSONDecodeError",
        "msgspec.DecodeError",
        retryable=False,
    ),
    _rule(FailureKind.BAD_REQUEST, "header", "builtins.UnicodeEncodeError", retryable=False),
    # The name of a host that can be none.
    _rule(FailureKind.BAD_REQUEST, "url", "builtins.UnicodeError", retryable=False),
    _rule(FailureKind.BAD_REQUEST, "payload", "botocore.ParamValidationError", retryable=False),
    _rule(
        FailureKind.BAD_REQUEST,
        "region",
        "botocore.EndpointProviderError",
        "botocore.InvalidRegionError",
        "botocore.NoRegionError",
        "botocore.UnknownEndpointError",
        "tidegate.NoRegion",
        retryable=False,
    ),
    _rule(
        FailureKind.AUTH,
        "credentials",
        "botocore.ClientError",
        "botocore.ConfigNotFound",
        "botocore.ConfigParseError",
        "botocore.CredentialRetrievalError",
        "botocore.InvalidConfigError",
        "botocore.NoCredentialsError",
        "botocore.PartialCredentialsError",
        "botocore.ProfileNotFound",
        "botocore.SSOError",
        "botocore.TokenRetrievalError",
        "tidegate.NoCredentials",
        retryable=False,
    ),
    _rule(
        FailureKind.BAD_REQUEST,
        "verify",
        "builtins.FileNotFoundError",
        "builtins.PermissionError",
        retryable=False,
    ),
    _rule(FailureKind.CONNECTION_LOST, "connect", "builtins.OSError"),
)


def failure_from(error: BaseException) -> Failure:
    """Say what ``error`` means for an attempt; ``internal`` if it is nobody's but ours.

    A connection that is lost in the body is told apart later, by the machine.
    """
    chain = tuple(chain_of(error))
    names = frozenset(names_of(chain))
    for rule in _RULES:
        if not names.isdisjoint(rule.classes):
            kind, reason, retryable = rule.kind, rule.reason, rule.retryable
            break
    else:
        kind, reason, retryable = FailureKind.INTERNAL, "", False
    if reason == "proxy" and (refused := _status_of(chain)) is not None:
        # The proxy has answered: whoever it does not know, or will not let out, stays where he is.
        kind = FailureKind.AUTH if refused == _WHO_ARE_YOU else kind
        retryable = retryable and not 400 <= refused < 500
    return Failure(
        kind=kind,
        reason=reason,
        retryable=retryable,
        detail=worded(reason, said_in(chain), chain),
        cause=type((*_telling(chain), error)[0]).__name__,
    )


def said_in(chain: Sequence[BaseException]) -> str:
    """Return the text of whoever says most in a chain of causes."""
    # What cannot be parsed has a status of aiohttp's own making, which no provider has sent.
    unparsed = [
        str(getattr(each, "message", "")) for each in chain if _UNPARSED in names_of([each])
    ]
    texts = (*unparsed, *map(words_of, (*_telling(chain), *chain)))
    return next(filter(None, texts), "")


def _telling(chain: Iterable[BaseException]) -> list[BaseException]:
    """Leave out what an SDK makes of a lost connection: it says no more than that."""
    return [each for each in chain if not type(each).__module__.startswith(_SDKS)]


def _status_of(chain: Iterable[BaseException]) -> int | None:
    statuses = (getattr(each, "status", None) for each in chain)
    return next((each for each in statuses if isinstance(each, int) and each >= 400), None)


@lru_cache(maxsize=TARGETS_MAX)
def secrets_of(target: Target) -> tuple[str, ...]:
    """List what of a target must not be seen in a text, the longest first."""
    values = [target.api_key, *(value for _, value in (*target.headers, *target.query))]
    values += [value for name, value in target.options if _SECRET_OPTION.search(name)]
    # A bearer token is known by its last word too, a proxy's password by what is before the host.
    values += [value.rpartition(" ")[2] for value in values]
    values += target.proxy.rpartition("@")[0].rpartition("//")[2].rpartition(":")[2:]
    values += [quote(value, safe="") for value in values]
    return tuple(
        sorted({each for each in values if len(each) >= SECRET_CHARS_MIN}, key=len, reverse=True)
    )


def scrubbed(failure: Failure, secrets: Iterable[str]) -> Failure:
    """Mask ``secrets`` in a failure's texts, and cut them to their greatest length.

    Who logs in to an address is masked too, for the environment's proxies are in no list.
    """
    secrets = tuple(secrets)
    return msgspec.structs.replace(
        failure,
        detail=masked(failure.detail, secrets),
        raw_text=masked(failure.raw_text, secrets),
        code=failure.code and masked(failure.code, secrets),
        request_id=failure.request_id and masked(failure.request_id, secrets),
    )


def masked(text: str, secrets: tuple[str, ...]) -> str:
    """Return a text without secrets, cut to its greatest length."""
    text = _LOGIN.sub(MASK, text)
    for secret in secrets:
        text = text.replace(secret, MASK)
        if len(text) >= DETAIL_CHARS_MAX:
            text = _without_beginning_of(secret, text)
    return text[:DETAIL_CHARS_MAX]


def _without_beginning_of(secret: str, text: str) -> str:
    """Mask the part of a secret with which a text ends that was cut before it came here."""
    for length in range(len(secret) - 1, SECRET_CHARS_MIN - 1, -1):
        if text.endswith(secret[:length]):
            return text[:-length] + MASK
    return text


def names_of(chain: Iterable[BaseException]) -> Iterator[str]:
    """Yield ``package.Class`` of every exception and of its class's ancestors."""
    for error in chain:
        for each in type(error).__mro__:
            yield f"{each.__module__.partition('.')[0]}.{each.__name__}"

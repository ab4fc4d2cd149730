"""Translates the exceptions of SDK, transport and decoders to failures, once, where they enter.

Classes are known by the package that they come from and their name, along the whole chain of
causes: so nothing is imported here that a worker has not loaded anyway, and the ancestors of a
class count too.

Path: ``provider/transport.py`` -> this -> ``provider/machine.py``
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from tidegate.actors.causes import chain_of
from tidegate.actors.provider.wording import worded, words_of
from tidegate.protocol.failures import Failure, FailureKind


_WHO_ARE_YOU = 407
_SDKS = ("anthropic", "openai")
_UNPARSED = "aiohttp.HttpProcessingError"


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


def names_of(chain: Iterable[BaseException]) -> Iterator[str]:
    """Yield ``package.Class`` of every exception and of its class's ancestors."""
    for error in chain:
        for each in type(error).__mro__:
            yield f"{each.__module__.partition('.')[0]}.{each.__name__}"

"""What a connection needs beside its address: certificates, and a way out of a closed network."""

from __future__ import annotations

import ssl
from functools import lru_cache, partial
from http.cookiejar import CookieJar
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2

from tidegate.actors.provider.capture import CapturedConnections
from tidegate.actors.provider.files import (
    Stamps,
    authorities_of_environment,
    certificates_of,
    stamps_of,
)
from tidegate.actors.provider.proxies import proxy_for
from tidegate.protocol.attempts import Target


CONTEXTS_MAX = 64
REDIRECTS_MAX = 4
"""How far within its server a request is sent around; each time it has the whole prompt."""

_ASKED = "tidegate.asked"
"""Where a request and those that it is redirected to keep the first one's address and cookie."""


class _NoCookies(CookieJar):
    """Takes none: one client serves many endpoints, and each turn may be somebody else's."""

    def extract_cookies(self, *_: Any) -> None:
        """Leave them where they are."""


class ForeignRedirect(Exception):
    """A provider has sent a request on to another server."""


class NoCertificates(Exception):
    """A file of certificates has none, or cannot be read."""


def connections_for(target: Target) -> CapturedConnections:
    """Return connections as ``target`` wants them.

    Raises:
        OSError: the certificates cannot be read.
        NoCertificates: there are none.
        NoHttpProxy: the environment names a proxy that speaks something else.
    """
    proxy = target.proxy or proxy_for(target.base_url)
    return CapturedConnections(tls_context(target.verify), proxy)


def client_over(connections: CapturedConnections, target: Target) -> httpx2.AsyncClient:
    """Return a client for an SDK, which closes the connections with it.

    It follows a redirect within the server that was asked. To any other it would take the prompt
    where nobody has sent it, and so it raises ``ForeignRedirect``. No server's cookies are taken.
    """
    return httpx2.AsyncClient(
        transport=connections,
        cookies=_NoCookies(),
        follow_redirects=True,
        max_redirects=REDIRECTS_MAX,
        event_hooks={"request": [partial(_stay, target)], "response": [_without_useless_place]},
    )


async def _stay(target: Target, request: httpx2.Request) -> None:
    """Let a request go to the server that was asked first, and to no other."""
    asked: httpx2.URL
    first = (request.url, request.headers.get("cookie"))
    asked, cookie = request.extensions.setdefault(_ASKED, first)
    if cookie is not None:
        request.headers["cookie"] = cookie  # a client takes it away with a redirect
    if not _is_same_host(asked, request.url):
        setting = "endpoint_url" if target.wire == "converse" else "base_url"
        raise ForeignRedirect(
            f"{_origin_of(asked)} redirects to {_origin_of(request.url)}, which is another server "
            f"and was sent nothing: if it is meant, set {setting} to "
            + _base_there(target.base_url, asked, request.url)
        )


async def _without_useless_place(response: httpx2.Response) -> None:
    """Make no redirect of a response that says of no address to go on to."""
    if response.has_redirect_location and not _is_place(response.headers["location"]):
        del response.headers["location"]


def _is_place(location: str) -> bool:
    try:
        httpx2.URL(location)
    except httpx2.InvalidURL:
        return False
    return bool(location)


def _base_there(base_url: str, asked: httpx2.URL, now: httpx2.URL) -> str:
    """Return the base URL with which the request would go to ``now`` at once, if there is one."""
    tail = asked.path.removeprefix(urlsplit(base_url).path.rstrip("/"))
    if not base_url or not now.path.endswith(tail):
        return "an address of its own"
    return _origin_of(now) + now.path.removesuffix(tail)


def _origin_of(url: httpx2.URL) -> str:
    return f"{url.scheme}://{url.netloc.decode()}"


def _is_same_host(asked: httpx2.URL, now: httpx2.URL) -> bool:
    """Say whether two addresses are one server's; it may move from HTTP to HTTPS."""
    if (asked.host, asked.port) != (now.host, now.port):
        return False
    return asked.scheme == now.scheme or (asked.scheme == "http" and asked.port is None)


def tls_context(verify: bool | str = True) -> ssl.SSLContext:
    """Return the one context of this process for a way to verify; it takes 20 ms to make.

    A file of certificates that has changed makes another one.

    Args:
        verify: ``True`` for the system's authorities or ``SSL_CERT_FILE``, ``False`` for nobody,
            or the path of a file or folder of certificates.

    Raises:
        NoCertificates: the path leads to none, or cannot be read.
    """
    files = certificates_of(verify, authorities_of_environment())
    return _tls_context(verify, stamps_of(files))


@lru_cache(maxsize=CONTEXTS_MAX)
def _tls_context(verify: bool | str, _stamps: Stamps) -> ssl.SSLContext:
    if isinstance(verify, bool):
        return httpx2.create_ssl_context(verify=verify)
    if Path(verify).is_dir():
        return ssl.create_default_context(capath=verify)
    try:
        return ssl.create_default_context(cafile=verify)
    except OSError as error:
        # What is wrong inside a file is said in words of OpenSSL, which are of no help.
        why = "" if isinstance(error, ssl.SSLError) else f" {error.strerror}:"
        raise NoCertificates(f"verify={verify!r}:{why} give a file of PEM certificates") from error

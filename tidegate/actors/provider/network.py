"""What a connection needs beside its address: certificates, and a way out of a closed network."""

from __future__ import annotations

import ssl
from functools import lru_cache, partial
from ipaddress import ip_address, ip_network
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import httpx2

from tidegate.actors.provider.capture import CapturedConnections
from tidegate.protocol.attempts import Target


CONTEXTS_MAX = 64

_PORTS = {"http": 80, "https": 443}
_ASKED = "tidegate.asked"
"""Where a request and those that it is redirected to note whom the first one was for."""


class NoHttpProxy(Exception):
    """The environment names a proxy of another kind."""


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
    where nobody has sent it, and so it raises ``ForeignRedirect``.
    """
    return httpx2.AsyncClient(
        transport=connections,
        follow_redirects=True,
        event_hooks={"request": [partial(_stay, target)]},
    )


async def _stay(target: Target, request: httpx2.Request) -> None:
    """Let a request go to the server that was asked first, and to no other."""
    asked: httpx2.URL = request.extensions.setdefault(_ASKED, request.url)
    if not _is_same_host(asked, request.url):
        setting = "endpoint_url" if target.wire == "converse" else "base_url"
        raise ForeignRedirect(
            f"{_origin_of(asked)} redirects to {_origin_of(request.url)}, which is another server "
            f"and was sent nothing: if it is meant, set {setting} to "
            + _base_there(target.base_url, asked, request.url)
        )


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

    Args:
        verify: ``True`` for the system's authorities or ``SSL_CERT_FILE``, ``False`` for nobody,
            or the path of a file or folder of certificates.

    Raises:
        NoCertificates: the path leads to none, or cannot be read.
    """
    return _tls_context(verify)  # the cache would take a default for another argument


@lru_cache(maxsize=CONTEXTS_MAX)
def _tls_context(verify: bool | str) -> ssl.SSLContext:
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


def proxy_for(base_url: str) -> str:
    """Return the environment's proxy for an address, which is never used within this machine.

    Raises:
        NoHttpProxy: it speaks something else.
    """
    parts = urlsplit(base_url)
    host = parts.hostname or ""
    if host == "localhost" or host.startswith("127.") or host == "::1":
        return ""
    proxies = getproxies()
    proxy = proxies.get(parts.scheme) or proxies.get("all") or ""
    if not proxy or _is_exempt(host, parts.port or _PORTS.get(parts.scheme, 0)):
        return ""
    if "://" not in proxy:
        return f"http://{proxy}"
    scheme, _, rest = proxy.partition("://")
    if scheme.lower() not in _PORTS:
        raise NoHttpProxy(
            f"the environment's proxy {scheme}://{rest.rpartition('@')[2]} is no HTTP proxy: give "
            f"proxy to the endpoint, or add {host} to NO_PROXY"
        )
    return proxy


def _is_exempt(host: str, port: int) -> bool:
    """Say whether ``NO_PROXY`` names a host: with its port, by a pattern, or by its network."""
    if proxy_bypass(host) or proxy_bypass(f"{host}:{port}"):
        return True
    entries = [each.strip().lower() for each in getproxies().get("no", "").split(",")]
    return any(_covers(each, host) for each in entries if each)


def _covers(entry: str, host: str) -> bool:
    if entry.startswith("*."):
        return host.endswith(entry[1:])
    try:
        return ip_address(host) in ip_network(entry, strict=False)
    except ValueError:
        return False  # one of them is a name

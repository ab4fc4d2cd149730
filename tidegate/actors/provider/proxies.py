"""Which proxy of the environment an address is reached by; nothing heavy is imported for it.

Path: ``provider/network.py``, ``daemon/config/troubles.py`` -> this
"""

from __future__ import annotations

from ipaddress import ip_address, ip_network
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass


_PORTS = {"http": 80, "https": 443}


class NoHttpProxy(Exception):
    """The environment names a proxy of another kind."""


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

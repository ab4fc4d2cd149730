"""Says in our words what transports say in words of their own.

What is theirs stays behind ours where it adds something: the system's reason, or how much had come.

Path: ``provider/exceptions.py`` -> this
"""

from __future__ import annotations

import os
import re
import ssl
from collections.abc import Callable, Iterator, Sequence
from urllib.parse import urlsplit


_Chain = Sequence[BaseException]

CUT = "the connection ended in the middle of the answer"
LOST = "the connection was lost"
UNANSWERED = "the server closed the connection without an answer"
NO_HTTP = "the answer is no HTTP"
_ABORTED = "Connection aborted."

_ENDED_EARLY = "peer closed connection without sending complete message body"
_HOLLOW = re.compile(
    r"Not enough data to satisfy|Response ended prematurely|Response payload is not completed"
    rf"|{_ENDED_EARLY}|HTTPS?ConnectionPool\(|All connection attempts failed|.*timed out\.?$|$"
)
"""Texts that say no more than ours."""

_CAME = re.compile(r"received (\d+) (?:of|bytes, expected) (\d+)")
_CAME_AND_LEFT = re.compile(r"IncompleteRead\((\d+) bytes read, (\d+) more expected\)")
_NO_ANSWER = re.compile(r"Server disconnected|.*RemoteDisconnected\(|<RawResponseMessage")
_FIRST_OF_TUPLE = re.compile(r"""\((["'])(?:Connection broken: )?(.*?)\1, .*\)$""", re.DOTALL)
_PREFIX = re.compile(r"\[(?:Errno -?\w+|SSL: \w+)\] |Bad status line: |JSON is malformed: ")
_SUFFIX = re.compile(r" \(_ssl\.c:\d+\)$| \^$")
_INFLATING = re.compile(r"Error -?\d+ while decompressing data: (.*)", re.DOTALL)
_TUNNEL = re.compile(r"Tunnel connection failed: ([^'\"]+)")
_ERRNO = re.compile(r"Error\((\d+), ")
_URL = re.compile(r"\bhttps?://\S+")
_NO_HTTP = {"HttpProcessingError", "ClientResponseError", "RemoteProtocolError", "BadStatusLine"}
_LINK = re.compile(r"\s*For more information check: https://\S+$")
_CONNECT_TIMEOUTS = {"ConnectionTimeoutError", "ConnectTimeout", "ConnectTimeoutError"}


def words_of(error: BaseException) -> str:
    """Return what an exception says, without the link that httpx has for browsers."""
    said = str(error)
    plain = _LINK.sub("", said)
    return said if plain == said else "; ".join(plain.splitlines())


def worded(reason: str, said: str, chain: _Chain) -> str:
    """Return what a failure for ``reason`` is said to be.

    Args:
        reason: as in ``Failure``.
        said: the transport's own text.
        chain: the exception and its causes.
    """
    make = _MAKERS.get(reason)
    return make(said, chain) if make is not None else said


def _cut(said: str, chain: _Chain) -> str:
    if came := _CAME.search(said):
        return f"{CUT}: {came[1]} of {came[2]} bytes had come"
    if came := _CAME_AND_LEFT.search(said):
        return f"{CUT}: {came[1]} of {int(came[1]) + int(came[2])} bytes had come"
    return _joined(CUT, said, chain)


def _reset(said: str, chain: _Chain) -> str:
    if _NO_ANSWER.match(said):
        return UNANSWERED
    if "BadStatusLine" in _names_in(chain):
        return _protocol(said, chain)
    return _joined(LOST, said, chain)


def _connect(said: str, chain: _Chain) -> str:
    if _is_of_botocore(chain):
        return said  # a sentence, with the address
    if said.startswith("[SSL"):
        return _tls(said, chain)
    place = _place_of(said, chain)
    names = {type(each).__name__ for each in chain}  # urllib3's ancestors say too much
    if not names.isdisjoint(_CONNECT_TIMEOUTS):
        return f"no connection to {place} in the time for it"
    if _is_late(names) and not _system_s(chain):
        return _joined(f"no answer from {place} in time", said, chain)
    return _joined(f"no connection to {place}", said, chain)


def _dns(said: str, chain: _Chain) -> str:
    host = _place_of(said, chain).rpartition(":")[0] or "the server"
    return _joined(f"no address for {host}", said, chain)


def _tls(said: str, chain: _Chain) -> str:
    place = _place_of(said, chain)
    for each in _all_of(chain):
        if isinstance(each, ssl.SSLCertVerificationError):
            why = getattr(each, "verify_message", "") or _plain(str(each))
            return f"the certificate of {place} cannot be trusted: {why}"
    why = next((str(each) for each in _all_of(chain) if _is_plain_ssl(each)), said)
    return f"no TLS with {place}: {_plain(why)}"


def _proxy(said: str, chain: _Chain) -> str:
    for each in chain:
        status, message = getattr(each, "status", None), getattr(each, "message", "")
        if isinstance(status, int):
            return f"the proxy answered {status} {message}".rstrip()
    if _is_of_botocore(chain) or "NoHttpProxy" in _names_in(chain):
        return said
    if _system_s(chain):
        # Whom requests and httpx had asked is not the proxy.
        place = next(filter(None, map(_connected_to, chain)), "")
        return _joined(f"no connection to the proxy {place}".rstrip(), said, chain)
    tunnel = _TUNNEL.search(said)
    return f"the proxy refused: {tunnel[1] if tunnel else _plain(said)}"


def _protocol(said: str, chain: _Chain) -> str:
    if said.startswith(_ENDED_EARLY):
        return _cut(said, chain)
    if _NO_ANSWER.match(said):
        return UNANSWERED
    if _NO_HTTP.isdisjoint(_names_in(chain)):
        return said
    theirs = _plain(said)
    return NO_HTTP if theirs == _ABORTED else f"{NO_HTTP}: {theirs}"


def _encoding(said: str, _chain: _Chain) -> str:
    found = _INFLATING.search(said)
    return f"the answer cannot be decompressed: {found[1]}".rstrip("')") if found else said


def _json(said: str, _chain: _Chain) -> str:
    return f"what should be JSON is none: {_plain(said)}"


def _header(_said: str, _chain: _Chain) -> str:
    return "a header has a character that cannot be sent: headers are ASCII"  # and may be secret


def _url(said: str, _chain: _Chain) -> str:
    return said if " " in said else f"no URL that can be asked: {said}"


_MAKERS: dict[str, Callable[[str, _Chain], str]] = {
    "cut": _cut,
    "reset": _reset,
    "connect": _connect,
    "dns": _dns,
    "tls": _tls,
    "proxy": _proxy,
    "protocol": _protocol,
    "encoding": _encoding,
    "json": _json,
    "header": _header,
    "url": _url,
}


def _joined(ours: str, said: str, chain: _Chain) -> str:
    theirs = _system_s(chain) or ("" if _HOLLOW.match(said) else _plain(said))
    return f"{ours}: {theirs}" if theirs else ours


def _system_s(chain: _Chain) -> str:
    """Return the operating system's reason, empty if it gave none."""
    for each in _all_of(chain):
        if isinstance(each, OSError) and type(each).__name__ == "gaierror":
            return each.strerror or ""  # its number is none of the system's
        if isinstance(each, OSError) and not isinstance(each, ssl.SSLError) and each.errno:
            return os.strerror(each.errno)
    found = next(filter(None, map(_ERRNO.search, map(str, chain))), None)
    return os.strerror(int(found[1])) if found else ""


def _plain(said: str) -> str:
    """Return a text in one line, without what is for programs alone."""
    if found := _FIRST_OF_TUPLE.match(said):
        said = found[2]
    return _SUFFIX.sub("", _PREFIX.sub("", " ".join(said.split())))


def _all_of(chain: _Chain) -> Iterator[BaseException]:
    """Yield the exceptions with those that aiohttp keeps in theirs, the innermost first."""
    for each in reversed(chain):
        for name in ("certificate_error", "os_error"):
            if isinstance(kept := getattr(each, name, None), BaseException):
                yield kept
        yield each


def _is_plain_ssl(error: BaseException) -> bool:
    return type(error).__module__ == "ssl"


def _is_late(names: set[str]) -> bool:
    return any("Timeout" in each for each in names)


def _names_in(chain: _Chain) -> set[str]:
    return {each.__name__ for error in chain for each in type(error).__mro__}


def _is_of_botocore(chain: _Chain) -> bool:
    return any(type(each).__module__.startswith("botocore.") for each in chain)


def _place_of(said: str, chain: _Chain) -> str:
    """Return the host and the port that was asked, as far as anybody says."""
    asked = (_place_in(found[0]) for found in _URL.finditer(said))
    return next((each for each in (*_places_in(chain), *asked) if each), "the server")


def _places_in(chain: _Chain) -> Iterator[str]:
    for each in chain:
        if place := _connected_to(each):
            yield place
        # Those of httpx raise if they are asked for a request that they do not have.
        request = each.__dict__.get("_request") or each.__dict__.get("request")
        if place := _place_in(str(getattr(request, "url", ""))):
            yield place


def _connected_to(error: BaseException) -> str:
    """Return the place that aiohttp keeps."""
    host, port = getattr(error, "host", None), getattr(error, "port", None)
    return _place(host, port) if isinstance(host, str) and isinstance(port, int) else ""


def _place_in(url: str) -> str:
    try:
        split = urlsplit(url)
        port = split.port
    except ValueError:
        return ""
    if not split.hostname:
        return ""
    return _place(split.hostname, port or (443 if split.scheme == "https" else 80))


def _place(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"

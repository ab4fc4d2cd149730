"""What the value of a key must look like: in words, and as a reader that refuses the rest."""

from __future__ import annotations

import ipaddress
import math
import re
from collections.abc import Callable
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from tidegate.daemon.config.disconnect import WANTED, OnDisconnect, parse_on_disconnect
from tidegate.daemon.config.references import is_reference, looks_like_reference
from tidegate.errors import ConfigurationError
from tidegate.protocol import addresses
from tidegate.protocol.knobs import WHOLE_MAX, Form


class Kind(NamedTuple):
    """What a value must look like.

    Attributes:
        wanted: in words, to follow "give".
        read: makes what is kept of what was given; what is kept is read as itself. It raises
            ValueError, or a ConfigurationError that says the whole of what is wrong.
        parse: turns a variable's text into what ``read`` takes; raises ValueError.
    """

    wanted: str
    read: Callable[[str, Any], Any]
    parse: Callable[[str], Any]


_HOST_NAME = re.compile(r"(?!-)[A-Za-z0-9._-]{1,253}")
_PORT = re.compile(r"[0-9]{1,5}")
_DEFAULT_PORTS = {"http": 80, "https": 443}
_YES = ("1", "true", "yes", "on")
_NO = ("0", "false", "no", "off")
_TUPLE_AS_LIST = ("as a tuple such as (1, 2, 4)", "as a list such as [1, 2, 4]")


def whole(low: int, high: int = WHOLE_MAX, *, unit: str = "") -> Kind:
    """Return the kind of whole numbers in a range, both ends included."""

    def read(_name: str, value: Any) -> int:
        if type(value) is not int or not low <= value <= high:
            raise ValueError
        return value

    of = f" of {unit}" if unit else ""
    limit = f" and at most {high}" if high < WHOLE_MAX else ""
    return Kind(f"a whole number{of} of at least {low}{limit}", read, int)


def seconds(*, from_zero: bool = False) -> Kind:
    """Return the kind of finite durations."""

    def read(_name: str, value: Any) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ValueError  # noqa: TRY004 - the reader's one way to refuse
        if not (0 <= value < math.inf) or (value == 0 and not from_zero):
            raise ValueError
        return float(value)

    return Kind(
        "a number of seconds of at least 0" if from_zero else "a number of seconds above 0",
        read,
        float,
    )


def choice(*words: str) -> Kind:
    """Return the kind of words of which there are only these."""

    def read(_name: str, value: Any) -> str:
        if not isinstance(value, str) or value not in words:
            raise ValueError
        return value

    return Kind(f"one of {', '.join(words)}", read, str)


def many(of: Kind, wanted: str) -> Kind:
    """Return the kind of lists; a variable has its items between commas."""

    def read(name: str, value: Any) -> tuple[Any, ...]:
        if not isinstance(value, list | tuple):
            raise ValueError  # noqa: TRY004 - the reader's one way to refuse
        return tuple(of.read(name, item) for item in value)

    def parse(text: str) -> list[Any]:
        return [of.parse(item.strip()) for item in text.split(",") if item.strip()]

    return Kind(wanted, read, parse)


def from_form(form: Form) -> Kind:
    """Return the kind of a policy's field; in a file a tuple is a list."""

    def read(_name: str, value: Any) -> Any:
        given = tuple(value) if isinstance(value, list) else value
        if not form.accepts(given):
            raise ValueError
        return given

    return Kind(form.wanted.replace(*_TUPLE_AS_LIST), read, form.parse)


def checked(wanted: str, check: Callable[[str, Any], None]) -> Kind:
    """Return the kind of texts that pass one of an endpoint's own checks."""

    def read(name: str, value: Any) -> Any:
        if not isinstance(value, str):  # None is nothing to them, and other kinds would be shown
            raise ValueError  # noqa: TRY004 - the reader's one way to refuse
        check(name, value)
        return value

    return Kind(wanted, read, str)


def _flag(_name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError  # noqa: TRY004 - the reader's one way to refuse
    return value


def _parsed_flag(text: str) -> bool:
    if text.lower() not in (*_YES, *_NO):
        raise ValueError
    return text.lower() in _YES


def split_listen(text: str) -> tuple[str, int]:
    """Return host and port; the host is an address without brackets, or a name.

    Raises:
        ValueError: it is no ``HOST:PORT``.
    """
    host, _, port = text.rpartition(":")
    if not _PORT.fullmatch(port) or int(port) > 65535:
        raise ValueError
    if host.startswith("[") and host.endswith("]"):
        return str(ipaddress.IPv6Address(host[1:-1])), int(port)
    if not _HOST_NAME.fullmatch(host):
        raise ValueError
    return host, int(port)


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach ``host``; a name other than localhost may be anything."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _listen(_name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError  # noqa: TRY004 - the reader's one way to refuse
    split_listen(value)
    return value


def _reference(_name: str, value: Any) -> str:
    if not isinstance(value, str) or not is_reference(value):
        raise ValueError
    return value


def _origin(_name: str, value: Any) -> str:
    if not isinstance(value, str) or not value.isascii() or value != value.lower():
        raise ValueError
    parts = urlsplit(value)
    plain = f"{parts.scheme}://{parts.netloc}" == value and "@" not in parts.netloc
    if not parts.scheme or not plain or not _is_host(parts.hostname or ""):
        raise ValueError
    if parts.port in (0, _DEFAULT_PORTS.get(parts.scheme)) and parts.port is not None:
        raise ValueError
    return value


def _is_host(host: str) -> bool:
    if _HOST_NAME.fullmatch(host):
        return True
    try:
        ipaddress.IPv6Address(host)
    except ValueError:
        return False
    return True


def _host(_name: str, value: Any) -> str:
    if not isinstance(value, str) or not _HOST_NAME.fullmatch(value):
        raise ValueError
    return value.lower()


def _on_disconnect(name: str, value: Any) -> OnDisconnect:
    return value if isinstance(value, OnDisconnect) else parse_on_disconnect(value, name=name)


def _verify(name: str, value: Any) -> bool | str:
    if isinstance(value, bool):
        return value
    if not isinstance(value, str):
        raise ValueError  # noqa: TRY004 - the reader's one way to refuse
    addresses.check_text(name, value)
    return value


def _parsed_verify(text: str) -> bool | str:
    return _parsed_flag(text) if text.lower() in ("true", "false") else text


def _pairs(name: str, value: Any) -> dict[str, str]:
    addresses.check_pairs(name, value)  # which shows names alone
    for each, text in value.items():
        if name == "query" and (is_reference(text) or looks_like_reference(text)):
            raise ConfigurationError(
                f"query[{each!r}] would be sent as it stands, for a query takes no references: "
                "give the value itself, or best a header with 'env:NAME' or 'file:PATH'"
            )
    return dict(value)


def _no_variable(_text: str) -> Any:
    raise ValueError


FLAG = Kind("true or false", _flag, _parsed_flag)
LISTEN = Kind(
    "HOST:PORT, such as 127.0.0.1:8765 or [::1]:8765, with 0.0.0.0 for all addresses and "
    "port 0 for any that is free",
    _listen,
    str,
)
TEXT = checked("a text without control characters", addresses.check_text)
JOURNAL = checked("the path of a file, or 'none'", addresses.check_text)
MODEL = checked("smollm2, or the path of a .gguf file", addresses.check_text)
BASE_URL = checked("an http:// or https:// address", addresses.check_base_url)
PROXY = checked("an http:// or https:// address", addresses.check_address)
PAIRS = Kind("a table of texts, which no variable can hold", _pairs, _no_variable)
VERIFY = Kind("true, false or the path of a CA file", _verify, _parsed_verify)
REFERENCE = Kind(
    "'env:NAME' or 'file:PATH', for a key itself has no place in a configuration", _reference, str
)
REFERENCES = many(REFERENCE, "a list of 'env:NAME' or 'file:PATH', never the keys themselves")
PATTERNS = many(TEXT, "a list of patterns, such as ['gpt-*', 'o?']")
ORIGINS = many(
    Kind("", _origin, str),
    "a list of origins as browsers send them, such as ['https://app.example', "
    "'http://localhost:3000']",
)
HOSTS = many(Kind("", _host, str), "a list of host names without ports, such as ['gate.lan']")
ON_DISCONNECT = Kind(WANTED, _on_disconnect, str)
